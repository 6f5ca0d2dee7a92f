"""The baselines and the heads: each trains on the fixtures, and predicts."""

import json
import math
import runpy
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.modules import TokenEmbedder
from allennlp.predictors import Predictor
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "training_configs"
EXPERIMENTS = sorted([*CONFIGS.glob("baselines/*.jsonnet"), *CONFIGS.glob("heads/*.jsonnet")])
write_json = runpy.run_path(str(CONFIGS / "write_json.py"))


def load(config):
    """With two short epochs, as `-o` with the file would."""
    defaults = {knob.name: knob.default for knob in write_json["KNOBS"]}
    smoke = write_json["evaluate_file"](str(CONFIGS / "overrides/smoke.libsonnet"), ext_vars=defaults)
    return Params.from_file(str(config), params_overrides=smoke)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("config", EXPERIMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_experiment_trains_and_predicts(config, tmp_path):
    import_plugins()  # the models of allennlp-models, as on the command line
    train_model(load(config), serialization_dir=str(tmp_path))
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["epoch"] == 1
    assert 0 <= metrics["test_accuracy"] <= 1
    assert any(name.startswith("test_scalar_mix") for name in metrics)

    predictor = Predictor.from_path(str(tmp_path / "model.tar.gz"))
    text1, text2 = "a film of few words", "few words , and a film of them"
    lines = [
        {"id": "7", "sentence": text1, "sentence1": text1, "sentence2": text2},
        {"id": "8", "sentence": text2, "sentence1": text2, "sentence2": text1},
    ]
    alone, together = [predictor.predict_json(line) for line in lines], predictor.predict_batch_json(lines)
    assert [row["id"] for row in together] == ["7", "8"]
    assert sum(together[0]["label_probabilities"].values()) == pytest.approx(1)
    for row, same_row in zip(alone, together):
        assert row["label_probabilities"] == pytest.approx(same_row["label_probabilities"], abs=1e-5)
    if "mrpc" in config.stem:
        assert together[0]["label_probabilities"] == pytest.approx(together[1]["label_probabilities"], abs=1e-5)


@pytest.mark.parametrize("override", ["fine_tune", "stock_embedder", "token_dependent"])
@pytest.mark.parametrize(
    ("config", "arguments"), [("mr_bcn", ", 'bilm'"), ("mrpc_esim", ""), ("mrpc_decomposable", "")]
)
def test_override_of_the_embedder_reaches_it_in_a_network(config, arguments, override):
    imported = f"import '{CONFIGS}/overrides/{override}.libsonnet'"
    plain, base = (Params.from_file(str(CONFIGS / "mr.jsonnet"), each).as_dict() for each in ("", imported))
    params = Params.from_file(
        str(CONFIGS / f"heads/{config}.jsonnet"),
        f"(import '{CONFIGS}/overrides/network.libsonnet')({imported}{arguments})",
    ).as_dict()
    # One embedder still, and the same as in the config that the override is written for.
    (embedder,) = params["model"]["network"]["text_field_embedder"]["token_embedders"].values()
    assert embedder == base["model"]["text_field_embedder"]["token_embedders"]["elmo"]
    assert embedder != plain["model"]["text_field_embedder"]["token_embedders"]["elmo"]
    groups = [each["trainer"]["optimizer"]["parameter_groups"] for each in (params, base)]
    assert groups[0] == groups[1]


def test_filters_of_the_summed_baseline_are_1536_and_its_vectors_half_as_long():
    params = Params.from_file(str(CONFIGS / "baselines/elmo_summed_token_dependent.jsonnet"))
    embedder = TokenEmbedder.from_params(params["model"]["text_field_embedder"]["token_embedders"]["elmo"])
    assert [len(convolution.bias) for convolution in embedder.bilm.character_encoder.convolutions] == [
        32, 32, 64, 128, 256, 512, 512,
    ]  # fmt: skip
    assert embedder.bilm.options.num_filters == 1536
    assert embedder.get_output_dim() == embedder.bilm.options.projection_dim
    # From scratch: there is nothing that stays as it is drawn.
    assert all(parameter.requires_grad for parameter in embedder.parameters())


def test_word_bilm_is_averaged_and_named_by_its_variable(monkeypatch):
    config = str(CONFIGS / "baselines/mrpc_word_elmo.jsonnet")
    monkeypatch.setenv("ELMO_TASKS_WORD_BILM", "runs/words/model.tar.gz")
    model = Params.from_file(config).as_dict()["model"]
    embedder = model["text_field_embedder"]["token_embedders"]["elmo"]
    assert embedder["pretrained"] == "runs/words/model.tar.gz"
    assert embedder["mix"] == {"type": "scalar", "trainable": False}
    # Of both directions, in the config that the language model is pretrained with.
    network = Params.from_file(str(CONFIGS / "pretrain/mrpc_words.jsonnet")).as_dict()["model"]["network"]
    assert model["seq2vec_encoder"]["input_size"] == 2 * network["projection_dim"]


@pytest.mark.slow
def test_word_vectors_come_from_a_file_that_the_archive_needs_no_more(tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(f"film {' '.join(['0.25'] * 300)}\n")
    params = load(CONFIGS / "heads/mr_words.jsonnet").as_dict()
    embedder = params["model"]["text_field_embedder"]["token_embedders"]["words"]
    embedder.update(pretrained_file=str(vectors), trainable=False)
    params["trainer"]["optimizer"]["parameter_groups"].pop()
    train_model(Params(params), serialization_dir=str(tmp_path / "run"))
    vectors.unlink()
    model = Predictor.from_path(str(tmp_path / "run/model.tar.gz"))._model
    weight = model.get_submodule("encoder.text_field_embedder.token_embedder_words").weight
    assert weight[model.vocab.get_token_index("film")].tolist() == [0.25] * 300


def test_rate_of_the_baseline_warms_up_and_falls_along_a_cosine():
    trainer = Params.from_file(str(CONFIGS / "baselines/elmo_linear.jsonnet")).as_dict()["trainer"]
    peak, num_epochs, num_steps = trainer["optimizer"]["lr"], trainer["num_epochs"], 270
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    scheduler = LearningRateScheduler.from_params(
        Params(trainer["learning_rate_scheduler"]), optimizer=optimizer, num_epochs=5, num_steps_per_epoch=num_steps
    )
    rates = []  # of each batch; the calls are the trainer's
    for epoch in range(num_epochs):
        for step in range(num_steps):
            rates.append(optimizer.param_groups[0]["lr"])
            scheduler.step_batch(epoch * num_steps + step + 1)
        scheduler.step()
    assert rates[:101] == pytest.approx([peak * step / 100 for step in range(101)])
    assert rates[100:num_steps] == pytest.approx([peak] * (num_steps - 100))
    for epoch in range(1, num_epochs):
        expected = peak * (1 + math.cos(math.pi * epoch / num_epochs)) / 2
        assert rates[epoch * num_steps : (epoch + 1) * num_steps] == pytest.approx([expected] * num_steps)


def test_rate_and_length_of_a_config_on_top_of_the_baseline_reach_its_schedule(tmp_path):
    config = tmp_path / "mine.jsonnet"
    config.write_text(
        f"(import '{CONFIGS}/baselines/elmo_linear.jsonnet') + "
        "{ trainer+: { num_epochs: 10, optimizer+: { lr: 1e-3 } } }"
    )
    trainer = Params.from_file(str(config)).as_dict()["trainer"]
    (num_warm, warm_up), (num_falling, fall) = trainer["learning_rate_scheduler"]["schedulers"]
    assert (num_warm, num_falling, fall["t_initial"]) == (1, 9, 10)
    assert warm_up["end_learning_rate"] == trainer["optimizer"]["lr"] == 1e-3
