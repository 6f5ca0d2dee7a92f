// biLMs to choose from, each as a token embedder. A home-made one is one line: named('path/to/folder').
local env = import 'env.libsonnet';

{
  // A published or bundled name, or a folder with options.json and weights.hdf5.
  named(name):: {
    type: 'elmo',
    pretrained: name,
    // Means over many tokens into one linear layer need little dropout.
    dropout: 0.1,
    // Layers of one scale, so that one learning rate fits every biLM.
    mix: { type: 'scalar', layer_norm: true },
    // The frozen biLM runs once per distinct sentence, not once per epoch.
    cache: { directory: if env.cache == '' then null else env.cache },
  },

  chosen: $.named(env.bilm),
}
