// What pretraining saves in labelled rows: shares of MR's training part, with the biLM as it was pretrained and with one
// of the same size whose weights are random.
//   allennlp compare training_configs/mr.jsonnet training_configs/comparisons/data_efficiency.libsonnet -s runs/mr_shares \
//     --seeds 5 --baseline pretrained_100%
// The rows of a smaller share are among those of a larger one, and the same for every seed: over seeds, the spread is that
// of training alone. With `--folds 10` each fold draws its own, and the spread is that of the choice, too.
local elmo = 'model.text_field_embedder.token_embedders.elmo';
local bilms = { pretrained: {}, untrained: { [elmo + '.untrained_seed']: 0 } };

{
  ['%s_%d%%' % [bilm, percent]]: bilms[bilm] {
    'dataset_reader.train_share': percent / 100,
    // Small shares are read more often, up to ten times as often: a model learns in steps, not in epochs.
    local factor = std.min(10, std.ceil(100 / percent)),
    'trainer.num_epochs': 30 * factor,
    'trainer.patience': 10 * factor,
  }
  for bilm in std.objectFields(bilms)
  for percent in [1, 3, 10, 30, 100]
}
