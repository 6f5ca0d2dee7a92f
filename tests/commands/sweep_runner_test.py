import json
import math
import threading

import pytest
from allennlp.common.checks import ConfigurationError
from optuna.trial import TrialState

from elmo_tasks.commands import sweep_runner
from elmo_tasks.commands.search_space import SearchSpace
from elmo_tasks.commands.sweep_runner import SweepRunner
from elmo_tasks.commands.sweep_study import ERROR, Sweep

CONFIG = {
    "model": {"x": 0.5, "elmo": {"type": "elmo", "cache": {"directory": None}}},
    "trainer": {"validation_metric": "+accuracy"},
}
SPACE = {"model.x": {"type": "float", "low": 0.0, "high": 1.0}}


class Training:
    """Stands for `train_run`: leaves what a training leaves; its accuracy is best at 0.3, or what a script says."""

    def __init__(self):
        self.configs = []
        self.script = {}
        self.barrier = None

    def __call__(self, run, config, include_package):
        run.directory.mkdir(parents=True)
        for name in ("best.th", "model.tar.gz", "out.log", "model_state_e0_b0.th"):
            (run.directory / name).touch()
        self.configs.append(config)
        if self.barrier:
            self.barrier.wait(timeout=20)
        figure = self.script.get(int(run.directory.name[len("trial_") :]), 1 - abs(config["model"]["x"] - 0.3))
        if isinstance(figure, BaseException):
            raise figure
        (run.directory / "metrics.json").write_text(json.dumps({"best_validation_accuracy": figure}))
        return ["WARNING: 12 texts lost their end"]


@pytest.fixture
def training(monkeypatch):
    training = Training()
    monkeypatch.setattr(sweep_runner, "train_run", training)
    return training


@pytest.fixture
def runner(tmp_path):
    def runner(num_trials, storage=None):
        return SweepRunner(Sweep(tmp_path, CONFIG, SearchSpace(SPACE), num_trials, storage), "train", [])

    return runner


def test_each_trial_trains_with_its_settings_and_gives_its_dev_figure(runner, training):
    sweep = runner(4).sweep
    SweepRunner(sweep, "train", []).run()
    trials = sweep.study.trials
    assert [config["model"]["x"] for config in training.configs] == [trial.params["model.x"] for trial in trials]
    assert [trial.value for trial in trials] == [
        pytest.approx(1 - abs(trial.params["model.x"] - 0.3)) for trial in trials
    ]
    assert {config["model"]["elmo"]["cache"]["directory"] for config in training.configs} == {
        str(sweep.directory / "activations")
    }
    assert (sweep.directory / "best.libsonnet").is_file()


def test_the_search_is_better_than_chance(runner, training):
    runner(40).run()
    # After the first ten, which are random, each is chosen with regard to those before: nearer to 0.3 than random ones,
    # whose distance has the mean 0.29.
    distances = [abs(trial.params["model.x"] - 0.3) for trial in runner(40).sweep.study.trials[10:]]
    assert sum(distances) / len(distances) < 0.22


def test_the_weights_of_trials_do_not_stay(runner, training):
    training.script = {1: ValueError("nan loss")}
    runner(2).run()
    for number in range(2):
        left = {path.name for path in runner(2).sweep.trial_directory(number).iterdir()}
        assert left - {"metrics.json"} == {"out.log"}


def test_a_finished_sweep_trains_nothing_until_more_is_asked_for(runner, training):
    runner(3).run()
    runner(3).run()
    assert len(training.configs) == 3
    runner(5).run()
    assert len(training.configs) == 5


def test_a_failed_trial_is_told_and_counts(runner, training, capsys):
    training.script = {1: ValueError("nan loss encountered"), 2: math.nan}
    runner(4).run()
    sweep = runner(4).sweep
    assert [trial.state for trial in sweep.study.trials] == [
        TrialState.COMPLETE,
        TrialState.FAIL,
        TrialState.FAIL,
        TrialState.COMPLETE,
    ]
    assert sweep.study.trials[1].user_attrs[ERROR] == "ValueError: nan loss encountered"
    error_output = capsys.readouterr().err
    assert f"Trial 1 has failed; its log is {sweep.trial_directory(1)}/out.log: ValueError: nan loss" in error_output
    assert "Trial 2 has failed" in error_output
    assert error_output.count("12 texts lost their end") == 1
    assert "4/4" in error_output


def test_a_log_that_a_failed_trial_has_not_begun_is_not_named(runner, monkeypatch, capsys):
    def failing(*arguments):
        raise ValueError("no such device")

    monkeypatch.setattr(sweep_runner, "train_run", failing)
    runner(1).run()
    assert "Trial 0 has failed: ValueError: no such device" in capsys.readouterr().err


def test_trials_that_fail_one_after_another_end_the_sweep(runner, training):
    training.script = {1: OSError("disk full"), 3: OSError("disk full"), 4: OSError("disk full"), 5: OSError("full")}
    with pytest.raises(ConfigurationError, match="3 failed one after another; the last: OSError: full"):
        runner(10).run()
    assert len(training.configs) == 6


def test_an_interrupted_trial_does_not_count(runner, training):
    training.script = {1: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        runner(3).run()
    runner(3).run()
    trials = runner(3).sweep.study.trials
    assert [trial.state.name for trial in trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize("kind", ["journal", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_workers_at_one_storage_train_the_number_of_trials_in_all(runner, training, tmp_path, kind):
    storage = {"journal": None, "sqlite": f"sqlite:///{tmp_path}/sweep.db"}[kind]
    # Both are at a trial at the same moment, three times.
    training.barrier = threading.Barrier(2)
    runners = [runner(6, storage), runner(6, storage)]
    threads = [threading.Thread(target=one.run) for one in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert len(training.configs) == 6
    trials = runners[0].sweep.study.trials
    assert sum(trial.state == TrialState.COMPLETE for trial in trials) == 6
    assert len({trial.params.get("model.x") for trial in trials if trial.state == TrialState.COMPLETE}) == 6


def test_a_trial_that_another_worker_was_faster_with_is_left(runner, training, monkeypatch):
    late, other = runner(1), runner(1)
    begin = late.sweep.study.ask

    def begin_late(*args, **kwargs):
        other.run()  # between the look at the storage and the trial
        return begin(*args, **kwargs)

    monkeypatch.setattr(late.sweep.study, "ask", begin_late)
    late.run()
    assert len(training.configs) == 1
    assert [trial.state.name for trial in late.sweep.study.trials] == ["COMPLETE", "FAIL"]
