"""The configs of news topics: no result depends on padding, and predictions name the classes."""

import csv
import json
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.models import Model, load_archive
from allennlp.predictors import Predictor

from elmo_tasks.common.environment import KNOBS

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "training_configs/ag_news"
NAMES = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
SHORT = "Oil rises again."
LONG = "Rovers win the cup in the rain, and the captain, who had not scored since the autumn, scores twice."


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)
    for knob in KNOBS:
        monkeypatch.setenv(knob.name, knob.default)


def untrained(config, overrides=None):
    """A model with the weights it begins with, and a short and a long text."""
    params = Params.from_file(str(CONFIGS / f"{config}.jsonnet"), params_overrides=overrides or {})
    reader = DatasetReader.from_params(params["dataset_reader"])
    short, long, *_ = texts = [reader.text_to_instance(text, label) for text, label in zip([SHORT, LONG] * 2, NAMES)]
    for instance in texts:
        reader.apply_token_indexers(instance)
    torch.manual_seed(0)
    return Model.from_params(params["model"], vocab=Vocabulary.from_instances(texts)).eval(), short, long


def tensors(model, *instances):
    batch = Batch(instances)
    batch.index_instances(model.vocab)
    return batch.as_tensor_dict()


def each_config():
    """BERT takes seconds only to be imported."""
    for config in sorted(path.stem for path in CONFIGS.glob("*.jsonnet")):
        yield pytest.param(config, marks=[pytest.mark.slow] if config == "bert" else [])


@pytest.mark.parametrize("config", list(each_config()))
def test_neighbours_in_the_batch_change_nothing(config, small_bert):
    model, short, long = untrained(config, small_bert if config == "bert" else None)
    alone, other = (model(**tensors(model, instance))["logits"] for instance in (short, long))
    together = model(**tensors(model, short, long))["logits"]
    torch.testing.assert_close(together, torch.cat([alone, other]), rtol=0, atol=1e-6)
    # Which is not because all texts look the same.
    assert (alone - other).abs().max() > 1e-4


@pytest.mark.parametrize("config", ["rnn", "lstm", "lstm_bidirectional", "lstm_two_layers", "lstm_characters"])
def test_last_step_of_a_padded_batch_is_not_the_last_state_of_the_text(config):
    model, short, long = untrained(config)
    recurrent = model.pooling.seq2vec_encoder
    vectors, mask = model.encoder(tensors(model, short, long)["tokens"])
    # (2, hidden_dim): what the tutorials take, and what the configs take
    padded, packed = recurrent._module(vectors)[0][:, -1], recurrent(vectors, mask)
    # (1, hidden_dim): without a neighbour, and so without padding
    alone = recurrent._module(vectors[:1, : mask[0].sum()])[1]
    alone = (alone[0] if isinstance(alone, tuple) else alone)[-2 if recurrent._module.bidirectional else -1 :]
    alone = alone.transpose(0, 1).flatten(1)
    torch.testing.assert_close(packed[:1], alone)
    assert (padded[:1] - alone).abs().max() > 0.01


@pytest.mark.slow
def test_predictions_name_the_classes_of_the_corpus(tmp_path):
    overrides = {"trainer.optimizer.lr": 1e-2, "trainer.cuda_device": -1}
    train_model(Params.from_file(str(CONFIGS / "mean.jsonnet"), overrides), serialization_dir=str(tmp_path / "run"))
    predictor = Predictor.from_archive(load_archive(tmp_path / "run/model.tar.gz"))
    with open("fixtures/ag_news/train.csv", newline="") as file:
        rows = list(csv.reader(file))
    outputs = predictor.predict_batch_json([{"sentence": f"{title} {text}"} for _, title, text in rows])
    assert {frozenset(output["label_probabilities"]) for output in outputs} == {frozenset(NAMES.values())}
    right = [output["label"] == NAMES[label] for output, (label, *_) in zip(outputs, rows)]
    assert sum(right) > 0.8 * len(rows)
    assert json.loads((tmp_path / "run/metrics.json").read_text())["test_accuracy"] > 0.8
