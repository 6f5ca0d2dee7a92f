"""A tiny biLM in the official layout, and sentences for it."""

import shutil
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.models import load_archive
from allennlp.predictors import Predictor

import elmo_tasks  # noqa: F401  (registers everything)

FIXTURES = Path(__file__).parents[2] / "fixtures"
BILM_FOLDER = FIXTURES / "bilm"
MR = (FIXTURES / "mr" / "rt_train.txt", FIXTURES / "mr" / "rt_val.txt")

SENTENCES = [
    ["A", "quiet", "film", "with", "a", "loud", "heart", "."],
    ["Skip", "it"],
    [],
    ["naïve", "Ωmega", "日本語", "🎬" * 20, "a" * 60],
    ["."],
    ["A", "quiet", "film", "with", "a", "loud", "heart", "."],
]


@pytest.fixture
def files():
    return {"options_file": str(BILM_FOLDER / "options.json"), "weight_file": str(BILM_FOLDER / "weights.hdf5")}


@pytest.fixture
def sentences():
    return [list(sentence) for sentence in SENTENCES]


@pytest.fixture
def to_ids():
    """Character ids as AllenNLP's own indexer and batching make them."""

    def to_ids(sentences):
        indexer = {"elmo": ELMoTokenCharactersIndexer()}
        batch = Batch([Instance({"t": TextField([Token(word) for word in words], indexer)}) for words in sentences])
        batch.index_instances(Vocabulary())
        return batch.as_tensor_dict()["t"]["elmo"]["elmo_tokens"]

    return to_ids


@pytest.fixture
def count_calls():
    """Gives a list that gets the shape of each batch that the biLM of an embedder runs on from now on."""

    def count_calls(embedder):
        shapes = []
        embedder.bilm.register_forward_pre_hook(lambda module, inputs: shapes.append(tuple(inputs[0].shape)))
        return shapes

    return count_calls


@pytest.fixture
def bilm_folder(tmp_path):
    """A copy, to be changed or deleted."""
    return Path(shutil.copytree(BILM_FOLDER, tmp_path / "bilm"))


@pytest.fixture
def train(tmp_path):
    """Trains a small classifier on the sample, or on other `data`; gives the folder of the run."""
    runs = []

    def train(embedder, num_epochs=1, data=MR, **reader):
        config = {
            "dataset_reader": {"type": "mr", "max_instances": 16, **reader},
            "train_data_path": str(data[0]),
            "validation_data_path": str(data[1]),
            "model": {
                "type": "elmo_sentence_classifier",
                "text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo", "dropout": 0.0, **embedder}}},
            },
            "data_loader": {"batch_size": 8},
            "trainer": {"num_epochs": num_epochs, "optimizer": {"type": "adam", "lr": 0.05}, "cuda_device": -1},
        }
        runs.append(tmp_path / f"run{len(runs)}")
        train_model(Params(config), str(runs[-1]))
        return runs[-1]

    return train


@pytest.fixture
def predictions():
    """The probabilities that an archive gives for four sentences, of which the first and the third are equal."""
    rows = [{"sentence": text} for text in ("a warm and funny film .", "it drags .", "a warm and funny film .", "Ω")]

    def predictions(archive, batch_size=2, **options):
        predictor = Predictor.from_archive(load_archive(str(archive), **options))
        results = []
        for start in range(0, len(rows), batch_size):
            results += predictor.predict_batch_json(rows[start : start + batch_size])
        return [list(result["label_probabilities"].values()) for result in results]

    return predictions
