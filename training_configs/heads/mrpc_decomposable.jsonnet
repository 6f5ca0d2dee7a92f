// Decomposable attention (Parikh et al. 2016, "A Decomposable Attention Model for Natural Language Inference"):
// `decomposable_attention` of allennlp-models with the source's layers of 200, over ELMo. It knows no order of words but
// what ELMo tells.
// With mini, one core: 68.6 +- 0.2 % and 80.0 +- 0.7 F1 on the real test part (four seeds, three minutes each).
(import '../mrpc.jsonnet') + (import '../lib/encoder.libsonnet') + (import '../lib/adapted_pair.libsonnet') + {
  hidden_dim:: 200,
  local two_layers(input_dim) = {
    input_dim: input_dim, num_layers: 2, hidden_dims: $.hidden_dim, activations: 'relu', dropout: 0.2,
  },

  model+: {
    network+: {
      type: 'decomposable_attention',
      attend_feedforward: two_layers($.elmo.bilm_dim),
      matrix_attention: 'dot_product',
      compare_feedforward: two_layers(2 * $.elmo.bilm_dim),
      aggregate_feedforward: two_layers(2 * $.hidden_dim) {
        hidden_dims: [$.hidden_dim, 2], activations: ['relu', 'linear'], dropout: [0.2, 0.0],
      },
    },
  },
}
