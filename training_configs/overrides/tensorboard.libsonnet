// Every metric of every epoch in TensorBoard, the weights of the layer mix and gamma among them:
//   tensorboard --logdir RUN/log
// For classifiers: it takes the place of all callbacks, and pretraining has some that it needs.
// Without the statistics of each parameter: most of them are those of the frozen biLM.
{ 'trainer.callbacks': [{ type: 'tensorboard', should_log_parameter_statistics: false }] }
