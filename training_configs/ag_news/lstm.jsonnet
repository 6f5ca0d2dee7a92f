// AG's news topics by the last state of an LSTM: rnn.jsonnet with gates, which let it see the beginning of the text.
// Mended as there.
// On the sample, one core: 81.9 +- 4.4 % (three seeds, a minute each).
(import 'rnn.jsonnet') + {
  model+: { seq2vec_encoder+: { type: 'lstm' } },
}
