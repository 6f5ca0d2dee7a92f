"""Every shipped config trains on the fixtures, has an up-to-date JSON twin, and every broken one says what is wrong."""

import json
import re
import runpy
from pathlib import Path

import pytest
from allennlp.commands.train import TrainModel, train_model
from allennlp.common import Params
from allennlp.common import params as allennlp_params
from allennlp.common.checks import ConfigurationError
from allennlp.models import load_archive
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "training_configs"
BROKEN = ROOT / "fixtures/configs/broken"
write_json = runpy.run_path(str(CONFIGS / "write_json.py"))


def names(paths, below):
    return [str(path.relative_to(below)) for path in paths]


def shipped():
    """Those that classify; `pretraining_configs_test.py` trains the others."""
    for config in names(sorted([*CONFIGS.glob("*.jsonnet"), *CONFIGS.glob("ag_news/*.jsonnet")]), CONFIGS):
        yield pytest.param(config, marks=[pytest.mark.slow] if config.startswith("ag_news") else [])


def load(path, *overrides, extra=None):
    """The config with override files applied, as `-o` would."""
    merged = dict(extra or {})
    for override in overrides:
        merged.update(json.loads(write_json["evaluate_file"](str(CONFIGS / "overrides" / override), ext_vars=env())))
    return Params.from_file(str(path), params_overrides=merged)


def env():
    return {knob.name: knob.default for knob in write_json["KNOBS"]}


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("config", list(shipped()))
def test_config_trains_on_the_fixtures(config, tmp_path, small_bert):
    params = load(CONFIGS / config, "smoke.libsonnet", extra=small_bert if config == "ag_news/bert.jsonnet" else None)
    uses_elmo = "elmo" in params["dataset_reader"]["token_indexers"]
    train_model(params, serialization_dir=str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["epoch"] == 1
    assert 0 <= metrics["test_accuracy"] <= 1
    vocabulary = load_archive(tmp_path / "run/model.tar.gz").model.vocab
    # Characters of ELMo need no vocabulary.
    if uses_elmo:
        assert names(sorted((tmp_path / "run/vocabulary").glob("*.txt")), tmp_path / "run/vocabulary") == [
            "labels.txt",
            "non_padded_namespaces.txt",
        ]
        assert list(vocabulary._token_to_index) == ["labels"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "override"),
    [
        ("mr", "cpu"),
        ("mr", "fine_tune"),
        ("mr", "stock_embedder"),
        ("mr", "token_dependent"),
        pytest.param("mrpc", "token_dependent", marks=pytest.mark.slow),
    ],
)
def test_override_applies_to_the_base_config(config, override, tmp_path):
    params = load(CONFIGS / f"{config}.jsonnet", "smoke.libsonnet", f"{override}.libsonnet")
    train_model(params, serialization_dir=str(tmp_path / "run"))
    assert json.loads((tmp_path / "run/metrics.json").read_text())["epoch"] == 1


def test_fine_tuning_gives_the_bilm_lower_rates_than_all_that_is_new(tmp_path):
    params = load(CONFIGS / "mr.jsonnet", "smoke.libsonnet", "fine_tune.libsonnet")
    run = TrainModel.from_params(params=params, serialization_dir=str(tmp_path), local_rank=0)
    name_of = {parameter: name for name, parameter in run.model.named_parameters()}
    groups = [
        ({name_of[parameter] for parameter in group["params"]}, group["lr"])
        for group in run.trainer.optimizer.param_groups
    ]
    of_bilm = [(names, rate) for names, rate in groups if all(".bilm." in name for name in names)]
    others = [(names, rate) for names, rate in groups if not any(".bilm." in name for name in names)]
    assert len(of_bilm) + len(others) == len(groups)
    assert max(rate for _, rate in of_bilm) < min(rate for _, rate in others)
    # What lies lower has the lower rate, by the same factor each time.
    rate_of = {name: rate for names, rate in of_bilm for name in names}
    (prefix,) = {name[: name.index("bilm.") + 4] for name in rate_of}
    rates = [rate_of[f"{prefix}.{part}"] for part in ("layers.1.bias", "layers.0.bias", "character_encoder.characters")]
    assert rates == pytest.approx([rates[0], rates[0] / 2.6, rates[0] / 2.6**2])
    assert set.union(*(names for names, _ in of_bilm)) == {name for name in name_of.values() if ".bilm." in name}
    assert any("scalar_mix" in name for names, _ in others for name in names)


@pytest.mark.slow
def test_f1_can_select_the_epoch_of_paraphrases(tmp_path):
    config = load(CONFIGS / "mrpc.jsonnet", "smoke.libsonnet", extra={"trainer.validation_metric": "+f1"})
    train_model(config, serialization_dir=str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    epochs = [json.loads((tmp_path / f"run/metrics_epoch_{epoch}.json").read_text()) for epoch in range(2)]
    assert metrics["best_validation_f1"] == max(epoch["validation_f1"] for epoch in epochs)


@pytest.mark.parametrize("config", names(write_json["configs"](), CONFIGS))
def test_without_jsonnet_the_twin_is_the_config(config, monkeypatch):
    twin = write_json["twin_path"](CONFIGS / config)
    expected = write_json["evaluated"](CONFIGS / config)
    assert twin.read_text() == expected, "run `make configs`"
    # What AllenNLP itself puts there where the package is missing.
    monkeypatch.setattr(allennlp_params, "evaluate_file", lambda path, **_: Path(path).read_text())
    monkeypatch.setattr(allennlp_params, "evaluate_snippet", lambda _, snippet, **__: snippet)
    assert Params.from_file(str(twin)).as_dict() == json.loads(expected)


@pytest.mark.parametrize("config", names(sorted(BROKEN.glob("*.jsonnet")), BROKEN))
def test_broken_config_says_what_is_wrong_before_the_first_epoch(config, tmp_path, monkeypatch):
    first_line = (BROKEN / config).read_text().splitlines()[0]
    expected = re.match(r"// must fail with: (.+)", first_line).group(1)
    monkeypatch.delattr(GradientDescentTrainer, "_train_epoch")
    with pytest.raises((ConfigurationError, FileNotFoundError), match=re.escape(expected)):
        train_model(load(BROKEN / config, "smoke.libsonnet"), serialization_dir=str(tmp_path / "run"))
