import json
import logging
import sys
import tarfile
import warnings
from pathlib import Path

import pytest
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.common.tqdm import logger as tqdm_logger

from elmo_tasks.commands import study_runner
from elmo_tasks.commands.study import Study
from elmo_tasks.commands.study_runner import check_can_train, train_run, train_runs

CONFIG = {"trainer": {}, "dataset_reader": {"type": "mr"}}


class Training:
    """Stands for `train_model`: notes how it was called, and leaves what a training leaves."""

    def __init__(self):
        self.calls = []
        self.fails_at = None

    def __call__(self, params, serialization_dir, recover, force, **kwargs):
        directory = Path(serialization_dir)
        self.calls.append((f"{directory.parent.name}/{directory.name}", "recover" if recover else "anew"))
        assert recover != force
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "out.log").touch()
        (directory / "model_state_e1_b0.th").touch()
        if self.fails_at == len(self.calls):
            raise ValueError("no more memory")
        (directory / "best.th").touch()
        (directory / "metrics.json").write_text('{"test_loss": 0.5}')


@pytest.fixture
def training(monkeypatch):
    training = Training()
    monkeypatch.setattr(study_runner, "train_model", training)
    return training


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path, CONFIG, num_folds=2, num_seeds=2)


def test_every_run_is_trained_once_and_its_checkpoints_go(study, training):
    train_runs(study, 1, [])
    assert training.calls == [
        ("fold_0/seed_0", "anew"),
        ("fold_1/seed_0", "anew"),
        ("fold_0/seed_1", "anew"),
        ("fold_1/seed_1", "anew"),
    ]
    for run in study.runs:
        assert run.is_finished
        assert not run.checkpoints
        assert (run.directory / "best.th").is_file()
    train_runs(study, 1, [])
    assert len(training.calls) == 4


def test_a_config_is_checked_while_a_run_is_left_that_would_train_with_it(tmp_path, training):
    def study(num_seeds):
        # A device that is not there, such as that of another machine, where the study was made.
        return Study(tmp_path, {**CONFIG, "trainer": {"cuda_device": 99}}, num_folds=0, num_seeds=num_seeds)

    with pytest.raises(ConfigurationError, match="GPU"):
        check_can_train(study(1))
    train_runs(study(1), 1, [])
    check_can_train(study(1))
    with pytest.raises(ConfigurationError, match="GPU"):
        check_can_train(study(2))


def test_after_a_failure_only_what_is_left_is_trained(study, training, caplog):
    training.fails_at = 2
    with pytest.raises(ValueError, match="no more memory"):
        train_runs(study, 1, [])
    assert f"Fold 1, seed 0 has failed; its log is {study.run(1, 0).directory}/out.log. What is finish" in caplog.text
    training.fails_at = None
    train_runs(study, 1, [])
    assert training.calls[2:] == [("fold_1/seed_0", "recover"), ("fold_0/seed_1", "anew"), ("fold_1/seed_1", "anew")]
    assert all(run.is_finished for run in study.runs)


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(study, training):
    run = study.run(0, 0)
    run.directory.mkdir(parents=True)
    (run.directory / "out.log").touch()
    train_run(run, CONFIG, [])
    assert training.calls == [("fold_0/seed_0", "anew")]


def test_a_run_that_was_killed_while_it_made_its_archive_is_only_archived(study, training):
    run = study.run(0, 0)
    (run.directory / "vocabulary").mkdir(parents=True)
    for name in ("best.th", "config.json", "model_state_e1_b0.th", "model.tar.gz"):
        (run.directory / name).touch()
    (run.directory / "metrics.json").write_text('{"test_loss": 0.25}')
    train_run(run, CONFIG, [])
    assert training.calls == []
    assert run.is_finished
    assert run.metrics() == {"test_loss": 0.25}
    with tarfile.open(run.directory / "model.tar.gz") as archive:
        assert "weights.th" in archive.getnames()


def test_a_run_that_fails_has_the_traceback_in_its_log_and_not_on_the_console(study, monkeypatch, capsys):
    def failing(params, serialization_dir, **kwargs):
        Path(serialization_dir).mkdir(parents=True)
        common_logging.prepare_global_logging(serialization_dir)
        raise ValueError("no such thing")

    monkeypatch.setattr(study_runner, "train_model", failing)
    run = study.run(0, 0)
    with pytest.raises(ValueError, match="no such thing"):
        train_run(run, CONFIG, [])
    lines = (run.directory / "out.log").read_text().splitlines()
    assert lines[0].endswith("The run has failed.")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: no such thing"
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_the_console_shows_one_bar_and_each_warning_once(study, training, monkeypatch, capsys):
    def noisy(params, serialization_dir, **kwargs):
        Path(serialization_dir).mkdir(parents=True, exist_ok=True)
        common_logging.prepare_global_logging(serialization_dir)
        logger = logging.getLogger("allennlp.training.noisy")
        logger.info("reading")
        logger.warning("12 texts lost their end")
        warnings.warn("this will change", UserWarning, stacklevel=1)
        print("printed")
        for _ in Tqdm.tqdm(range(3), desc="batches"):
            pass
        training(params, serialization_dir, **kwargs)

    monkeypatch.setattr(study_runner, "train_model", noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        train_runs(study, 1, [])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("WARNING: 12 texts lost their end\n") == 1
    assert captured.err.count("this will change") == 1
    for hidden in ("reading", "printed", "batches"):
        assert hidden not in captured.err
    assert "4/4" in captured.err
    for run in study.runs:
        log = (run.directory / "out.log").read_text()
        for kept in ("reading", "12 texts lost their end", "this will change", "batches"):
            assert kept in log


def test_the_logging_of_the_process_is_as_before(study, training, monkeypatch):
    def redirecting(params, serialization_dir, **kwargs):
        Path(serialization_dir).mkdir(parents=True, exist_ok=True)
        common_logging.prepare_global_logging(serialization_dir)
        training(params, serialization_dir, **kwargs)

    monkeypatch.setattr(study_runner, "train_model", redirecting)
    root = logging.getLogger()
    before = root.level, root.handlers[:], tqdm_logger.handlers[:], sys.excepthook, sys.stdout, sys.stderr
    training.fails_at = 2
    with pytest.raises(ValueError, match="no more memory"):
        train_runs(study, 1, [])
    assert before == (root.level, root.handlers[:], tqdm_logger.handlers[:], sys.excepthook, sys.stdout, sys.stderr)


def test_what_a_failing_run_warned_of_is_shown(study, monkeypatch, caplog):
    def failing(params, serialization_dir, **kwargs):
        logging.getLogger("allennlp.training.util").error("Key 'trainer.patience' found in one config only")
        raise ValueError("configs differ")

    monkeypatch.setattr(study_runner, "train_model", failing)
    with pytest.raises(ValueError, match="configs differ"):
        train_runs(study, 1, [])
    assert "ERROR: Key 'trainer.patience' found in one config only" in caplog.messages


def test_a_log_that_a_failing_run_has_not_begun_is_not_named(study, monkeypatch, caplog):
    def failing(params, serialization_dir, **kwargs):
        raise ValueError("no such device")

    monkeypatch.setattr(study_runner, "train_model", failing)
    with pytest.raises(ValueError, match="no such device"):
        train_runs(study, 1, [])
    assert "Fold 0, seed 0 has failed. What is finished stays" in caplog.text


def test_a_run_is_given_its_own_config(study, monkeypatch, training):
    given = []

    def noting(params, serialization_dir, **kwargs):
        given.append(json.loads(json.dumps(params.as_dict(quiet=True))))
        training(params, serialization_dir, **kwargs)

    monkeypatch.setattr(study_runner, "train_model", noting)
    train_runs(study, 1, [])
    assert given == [study.config_of(run) for run in study.runs]
    assert [(config["dataset_reader"]["fold"], config["pytorch_seed"]) for config in given] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
    ]
