// Everything that the classification tasks share: a frozen biLM, a trained layer mix, one linear head.
// A config adds `task::` (lib/tasks.libsonnet) and its own differences.
{
  task:: error 'a config must set task::, one of lib/tasks.libsonnet',
  elmo:: (import 'elmo.libsonnet').chosen,
  batch_size:: 32,

  dataset_reader: $.task.reader { token_indexers: { elmo: { type: 'elmo_character_arrays' } } },
  train_data_path: $.task.train,
  validation_data_path: $.task.dev,
  test_data_path: $.task.test,
  // The dev part selects the epoch; the test part is looked at once, with that epoch's weights.
  evaluate_on_test: true,
  // Label names and their counts are those of the training part.
  datasets_for_vocab_creation: ['train'],

  model: $.task.model {
    text_field_embedder: { token_embedders: { elmo: $.elmo } },
  },

  // The default noise of the lengths, 0.1, lets 18 % of a batch of MRPC be padding; this, 14 %.
  batch_sampler:: { type: 'bucket', batch_size: $.batch_size, sorting_keys: $.task.text_fields, padding_noise: 0.02 },
  data_loader: { batch_sampler: $.batch_sampler },
  validation_data_loader: { batch_sampler: $.batch_sampler { batch_size: 4 * $.batch_size } },

  // `cuda_device` is absent on purpose: AllenNLP then takes the GPU where there is one.
  trainer: {
    // Over cached activations an epoch costs little, and small dev parts are noisy.
    num_epochs: 30,
    patience: 10,
    validation_metric: $.task.validation_metric,
    grad_norm: 5.0,
    optimizer: {
      type: 'adam',
      // On the dev parts of the real data, 1e-2 and 3e-3 gave the same (MR 73.2 and 73.3 %, MRPC 76.0 and 75.7 %, one
      // seed, an early mini); with the smaller one gamma stays near 1. An ELMo dropout of 0.4 gave 1 point less on MR.
      lr: 3e-3,
      parameter_groups: [
        // The mix has its own rate, and the L2 term of the ELMo paper (lambda, section 3.3), which holds its weights
        // near the plain average.
        [['scalar_mix'], { lr: 1e-2, weight_decay: 1e-3 }],
      ],
    },
    // The frozen biLM is written once, not with every checkpoint.
    checkpointer: { type: 'atomic', keep_most_recent_by_count: 1, leave_out_frozen: true },
  },
}
