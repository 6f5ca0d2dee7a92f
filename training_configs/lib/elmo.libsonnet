// biLMs to choose from, each as a token embedder. A home-made one is one line: named('path/to/folder').
local env = import 'env.libsonnet';

{
  // A published or bundled name, or a folder with options.json and weights.hdf5.
  named(name):: {
    type: 'elmo',
    pretrained: name,
    dropout: 0.5,
    // The frozen biLM runs once per distinct sentence, not once per epoch.
    cache: { directory: if env.cache == '' then null else env.cache },
  },

  chosen: $.named(env.bilm),
}
