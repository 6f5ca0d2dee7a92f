// The search space that all classification tasks share; a name is a key as `-o` takes it, or that of a set of overrides.
//   allennlp sweep training_configs/mrpc.jsonnet training_configs/sweeps/elmo.libsonnet -s runs/mrpc_sweep --trials 50
// Not for baselines/elmo_linear.jsonnet and what is made of it: their schedule keeps the config's rate (see there).
local elmo = 'model.text_field_embedder.token_embedders.elmo';
// Nothing of a single layer is trained, so that the group of the mix would be empty.
local single(layer) = {
  [elmo + '.mix']: { type: 'single_layer', layer: layer, layer_norm: true },
  'trainer.optimizer.parameter_groups': null,
};

{
  'trainer.optimizer.lr': { type: 'float', low: 1e-4, high: 1e-1, log: true },
  [elmo + '.dropout']: { type: 'float', low: 0, high: 0.6, step: 0.1 },
  mix: {
    type: 'overrides',
    choices: {
      plain: { [elmo + '.mix']: { type: 'scalar' } },
      normed: { [elmo + '.mix']: { type: 'scalar', layer_norm: true } },
      token_dependent: { [elmo + '.mix']: { type: 'token_dependent', layer_norm: true } },
      words_only: single(0),
      first_layer: single(1),
      top_layer: single(-1),
    },
  },
}
