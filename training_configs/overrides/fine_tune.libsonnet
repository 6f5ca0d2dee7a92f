// Train the whole biLM, with rates that fall towards its input (Howard and Ruder 2018, section 3.2: a factor of 2.6 per
// layer): what lies lower is more general and changes less. A cache of activations would be stale after one step.
local elmo = 'model.text_field_embedder.token_embedders.elmo';
local rate = 1e-4;
{
  [elmo + '.requires_grad']: true,
  [elmo + '.cache']: null,
  'trainer.optimizer.parameter_groups': [
    [['scalar_mix'], { lr: 1e-2, weight_decay: 1e-3 }],
    [['bilm\\.layers\\.1'], { lr: rate }],
    [['bilm\\.layers\\.0'], { lr: rate / 2.6 }],
    [['bilm\\.character_encoder'], { lr: rate / (2.6 * 2.6) }],
  ],
}
