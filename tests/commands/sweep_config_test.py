import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.sweep_config import objective, sweep_config, trial_config


def mr_config(**changes):
    return {
        "train_data_path": "rows#train",
        "validation_data_path": "rows#dev",
        "test_data_path": "rows#test",
        "evaluate_on_test": True,
        "datasets_for_vocab_creation": ["train"],
        "model": {"elmo": {"type": "elmo", "cache": {"directory": None}}},
        "trainer": {"validation_metric": "+accuracy"},
        **changes,
    }


def test_the_test_part_is_taken_out():
    config = mr_config()
    shared = sweep_config(config)
    assert "test_data_path" not in shared
    assert shared["evaluate_on_test"] is False
    assert shared["validation_data_path"] == "rows#dev"
    assert config == mr_config()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation_data_path": None}, "`validation_data_path` must be set"),
        ({"validation_data_path": "rows#test"}, "must be other data than `test_data_path`, but both are rows#test"),
        ({"datasets_for_vocab_creation": ["train", "test"]}, "must be without 'test'"),
        ({"trainer": {"num_epoch": 3}}, "`trainer.num_epoch` must be one of .* did you mean `num_epochs`?"),
    ],
)
def test_a_config_whose_sweep_would_need_the_test_part_or_fail_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        sweep_config(mr_config(**changes))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("+accuracy", ("best_validation_accuracy", "maximize")),
        ("-loss", ("best_validation_loss", "minimize")),
        (["+f1", "-loss"], ("best_validation_f1", "maximize")),
    ],
)
def test_the_objective_is_the_figure_that_selects_the_epoch(metric, expected):
    assert objective({"trainer": {"validation_metric": metric}}) == expected


def test_without_a_metric_the_loss_is_the_objective_as_it_is_of_training():
    assert objective({"trainer": {}}) == ("best_validation_loss", "minimize")


def test_choices_are_put_in_and_caches_are_shared():
    shared = sweep_config(mr_config())
    config = trial_config(shared, {"model.elmo.dropout": 0.5, "trainer": {"num_epochs": 1}}, "activations")
    assert config["model"]["elmo"] == {"type": "elmo", "cache": {"directory": "activations"}, "dropout": 0.5}
    assert config["trainer"] == {"num_epochs": 1}
    assert shared == sweep_config(mr_config())


def test_a_cache_with_a_directory_of_its_own_keeps_it():
    config = trial_config(sweep_config(mr_config()), {"model.elmo.cache.directory": "mine"}, "activations")
    assert config["model"]["elmo"]["cache"] == {"directory": "mine"}
