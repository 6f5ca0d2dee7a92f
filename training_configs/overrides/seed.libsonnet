// All three seeds at once:  -o "(import 'training_configs/overrides/seed.libsonnet')(2)"
function(seed) { random_seed: seed, numpy_seed: seed, pytorch_seed: seed }
