// For one sentence: also the head, and how it pools.
//   allennlp sweep training_configs/mr.jsonnet training_configs/sweeps/mr.libsonnet -s runs/mr_sweep --trials 50
// A home-made biLM is a file of one line: (import 'mr.libsonnet') { bilm_dim:: 1024 }
local elmo = import '../lib/elmo.libsonnet';
local cell_dim = 128;

(import 'elmo.libsonnet') {
  // The size of a token vector, on which those of encoders depend.
  bilm_dim:: elmo.chosen.bilm_dim,

  local encoders = {
    linear: { dim: $.bilm_dim, overrides: {} },
    feedforward: {
      dim: $.bilm_dim,
      overrides: {
        'model.feedforward': {
          input_dim: $.bilm_dim, num_layers: 1, hidden_dims: cell_dim, activations: 'relu', dropout: 0.2,
        },
      },
    },
    bilstm: {
      dim: 2 * cell_dim,
      overrides: {
        'model.seq2seq_encoder': {
          type: 'lstm', input_size: $.bilm_dim, hidden_size: cell_dim, bidirectional: true,
        },
      },
    },
  },
  local poolings = {
    mean(dim):: { type: 'bag_of_embeddings', embedding_dim: dim, averaged: true },
    max(dim):: { type: 'max_pooling', embedding_dim: dim },
  },

  head: {
    type: 'overrides',
    choices: {
      [encoder + ', ' + pooling]: encoders[encoder].overrides {
        'model.seq2vec_encoder': poolings[pooling](encoders[encoder].dim),
      }
      for encoder in std.objectFields(encoders)
      for pooling in ['mean', 'max']
    },
  },
}
