// What heads with an encoder of their own train with: it learns at its own pace and soon knows a small corpus by heart.
{
  trainer+: {
    num_epochs: 20,
    patience: 5,
    // The mix keeps its own rate.
    optimizer+: { lr: 1e-3 },
  },
}
