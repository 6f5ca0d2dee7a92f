// Two short epochs, to see that a config runs:  -o "import 'training_configs/overrides/smoke.libsonnet'"
{ 'trainer.num_epochs': 2, 'dataset_reader.max_instances': 64 }
