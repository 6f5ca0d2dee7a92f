// Movie-review polarity (Pang and Lee 2005), mean-pooled ELMo and a linear layer.
(import 'lib/classification.libsonnet') + {
  task:: (import 'lib/tasks.libsonnet').mr,
}
