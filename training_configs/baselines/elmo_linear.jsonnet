// The classifier of tutorials that build ELMo from scratch: the layers of the biLM summed with fixed weights, the mean
// over the tokens, one linear layer; 5 epochs, Adam with 5e-3, cosine with warm-up. Two faults of theirs are mended: the
// mean is over the tokens alone, not over padding too, and the test part has no say in which epoch is kept.
// With mini, one core: 76.3 +- 0.3 % on the real rt_val.txt (five seeds, 10 seconds of training each).
// The schedule follows from rate and length before `-o` applies, which would reach one of its halves only. Others need a
// config on top of this one (or of those made of it):
//   (import 'elmo_linear.jsonnet') + { trainer+: { num_epochs: 10, optimizer+: { lr: 1e-3 } } }
(import '../mr.jsonnet') + {
  // As the tutorials give them, without a softmax. Their sum is 0.9: they are the weights 1/3, 4/9 and 2/9 of a mix, and
  // a factor that the linear layer learns as well. `initial: [0.3, 0.4, 0.2]` alone would be numbers before the softmax,
  // whose weights are nearly alike: 0.332, 0.367 and 0.301.
  local weights = [0.3, 0.4, 0.2],
  local sum = std.foldl(function(total, weight) total + weight, weights, 0),

  elmo+:: {
    dropout: 0,
    mix: { type: 'scalar', initial: [weight / sum for weight in weights], normalized: true, trainable: false },
  },
  trainer+: {
    num_epochs: 5,
    patience: null,
    // One group: the mix has nothing to train.
    optimizer: { type: 'adam', lr: 5e-3 },
    // AllenNLP's `cosine_with_warmup` moves once an epoch, and its first epoch has the rate 0. So the first epoch warms
    // up, batch by batch, and stays at the full rate; each later one has its value of the cosine. (An epoch shorter than
    // the warm-up leaves the cosine a lower rate to fall from.)
    learning_rate_scheduler: {
      type: 'combined',
      schedulers: [
        [1, { type: 'polynomial_decay', warmup_steps: 100, end_learning_rate: $.trainer.optimizer.lr }],
        [$.trainer.num_epochs - 1, { type: 'cosine', t_initial: $.trainer.num_epochs }],
      ],
    },
  },
}
