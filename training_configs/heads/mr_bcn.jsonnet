// Biattentive classification network (McCann et al. 2017, "Learned in Translation", section 5): `bcn` of allennlp-models
// with the sizes of the config that it was published with, over ELMo alone, for two labels.
// With mini, one core: 79.7 +- 0.8 % on the real rt_val.txt (three seeds, 42 minutes each beside other work).
(import '../mr.jsonnet') + (import '../lib/encoder.libsonnet') + {
  cell_dim:: 300,

  // Under the name `elmo` the network would take AllenNLP's `Elmo` only, which carries states from batch to batch.
  dataset_reader+: {
    token_indexers: { bilm: { type: 'elmo_character_arrays' } },
  },
  model: {
    type: 'adapted_sentence_classifier',
    positive_label: $.task.model.positive_label,
    network: {
      type: 'bcn',
      text_field_embedder: { token_embedders: { bilm: $.elmo } },
      embedding_dropout: 0.25,
      pre_encode_feedforward: {
        input_dim: $.elmo.bilm_dim, num_layers: 1, hidden_dims: $.cell_dim, activations: 'relu', dropout: 0.25,
      },
      encoder: { type: 'lstm', input_size: $.cell_dim, hidden_size: $.cell_dim, bidirectional: true },
      // [x; x - y; x * y]
      integrator: { type: 'lstm', input_size: 3 * 2 * $.cell_dim, hidden_size: $.cell_dim, bidirectional: true },
      integrator_dropout: 0.1,
      // Maximum, minimum, mean and self-attentive mean.
      output_layer: {
        input_dim: 4 * 2 * $.cell_dim,
        num_layers: 3,
        output_dims: [4 * $.cell_dim, 2 * $.cell_dim, 2],
        pool_sizes: 4,
        dropout: [0.2, 0.3, 0.0],
      },
    },
  },
}
