// What differs between the tasks, and nothing else.
local env = import 'env.libsonnet';

{
  mr: {
    reader: { type: 'mr', label_names: { '0': 'negative', '1': 'positive' } },
    // The source reports on the file that it selects on; here the dev part comes out of the training file.
    train: env.mr + '/rt_train.txt#train',
    dev: env.mr + '/rt_train.txt#dev',
    test: env.mr + '/rt_val.txt',
    text_fields: ['tokens'],
    model: { type: 'elmo_sentence_classifier', positive_label: 'positive' },
    validation_metric: '+accuracy',
  },

  mrpc: {
    reader: { type: 'mrpc' },
    train: env.mrpc + '/msr_paraphrase_train.txt#train',
    dev: env.mrpc + '/msr_paraphrase_train.txt#dev',
    test: env.mrpc + '/msr_paraphrase_test.txt',
    text_fields: ['sentence1', 'sentence2'],
    model: { type: 'elmo_pair_classifier', positive_label: '1', symmetric: true },
    validation_metric: '+accuracy',
  },

  ag_news: {
    reader: { type: 'ag_news' },
    // As with MR, the dev part comes out of the training file, and the test file is left for the end.
    train: env.ag_news + '/train.csv#train',
    dev: env.ag_news + '/train.csv#dev',
    test: env.ag_news + '/test.csv',
    text_fields: ['tokens'],
    model: { type: 'elmo_sentence_classifier' },
    validation_metric: '+accuracy',
  },
}
