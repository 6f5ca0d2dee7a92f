import json
import random

import pytest
import torch
from allennlp.training.callbacks import TrainerCallback

from elmo_tasks.training.resumption import ResumptionCallback

OPTIONS = {"num_epochs": 4, "optimizer": {"type": "adam", "lr": 0.05}}
TIMES = ("duration", "memory_MB")


class Killed(BaseException):
    pass


class KillCallback(TrainerCallback):
    """Ends a run in a given batch of a given epoch, both counted from 0 and 1 as the trainer does."""

    def __init__(self, epoch, batch):
        super().__init__(None)
        self.at = epoch, batch

    def on_batch(self, trainer, *args, is_training=False, **kwargs):
        epoch, batch = args[3], args[4]
        if is_training and (epoch, batch) == self.at:
            raise Killed


def comparable(metrics):
    return {name: value for name, value in metrics.items() if not name.endswith(TIMES)}


def killed_and_resumed(make_trainer, directory, epoch, batch, **options):
    killed = make_trainer(serialization_dir=directory, **options)
    killed._callbacks.append(KillCallback(epoch, batch))
    with pytest.raises(Killed):
        killed.train()
    resumed = make_trainer(serialization_dir=directory, **options)
    return resumed, resumed.train()


def test_a_resumed_run_equals_an_uninterrupted_one(make_trainer, tmp_path):
    whole = make_trainer(serialization_dir=tmp_path / "whole", **OPTIONS)
    metrics = whole.train()
    resumed, resumed_metrics = killed_and_resumed(make_trainer, tmp_path / "killed", 2, 3, **OPTIONS)
    assert comparable(resumed_metrics) == comparable(metrics)
    assert metrics["epoch"] == 3
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name


def test_without_the_random_state_dropout_would_make_it_another_run(make_trainer, tmp_path):
    """The comparison above can fail: this is what it finds without our callback."""
    whole = make_trainer(serialization_dir=tmp_path / "whole", enable_default_callbacks=False, **OPTIONS)
    metrics = whole.train()
    _, resumed_metrics = killed_and_resumed(
        make_trainer, tmp_path / "killed", 2, 3, enable_default_callbacks=False, **OPTIONS
    )
    assert resumed_metrics.keys() == metrics.keys()
    assert resumed_metrics["validation_loss"] != metrics["validation_loss"]


def test_training_loss_of_an_epoch_resumed_in_its_middle_counts_all_batches(make_trainer, tmp_path):
    options = {**OPTIONS, "checkpointer": {"type": "atomic", "save_every_num_batches": 1}}
    metrics = make_trainer(serialization_dir=tmp_path / "whole", **options).train()
    # Batch 3 of 4 in the last epoch, batch 2 is saved.
    _, resumed_metrics = killed_and_resumed(make_trainer, tmp_path / "killed", 3, 3, **options)
    assert resumed_metrics["training_loss"] == pytest.approx(metrics["training_loss"], rel=1e-6)
    assert resumed_metrics["validation_loss"] == metrics["validation_loss"]
    of_the_epoch = json.loads((tmp_path / "killed/metrics_epoch_3.json").read_text())
    assert of_the_epoch["training_loss"] == resumed_metrics["training_loss"]


def test_sums_of_a_resumed_epoch_are_not_added_to_the_next_one(make_trainer, tmp_path):
    options = {**OPTIONS, "checkpointer": {"type": "atomic", "save_every_num_batches": 1}}
    metrics = make_trainer(serialization_dir=tmp_path / "whole", **options).train()
    _, resumed_metrics = killed_and_resumed(make_trainer, tmp_path / "killed", 2, 3, **options)
    assert resumed_metrics["training_loss"] == metrics["training_loss"]


def test_checkpoint_of_a_run_without_the_plugin_can_be_continued(make_trainer, tmp_path):
    make_trainer(num_epochs=1, enable_default_callbacks=False).train()
    assert make_trainer(num_epochs=2).train()["epoch"] == 1


def test_a_run_killed_after_its_last_epoch_has_the_figures_of_that_epoch(make_trainer, tmp_path):
    metrics = make_trainer(serialization_dir=tmp_path, **OPTIONS).train()
    order_of_the_test = random.getstate()
    resumed_metrics = make_trainer(serialization_dir=tmp_path, **OPTIONS).train()
    assert comparable(resumed_metrics) == comparable(metrics)
    assert random.getstate() == order_of_the_test


def test_a_run_whose_patience_is_spent_trains_no_more(make_trainer, tmp_path):
    # Without a rate, the second epoch is no better than the first.
    options = {
        **OPTIONS,
        "optimizer": {"type": "sgd", "lr": 0.0},
        "patience": 1,
        "validation_metric": "+size_in_evaluation",
    }
    metrics = make_trainer(serialization_dir=tmp_path, **options).train()
    assert metrics["epoch"] == 1
    resumed = make_trainer(serialization_dir=tmp_path, **options)
    resumed._callbacks.append(KillCallback(2, 1))  # if it came so far
    assert comparable(resumed.train()) == comparable(metrics)


def test_a_gpu_goes_on_with_its_own_random_numbers(make_trainer, tmp_path, monkeypatch):
    gpu, generator = torch.device("cuda", 0), {}
    monkeypatch.setattr(torch.cuda, "get_rng_state", generator.__getitem__)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: generator.update({device: state}))

    def start(name, state=None):
        trainer = make_trainer(serialization_dir=tmp_path / name)
        (callback,) = (one for one in trainer._callbacks if isinstance(one, ResumptionCallback))
        trainer.cuda_device = gpu
        if state is not None:
            callback.load_state_dict(state)
        callback.on_start(trainer)
        return callback

    killed = start("killed")
    assert generator == {}, "a run that begins takes them as they are"
    generator[gpu] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    state = killed.state_dict()
    generator.clear()
    start("resumed", state)
    assert generator[gpu].tolist() == [1, 2, 3]
