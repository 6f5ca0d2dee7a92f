import json
import os

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.study import Run, Study

CONFIG = {"train_data_path": "rows", "trainer": {"num_epochs": 3}}


@pytest.fixture
def run(tmp_path):
    return Run(2, 1, tmp_path)


def changed(trainer):
    return {**CONFIG, "trainer": trainer}


def test_runs_cover_every_fold_and_seed_once_and_finish_a_seed_before_the_next(tmp_path):
    runs = Study(tmp_path, CONFIG, num_folds=2, num_seeds=2).runs
    assert [run.name for run in runs] == ["fold 0, seed 0", "fold 1, seed 0", "fold 0, seed 1", "fold 1, seed 1"]
    assert runs[1].directory == tmp_path / "fold_1/seed_0"


def test_without_folds_only_seeds_differ(tmp_path):
    runs = Study(tmp_path, CONFIG, num_folds=0, num_seeds=2).runs
    assert [(run.name, run.fold, run.directory) for run in runs] == [
        ("seed 0", None, tmp_path / "seed_0"),
        ("seed 1", None, tmp_path / "seed_1"),
    ]


def test_a_new_run_is_not_finished(run):
    assert run.metrics() == {}
    assert not run.is_finished


def test_a_run_with_test_figures_is_finished(run):
    (run.directory / "metrics.json").write_text('{"best_epoch": 1, "test_loss": 0.5}')
    (run.directory / "best.th").touch()
    assert run.metrics() == {"best_epoch": 1, "test_loss": 0.5}
    assert run.is_finished


@pytest.mark.parametrize("content", ['{"best_epoch": 1}', '{"best_epoch": 1, "test_lo', ""])
def test_a_run_with_half_of_its_metrics_is_not_finished(run, content):
    (run.directory / "metrics.json").write_text(content)
    assert not run.is_finished


def test_a_run_whose_checkpoints_are_still_there_is_not_finished(run):
    (run.directory / "metrics.json").write_text('{"test_loss": 0.5}')
    for name in ("training_state_e1_b0.th", "model_state_e1_b0.th"):
        (run.directory / name).touch()
    assert [path.name for path in run.checkpoints] == ["model_state_e1_b0.th", "training_state_e1_b0.th"]
    assert not run.is_finished


def test_a_study_may_get_more_seeds(tmp_path):
    with Study(tmp_path / "new/study", CONFIG, 2, 1).opened():
        pass
    with Study(tmp_path / "new/study", CONFIG, 2, 3).opened():
        pass


@pytest.mark.parametrize(
    ("num_folds", "config", "message"),
    [
        (2, changed({"num_epochs": 5}), "`trainer.num_epochs` was 3, but is 5"),
        (2, changed({"num_epochs": 3, "patience": 1}), "`trainer.patience` was not set, but is 1"),
        (3, CONFIG, "`--folds` was 2, but is 3"),
    ],
)
@pytest.mark.parametrize(
    "learnt",
    [
        "fold_1/seed_0/metrics.json",
        "fold_0/seed_0/metrics_epoch_0.json",
        "seed_0/model_state_e0_b5.th",
        "seed_0/best.th",
        "fold_0/seed_10/model.tar.gz",
        "cross_validation.json",
        "notes.txt",
    ],
)
def test_a_study_that_has_learnt_is_not_continued_with_another_config(tmp_path, num_folds, config, message, learnt):
    with Study(tmp_path, CONFIG, 2, 1).opened():
        (tmp_path / learnt).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / learnt).touch()
    with pytest.raises(ConfigurationError, match=message), Study(tmp_path, config, num_folds, 1).opened():
        pass
    assert json.loads((tmp_path / "study.json").read_text()) == {"num_folds": 2, "config": CONFIG}


def test_a_study_whose_first_try_failed_gets_another_config(tmp_path):
    with Study(tmp_path, CONFIG, 0, 1).opened():
        for name in ("seed_0/config.json", "seed_0/out.log", "seed_0/vocabulary/labels.txt", "activations/index"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
    mended = changed({"num_epochs": 5})
    with Study(tmp_path, mended, 0, 1).opened():
        assert json.loads((tmp_path / "study.json").read_text()) == {"num_folds": 0, "config": mended}
    assert (tmp_path / "seed_0/out.log").exists()


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    study = Study(tmp_path, CONFIG, 2, 1)
    with pytest.raises(ConfigurationError, match=r"no study\.json, and has thesis\.tex"), study.opened():
        pass
    assert not (tmp_path / "study.json").exists()


def test_two_processes_do_not_work_on_one_study(tmp_path):
    study = Study(tmp_path, CONFIG, 2, 1)
    with study.opened(), pytest.raises(ConfigurationError, match="worked on by one process"), study.opened():
        pass
    with study.opened():
        pass


def test_the_description_says_what_is_studied(tmp_path):
    with Study(tmp_path, CONFIG, 2, 1).opened():
        assert json.loads((tmp_path / "study.json").read_text()) == {"num_folds": 2, "config": CONFIG}


def test_a_folder_whose_description_was_being_written_is_new(tmp_path):
    (tmp_path / "study.json.partial").write_text('{"num_fo')
    with Study(tmp_path, CONFIG, 2, 1).opened():
        assert sorted(os.listdir(tmp_path)) == [".lock", "study.json"]
