// classification.libsonnet with word embeddings, trained with the rest, in place of ELMo. A config adds `task::` and, for
// anything but the mean over the words, a `seq2vec_encoder`.
(import 'classification.libsonnet') + {
  embedding_dim:: 100,

  dataset_reader+: { token_indexers: { tokens: { type: 'single_id', lowercase_tokens: true } } },
  // Words that occur once share one vector with the words that only the dev and test parts hold, so that it is trained.
  vocabulary: { min_count: { tokens: 2 } },

  model+: {
    text_field_embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: $.embedding_dim } } },
    dropout: 0.3,
  },

  trainer+: {
    num_epochs: 20,
    // With eighteen batches an epoch, as on the sample, the first epochs are little better than chance.
    patience: 10,
    optimizer: { type: 'adam', lr: 3e-3 },
  },
}
