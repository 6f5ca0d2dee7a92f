"""Every shipped config trains on the fixtures, has an up-to-date JSON twin, and every broken one says what is wrong."""

import json
import re
import runpy
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "training_configs"
BROKEN = ROOT / "fixtures/configs/broken"
write_json = runpy.run_path(str(CONFIGS / "write_json.py"))


def names(paths, below):
    return [str(path.relative_to(below)) for path in paths]


def shipped():
    return names(sorted(CONFIGS.glob("*.jsonnet")), CONFIGS)


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


@pytest.mark.parametrize("config", shipped())
def test_config_trains_on_the_fixtures(config, tmp_path):
    train_model(load(CONFIGS / config, "smoke.libsonnet"), serialization_dir=str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["epoch"] == 1
    assert 0 <= metrics["test_accuracy"] <= 1
    assert (tmp_path / "run/model.tar.gz").is_file()


@pytest.mark.parametrize("override", ["cpu.libsonnet", "fine_tune.libsonnet", "stock_embedder.libsonnet"])
def test_override_applies_to_the_base_config(override, tmp_path):
    params = load(CONFIGS / "mr.jsonnet", "smoke.libsonnet", override)
    train_model(params, serialization_dir=str(tmp_path / "run"))
    assert json.loads((tmp_path / "run/metrics.json").read_text())["epoch"] == 1


@pytest.mark.parametrize("config", names(write_json["configs"](), CONFIGS))
def test_json_twin_is_up_to_date(config):
    twin = write_json["twin_path"](CONFIGS / config)
    assert twin.read_text() == write_json["evaluated"](CONFIGS / config), "run `make configs`"


@pytest.mark.parametrize("config", names(sorted(BROKEN.glob("*.jsonnet")), BROKEN))
def test_broken_config_says_what_is_wrong(config, tmp_path):
    first_line = (BROKEN / config).read_text().splitlines()[0]
    expected = re.match(r"// must fail with: (.+)", first_line).group(1)
    with pytest.raises((ConfigurationError, FileNotFoundError), match=re.escape(expected)):
        train_model(load(BROKEN / config, "smoke.libsonnet"), serialization_dir=str(tmp_path / "run"))
    # Whatever is wrong is found before the first epoch.
    assert not list((tmp_path / "run").glob("metrics_epoch_*.json"))
