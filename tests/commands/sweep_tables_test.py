import io

import optuna
import pytest
from rich.console import Console

from elmo_tasks.commands.search_space import SearchSpace
from elmo_tasks.commands.sweep_study import ERROR, Sweep
from elmo_tasks.commands.sweep_tables import print_trials, short_names

CONFIG = {"trainer": {"validation_metric": "+accuracy", "optimizer": {"lr": 0.1}}}
SPACE = {"trainer.optimizer.lr": {"type": "float", "low": 0.0, "high": 1.0}}


@pytest.fixture
def sweep(tmp_path):
    return Sweep(tmp_path / "sweep", CONFIG, SearchSpace(SPACE), 20)


def tell(sweep, figure):
    trial = sweep.study.ask()
    sweep.space.suggest(trial)
    if figure is None:
        trial.set_user_attr(ERROR, "no more memory")
        sweep.study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        sweep.study.tell(trial, figure)


def printed(sweep):
    output = io.StringIO()
    print_trials(sweep, Console(file=output, width=80))
    return output.getvalue()


def test_the_best_trials_come_first_and_the_others_are_counted(sweep):
    for figure in [0.5, 0.75, None, 0.25]:
        tell(sweep, figure)
    sweep.study.ask()
    text = printed(sweep)
    assert text.splitlines()[0].strip() == "best_validation_accuracy: the best of 4 trials"
    assert text.splitlines()[-2:] == ["1 trial failed", "1 trial still under way in other processes"]
    rows = [line.split("│") for line in text.splitlines() if line.startswith("│")]
    assert [(row[1].strip(), row[2].strip()) for row in rows] == [("1", "0.7500"), ("0", "0.5000"), ("3", "0.2500")]
    lr = sweep.ranked[0].params["trainer.optimizer.lr"]
    assert rows[0][3].strip() == f"{lr:.4g}"


def test_square_brackets_in_the_names_of_metrics_are_text(tmp_path):
    config = {"trainer": {"validation_metric": "+f1[top]", "optimizer": {"lr": 0.1}}}
    sweep = Sweep(tmp_path / "sweep", config, SearchSpace(SPACE), 20)
    tell(sweep, 0.5)
    assert printed(sweep).count("f1[top]") == 2


def test_no_more_than_ten_trials_are_shown(sweep):
    for number in range(12):
        tell(sweep, number / 100)
    rows = [line for line in printed(sweep).splitlines() if line.startswith("│")]
    assert len(rows) == 10
    assert "0.1100" in rows[0]


def test_names_are_as_short_as_they_can_be_told_apart():
    assert short_names(["trainer.optimizer.lr", "model.a.dropout", "model.b.dropout", "mix"]) == {
        "trainer.optimizer.lr": "lr",
        "model.a.dropout": "a.dropout",
        "model.b.dropout": "b.dropout",
        "mix": "mix",
    }
    assert short_names(["optimizer.lr", "lr"]) == {"optimizer.lr": "optimizer.lr", "lr": "lr"}
