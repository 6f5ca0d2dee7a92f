// An override of the embedder for the heads of allennlp-models, where it is one level deeper; in mr_bcn.jsonnet it is
// called `bilm`:
//   -o "(import 'training_configs/overrides/network.libsonnet')(import 'training_configs/overrides/fine_tune.libsonnet')"
//   -o "(import 'training_configs/overrides/network.libsonnet')(import '….libsonnet', 'bilm')"
local elmo = 'model.text_field_embedder.token_embedders.elmo';
function(override, embedder='elmo') {
  [std.strReplace(key, elmo, 'model.network.text_field_embedder.token_embedders.' + embedder)]: override[key]
  for key in std.objectFields(override)
}
