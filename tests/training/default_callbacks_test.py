import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import torch

from elmo_tasks.training import MachineRecordCallback, PreflightCallback, ResumptionCallback
from elmo_tasks.training.default_callbacks import install


class CountsInstances(torch.nn.Module):
    num_instances = 0

    def prepare_for_training(self, training_instances, all_instances):
        self.num_instances += len(list(training_instances()))


def test_every_trainer_has_our_callbacks_once(make_trainer):
    install()
    kinds = [type(callback) for callback in make_trainer(callbacks=[{"type": "preflight"}])._callbacks]
    assert [kinds.count(kind) for kind in (PreflightCallback, ResumptionCallback, MachineRecordCallback)] == [1, 1, 1]
    assert gradient_descent_trainer.DEFAULT_CALLBACKS.count(PreflightCallback) == 1


def test_no_default_callbacks_means_none_of_ours(make_trainer):
    kinds = {type(callback) for callback in make_trainer(enable_default_callbacks=False)._callbacks}
    assert not kinds & {PreflightCallback, ResumptionCallback, MachineRecordCallback}


def test_find_lr_prepares_the_model_as_train_does(make_trainer):
    trainer = make_trainer()
    trainer.model.counter = CountsInstances()
    find_learning_rate.search_learning_rate(trainer, num_batches=11)
    assert trainer.model.counter.num_instances == 12
