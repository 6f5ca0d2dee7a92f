// AG's news topics by the last state of an LSTM that reads characters, blanks among them, in place of words: hundreds of
// steps a text, a vocabulary of some hundred. Lengths differ most here, and with them what a last state over padding is worth.
(import 'lstm.jsonnet') + {
  embedding_dim:: 32,
  dataset_reader+: { tokenizer: { type: 'character' } },
}
