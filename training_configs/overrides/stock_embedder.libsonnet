// AllenNLP's own embedder, reading the folder of ELMO_TASKS_BILM: for comparisons. It keeps state between batches.
local bilm = std.extVar('ELMO_TASKS_BILM');
{
  'model.text_field_embedder.token_embedders.elmo': {
    type: 'elmo_token_embedder',
    options_file: bilm + '/options.json',
    weight_file: bilm + '/weights.hdf5',
  },
}
