// The environment knobs: the only file that reads them. The plugin supplies every default
// (elmo_tasks/common/environment.py says what each knob means).
{
  mr: std.extVar('ELMO_TASKS_MR'),
  mrpc: std.extVar('ELMO_TASKS_MRPC'),
  ag_news: std.extVar('ELMO_TASKS_AG_NEWS'),
  bilm: std.extVar('ELMO_TASKS_BILM'),
  word_bilm: std.extVar('ELMO_TASKS_WORD_BILM'),
  corpus: std.extVar('ELMO_TASKS_CORPUS'),
  cache: std.extVar('ELMO_TASKS_CACHE'),
}
