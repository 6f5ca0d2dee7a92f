// A biLM over words (pretrain/mrpc_words.jsonnet), its three layers averaged, and the last state of an LSTM over them.
//   allennlp train training_configs/pretrain/mrpc_words.jsonnet -s runs/words
//   export ELMO_TASKS_WORD_BILM=runs/words/model.tar.gz
// The biLM knows the sentences of the dev part by heart too, though not their labels: dev figures flatter it, those of the
// test part do not. It brings its own vocabulary; words that it has not read are one word to it.
// With the 10,000 steps of that config, one core: 69.7 % and 78.8 F1 on the real test part (one seed, dev 72.5 %, eight
// minutes).
local env = import '../lib/env.libsonnet';
(import '../mrpc.jsonnet') + (import '../lib/encoder.libsonnet') + {
  // Two directions of 256; those of the sample are smaller.
  local bilm_dim = if std.endsWith(env.word_bilm, 'fixtures/word_bilm') then 32 else 512,

  elmo:: (import '../lib/elmo.libsonnet').named(env.word_bilm, bilm_dim) {
    mix: { type: 'scalar', trainable: false },
  },
  model+: {
    seq2vec_encoder: { type: 'lstm', input_size: $.elmo.bilm_dim, hidden_size: 256 },
    dropout: 0.3,
  },
  // One group: the mix has nothing to train.
  trainer+: { optimizer: { type: 'adam', lr: 1e-3 } },
}
