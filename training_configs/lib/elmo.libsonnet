// biLMs to choose from, each as a token embedder. A home-made one is one line: named('path/to/folder', 1024)
local env = import 'env.libsonnet';
local dims = { mini: 512, small: 256, medium: 512, original: 1024, 'original_5.5b': 1024 };

{
  // A published or bundled name, or a folder with options.json and weights.hdf5; and the size of its token vectors.
  named(name, bilm_dim=$.dim_of(name)):: {
    type: 'elmo',
    pretrained: name,
    // Means over many tokens into one linear layer need little dropout.
    dropout: 0.1,
    // Layers of one scale, so that one learning rate fits every biLM.
    mix: { type: 'scalar', layer_norm: true },
    // The frozen biLM runs once per distinct sentence, not once per epoch.
    cache: { directory: if env.cache == '' then null else env.cache },
    // Not for the embedder, which reads options.json: the sizes of encoders follow it.
    bilm_dim:: bilm_dim,
  },

  // The size of a token vector. Only encoders ask for it.
  dim_of(name)::
    if std.objectHas(dims, name) then dims[name]
    else if std.endsWith(name, 'bilm/mini') then dims.mini
    else if std.endsWith(name, 'fixtures/bilm') then 64
    else error 'bilm_dim:: must be set for a biLM in a folder: twice the projection_dim of its options.json',

  chosen: $.named(env.bilm),
}
