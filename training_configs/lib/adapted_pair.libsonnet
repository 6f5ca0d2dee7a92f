// A pair model of allennlp-models instead of ours; a config adds to `network`. Labels, metrics and output stay the same,
// and so does the symmetry: each sentence is the premise once.
{
  model: {
    type: 'adapted_pair_classifier',
    positive_label: $.task.model.positive_label,
    symmetric: $.task.model.symmetric,
    network: {
      text_field_embedder: { token_embedders: { elmo: $.elmo } },
    },
  },
}
