// Another transformer for ag_news/bert.jsonnet, by a hub name or a folder:
//   -o "(import 'training_configs/overrides/transformer.libsonnet')('distilbert-base-uncased')"
function(name) {
  'dataset_reader.tokenizer.model_name': name,
  'dataset_reader.token_indexers.tokens.model_name': name,
  'model.text_field_embedder.token_embedders.tokens.model_name': name,
}
