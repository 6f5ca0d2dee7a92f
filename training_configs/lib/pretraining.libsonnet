// Everything that the pretraining configs share: text in, biLM out. A config adds `network::`, `text::` and its own
// differences.
local env = import 'env.libsonnet';

{
  // The last hundredth of the lines of each file is held out.
  text:: { train: env.corpus + '/*.txt*#:99%', heldout: env.corpus + '/*.txt*#99%:' },
  network:: error 'a config must set network::, a BiLmNetwork',
  // Streams of a batch, and predictions of each stream in a batch.
  batch_size:: 128,
  unroll_steps:: 20,
  // Words of the vocabulary besides the special ones, the most frequent; null: all that occur `min_count` times.
  max_words:: null,
  min_count:: 1,

  dataset_reader: { type: 'bilm_text', unroll_steps: $.unroll_steps },
  train_data_path: $.text.train,
  validation_data_path: $.text.heldout,
  // The words that are predicted are those of the training part.
  vocabulary: {
    type: 'bilm_text',
    reader: $.dataset_reader,
    data_path: $.train_data_path,
    max_words: $.max_words,
    min_count: $.min_count,
  },
  datasets_for_vocab_creation: [],

  model: { type: 'bilm_language_model', network: $.network },

  data_loader: { type: 'bilm_text', batch_size: $.batch_size },

  // `cuda_device` is absent on purpose: AllenNLP then takes the GPU where there is one.
  trainer: {
    num_epochs: 1,
    validation_metric: '-perplexity',
    // Checkpoints within an epoch, after which `--recover` goes on exactly there.
    checkpointer: { type: 'atomic', save_every_num_batches: 500 },
    optimizer: { type: 'adam', lr: 2e-3 },
    grad_norm: 1.0,
    // options.json and weights.hdf5 of the best epoch, in the folder `bilm` of the run.
    callbacks: if $.network.type == 'characters' then [{ type: 'export_bilm' }] else [],
  },
}
