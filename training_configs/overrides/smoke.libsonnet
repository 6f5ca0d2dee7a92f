// Two short epochs, to see that a config runs:  -o "import 'training_configs/overrides/smoke.libsonnet'"
// A classifier reads 64 rows of each file or part (of a part, of each class alike), a language model 64 lines; its
// vocabulary and its `start_token_vectors` are made of the whole text all the same. The archive keeps the limit:
// `report` reads 64 rows, and `evaluate` without  -o '{"dataset_reader.max_instances": null}'; `predict` reads all.
{ 'trainer.num_epochs': 2, 'dataset_reader.max_instances': 64 }
