import json
from pathlib import Path

import optuna
import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.trainer import Trainer

from elmo_tasks.commands.search_space import SearchSpace

ROOT = Path(__file__).parents[2]

CONFIG = {
    "train_data_path": "rows#train",
    "validation_data_path": "rows#dev",
    "model": {"dropout": 0.0, "mix": {"type": "scalar"}},
    "trainer": {"optimizer": {"lr": 0.1, "parameter_groups": [[["mix"], {"lr": 0.2}]]}},
}
NUMBER = {"type": "float", "low": 0.0, "high": 1.0}


def suggested(description, num_trials=30):
    """The settings of so many trials of a random search."""
    space = SearchSpace(description)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [space.overrides(space.suggest(study.ask())) for _ in range(num_trials)]


def test_numbers_are_between_their_bounds_and_on_their_steps():
    settings = suggested(
        {
            "rate": {"type": "float", "low": 1e-4, "high": 1, "log": True},
            "dropout": {"type": "float", "low": 0, "high": 0.5, "step": 0.25},
            "size": {"type": "int", "low": 8, "high": 64, "log": True},
            "layers": {"type": "int", "low": 1, "high": 5, "step": 2},
        }
    )
    assert all(1e-4 <= setting["rate"] <= 1 for setting in settings)
    # Even in the logarithm: half of them below the middle one, which would hold 1 % of an even choice.
    assert 8 < sum(setting["rate"] < 1e-2 for setting in settings) < 22
    assert {setting["dropout"] for setting in settings} == {0.0, 0.25, 0.5}
    assert all(8 <= setting["size"] <= 64 and isinstance(setting["size"], int) for setting in settings)
    assert {setting["layers"] for setting in settings} == {1, 3, 5}


def test_values_in_a_list_stand_for_themselves():
    settings = suggested({"model.seed": {"type": "categorical", "choices": [None, True, 3, 0.5, "x"]}})
    assert {repr(setting["model.seed"]) for setting in settings} == {"None", "True", "3", "0.5", "'x'"}


def test_whole_objects_are_chosen_by_their_names():
    choices = {"plain": {"type": "scalar"}, "top": {"type": "single_layer", "layer": -1}, "none": None}
    settings = suggested({"model.mix": {"type": "categorical", "choices": choices}})
    found = [setting["model.mix"] for setting in settings]
    assert all(choice in found for choice in choices.values())
    assert all(mix in choices.values() for mix in found)


def test_overrides_are_chosen_together():
    choices = {"small": {"model.mix.size": 1, "model.dropout": 0.1}, "unchanged": {}}
    settings = suggested({"head": {"type": "overrides", "choices": choices}})
    assert choices["small"] in settings
    assert {} in settings
    assert all(setting in choices.values() for setting in settings)


def test_a_list_in_the_config_is_reached_by_its_places():
    space = SearchSpace({"trainer.optimizer.parameter_groups.0.1.lr": NUMBER})
    space.check_fits(CONFIG)
    changed = with_overrides(CONFIG, space.overrides({"trainer.optimizer.parameter_groups.0.1.lr": 0.5}))
    assert changed["trainer"]["optimizer"]["parameter_groups"] == [[["mix"], {"lr": 0.5}]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"low": 0, "high": 1}, "an object with a `type`, one of "),
        ({"type": "double", "low": 0, "high": 1}, "an object with a `type`, one of "),
        (0.5, "an object with a `type`, one of "),
        ({"type": "float", "low": 0}, "must have the options low, high"),
        ({"type": "float", "low": 0, "high": 1, "logarithm": True}, "but has low, high, logarithm"),
        ({"type": "float", "low": 2, "high": 1}, "`low` must be at most `high`, but they are 2 and 1"),
        ({"type": "float", "low": "1e-3", "high": 1}, "`low` must be of type float, but is '1e-3'"),
        ({"type": "float", "low": 0, "high": 1, "log": True}, "`low` must be above 0 with `log`, but is 0"),
        ({"type": "float", "low": 1, "high": 2, "log": True, "step": 0.1}, "`step` must not come with `log`"),
        ({"type": "float", "low": 1, "high": 2, "step": 0}, "`step` must be above 0, but is 0"),
        ({"type": "int", "low": 0.5, "high": 1}, "`low` must be of type int, but is 0.5"),
        ({"type": "categorical", "choices": []}, "`choices` must hold one or more"),
        ({"type": "categorical", "choices": "abc"}, "`choices` must hold one or more"),
        ({"type": "categorical", "choices": [{"type": "scalar"}]}, "must have names"),
        ({"type": "overrides", "choices": [{"a": 1}]}, "`choices` must hold one or more"),
        ({"type": "overrides", "choices": {"a": 1}}, "must be an object of overrides"),
    ],
)
def test_a_wrong_parameter_is_named(options, message):
    with pytest.raises(ConfigurationError) as raised:
        SearchSpace({"trainer.optimizer.lr": options})
    assert "`trainer.optimizer.lr`" in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize("description", [{}, [], None])
def test_a_space_without_parameters_is_refused(description):
    with pytest.raises(ConfigurationError, match="a search space must be an object"):
        SearchSpace(description)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"trainer.optimiser.lr": NUMBER}, "trainer.optimiser.lr"),
        ({"trainer.optimizer.lr.x": NUMBER}, "expected list or dict"),
        ({"trainer.optimizer.parameter_groups.1.1.lr": NUMBER}, "trainer.optimizer.parameter_groups.1.1.lr"),
        ({"lr": NUMBER}, "must begin with a key of the config, but there is no `lr` in it"),
        ({"head": {"type": "overrides", "choices": {"a": {}, "b": {"modell.x": 1}}}}, "there is no `modell` in it"),
        ({"validation_data_path": {"type": "categorical", "choices": ["rows#test"]}}, "must leave `validation_data_p"),
        ({"test_data_path": {"type": "categorical", "choices": ["rows#test"]}}, "must leave `test_data_path` as it"),
        ({"evaluate_on_test": {"type": "categorical", "choices": [True]}}, "must leave `evaluate_on_test` as it is"),
        ({"trainer.num_epoch": NUMBER}, "`trainer.num_epoch` must be one of the options that AllenNLP reads, but is"),
        (
            {"head": {"type": "overrides", "choices": {"a": {}, "b": {"trainer.num_epoch": 3}}}},
            "did you mean `num_epochs`?",
        ),
        (
            {"model.mix.x": NUMBER, "head": {"type": "overrides", "choices": {"a": {}, "b": {"model.mix": None}}}},
            "both change `model.mix.x`",
        ),
        (
            {"model.dropout": NUMBER, "head": {"type": "overrides", "choices": {"a": {"model.dropout": 0}}}},
            "both change `model.dropout`",
        ),
    ],
)
def test_a_space_that_does_not_fit_the_config_is_refused(description, message):
    with pytest.raises(ConfigurationError) as raised:
        SearchSpace(description).check_fits(CONFIG)
    assert message in str(raised.value)


def test_keys_that_only_begin_alike_do_not_disturb_each_other():
    SearchSpace({"model.dropout": NUMBER, "model.dropout_of_mix": NUMBER}).check_fits(CONFIG)


class OwnTrainer(GradientDescentTrainer):
    """Has an option that those of AllenNLP lack."""


def test_an_option_of_what_another_parameter_chooses_fits(monkeypatch):
    monkeypatch.setitem(Trainer._registry[Trainer], "own", (OwnTrainer, "from_partial_objects"))
    space = {"trainer.warmth": NUMBER, "trainer.type": {"type": "categorical", "choices": ["own"]}}
    SearchSpace(space).check_fits(CONFIG)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"model.mix": {"x": 1}},
            "`--overrides` must leave room for the best settings, but set `model.mix` whole, of which the search space "
            "changes `model.mix.x`; give each of its parts a key of its own, as `model.mix.x` is one",
        ),
        ({"trainer": {}}, "but set `trainer` whole, of which the search space changes `trainer.optimizer`; give each"),
        (
            {"trainer.optimizer.lr": 1},
            "`--overrides` must leave room for the best settings, but set `trainer.optimizer.lr`, and the search space "
            "changes `trainer.optimizer` whole; leave it to the choices there",
        ),
    ],
)
def test_overrides_that_the_settings_cannot_be_added_to_are_refused(overrides, message):
    space = SearchSpace(
        {
            "trainer.optimizer": {"type": "categorical", "choices": {"sgd": {"type": "sgd", "lr": 1}}},
            "head": {"type": "overrides", "choices": {"a": {}, "b": {"model.mix.x": 1}}},
        }
    )
    with pytest.raises(ConfigurationError) as raised:
        space.check_leaves_room(overrides)
    assert message in str(raised.value)


def test_overrides_beside_the_settings_and_in_their_places_leave_room():
    space = SearchSpace({"model.mix.x": NUMBER, "model.dropout": NUMBER})
    space.check_leaves_room({"model.mix.x": 1, "model.mix.y": 1, "model.dropout_of_mix": 1, "trainer": {}})


def test_a_file_is_evaluated_with_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("LARGEST_RATE", "2")
    path = tmp_path / "space.libsonnet"
    path.write_text(
        "{ ['trainer.' + 'lr']: { type: 'float', low: 1, high: std.parseInt(std.extVar('LARGEST_RATE')) }, hidden:: 1 }"
    )
    assert SearchSpace.from_file(str(path)).description == {"trainer.lr": {"type": "float", "low": 1, "high": 2}}


@pytest.mark.parametrize(("space", "config"), [("mr", "mr"), ("elmo", "mr"), ("elmo", "mrpc")])
def test_shipped_spaces_fit_their_configs(space, config):
    evaluated = json.loads((ROOT / f"training_configs/json/{config}.json").read_text())
    SearchSpace.from_file(str(ROOT / f"training_configs/sweeps/{space}.libsonnet")).check_fits(evaluated)


def test_the_size_of_a_home_made_bilm_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_TASKS_BILM", "home/made")
    shipped = ROOT / "training_configs/sweeps/mr.libsonnet"
    with pytest.raises(ConfigurationError, match="bilm_dim:: must be set for a biLM in a folder"):
        SearchSpace.from_file(str(shipped))
    mine = tmp_path / "mine.libsonnet"
    mine.write_text(f"(import '{shipped}') {{ bilm_dim:: 100 }}")
    head = SearchSpace.from_file(str(mine)).parameters["head"]
    assert head.overrides("head", "bilstm, max")["model.seq2seq_encoder"]["input_size"] == 100
    assert head.overrides("head", "bilstm, max")["model.seq2vec_encoder"]["embedding_dim"] == 256
    assert head.overrides("head", "linear, max")["model.seq2vec_encoder"]["embedding_dim"] == 100
