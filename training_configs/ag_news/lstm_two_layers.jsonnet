// AG's news topics by the last state of the upper of two LSTM layers, with dropout between them.
(import 'lstm.jsonnet') + {
  model+: { seq2vec_encoder+: { num_layers: 2, dropout: 0.3 } },
}
