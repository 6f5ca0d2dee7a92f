import json
import os
import threading
import time

import optuna
import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import evaluate_file
from optuna.trial import TrialState

from elmo_tasks.commands import sweep_study
from elmo_tasks.commands.search_space import SearchSpace
from elmo_tasks.commands.sweep_study import ERROR, Sweep

# Tests begin trials one by one, the command does not.
pytestmark = pytest.mark.filterwarnings("ignore:Heartbeat of storage")

CONFIG = {"trainer": {"validation_metric": "+accuracy", "lr": 0.1}}
SPACE = {
    "trainer.lr": {"type": "float", "low": 1e-4, "high": 1, "log": True},
    "head": {"type": "overrides", "choices": {"a": {"trainer.x": {"y": [1, 0.1]}}, "b": {"trainer.x": None}}},
}


@pytest.fixture(params=["journal", "sqlite"])
def storage(request, tmp_path):
    return {"journal": str(tmp_path / "shared/sweep.journal"), "sqlite": f"sqlite:///{tmp_path}/sweep.db"}[
        request.param
    ]


@pytest.fixture
def open_sweep(tmp_path):
    def open_sweep(num_trials=3, config=CONFIG, space=SPACE, folder="sweep", **options):
        return Sweep(tmp_path / folder, config, SearchSpace(space), num_trials, **options)

    return open_sweep


def begin(sweep):
    trial = sweep.study.ask()
    sweep.space.suggest(trial)
    return trial


def fail(sweep, trial, error=None):
    if error:
        trial.set_user_attr(ERROR, error)
    sweep.study.tell(trial, state=TrialState.FAIL)


def numbers(trials):
    return [trial.number for trial in trials]


def test_processes_with_one_storage_see_each_others_trials(open_sweep, storage):
    one, other = open_sweep(storage=storage), open_sweep(storage=storage, folder="other")
    one.study.tell(begin(one), 0.5)
    running = begin(other)
    assert numbers(one.taken) == numbers(other.taken) == [0, 1]
    assert numbers(one.finished) == [0]
    other.study.tell(running, 0.75)
    assert numbers(one.ranked) == [1, 0]


def test_the_journal_is_in_the_folder_unless_a_storage_is_given(open_sweep):
    begin(open_sweep())
    assert numbers(open_sweep().taken) == [0]


def test_the_lowest_loss_is_the_best(open_sweep):
    sweep = open_sweep(config={"trainer": {"validation_metric": "-loss"}})
    for loss in (0.5, 0.25, 0.75):
        sweep.study.tell(sweep.study.ask(), loss)
    assert sweep.metric == "best_validation_loss"
    assert numbers(sweep.ranked) == [1, 0, 2]


def test_failed_trainings_count_and_ended_processes_do_not(open_sweep):
    sweep = open_sweep()
    fail(sweep, begin(sweep))
    fail(sweep, begin(sweep), "loss is nan")
    begin(sweep)
    assert numbers(sweep.taken) == [1, 2]
    assert numbers(sweep.finished) == [1]
    assert sweep.ranked == []


def test_of_trials_that_were_begun_at_once_only_as_many_stay_as_are_left(open_sweep):
    sweep = open_sweep(num_trials=2)
    fail(sweep, begin(sweep))  # was killed
    for _ in range(3):
        begin(sweep)
    assert [sweep.is_superfluous(number) for number in (1, 2, 3)] == [False, False, True]


def test_a_trial_that_no_process_is_at_any_more_is_ended(open_sweep, storage):
    sweep = open_sweep(storage=storage)
    dead, alive, elsewhere = begin(sweep), begin(sweep), begin(sweep)
    # As a killed process leaves it, after its lock has gone with it.
    sweep.trial_directory(dead.number).with_suffix(".lock").touch()
    with sweep.marked_alive(alive.number):
        open_sweep(storage=storage).end_dead_trials()
        states = [trial.state for trial in sweep.study.trials]
    assert states == [TrialState.FAIL, TrialState.RUNNING, TrialState.RUNNING]
    assert numbers(sweep.taken) == [alive.number, elsewhere.number]
    assert list(sweep.directory.glob("trial_*")) == []


@pytest.mark.slow
def test_a_database_knows_of_killed_processes_on_machines_without_the_folder(open_sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_study, "HEARTBEAT_INTERVAL", 1)
    sweep = open_sweep(storage=f"sqlite:///{tmp_path}/sweep.db")
    storage = sweep.study._storage
    dead, alive = begin(sweep), begin(sweep)
    storage.record_heartbeat(dead._trial_id)
    time.sleep(4)
    storage.record_heartbeat(alive._trial_id)
    open_sweep(storage=f"sqlite:///{tmp_path}/sweep.db", folder="other").end_dead_trials()
    assert [trial.state for trial in sweep.study.trials] == [TrialState.FAIL, TrialState.RUNNING]


def test_the_best_settings_are_an_override_file(open_sweep):
    sweep = open_sweep()
    assert sweep.write_best("train") is None
    for figure in (0.5, 0.8125, 0.25):
        sweep.study.tell(begin(sweep), figure)
    path = sweep.write_best("allennlp train CONFIG -s OUT")
    best = sweep.study.best_trial
    expected = {"trainer.lr": best.params["trainer.lr"], **SPACE["head"]["choices"][best.params["head"]]}
    assert json.loads(evaluate_file(str(path))) == expected
    assert path.read_text().startswith("// best_validation_accuracy 0.8125: trial 1, the best of 3.\n")
    assert "//   allennlp train CONFIG -s OUT\n" in path.read_text()


def test_processes_may_write_the_best_settings_at_once(open_sweep):
    sweeps = [open_sweep() for _ in range(4)]
    sweeps[0].study.tell(begin(sweeps[0]), 0.5)
    errors = []

    def write(sweep):
        try:
            for _ in range(5):
                sweep.write_best("train")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(sweep,)) for sweep in sweeps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert "trainer.lr" in json.loads(evaluate_file(str(sweeps[0].directory / "best.libsonnet")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"config": {"trainer": {"validation_metric": "+f1", "lr": 0.1}}},
            "validation_metric` was '+accuracy', but is",
        ),
        (
            {"space": {**SPACE, "trainer.lr": {"type": "float", "low": 0, "high": 1}}},
            "`space.trainer.lr.low` was 0.0001",
        ),
    ],
)
def test_a_study_is_not_continued_with_another_config_or_space(open_sweep, change, message):
    open_sweep()
    with pytest.raises(ConfigurationError) as raised:
        open_sweep(**change)
    assert message in str(raised.value)
    assert "--study-name" in str(raised.value)


def test_more_trials_may_be_asked_for(open_sweep):
    open_sweep(num_trials=2)
    assert open_sweep(num_trials=5).num_trials == 5


def test_studies_of_other_names_share_a_storage(open_sweep, storage):
    begin(open_sweep(storage=storage))
    other = open_sweep(storage=storage, name="other", folder="other", space={"trainer.lr": SPACE["trainer.lr"]})
    assert other.taken == []
    assert set(optuna.get_all_study_names(other.study._storage)) == {"sweep", "other"}


def test_a_folder_with_trials_of_another_storage_is_refused(open_sweep, tmp_path):
    (tmp_path / "sweep/trial_0").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="has trial_0, which is not in its storage"):
        open_sweep()


@pytest.mark.parametrize("name", ["thesis.tex", "study.json", "config.json", "trial_of_patience"])
def test_a_folder_with_something_else_is_refused_and_left_alone(open_sweep, storage, tmp_path, name):
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / name).touch()
    for options in ({}, {"storage": storage}):
        with pytest.raises(ConfigurationError, match=f"must be new, empty or the folder of a sweep, but has {name}"):
            open_sweep(**options)
    assert os.listdir(tmp_path / "sweep") == [name]
    assert not (tmp_path / "shared").exists()


@pytest.mark.parametrize(
    "begun", [[".lock"], [".lock", "activations"], [".lock", "trial_0.lock", "best.libsonnet.partial"]]
)
def test_what_processes_that_join_make_is_of_the_sweep(open_sweep, storage, tmp_path, begun):
    (tmp_path / "sweep").mkdir()
    for name in begun:
        (tmp_path / "sweep" / name).touch()
    open_sweep(storage=storage)


@pytest.mark.parametrize("name", ["all.db", "all.journal"])
def test_the_storage_may_be_in_the_folder(open_sweep, tmp_path, name):
    path = f"{tmp_path}/sweep/{name}"
    (tmp_path / "sweep").mkdir()
    for _ in range(2):
        open_sweep(storage=f"sqlite:///{path}" if name.endswith(".db") else path)
    assert sorted(os.listdir(tmp_path / "sweep")) == [".lock", name]


def test_the_folder_of_a_sweep_may_hold_notes(open_sweep, tmp_path):
    begin(open_sweep())
    (tmp_path / "sweep/notes.txt").touch()
    assert numbers(open_sweep().taken) == [0]


@pytest.mark.parametrize("storage", ["nosuch://host/name", "sqlite:////no/such/folder/sweep.db"])
def test_a_storage_that_cannot_be_opened_is_told(open_sweep, storage):
    with pytest.raises(ConfigurationError, match="`--storage` must be a path, or a URL of a database"):
        open_sweep(storage=storage)
