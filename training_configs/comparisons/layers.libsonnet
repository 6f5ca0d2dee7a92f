// What each layer of the biLM knows of a task, and what mixing them adds: for `mr.jsonnet`, `mrpc.jsonnet` and what is made
// of them.
//   allennlp compare training_configs/mr.jsonnet training_configs/comparisons/layers.libsonnet -s runs/mr_layers --seeds 5
// From one to the next a single thing changes: a layer alone, the fixed average of the three (the baseline), trained
// weights, the same over normed layers (the default of the configs), and weights that depend on the token.
local elmo = 'model.text_field_embedder.token_embedders.elmo';
// Nothing of these mixes is trained, so that the group of the mix would be empty.
local fixed(mix) = { [elmo + '.mix']: mix, 'trainer.optimizer.parameter_groups': null };

{
  ['layer_%d' % layer]: fixed({ type: 'single_layer', layer: layer })
  for layer in [0, 1, 2]
} + {
  average: fixed({ type: 'scalar', trainable: false }),
  learned: { [elmo + '.mix']: { type: 'scalar' } },
  learned_normed: { [elmo + '.mix']: { type: 'scalar', layer_norm: true } },
  token_dependent: import '../overrides/token_dependent.libsonnet',
}
