import itertools
import logging
import os
import shutil

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import run_distributed_test
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import TrainerCheckpoint

from elmo_tasks.training import AtomicCheckpointer


class TrainerAtEpoch:
    """What a checkpointer sees of a trainer: model state and training state both tell the epoch."""

    def __init__(self, epoch, batches=0, is_best=False, num_validated=None, **state):
        self.model = torch.nn.Linear(1, 1)
        num_validated = epoch if num_validated is None else num_validated
        self.checkpoint = TrainerCheckpoint(
            {"epoch": torch.tensor(epoch)},
            {
                "epochs_completed": epoch,
                "batches_in_epoch_completed": batches,
                "metric_tracker": {"is_best_so_far": is_best, "epoch_number": num_validated},
                "best_model_filename": None,
                **state,
            },
        )

    def get_checkpoint_state(self):
        return self.checkpoint


def save(directory, *trainers, **options):
    checkpointer = AtomicCheckpointer(directory, **options)
    for trainer in trainers:
        checkpointer.save_checkpoint(trainer)


def loaded_epochs(directory):
    checkpoint = AtomicCheckpointer(directory).load_checkpoint()
    return checkpoint and (checkpoint.model_state["epoch"].item(), checkpoint.trainer_state["epochs_completed"])


def cut_off(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def test_registered_name_builds_it(tmp_path):
    built = Checkpointer.from_params(
        Params({"type": "atomic", "keep_most_recent_by_count": 1}), serialization_dir=str(tmp_path)
    )
    assert isinstance(built, AtomicCheckpointer)
    assert built._keep_most_recent_by_count == 1


def test_the_newest_pairs_are_kept_and_the_newest_is_loaded(tmp_path):
    save(tmp_path, TrainerAtEpoch(1), TrainerAtEpoch(2), TrainerAtEpoch(3))
    assert sorted(os.listdir(tmp_path)) == [
        "model_state_e2_b0.th",
        "model_state_e3_b0.th",
        "training_state_e2_b0.th",
        "training_state_e3_b0.th",
    ]
    assert loaded_epochs(tmp_path) == (3, 3)


def test_an_empty_directory_has_no_checkpoint(tmp_path):
    assert loaded_epochs(tmp_path) is None


def test_distributed_processes_without_a_state_save_nothing(tmp_path):
    trainer = TrainerAtEpoch(1)
    trainer.checkpoint = None
    checkpointer = AtomicCheckpointer(tmp_path)
    checkpointer._rank = 1
    checkpointer.save_checkpoint(trainer)
    assert os.listdir(tmp_path) == []


# --- killed


def kill_at(number):
    """A function that ends the process, without any clean-up, when called for the `number`-th time."""
    calls = itertools.count()

    def dying(function):
        def call(*args, **kwargs):
            if next(calls) == number:
                os._exit(9)
            return function(*args, **kwargs)

        return call

    return dying


def save_in_a_process_that_is_killed(directory, trainer, monkeypatch, moment):
    """Saves in a child. `moment` counts the calls that change the disk; returns whether it was reached."""
    child = os.fork()
    if child == 0:
        dying = kill_at(moment)
        monkeypatch.setattr(os, "fsync", dying(os.fsync))
        monkeypatch.setattr(os, "replace", dying(os.replace))
        monkeypatch.setattr(os, "remove", dying(os.remove))
        save(directory, trainer, keep_most_recent_by_count=1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_process_killed_at_any_moment_of_a_save_leaves_a_newest_pair_that_fits(tmp_path, monkeypatch, caplog):
    found = []
    for moment in itertools.count():
        directory = tmp_path / str(moment)
        directory.mkdir()
        save(directory, TrainerAtEpoch(1), keep_most_recent_by_count=1)
        if not save_in_a_process_that_is_killed(directory, TrainerAtEpoch(2), monkeypatch, moment):
            break
        found.append(loaded_epochs(directory))
        assert not list(directory.glob("*.partial"))
    assert caplog.records == []  # no pair had to be passed over
    assert set(found) == {(1, 1), (2, 2)}
    assert found == sorted(found)
    assert len(found) == 8  # two files, each: content, name, folder; then two old files


@pytest.mark.parametrize(
    "break_newest",
    [
        lambda model, training: cut_off(model),
        lambda model, training: cut_off(training),
        lambda model, training: model.write_bytes(b""),
        lambda model, training: model.write_bytes(b"<html>no such page</html>"),
        lambda model, training: training.unlink(),
    ],
    ids=["half a model", "half a training state", "empty model", "not a checkpoint", "no training state"],
)
def test_the_previous_pair_serves_when_the_newest_cannot_be_read(break_newest, tmp_path, caplog):
    save(tmp_path, TrainerAtEpoch(1), TrainerAtEpoch(2))
    break_newest(tmp_path / "model_state_e2_b0.th", tmp_path / "training_state_e2_b0.th")
    with caplog.at_level(logging.WARNING):
        assert loaded_epochs(tmp_path) == (1, 1)
    assert len(caplog.records) == 1
    assert "model_state_e1_b0.th" in caplog.text
    assert "model_state_e2_b0.th" in caplog.text


def test_a_file_that_cannot_be_read_is_replaced_by_the_next_save_of_its_epoch(tmp_path):
    save(tmp_path, TrainerAtEpoch(1), TrainerAtEpoch(2))
    cut_off(tmp_path / "model_state_e2_b0.th")
    save(tmp_path, TrainerAtEpoch(2))
    assert loaded_epochs(tmp_path) == (2, 2)


def test_checkpoints_none_of_which_can_be_read_are_an_error_and_no_new_beginning(tmp_path):
    save(tmp_path, TrainerAtEpoch(1), TrainerAtEpoch(2))
    for path in tmp_path.glob("model_state*"):
        cut_off(path)
    with pytest.raises(ConfigurationError, match=r"has 2 that cannot; the newest, .*model_state_e2_b0.th"):
        loaded_epochs(tmp_path)


def test_partial_files_are_removed_when_a_run_starts(tmp_path):
    save(tmp_path, TrainerAtEpoch(1))
    (tmp_path / "model_state_e2_b0.th.partial").write_bytes(b"ha")
    (tmp_path / "notes.txt").write_text("mine")
    assert loaded_epochs(tmp_path) == (1, 1)
    assert not (tmp_path / "model_state_e2_b0.th.partial").exists()
    assert (tmp_path / "notes.txt").exists()


# --- the best weights


def test_best_weights_missing_after_the_checkpoint_of_the_best_epoch_are_written(tmp_path):
    save(tmp_path, TrainerAtEpoch(2, is_best=True))
    torch.save({"epoch": torch.tensor(1)}, tmp_path / "best.th")  # of the best epoch before
    checkpoint = AtomicCheckpointer(tmp_path).load_checkpoint()
    assert torch.load(tmp_path / "best.th")["epoch"].item() == 2
    assert checkpoint.trainer_state["best_model_filename"] == str(tmp_path / "best.th")


def test_without_validation_the_last_epoch_is_the_best(tmp_path):
    save(tmp_path, TrainerAtEpoch(2, is_best=True, num_validated=0))
    AtomicCheckpointer(tmp_path).load_checkpoint()
    assert torch.load(tmp_path / "best.th")["epoch"].item() == 2


@pytest.mark.parametrize(
    "trainer",
    [
        TrainerAtEpoch(2, is_best=False),
        TrainerAtEpoch(2, batches=5, is_best=True),  # written when epoch 2 began
        TrainerAtEpoch(2, is_best=True, num_validated=1),  # epoch 2 was not validated; the word is of epoch 1
    ],
    ids=["worse", "within an epoch", "not validated"],
)
def test_best_weights_of_another_epoch_stay(trainer, tmp_path):
    save(tmp_path, trainer)
    torch.save({"epoch": torch.tensor(1)}, tmp_path / "best.th")
    checkpoint = AtomicCheckpointer(tmp_path).load_checkpoint()
    assert torch.load(tmp_path / "best.th")["epoch"].item() == 1
    assert checkpoint.trainer_state["best_model_filename"] is None


@pytest.mark.parametrize("name", ["epoch", "module.epoch"], ids=["one process", "distributed"])
def test_best_weights_are_the_moving_averages_where_there_are_any(name, tmp_path):
    averages = {"shadows": {name: torch.tensor(1.5)}}
    save(tmp_path, TrainerAtEpoch(2, is_best=True, moving_average=averages))
    AtomicCheckpointer(tmp_path).load_checkpoint()
    assert torch.load(tmp_path / "best.th") == {"epoch": torch.tensor(1.5)}


# --- in a training run


def test_frozen_parameters_are_not_in_the_checkpoints_and_the_best_weights_are_complete(make_trainer, tmp_path):
    sizes = {}
    for leave_out in (False, True):
        directory = tmp_path / str(leave_out)
        trainer = make_trainer(
            serialization_dir=directory,
            frozen_dim=20_000,
            checkpointer={"type": "atomic", "leave_out_frozen": leave_out},
        )
        trainer.train()
        sizes[leave_out] = (directory / "model_state_e3_b0.th").stat().st_size
        best = torch.load(directory / "best.th")
        assert set(best) == set(trainer.model.state_dict())
        assert torch.equal(best["frozen.weight"], trainer.model.frozen.weight)
    assert sizes[True] < 0.05 * sizes[False]


def test_a_run_without_frozen_parameters_in_its_checkpoints_recovers(make_trainer):
    options = {"checkpointer": {"type": "atomic", "leave_out_frozen": True}}
    first = make_trainer(num_epochs=2, **options)
    first.train()
    resumed = make_trainer(num_epochs=2, **options)
    with torch.no_grad():
        resumed.model.frozen.weight.zero_()
        resumed.model.head.weight.zero_()
    resumed._maybe_restore_checkpoint()
    assert resumed._start_after_epochs_completed == 2
    assert torch.equal(resumed.model.frozen.weight, first.model.frozen.weight)
    last = torch.load(os.path.join(resumed._serialization_dir, "model_state_e2_b0.th"))
    assert set(last) == {"head.weight", "head.bias"}
    assert torch.equal(resumed.model.head.weight, last["head.weight"])


def test_best_weights_share_the_bytes_of_a_complete_checkpoint(make_trainer, tmp_path):
    make_trainer(num_epochs=1, checkpointer={"type": "atomic"}).train()
    assert os.path.samefile(tmp_path / "best.th", tmp_path / "model_state_e1_b0.th")


def test_a_recovered_run_saves_where_an_uninterrupted_one_does(tmp_path):
    save(tmp_path, TrainerAtEpoch(1, batches=6))
    checkpointer = AtomicCheckpointer(tmp_path, save_every_num_batches=3)
    checkpointer.load_checkpoint()
    saved = [checkpointer.maybe_save_checkpoint(TrainerAtEpoch(1, batches=batch), 1, batch) for batch in (7, 8, 9, 10)]
    assert saved == [False, False, True, False]


def test_a_recovered_run_removes_what_a_killed_process_was_about_to(tmp_path):
    save(tmp_path, *map(TrainerAtEpoch, (1, 2, 3)), keep_most_recent_by_count=3)
    os.remove(tmp_path / "model_state_e1_b0.th")  # its training state comes after it
    save(tmp_path, TrainerAtEpoch(4), keep_most_recent_by_count=3)
    assert AtomicCheckpointer(tmp_path).load_checkpoint().trainer_state["epochs_completed"] == 4
    names = (f"{state}_state_e{epoch}_b0.th" for state in ("model", "training") for epoch in (3, 4))
    assert sorted(os.listdir(tmp_path)) == sorted(names)


# --- several machines, each with a folder of its own


def recover_on_two_machines(rank, world_size, gpu_id, folder):
    os.environ["ALLENNLP_PROCS_PER_NODE"] = "1"

    def saved(case, *epochs):
        directory = folder / case / str(rank)
        directory.mkdir(parents=True)
        save(directory, *map(TrainerAtEpoch, epochs))
        return directory

    def names(directory):
        return sorted(path.name for path in directory.glob("model_state*"))

    each_keeps_two = saved("keeps", 1, 2, 3)
    assert names(each_keeps_two) == ["model_state_e2_b0.th", "model_state_e3_b0.th"]
    assert loaded_epochs(each_keeps_two) == (3, 3)

    # What is newer would be taken for the best weights of the next epoch.
    first_has_more = saved("more", 1, 2)
    if rank == 1:
        (first_has_more / "model_state_e2_b0.th").unlink()
    assert loaded_epochs(first_has_more) == (1, 1)
    assert names(first_has_more) == ["model_state_e1_b0.th"]

    second_is_damaged = saved("damaged", 1, 2)
    if rank == 1:
        cut_off(second_is_damaged / "model_state_e2_b0.th")
    assert loaded_epochs(second_is_damaged) == (1, 1)

    second_has_none = saved("none", 1, 2)
    if rank == 1:
        shutil.rmtree(second_has_none)
    with pytest.raises(
        ConfigurationError, match=r"but process 0 has e2_b0, e1_b0; process 1 has none; copy the model and training"
    ):
        loaded_epochs(second_has_none)
    assert loaded_epochs(saved("new")) is None


@pytest.mark.slow
def test_machines_recover_from_the_newest_checkpoint_that_all_can_read(tmp_path):
    run_distributed_test([-1, -1], recover_on_two_machines, tmp_path)


def save_every_third_batch(rank, world_size, gpu_id, folder):
    os.environ["ALLENNLP_PROCS_PER_NODE"] = str(world_size)
    checkpointer = AtomicCheckpointer(folder, save_every_num_batches=3)
    saved = []
    for batch in range(1, 8):
        trainer = TrainerAtEpoch(0, batches=batch)
        if rank > 0:
            trainer.checkpoint = None  # as AllenNLP's
        if checkpointer.maybe_save_checkpoint(trainer, 0, batch):
            saved.append(batch)
    assert saved == [3, 6]


@pytest.mark.slow
def test_processes_that_save_nothing_wait_for_the_checkpoints_of_the_one_that_does(tmp_path):
    run_distributed_test([-1, -1], save_every_third_batch, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("model*")) == ["model_state_e0_b3.th", "model_state_e0_b6.th"]
