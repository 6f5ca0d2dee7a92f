// A biLM that fits into 16 MB (5.4 million parameters in float16) and can be pretrained on one CPU core: some 3,000 tokens
// a second.
(import '../lib/pretraining.libsonnet') {
  local corpus = (import '../lib/env.libsonnet').corpus,
  // As much text as one core reads in an hour and a half, film reviews before all: 17.3 of 35 million tokens.
  text:: { train: [corpus + '/movie.txt.xz#:55%', corpus + '/news.txt.xz#:30%'], heldout: corpus + '/*.txt.xz#99%:' },
  // With 20 unroll steps, 3,840 predictions for each update.
  batch_size:: 192,
  max_words:: 25000,

  network:: {
    type: 'characters',
    options: {
      lstm: {
        use_skip_connections: true,
        projection_dim: 256,
        cell_clip: 3,
        proj_clip: 3,
        dim: 512,
        n_layers: 2,
      },
      char_cnn: {
        activation: 'relu',
        filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]],
        n_highway: 1,
        embedding: { dim: 16 },
        n_characters: 262,
        max_characters_per_token: 50,
      },
    },
  },

  // Whole sentences, since ELMo reads whole sentences later; half of them lower-cased, as MR is.
  dataset_reader+: { mode: 'sentence', lowercase_share: 0.5 },

  model+: {
    softmax: { type: 'sampled', num_samples: 1024 },
    // A third faster where the processor has bfloat16 instructions; elsewhere set it to float32.
    precision: 'bfloat16',
    // One pass over the text: nothing is seen twice, nothing is learnt by heart.
    dropout: 0.0,
  },

  trainer+: {
    // float16: half of the size, and nothing that a classifier would notice.
    callbacks: [{ type: 'export_bilm', dtype: 'float16' }],
    checkpointer+: { save_every_num_batches: 200 },
    learning_rate_scheduler: { type: 'linear_with_warmup', warmup_steps: 100 },
  },

  // Several cores are used best by several processes, since each step of an LSTM is too small to share. On two:
  // OMP_NUM_THREADS=1, -o '{"distributed.cuda_devices": [-1, -1], "data_loader.batch_size": 96}'
}
