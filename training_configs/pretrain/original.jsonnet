// The published ELMo: 93.6 million parameters, trained as bilm-tf trains it (Peters et al. 2018, section 3.4; bilm-tf's
// bin/train_elmo.py). It is meant for some GPUs and a corpus such as the 1B Word Benchmark, 30 million lines.
// Each process has 128 streams, so that several processes make the batch larger, as in bilm-tf.
(import '../lib/pretraining.libsonnet') {
  cell_dim:: 4096,
  projection_dim:: 512,
  num_highway_layers:: 2,
  // bilm-tf's vocabulary: all words that occur three times.
  min_count:: 3,

  network:: {
    type: 'characters',
    options: {
      lstm: {
        use_skip_connections: true,
        projection_dim: $.projection_dim,
        cell_clip: 3,
        proj_clip: 3,
        dim: $.cell_dim,
        n_layers: 2,
      },
      char_cnn: {
        activation: 'relu',
        filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        n_highway: $.num_highway_layers,
        embedding: { dim: 16 },
        n_characters: 262,
        max_characters_per_token: 50,
      },
    },
  },

  trainer+: {
    num_epochs: 10,
    // bilm-tf multiplies the loss by the number of steps, starts Adagrad's sums at 1 and clips the gradient at 10. This
    // is the same with a loss that is a mean.
    optimizer: { type: 'adagrad', lr: 0.2, initial_accumulator_value: 1 / ($.unroll_steps * $.unroll_steps) },
    grad_norm: 10 / $.unroll_steps,
    checkpointer+: { save_every_num_batches: 5000 },
  },
}
