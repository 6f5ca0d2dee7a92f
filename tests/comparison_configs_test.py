"""The shipped comparisons: each variant is a model that can be trained, and differs as its name says."""

import copy
import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.training.optimizers import Optimizer

from elmo_tasks.commands.variants import read_variants, variant_config
from elmo_tasks.modules import ElmoEmbedder
from elmo_tasks.training.preflight import check_parameter_regexes

ROOT = Path(__file__).parents[1]
COMPARISONS = ROOT / "training_configs/comparisons"
write_json = runpy.run_path(str(ROOT / "training_configs/write_json.py"))


@pytest.fixture(autouse=True)
def _small_bilm_in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)
    for knob in write_json["KNOBS"]:
        monkeypatch.setenv(knob.name, knob.default)
    monkeypatch.setenv("ELMO_TASKS_BILM", "fixtures/bilm")


def each_variant():
    """Task, comparison and variant."""
    names = ["layer_0", "layer_1", "layer_2", "average", "learned", "learned_normed", "token_dependent"]
    shares = [f"{bilm}_{percent}%" for bilm in ("pretrained", "untrained") for percent in (1, 3, 10, 30, 100)]
    return [
        *((task, "layers", name) for task in ("mr", "mrpc") for name in names),
        *(("mr", "data_efficiency", name) for name in shares),
    ]


def variants(comparison):
    return read_variants(str(COMPARISONS / f"{comparison}.libsonnet"))


def config_of(task, comparison, name):
    config = Params.from_file(f"training_configs/{task}.jsonnet").as_dict(quiet=True)
    return variant_config(config, name, variants(comparison)[name])


def build(config, labels=("0", "1", "negative", "positive")):
    """The model, and what AllenNLP and our preflight see of its optimizer."""
    vocabulary = Vocabulary()
    for label in labels:
        vocabulary.add_token_to_namespace(label, "labels")
    model = Model.from_params(Params(config["model"]), vocab=vocabulary)
    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    optimizer = Optimizer.from_params(Params(config["trainer"]["optimizer"]), model_parameters=trained)
    return SimpleNamespace(model=model, optimizer=optimizer)


def embedder_of(task, comparison, name):
    model = build(config_of(task, comparison, name)).model
    (embedder,) = [module for module in model.modules() if isinstance(module, ElmoEmbedder)]
    return embedder


def test_the_list_of_variants_is_complete():
    listed = {}
    for _, comparison, name in each_variant():
        listed.setdefault(comparison, set()).add(name)
    assert listed == {path.stem: set(variants(path.stem)) for path in COMPARISONS.glob("*.libsonnet")}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "comparison", "name"), each_variant())
def test_each_variant_is_a_model_whose_optimizer_has_the_mix_if_it_is_trained(task, comparison, name):
    config = config_of(task, comparison, name)
    trainer = build(copy.deepcopy(config))
    check_parameter_regexes(trainer, config)
    in_optimizer = {id(parameter) for group in trainer.optimizer.param_groups for parameter in group["params"]}
    of_mix = [parameter for name, parameter in trainer.model.named_parameters() if "scalar_mix" in name]
    is_trained = any(id(parameter) in in_optimizer for parameter in of_mix)
    assert is_trained == (name not in ("layer_0", "layer_1", "layer_2", "average"))


@pytest.mark.parametrize(
    ("name", "weights"),
    [("layer_0", [1, 0, 0]), ("layer_1", [0, 1, 0]), ("layer_2", [0, 0, 1]), ("average", [1 / 3] * 3)],
)
def test_fixed_mixes_have_the_weights_of_their_names(name, weights):
    metrics = embedder_of("mr", "layers", name).scalar_mix.get_metrics()
    assert [metrics[f"scalar_mix_layer_{layer}_weight"] for layer in range(3)] == pytest.approx(weights)


def test_each_variant_of_the_layers_differs_from_all_others():
    settings = [json.dumps(overrides, sort_keys=True) for overrides in variants("layers").values()]
    assert len(set(settings)) == len(settings) == 7


@pytest.mark.parametrize(
    ("percent", "num_rows", "num_epochs"), [(1, 4, 300), (3, 12, 300), (10, 39, 300), (30, 117, 120), (100, 391, 30)]
)
def test_both_bilms_have_the_same_rows_of_a_share_and_read_few_rows_more_often(percent, num_rows, num_epochs):
    """The sample's training file has 434 rows, of which 43 are the dev part."""
    trained_on = []
    for bilm in ("pretrained", "untrained"):
        config = config_of("mr", "data_efficiency", f"{bilm}_{percent}%")
        reader = DatasetReader.from_params(Params(config["dataset_reader"]))
        trained_on.append([instance["metadata"]["id"] for instance in reader.read(config["train_data_path"])])
        assert config["trainer"]["num_epochs"] == num_epochs
        assert len(list(reader.read(config["validation_data_path"]))) == 43
    assert len(trained_on[0]) == num_rows
    assert trained_on[0] == trained_on[1]


def test_the_untrained_bilm_is_of_the_size_of_the_chosen_one():
    pretrained = embedder_of("mr", "data_efficiency", "pretrained_100%")
    untrained = embedder_of("mr", "data_efficiency", "untrained_100%")
    assert untrained.bilm.options == pretrained.bilm.options
    assert not (untrained.bilm.character_encoder.characters == pretrained.bilm.character_encoder.characters).any()
