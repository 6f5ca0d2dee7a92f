"""A tiny biLM in the official layout, and sentences for it."""

from pathlib import Path

import pytest
import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer

BILM_FOLDER = Path(__file__).parents[2] / "fixtures" / "bilm"

SENTENCES = [
    ["A", "quiet", "film", "with", "a", "loud", "heart", "."],
    ["Skip", "it"],
    [],
    ["naïve", "Ωmega", "日本語", "🎬" * 20, "a" * 60],
    ["."],
    ["A", "quiet", "film", "with", "a", "loud", "heart", "."],
]


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """A biLM this small waits for other threads more than it computes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def files():
    return {"options_file": str(BILM_FOLDER / "options.json"), "weight_file": str(BILM_FOLDER / "weights.hdf5")}


@pytest.fixture
def sentences():
    return [list(sentence) for sentence in SENTENCES]


@pytest.fixture
def instances():
    indexers = {"elmo": ELMoTokenCharactersIndexer()}
    return [Instance({"tokens": TextField([Token(word) for word in words], indexers)}) for words in SENTENCES]


@pytest.fixture
def to_ids():
    """Character ids as AllenNLP's own indexer and batching make them."""

    def to_ids(sentences):
        indexer = {"elmo": ELMoTokenCharactersIndexer()}
        batch = Batch([Instance({"t": TextField([Token(word) for word in words], indexer)}) for words in sentences])
        batch.index_instances(Vocabulary())
        return batch.as_tensor_dict()["t"]["elmo"]["elmo_tokens"]

    return to_ids
