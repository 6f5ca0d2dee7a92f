import inspect
import json
import re

import allennlp.commands.train as train
import allennlp.training.util as training_util
import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.trainer import Trainer

from elmo_tasks.common.config_checks import DISTRIBUTED_OPTIONS, check_config

ONE_MACHINE = {"cuda_devices": [-1, -1]}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"trainer": {"num_epoch": 1}}, r"`trainer\.num_epoch` must be .* but is none; did you mean `num_epochs`\?"),
        ({"trainer": {"type": "gradient_descent", "patince": 1}}, "did you mean `patience`"),
        ({"trainer": {"kwargs": {}}}, "`trainer.kwargs` must be"),
        ({"trainer": {"type": "no_op", "num_epochs": 1}}, "but is none; those are model, .*, type"),
        ({"distributed": {**ONE_MACHINE, "num_node": 2}}, "`distributed.num_node` must .* did you mean `num_nodes`"),
        ({"distributed": {**ONE_MACHINE, "world": 2}}, "those are cuda_devices, ddp_accelerator, num_nodes, primary_"),
    ],
)
def test_a_misspelt_option_is_an_error_that_names_the_one_meant(config, message):
    with pytest.raises(ConfigurationError, match=message):
        check_config(config)


def test_a_misspelt_option_of_the_trainer_ends_a_run_before_it_has_a_folder(tmp_path):
    with pytest.raises(ConfigurationError, match="num_epochs"):
        train_model(Params({"trainer": {"num_epoch": 1}}), str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("config", [{}, {"trainer": None}, {"trainer": "no_op"}, {"distributed": None}, {"trainer": 3}])
def test_config_without_options_passes(config):
    check_config(config)


def test_every_option_that_the_trainer_of_allennlp_describes_passes():
    described = re.findall(r"^    (\w+) : ", inspect.getdoc(GradientDescentTrainer).replace("\n", "\n    "), re.M)
    assert {"num_epochs", "callbacks", "moving_average", "run_confidence_checks", "local_rank"} <= set(described)
    # AllenNLP makes the wrapped model itself, and fails where it is given one.
    check_config({"trainer": dict.fromkeys(set(described) - {"ddp_wrapped_model"})})


def test_what_the_trainer_of_allennlp_reads_of_unnamed_arguments_passes():
    (read,) = set(re.findall(r'kwargs\["(\w+)"\]', inspect.getsource(GradientDescentTrainer)))
    check_config({"trainer": {read: False}})


def test_what_allennlp_reads_of_distributed_is_known():
    source = inspect.getsource(train)
    read = re.findall(r'distributed_params\.(?:pop|get)\(\s*"(\w+)"', source)
    assert set(read) == set(DISTRIBUTED_OPTIONS)
    assert len(re.findall(r"distributed_params\.\w+\(", source)) == len(read), "nothing is read in another way"


class TrainerOfOthers(GradientDescentTrainer):
    """Reads an option of its own out of what AllenNLP's constructor hands on."""


def test_trainers_of_others_are_not_judged(monkeypatch):
    registry = Trainer._registry[Trainer]
    monkeypatch.setitem(registry, "of_others", (TrainerOfOthers, "from_partial_objects"))
    check_config({"trainer": {"type": "of_others", "anything": 1}})
    by_path = f"{__name__}.TrainerOfOthers"
    assert Trainer.by_name(by_path)
    check_config({"trainer": {"type": by_path, "anything": 1}})


def test_an_unknown_trainer_is_left_to_allennlp():
    check_config({"trainer": {"type": "imported_later", "anything": 1}})


@pytest.mark.parametrize("missing", ["cuda_devices", "primary_address", "primary_port"])
def test_several_machines_must_be_told_where_they_meet(missing):
    meeting = {**ONE_MACHINE, "num_nodes": 2, "primary_address": "127.0.0.1", "primary_port": 29500}
    check_config({"distributed": meeting})
    del meeting[missing]
    with pytest.raises(ConfigurationError, match=f"`distributed.{missing}` must be set where `num_nodes` is 2"):
        check_config({"distributed": meeting})
    check_config({"distributed": {**ONE_MACHINE, "num_nodes": 1}})


@pytest.mark.parametrize(
    ("trainer", "change"),
    [
        ({"num_epochs": 3, "patience": 1}, "`trainer.patience` was not set, but is 1"),
        ({}, "`trainer.num_epochs` was 3, but is not set"),
        ({"num_epochs": 5}, "`trainer.num_epochs` was 3, but is 5"),
        ({"num_epochs": 3, "patience": None}, "`trainer.patience` was not set, but is None"),
    ],
)
def test_a_run_is_not_recovered_with_another_config(trainer, change, tmp_path):
    run = tmp_path / "run"
    (run / "vocabulary").mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"trainer": {"num_epochs": 3}}))
    with pytest.raises(ConfigurationError) as error:
        train_model(Params({"trainer": trainer}), str(run), recover=True)
    assert f"must be recovered with the config that it was begun with, but {change}. Go on with its" in str(error.value)
    assert f"`allennlp train {run}/config.json -s {run} --recover`" in str(error.value)


def test_a_run_is_recovered_with_the_same_config_and_a_folder_without_one_is_left_to_allennlp(tmp_path):
    config = {"trainer": {"num_epochs": 3}}
    (tmp_path / "out.log").touch()
    with pytest.raises(ConfigurationError, match=r"doesn't contain a config\.json"):
        training_util.create_serialization_dir(Params(config), str(tmp_path), recover=True, force=False)
    (tmp_path / "config.json").write_text(json.dumps(config))
    training_util.create_serialization_dir(Params(config), str(tmp_path), recover=True, force=False)


def language_model(reader=None, **vocabulary):
    return {
        "dataset_reader": {"type": "bilm_text", "unroll_steps": 20, **(reader or {})},
        "train_data_path": "text/*.txt",
        "vocabulary": {
            "type": "bilm_text",
            "reader": {"type": "bilm_text", "unroll_steps": 20},
            "data_path": "text/*.txt",
            **vocabulary,
        },
    }


@pytest.mark.parametrize("reader", [{}, {"max_instances": 64}, {"unroll_steps": 5}, {"mode": "sentence"}], ids=str)
def test_the_words_of_a_language_model_may_be_those_of_its_text(reader, caplog):
    check_config(language_model(reader))
    assert not caplog.records


@pytest.mark.parametrize("option", ["unit", "lowercase_share", "number_word", "source"])
def test_words_that_are_counted_otherwise_than_they_are_read_are_refused(option):
    """An override of the reader reaches no copy of it."""
    with pytest.raises(ConfigurationError, match=rf"`vocabulary.reader.{option}` must be as .*, 'x', but is None; "):
        check_config(language_model({option: "x"}))


def test_words_of_another_text_are_told(caplog):
    check_config({**language_model(), "train_data_path": "own.txt"})
    assert [record.getMessage() for record in caplog.records] == [
        "The words to predict are those of `vocabulary.data_path`, text/*.txt, not of `train_data_path`, own.txt; an "
        "override sets both."
    ]
