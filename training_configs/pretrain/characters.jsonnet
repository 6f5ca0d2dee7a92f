// A language model whose words are characters, to write text with:
//   echo '{"prompt": "The film", "length": 200, "temperature": 0.5}' > prompts.jsonl
//   allennlp predict runs/characters/model.tar.gz prompts.jsonl
(import '../lib/pretraining.libsonnet') {
  batch_size:: 32,
  // Characters carry little each, and the state goes on from batch to batch.
  unroll_steps:: 100,

  dataset_reader+: { unit: 'characters' },

  network:: { type: 'words', projection_dim: 128, cell_dim: 512 },
  model+: { softmax: { type: 'full' } },

  trainer+: { num_epochs: 5 },
}
