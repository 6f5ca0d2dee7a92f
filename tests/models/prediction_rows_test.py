import json

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.evaluation import Evaluator, SimpleEvaluator
from allennlp.models import Model

from elmo_tasks.models.pair_classifier import PairClassifier
from elmo_tasks.models.prediction_rows import PredictionRowsEvaluator
from elmo_tasks.models.sentence_classifier import SentenceClassifier


def evaluate(model, instances, path, **config):
    """As `allennlp evaluate --predictions-output-file` does with this `evaluation` of a config."""
    loader = SimpleDataLoader(instances, batch_size=2, vocab=model.vocab)
    metrics = Evaluator.from_params(Params(config))(model, loader, None, None, path)
    return metrics, [json.loads(line) for line in path.read_text().splitlines()]


def test_each_row_is_one_line_without_character_ids(toy, tmp_path):
    texts, labels = ["a dull film", "bright moments", "no end"], ["no", "yes", "no"]
    model = SentenceClassifier(toy.vocabulary({"no": 2, "yes": 1}), toy.embedder())
    sentences = [toy.sentence(text, label) for text, label in zip(texts, labels)]
    metrics, lines = evaluate(model, sentences, tmp_path / "predictions.jsonl")
    assert set(metrics) == {"accuracy", "loss"}
    assert [line["id"] for line in lines] == [f"id of {text}" for text in texts]
    assert [line["tokens"] for line in lines] == [text.split() for text in texts]
    assert [line["gold_label"] for line in lines] == labels
    hits = [line["label"] == line["gold_label"] for line in lines]
    assert metrics["accuracy"] == pytest.approx(sum(hits) / 3)
    keys = ["id", "label", "label_probabilities", "gold_label", "tokens"]
    assert [list(line) for line in lines] == [keys] * 3


def test_pairs_are_written_with_the_words_of_both_sentences(toy, tmp_path):
    model = PairClassifier(toy.vocabulary({"1": 2, "0": 1}), toy.embedder())
    _, lines = evaluate(model, [toy.pair("a film", "no film", "0")], tmp_path / "predictions.jsonl")
    keys = ["id", "label", "label_probabilities", "gold_label", "sentence1_tokens", "sentence2_tokens"]
    assert [list(line) for line in lines] == [keys]


def test_missing_id_is_null(toy, tmp_path):
    model = SentenceClassifier(toy.vocabulary({"no": 2, "yes": 1}), toy.embedder())
    sentence = toy.sentence("a film", "no")
    sentence["metadata"].metadata["id"] = None
    _, (line,) = evaluate(model, [sentence], tmp_path / "predictions.jsonl")
    assert line["id"] is None


def test_config_may_ask_for_what_allennlp_writes(toy, tmp_path):
    model = SentenceClassifier(toy.vocabulary({"no": 2, "yes": 1}), toy.embedder())
    config = {"batch_serializer": {"type": "simple"}}
    _, (line,) = evaluate(model, [toy.sentence("a film", "no")], tmp_path / "predictions.jsonl", **config)
    assert "metadata" in line
    assert isinstance(Evaluator.from_params(Params({"type": "simple"})), SimpleEvaluator)


class Constant(Model):
    """A model of somebody else."""

    def __init__(self):
        super().__init__(Vocabulary())
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, tokens, metadata):
        return {"loss": self.scale.sum(), "answer": ["yes"] * len(metadata)}


def test_other_models_are_evaluated_as_without_this_package(toy, tmp_path):
    stock, ours = tmp_path / "stock.jsonl", tmp_path / "ours.jsonl"
    for evaluator, path in ((SimpleEvaluator(), stock), (PredictionRowsEvaluator(), ours)):
        model = Constant()
        loader = SimpleDataLoader([toy.sentence("a film")], batch_size=2, vocab=toy.vocabulary({"no": 1}))
        evaluator(model, loader, None, None, path)
    assert ours.read_text() == stock.read_text()
