import re
import types

import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.train as train
import allennlp.common.params as common_params
import allennlp.training.util as training_util
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.fields import LabelField, MetadataField, MultiLabelField

from elmo_tasks.common import mistakes

VOCABULARY = Vocabulary({"labels": {"merry": 2, "sad": 1}})


@pytest.mark.parametrize(
    "config",
    [
        {"trainer": {"cuda_device": 0}},
        {"distributed": {"cuda_devices": [0, 1]}, "trainer": {}},
    ],
)
@pytest.mark.parametrize("command", [training_util, find_learning_rate])
def test_missing_gpu_is_an_error_before_anything_is_written(config, command, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigurationError, match="specified a GPU but none is available"):
        command.create_serialization_dir(Params(config), str(tmp_path / "run"), recover=False, force=False)
    assert not (tmp_path / "run").exists()


def test_amp_without_a_gpu_is_an_error_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match=r"use_amp.*must be false without a GPU"):
        training_util.create_serialization_dir(
            Params({"trainer": {"use_amp": True}}), str(tmp_path / "run"), recover=False, force=False
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"trainer": {}},
        {"trainer": {"cuda_device": None}},
        {"trainer": {"cuda_device": -1, "use_amp": False}},
        {"distributed": {"cuda_devices": [-1, -1]}, "trainer": {}},
        {"distributed": None},
    ],
)
def test_config_for_the_cpu_passes_the_check_of_devices(config, tmp_path):
    training_util.create_serialization_dir(Params(config), str(tmp_path / "run"), recover=False, force=False)
    assert (tmp_path / "run").is_dir()


def test_folder_in_place_of_a_config_is_an_error_with_its_path(tmp_path, monkeypatch):
    seen = []
    # jsonnet itself would end this process.
    monkeypatch.setattr(common_params, "evaluate_file", lambda path, ext_vars: seen.append(path) or "{}")
    mistakes.call_a_wrong_config_a_mistake()
    with pytest.raises(ConfigurationError, match=rf"{re.escape(str(tmp_path))} must be a file of .*, but is a folder"):
        Params.from_file(tmp_path)
    config = tmp_path / "config.json"
    config.touch()
    Params.from_file(config)
    assert seen == [str(config)]


def test_what_jsonnet_finds_wrong_is_told_of_the_file_or_the_override(tmp_path):
    config = tmp_path / "config.jsonnet"
    config.write_text("{ a: 1,, }")
    with pytest.raises(ConfigurationError, match=rf"{re.escape(str(config))} must be json\(net\), .*1:8: unexpected"):
        Params.from_file(config)
    config.write_text("{ a: 1 }")
    with pytest.raises(ConfigurationError, match=r"an override .* must be json.*couldn't open import"):
        Params.from_file(config, "import 'nothing'")
    assert Params.from_file(config, "{ a: 1 + 1 }").params == {"a": 2}


@pytest.mark.parametrize(
    ("content", "overrides", "message"),
    [
        ("{ a: 1 }", "5", r"an override .* must be an object of settings, but is 5$"),
        ("{ a: 1 }", "['b']", r"an override .* must be an object of settings, but is \['b'\]$"),
        ("[]", "", r"config.jsonnet must be an object of settings, but is \[\]$"),
        ("'text'", "", "config.jsonnet must be an object of settings, but is 'text'$"),
        ("{ a: {} }", '{"b.c": 1}', r"an override .* must fit .*config.jsonnet, but does not: .*unused keys.*'b.c'"),
        ("{ a: 1 }", '{"a.b": 1}', r"an override .* must fit .*config.jsonnet, but does not: overrides for 'a"),
    ],
)
def test_configs_and_overrides_that_cannot_be_ones_are_mistakes(content, overrides, message, tmp_path):
    config = tmp_path / "config.jsonnet"
    config.write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        Params.from_file(config, overrides)


def test_a_mistake_in_one_of_several_processes_is_one_again(monkeypatch):
    texts = [
        "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
        '  File "x.py", line 1, in <module>\nallennlp.common.checks.ConfigurationError: `x` must be 1\nor 2\n',
        "\nTraceback (most recent call last):\nallennlp.common.checks.ConfigurationError: first\n"
        '  File "x.py", line 1, in <module>\nValueError: second\n',
    ]

    def spawn(text):
        raise torch.multiprocessing.ProcessRaisedException(text, 0, 1)

    monkeypatch.setattr(train, "mp", types.ModuleType("mp"))
    train.mp.spawn = spawn
    mistakes.end_several_processes_by_the_mistake()
    with pytest.raises(ConfigurationError, match=r"^`x` must be 1\nor 2$"):
        train.mp.spawn(texts[0])
    with pytest.raises(torch.multiprocessing.ProcessRaisedException):
        train.mp.spawn(texts[1])


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"metadata": MetadataField({"file": "dev.txt", "line": 7})}, "dev.txt, line 7: the label"),
        ({"metadata": MetadataField({"file": None, "line": None})}, "the label"),
        ({"metadata": MetadataField("dev.txt")}, "the label"),
        ({}, "the label"),
    ],
    ids=["of a file", "of a request", "of another kind", "none"],
)
def test_unknown_label_is_told_with_its_row_and_the_known_ones(metadata, where):
    Instance({"label": LabelField("sad"), **metadata}).index_fields(VOCABULARY)
    unknown = Instance({"label": LabelField("calm"), **metadata})
    with pytest.raises(ConfigurationError, match=rf"^{where} must be one of .*\['merry', 'sad'\], but is 'calm'; "):
        unknown.index_fields(VOCABULARY)


def test_other_words_that_a_vocabulary_lacks_are_errors_as_before():
    with pytest.raises(KeyError, match="calm"):
        Instance({"label": LabelField(1, skip_indexing=True), "labels": MultiLabelField(["calm"])}).index_fields(
            VOCABULARY
        )
