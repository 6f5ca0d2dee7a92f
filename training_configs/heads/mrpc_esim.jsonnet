// ESIM (Chen et al. 2017, "Enhanced LSTM for Natural Language Inference"): `esim` of allennlp-models, over ELMo, with
// half of the source's 300 cells: MRPC has 4,000 pairs, SNLI half a million.
// With mini, one core: 71.9 % and 80.7 F1 on the real test part (one seed, dev 74.5 %, half an hour beside other work).
(import '../mrpc.jsonnet') + (import '../lib/encoder.libsonnet') + (import '../lib/adapted_pair.libsonnet') + {
  cell_dim:: 150,
  local lstm(input_dim) = { type: 'lstm', input_size: input_dim, hidden_size: $.cell_dim, bidirectional: true },

  model+: {
    network+: {
      type: 'esim',
      encoder: lstm($.elmo.bilm_dim),
      matrix_attention: 'dot_product',
      projection_feedforward: {
        input_dim: 4 * 2 * $.cell_dim, num_layers: 1, hidden_dims: $.cell_dim, activations: 'relu',
      },
      inference_encoder: lstm($.cell_dim),
      // Mean and maximum of both sentences.
      output_feedforward: {
        input_dim: 4 * 2 * $.cell_dim, num_layers: 1, hidden_dims: $.cell_dim, activations: 'relu', dropout: 0.5,
      },
      output_logit: { input_dim: $.cell_dim, num_layers: 1, hidden_dims: 2, activations: 'linear' },
    },
  },
}
