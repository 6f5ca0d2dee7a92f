"""
For every shipped classifier: a row has the same scores whatever is beside it, before it, or in a cache.

Not bit for bit: products of matrices of another size add up in another order, which changes the last bits.
"""

import json
import multiprocessing
import random
from pathlib import Path

import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.models import Model

from elmo_tasks.models import Classifier
from elmo_tasks.modules import ElmoEmbedder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_in_the_checkout")]

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "training_configs"
LANGUAGE_MODELS = "pretrain"
CLASSIFIERS = sorted(
    str(path.relative_to(CONFIGS).with_suffix(""))
    for path in CONFIGS.rglob("*.jsonnet")
    if path.parent.name != LANGUAGE_MODELS
)
TOLERANCE = 1e-5
NUM_ROWS = 9
WORDS = ["a", "warm", "quiet", "film", "of", "two", "sisters", ",", "gives", "up", ".", "naïve", "日本語", "don't"]


@pytest.fixture(autouse=True)
def _models_of_plugins():
    import_plugins()  # the models of allennlp-models, as on the command line


def text_of(length, seed):
    return " ".join(random.Random(str(seed)).choices(WORDS, k=length))


class Scorer:
    """A config's model as it begins, and rows of all lengths, from none to 24 words; and one of 80."""

    def __init__(self, config, overrides, cache=None):
        params = Params.from_file(str(CONFIGS / f"{config}.jsonnet"), params_overrides=overrides).as_dict()
        self.has_cache = False
        self._set_cache(params["model"], cache)
        labels = ["1", "2", "3", "4"] if params["dataset_reader"]["type"] == "ag_news" else ["0", "1"]
        self.reader = DatasetReader.from_params(Params(params["dataset_reader"]))
        num_texts = len(self.reader.text_fields)
        self.rows = [
            self._instance([text_of(number * 3, (number, side)) for side in range(num_texts)], label)
            for number, label in zip(range(NUM_ROWS), labels * NUM_ROWS)
        ]
        self.long_row = self._instance([text_of(80, side) for side in range(num_texts)], labels[0])
        torch.manual_seed(0)
        vocabulary = Vocabulary.from_instances([*self.rows, self.long_row])
        self.model = Model.from_params(Params(params["model"]), vocab=vocabulary).eval()
        self.embedders = [module for module in self.model.modules() if isinstance(module, ElmoEmbedder)]

    def _set_cache(self, config, cache):
        """Of an embedder that may have one, wherever it is."""
        if config.get("type") == "elmo" and config.get("cache") is not None:
            config["cache"] = cache
            self.has_cache = True
        for value in config.values():
            if isinstance(value, dict):
                self._set_cache(value, cache)

    def _instance(self, texts, label):
        instance = self.reader.text_to_instance(*texts, label=label)
        self.reader.apply_token_indexers(instance)
        return instance

    def __call__(self, rows, num_more=0):
        """Scores of a batch, float32 `(len(rows), num_labels)`, with so many columns more of padding."""
        batch = Batch(rows)
        batch.index_instances(self.model.vocab)
        lengths = {
            field: {
                name: length + num_more * (name.split("___")[-1] != "num_token_characters")
                for name, length in sizes.items()
            }
            for field, sizes in batch.get_padding_lengths().items()
        }
        with torch.no_grad():
            return self.model(**batch.as_tensor_dict(lengths))["logits"]

    def in_batches(self, rows, size):
        return torch.cat([self(rows[start : start + size]) for start in range(0, len(rows), size)])

    def fill_caches(self):
        for embedder in self.embedders:
            embedder.prepare_for_training(lambda: self.rows, lambda: self.rows)


@pytest.fixture(params=CLASSIFIERS)
def config(request):
    return request.param


@pytest.fixture
def overrides(config, request):
    if config != "ag_news/bert":
        return {}
    # Room for more padding: this one has 128 positions.
    return {**request.getfixturevalue("small_bert"), "dataset_reader.tokenizer.max_length": 100}


@pytest.fixture
def scorer(config, overrides):
    return Scorer(config, overrides)


def same(scores, expected):
    torch.testing.assert_close(scores, expected, rtol=0, atol=TOLERANCE)


def test_no_neighbour_order_padding_or_process_changes_a_score(scorer):
    assert isinstance(scorer.model, Classifier)
    rows, expected = scorer.rows, scorer(scorer.rows)
    # The rows differ by far more than is allowed.
    assert (expected.unsqueeze(0) - expected.unsqueeze(1)).abs().amax(dim=-1).max() > 100 * TOLERANCE
    for size in (1, 2, 7):
        same(scorer.in_batches(rows, size), expected)
    order = random.Random(1).sample(range(NUM_ROWS), NUM_ROWS)
    same(scorer([rows[place] for place in order]), expected[order])
    same(scorer(rows, num_more=9), expected)
    same(scorer([*rows, scorer.long_row])[:NUM_ROWS], expected)
    # Again, after all of that.
    assert torch.equal(scorer(rows), expected)
    same(scored_in_two_processes(scorer), expected)


def scored_in_two_processes(scorer):
    context = multiprocessing.get_context("fork")
    parts = [scorer.rows[0::2], scorer.rows[1::2]]
    queue = context.Queue()
    processes = [
        context.Process(target=lambda number, part: queue.put((number, scorer(part).tolist())), args=(number, part))
        for number, part in enumerate(parts)
    ]
    for process in processes:
        process.start()
    scores = dict(queue.get(timeout=300) for _ in processes)
    for process in processes:
        process.join(timeout=60)
    together = [None] * NUM_ROWS
    together[0::2], together[1::2] = scores[0], scores[1]
    return torch.tensor(together)


def test_no_state_of_the_cache_changes_a_score(config, scorer, overrides, tmp_path):
    if not scorer.has_cache:
        assert not any(embedder.cache for embedder in scorer.embedders)
        return
    expected = scorer(scorer.rows)
    for cache in ({}, {"directory": str(tmp_path), "max_memory_bytes": 0}):
        cached = Scorer(config, overrides, cache)
        same(cached(cached.rows), expected)  # cold
        cached.fill_caches()
        runs = []
        for embedder in cached.embedders:
            embedder.bilm.register_forward_pre_hook(lambda *inputs: runs.append(inputs))  # noqa: B023
        same(cached(cached.rows), expected)  # warm
        same(cached.in_batches(cached.rows, 2), expected)
        assert runs == []
        same(cached([*cached.rows, cached.long_row])[:NUM_ROWS], expected)  # warm for all but one
        assert len(runs) > 0


def test_every_other_config_is_of_a_language_model():
    for path in (CONFIGS / LANGUAGE_MODELS).glob("*.jsonnet"):
        assert Params.from_file(str(path))["model"]["type"] == "bilm_language_model"


@pytest.mark.parametrize("config", ["mr", "mrpc", "heads/mr_words", "heads/mrpc_esim", "ag_news/lstm"])
def test_evaluate_gives_what_training_gave_for_the_validation_part(config, tmp_path):
    smoke = {"trainer.num_epochs": 2, "dataset_reader.max_instances": 64, "trainer.cuda_device": -1}
    params = Params.from_file(str(CONFIGS / f"{config}.jsonnet"), params_overrides=smoke)
    data_path = params["validation_data_path"]
    train_model(params, str(tmp_path / "run"))
    evaluate_from_archive(tmp_path / "run/model.tar.gz", data_path, metrics_output_file=str(tmp_path / "metrics.json"))
    evaluated = json.loads((tmp_path / "metrics.json").read_text())
    trained = json.loads((tmp_path / "run/metrics.json").read_text())
    for name in {"accuracy", "precision", "recall", "f1"} & evaluated.keys():
        assert evaluated[name] == trained[f"best_validation_{name}"]
    assert evaluated["loss"] == pytest.approx(trained["best_validation_loss"], abs=TOLERANCE)
