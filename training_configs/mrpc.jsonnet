// Microsoft Research Paraphrase Corpus (Dolan and Brockett 2005): mean-pooled ELMo of both sentences,
// [u; v; |u - v|; u * v], and a linear layer.
(import 'lib/classification.libsonnet') + {
  task:: (import 'lib/tasks.libsonnet').mrpc,
}
