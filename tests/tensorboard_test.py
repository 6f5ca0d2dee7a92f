"""The mix of every epoch is in TensorBoard, with AllenNLP's own callback: a config is all that it takes."""

import json
import struct
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params
from tensorboardX.proto.event_pb2 import Event

from elmo_tasks.common.environment import KNOBS

ROOT = Path(__file__).parents[1]
MIX = [*(f"scalar_mix_layer_{layer}_weight" for layer in range(3)), "scalar_mix_gamma"]


def logged(folder):
    """The numbers of each tag in their order. A record of the file is a length, a checksum, an event, a checksum."""
    numbers = {}
    (path,) = folder.glob("events.*")
    content = path.read_bytes()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        for value in Event.FromString(content[12 : 12 + length]).summary.value:
            numbers.setdefault(value.tag, []).append(value.simple_value)
        content = content[12 + length + 4 :]
    return numbers


@pytest.mark.slow
@pytest.mark.parametrize("mix", ["scalar", "token_dependent"])
def test_the_mix_of_every_epoch_is_in_tensorboard(mix, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    for knob in KNOBS:
        monkeypatch.setenv(knob.name, knob.default)
    overrides = f"""
        (import 'training_configs/overrides/smoke.libsonnet')
        + (import 'training_configs/overrides/tensorboard.libsonnet')
        + {{ 'model.text_field_embedder.token_embedders.elmo.mix': {{ type: '{mix}' }} }}
    """
    run = tmp_path / "run"
    train_model(Params.from_file("training_configs/mr.jsonnet", overrides), serialization_dir=str(run))
    epochs = [json.loads((run / f"metrics_epoch_{epoch}.json").read_text()) for epoch in range(2)]
    for part, prefix in (("train", "training"), ("validation", "validation")):
        numbers = logged(run / "log" / part)
        for name in MIX:
            expected = [epoch[f"{prefix}_{name}"] for epoch in epochs]
            assert numbers[f"{part}/{name}"] == pytest.approx(expected, rel=1e-6)
    assert epochs[0]["training_scalar_mix_gamma"] != epochs[1]["training_scalar_mix_gamma"]
