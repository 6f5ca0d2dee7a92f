// A biLM over words instead of characters, learnt by heart from the sentences of 2,000 MRPC pairs: 2 layers of 256, so
// that each token has three layers of 512. It is for study: what it learns cannot be exported as an ELMo.
(import '../lib/pretraining.libsonnet') {
  local env = import '../lib/env.libsonnet',
  text:: { train: env.mrpc + '/msr_paraphrase_train.txt', heldout: null },
  // About 16 sentences, 250 steps for each pass: 40 passes are 10,000 steps.
  batch_size:: 16,
  unroll_steps:: 25,

  dataset_reader+: {
    mode: 'sentence',
    number_word: '<NUM>',
    source: { type: 'mrpc', max_instances: 2000 },
  },

  network:: { type: 'words', projection_dim: 256, cell_dim: 256 },
  model+: { softmax: { type: 'full' }, dropout: 0.0 },

  trainer+: { num_epochs: 40, optimizer: { type: 'adam', lr: 2e-3 } },
}
