// The small published size: 13.6 million parameters. Trained like the original one.
(import 'original.jsonnet') {
  cell_dim:: 1024,
  projection_dim:: 128,
  num_highway_layers:: 1,
}
