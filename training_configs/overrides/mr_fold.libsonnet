// MR by its usual protocol, one of ten folds:  -o "(import 'training_configs/overrides/mr_fold.libsonnet')(0)"
local mr = std.extVar('ELMO_TASKS_MR');
function(fold) {
  'dataset_reader.fold': fold,
  train_data_path: mr + '#train',
  validation_data_path: mr + '#dev',
  test_data_path: mr + '#test',
}
