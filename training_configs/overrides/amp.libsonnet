// Automatic mixed precision; AllenNLP wants a CUDA device for it and says so.
{ 'trainer.cuda_device': 0, 'trainer.use_amp': true }
