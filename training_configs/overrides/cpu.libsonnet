// Stay on the CPU although there is a GPU.
{ 'trainer.cuda_device': -1 }
