"""Beginnings that were interrupted. `tests/reliability/interruption_test.py` kills whole commands at any moment."""

import errno
import json
import os
import re
import types

import allennlp.commands.train as train
import allennlp.common.util as common_util
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.meta import Meta
from allennlp.data import Vocabulary
from allennlp.models.archival import archive_model
from allennlp.training.moving_average import ExponentialMovingAverage

from elmo_tasks.common import interruptions

CONFIG = {"trainer": {"num_epochs": 1}}


@pytest.fixture
def begun(monkeypatch):
    """What a training is asked for, in place of training."""
    calls = []

    def train_model(params, serialization_dir, recover=False, **options):
        calls.append((recover, sorted(os.listdir(serialization_dir)), options))

    monkeypatch.setattr(train, "train_model", train_model)
    interruptions.begin_again_where_nothing_was_learnt()
    return calls


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"config.json.partial": '{"trai'},
        {"config.json": ""},
        {"config.json": json.dumps(CONFIG), "meta.json": "{", "out.log": "some"},
        {"config.json": json.dumps(CONFIG), "vocabulary.partial/labels.txt": "positive"},
    ],
    ids=["nothing", "half a config", "an empty config", "no vocabulary", "half a vocabulary"],
)
def test_a_run_that_had_not_begun_begins_again(begun, tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    train.train_model(Params(CONFIG), str(tmp_path), recover=True, dry_run=False)
    assert begun == [(False, [], {"dry_run": False})]


@pytest.mark.parametrize("name", ["thesis.tex", "model_state_e1_b0.th", "vocabulary"])
def test_a_folder_with_more_is_left_as_it_is(begun, tmp_path, name):
    (tmp_path / name).touch()
    train.train_model(Params(CONFIG), str(tmp_path), recover=True)
    assert begun == [(True, [name], {})]


def test_another_config_does_not_begin_again(begun, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"trainer": {"num_epochs": 2}}))
    with pytest.raises(ConfigurationError, match="must be recovered with the config"):
        train.train_model(Params(CONFIG), str(tmp_path), recover=True)
    assert begun == []
    assert os.listdir(tmp_path) == ["config.json"]


def test_without_recover_nothing_is_removed(begun, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    train.train_model(Params(CONFIG), str(tmp_path))
    assert begun == [(False, ["config.json"], {})]


class Stop(BaseException):
    pass


def stop_at(monkeypatch, owner, name):
    def stop(*args, **kwargs):
        raise Stop

    monkeypatch.setattr(owner, name, stop)


def test_half_a_config_takes_no_name(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    Params(CONFIG).to_file(str(path))
    stop_at(monkeypatch, os, "replace")
    with pytest.raises(Stop):
        Params({"trainer": {"num_epochs": 2}}).to_file(params_file=str(path))
    assert json.loads(path.read_text()) == CONFIG


def test_the_version_that_cannot_be_written_is_an_error_with_the_name_of_its_file(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "meta.json"
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=rf"{re.escape(str(path))} cannot be written"):
        Meta.new().to_file(path)
    assert os.listdir(tmp_path) == []


@pytest.fixture
def vocabulary():
    vocabulary = Vocabulary()
    for label in ("negative", "positive"):
        vocabulary.add_token_to_namespace(label, "labels")
    return vocabulary


def test_half_a_vocabulary_takes_no_name(vocabulary, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, os, "replace")
        with pytest.raises(Stop):
            vocabulary.save_to_files(str(tmp_path / "vocabulary"))
    assert os.listdir(tmp_path) == ["vocabulary.partial"]
    vocabulary.save_to_files(str(tmp_path / "vocabulary"))
    assert os.listdir(tmp_path) == ["vocabulary"]


def test_a_vocabulary_takes_the_place_of_another(vocabulary, tmp_path):
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / "labels.txt").write_text("posi")
    vocabulary.save_to_files(str(folder))
    assert os.listdir(tmp_path) == ["vocabulary"]
    assert Vocabulary.from_files(str(folder)).get_index_to_token_vocabulary("labels") == {0: "negative", 1: "positive"}


def test_half_an_archive_takes_no_name(vocabulary, tmp_path, monkeypatch):
    Params(CONFIG).to_file(str(tmp_path / "config.json"))
    (tmp_path / "best.th").write_bytes(b"weights")
    vocabulary.save_to_files(str(tmp_path / "vocabulary"))
    assert archive_model(str(tmp_path)) == str(tmp_path / "model.tar.gz")
    whole = (tmp_path / "model.tar.gz").read_bytes()
    stop_at(monkeypatch, os, "replace")
    for train_archive_model in (archive_model, train.archive_model):
        with pytest.raises(Stop):
            train_archive_model(str(tmp_path))
    assert (tmp_path / "model.tar.gz").read_bytes() == whole
    assert not (tmp_path / "model.tar.gz.partial").exists()


def test_metrics_are_replaced_and_not_rewritten(tmp_path):
    path, link = tmp_path / "metrics.json", tmp_path / "link.json"
    common_util.dump_metrics(str(path), {"epoch": 0})
    os.link(path, link)
    common_util.dump_metrics(str(path), {"epoch": 1})
    assert (json.loads(path.read_text()), json.loads(link.read_text())) == ({"epoch": 1}, {"epoch": 0})
    common_util.dump_metrics(None, {"epoch": 2}, log=True)
    assert sorted(os.listdir(tmp_path)) == ["link.json", "metrics.json"]


def test_best_weights_are_replaced_and_not_rewritten(tmp_path):
    model = torch.nn.Linear(1, 1)
    trainer = types.SimpleNamespace(_ddp_wrapped_model=None, model=model)
    path, link = tmp_path / "best.th", tmp_path / "link.th"
    save = gradient_descent_trainer.GradientDescentTrainer._save_model_state
    save(trainer, str(path))
    os.link(path, link)
    old_bias = model.bias.item()
    with torch.no_grad():
        model.bias += 1
    save(trainer, str(path))
    assert torch.load(link)["bias"].item() == old_bias
    assert torch.load(path)["bias"].item() == model.bias.item()


def test_moving_averages_follow_the_model_after_a_recovery(tmp_path):
    model = torch.nn.Linear(1, 1, bias=False)
    averages = ExponentialMovingAverage(model.named_parameters(), decay=0.5)
    torch.save(averages.state_dict(), tmp_path / "state.th")
    loaded = torch.load(tmp_path / "state.th")

    resumed = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        resumed.weight.copy_(model.weight)
    resumed_averages = ExponentialMovingAverage(resumed.named_parameters(), decay=0.5)
    resumed_averages.load_state_dict(loaded)
    before = resumed.weight.item()
    with torch.no_grad():
        resumed.weight += 2.0
    resumed_averages.apply()
    resumed_averages.assign_average_value()
    assert resumed.weight.item() == pytest.approx(before + 1.0)
    resumed_averages.restore()
    assert resumed.weight.item() == pytest.approx(before + 2.0)
