// Each token has layer weights of its own; for `mr.jsonnet`, `mrpc.jsonnet` and what is made of them. A classifier may
// use it; in a language model it would be cheating: such weights look at vectors of both directions, and one of the two
// has read the word that is to be predicted.
{
  'model.text_field_embedder.token_embedders.elmo.mix': { type: 'token_dependent', layer_norm: true },
}
