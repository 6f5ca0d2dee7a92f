// Word vectors beside ELMo, as in nearly all models of the ELMo paper (section 4 and appendix). They start at random;
// a file of vectors such as GloVe's, a word and 300 numbers a line, is one option, and no longer needed once trained:
//   -o '{"model.text_field_embedder.token_embedders.words.pretrained_file": "glove.6B.300d.txt.gz"}'
// With mini and vectors that start at random, one core: 76.0 % on the real rt_val.txt (one seed, dev 78.3 %, four minutes): no gain
// over the base, which 6,700 sentences are too few for.
// What replaces the parameter groups, as overrides/fine_tune.libsonnet and some variants of comparisons/layers.libsonnet
// and sweeps/elmo.libsonnet do, takes from the vectors their own rate.
(import '../mr.jsonnet') + {
  dataset_reader+: {
    token_indexers+: { words: { type: 'single_id', lowercase_tokens: true } },
  },
  model+: {
    text_field_embedder+: {
      token_embedders+: { words: { type: 'embedding', embedding_dim: 300 } },
    },
  },
  trainer+: {
    optimizer+: {
      // The rate of one linear layer would be too much for a vector of each word.
      parameter_groups+: [[['token_embedder_words'], { lr: 1e-3 }]],
    },
  },
}
