// A biLM that fits into 16 MB (7.2 million parameters in float16) and is pretrained on two CPU cores in an hour.
(import '../lib/pretraining.libsonnet') {
  local corpus = (import '../lib/env.libsonnet').corpus,
  // As much text as two cores read in forty minutes: of 35 million tokens, 13.
  text:: { train: corpus + '/*.txt*#:37%', heldout: corpus + '/*.txt*#99%:' },
  // Of each of two processes; with 20 unroll steps, 3,840 predictions for each update.
  batch_size:: 96,
  max_words:: 25000,

  network:: {
    type: 'characters',
    // What they know of meaning from their start (below), predicting the next word would overwrite.
    train_token_vectors: false,
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
        filters: [[1, 32], [2, 64], [3, 128], [4, 256], [5, 256], [6, 288]],
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
    callbacks: [
      // The characters of a word say little of what it means, and so little text as this teaches a language model no
      // more: after 8 million tokens, a linear model of mean token vectors had 65 % on MR, as with random ones (with
      // this start, 74 %).
      {
        type: 'start_token_vectors',
        reader: $.dataset_reader,
        data_path: corpus + '/*.txt*#:99%',
      },
      // float16: half of the size, and nothing that a classifier would notice.
      { type: 'export_bilm', dtype: 'float16' },
    ],
    checkpointer+: { save_every_num_batches: 200 },
    learning_rate_scheduler: { type: 'linear_with_warmup', warmup_steps: 100 },
  },

  // Two cores are used best by two processes (OMP_NUM_THREADS=1): each step of an LSTM is too small to share.
  // On a GPU: -o '{"distributed": null, "data_loader.batch_size": 192}'
  distributed: { cuda_devices: [-1, -1] },
}
