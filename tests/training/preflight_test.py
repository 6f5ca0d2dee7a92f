import random

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError


def start(trainer):
    """What `train` does before the first epoch."""
    for callback in trainer._callbacks:
        callback.on_start(trainer, is_primary=True)


class OurLayer(torch.nn.Linear):
    """Stands for a module of this package."""


OurLayer.__module__ = "elmo_tasks.modules.tiny"


class Preparing(torch.nn.Module):
    """Asks for the data, and uses up random numbers while it reads."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def prepare_for_training(self, training_instances, all_instances):
        for source in (training_instances, all_instances, training_instances):
            self.seen.append([instance["x"].tensor[0].item() for instance in source()])
        random.random()
        np.random.rand()
        torch.rand(1)


# --- validation metric


@pytest.mark.parametrize("metric", ["-loss", "+size", "-size", "+size_in_evaluation", ["+size", "-loss"]], ids=str)
def test_a_metric_of_the_model_passes(metric, make_trainer):
    start(make_trainer(validation_metric=metric))


@pytest.mark.parametrize("metric", ["+f1", "-f1", ["+size", "+f1"]], ids=str)
def test_an_unknown_metric_is_an_error_before_the_first_epoch_with_the_names_that_exist(metric, make_trainer, tmp_path):
    trainer = make_trainer(validation_metric=metric)
    with pytest.raises(ConfigurationError) as error:
        trainer.train()
    assert "must be a metric of TinyModel" in str(error.value)
    assert f"but is {'-' if metric == '-f1' else '+'}f1;" in str(error.value)
    assert "loss, size, size_in_evaluation" in str(error.value)
    assert not list(tmp_path.glob("metrics_epoch*"))


def test_the_model_is_in_training_again_after_the_check(make_trainer):
    trainer = make_trainer()
    start(trainer)
    assert trainer.model.training


def test_without_validation_data_the_metric_is_not_used_and_not_judged(make_trainer):
    start(make_trainer(validation_metric="+f1", validation=False))


@pytest.mark.parametrize("metrics", [{}, RuntimeError("You never call this metric before.")], ids=str)
def test_a_model_that_cannot_tell_its_metrics_yet_is_not_judged(metrics, make_trainer, monkeypatch):
    trainer = make_trainer(validation_metric="+f1")

    def get_metrics(reset=False):
        if isinstance(metrics, Exception):
            raise metrics
        return metrics

    monkeypatch.setattr(trainer.model, "get_metrics", get_metrics)
    start(trainer)


def test_span_metrics_of_a_label_are_not_judged_before_there_are_labels(make_trainer, monkeypatch):
    trainer = make_trainer(validation_metric="+f1-measure-PER")
    monkeypatch.setattr(trainer.model, "get_metrics", lambda reset=False: {"f1-measure-overall": 0.0})
    start(trainer)


# --- regexes


def groups(*regexes_and_options):
    return {"type": "adam", "parameter_groups": [list(group) for group in regexes_and_options]}


def with_our_layer(trainer):
    head = trainer.model.head
    head.__class__ = OurLayer
    return trainer


def test_regexes_that_match_pass(make_trainer):
    optimizer = groups((["head.weight"], {"lr": 1e-2}), (["bias"], {"lr": 1e-3}))
    start(with_our_layer(make_trainer(optimizer=optimizer, no_grad=["frozen"])))


def test_a_regex_that_matches_nothing_is_an_error_with_the_nearest_names(make_trainer):
    trainer = make_trainer(optimizer=groups((["haed.weight"], {"lr": 1e-2})))
    with pytest.raises(ConfigurationError) as error:
        start(trainer)
    assert "`trainer.optimizer.parameter_groups`" in str(error.value)
    assert "'haed.weight' matches no parameter; correct it (the names most like it are head.weight" in str(error.value)
    assert """or leave the regexes out: -o '{"trainer.optimizer.parameter_groups": null}'.""" in str(error.value)


def test_a_regex_that_matches_frozen_parameters_only_is_an_error_that_says_so(make_trainer):
    trainer = with_our_layer(make_trainer(optimizer=groups((["frozen"], {"lr": 1e-2}))))
    with pytest.raises(ConfigurationError) as error:
        start(trainer)
    assert "only parameters that are frozen, such as frozen.weight; train them, or leave" in str(error.value)
    assert """the regexes out: -o '{"trainer.optimizer.parameter_groups": null}'.""" in str(error.value)


def test_the_option_that_leaves_the_regexes_out_does(make_trainer):
    trainer = with_our_layer(make_trainer(optimizer={"type": "adam", "parameter_groups": None}, no_grad=None))
    start(trainer)
    assert len(trainer.optimizer.param_groups) == 1


def test_each_regex_must_match_in_models_with_modules_of_ours(make_trainer):
    optimizer = groups((["head", "layer_norm"], {"lr": 1e-2}))
    with pytest.raises(ConfigurationError, match="'layer_norm' matches no parameter"):
        start(with_our_layer(make_trainer(optimizer=optimizer)))


def test_a_list_of_alternatives_passes_in_models_of_others_if_one_matches(make_trainer):
    start(make_trainer(optimizer=groups((["head", "layer_norm"], {"lr": 1e-2}))))


def test_a_group_that_freezes_passes_although_it_is_not_in_the_optimizer(make_trainer):
    optimizer = groups((["head.weight"], {"requires_grad": False}), (["head.bias"], {"lr": 1e-2}))
    start(with_our_layer(make_trainer(optimizer=optimizer)))


def test_groups_frozen_by_gradual_unfreezing_pass(make_trainer):
    trainer = make_trainer(
        optimizer=groups((["head.weight"], {"lr": 1e-2}), (["head.bias"], {"lr": 1e-2})),
        learning_rate_scheduler={"type": "slanted_triangular", "gradual_unfreezing": True},
    )
    assert not trainer.model.head.weight.requires_grad
    start(with_our_layer(trainer))


def test_no_grad_that_matches_nothing_is_an_error(make_trainer):
    trainer = make_trainer(no_grad=["froozen"])
    with pytest.raises(ConfigurationError, match=r"`trainer\.no_grad` must .* 'froozen' matches no .*no_grad\": null"):
        start(trainer)


def test_a_trainer_made_in_python_has_no_config_to_check(make_trainer, tmp_path):
    trainer = make_trainer(optimizer=groups((["haed"], {"lr": 1e-2})))
    (tmp_path / "config.json").unlink()
    start(trainer)


# --- preparation


def first_numbers(data_loader):
    return [instance["x"].tensor[0].item() for instance in data_loader.iter_instances()]


def test_modules_see_the_training_part_and_all_parts_as_often_as_they_ask(make_trainer):
    trainer = make_trainer()
    trainer.model.inner = torch.nn.Sequential(Preparing())
    start(trainer)
    training = first_numbers(trainer.data_loader)
    validation = first_numbers(trainer._validation_data_loader)
    assert (len(training), len(validation)) == (12, 6)
    assert trainer.model.inner[0].seen == [training, training + validation, training]


def test_without_validation_all_instances_are_the_training_part(make_trainer):
    trainer = make_trainer(validation=False)
    trainer.model.inner = Preparing()
    start(trainer)
    training = first_numbers(trainer.data_loader)
    assert trainer.model.inner.seen == [training] * 3


def test_preparing_leaves_all_random_states_as_they_were(make_trainer):
    trainer = make_trainer()
    trainer.model.inner = Preparing()
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    start(trainer)
    assert trainer.model.inner.seen
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == states
