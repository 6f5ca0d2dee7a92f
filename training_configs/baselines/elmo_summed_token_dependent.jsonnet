// The tutorials' ELMo with 1,536 character filters: trained from random weights on the labels alone, both directions
// added up instead of side by side, and layer weights that each token chooses for itself.
// On one core: 71.3 % on the real rt_val.txt (one seed, dev 69.7 %, still rising after its five epochs, 26 minutes beside other
// work).
// Other rates and lengths: see elmo_linear.jsonnet.
(import 'elmo_linear_trained.jsonnet') + {
  elmo+:: {
    pretrained:: null,
    options: {
      lstm: {
        use_skip_connections: true,
        projection_dim: 256,
        cell_clip: 3,
        proj_clip: 3,
        dim: 512,
        n_layers: 2,
      },
      char_cnn: {
        activation: 'relu',
        filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 512]],
        n_highway: 1,
        embedding: { dim: 16 },
        n_characters: 262,
        max_characters_per_token: 50,
      },
    },
    untrained_seed: 0,
    requires_grad: true,
    cache: null,
    bilm_dim:: self.options.lstm.projection_dim,
    // Mended: such weights, and sums of directions, are for a classifier. The source pretrains a language model with
    // them, where they let it see its target: one of the two directions has read the word that the other predicts.
    mix: { type: 'token_dependent', sum_directions: true },
  },
  // The rate of a lone linear layer would be too much for the biLM.
  trainer+: { optimizer+: { lr: 1e-3 } },
}
