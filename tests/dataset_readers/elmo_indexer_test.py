import copy
import pickle

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer

from elmo_tasks.dataset_readers import elmo_indexer
from elmo_tasks.dataset_readers.elmo_indexer import ElmoCharacterArraysIndexer

SENTENCES = [
    ["A", "film", "that", "earns", "its", "tears", "."],
    [],
    ["<S>", "naïve", "Ω", "日本語", "🎬" * 20, "a" * 80, "</S>", ""],
    ["A", "film", "A", "film"],
]


def batch_tensors(indexer, sentences=SENTENCES):
    batch = Batch([Instance({"tokens": TextField([Token(t) for t in s], {"elmo": indexer})}) for s in sentences])
    batch.index_instances(Vocabulary())
    return batch.as_tensor_dict()["tokens"]["elmo"]


@pytest.mark.parametrize("options", [{}, {"tokens_to_add": {"film": 7}}, {"token_min_padding_length": 12}])
def test_tensors_equal_those_of_the_stock_indexer(options):
    expected = batch_tensors(ELMoTokenCharactersIndexer(**options))
    found = batch_tensors(TokenIndexer.from_params(Params({"type": "elmo_character_arrays", **options})))
    assert set(found) == set(expected)
    assert found["elmo_tokens"].dtype == expected["elmo_tokens"].dtype
    assert torch.equal(found["elmo_tokens"], expected["elmo_tokens"])


def test_only_empty_sentences_give_an_empty_tensor():
    assert batch_tensors(ElmoCharacterArraysIndexer(), [[], []])["elmo_tokens"].shape == (2, 0, 50)


def test_lists_of_sentences_equal_those_of_the_stock_indexer():
    def tensors(indexer):
        field = ListField([TextField([Token(t) for t in s], {"elmo": indexer}) for s in SENTENCES])
        batch = Batch([Instance({"texts": field}), Instance({"texts": field.empty_field()})])
        batch.index_instances(Vocabulary())
        return batch.as_tensor_dict()["texts"]["elmo"]["elmo_tokens"]

    assert torch.equal(tensors(ElmoCharacterArraysIndexer()), tensors(ELMoTokenCharactersIndexer()))


def test_padding_length_below_the_sentence_cuts_it():
    indexer = ElmoCharacterArraysIndexer()
    indices = indexer.tokens_to_indices([Token("one"), Token("two")], Vocabulary())
    whole = indexer.as_padded_tensor_dict(indices, {"elmo_tokens": 2})["elmo_tokens"]
    assert torch.equal(indexer.as_padded_tensor_dict(indices, {"elmo_tokens": 1})["elmo_tokens"], whole[:1])


def test_words_beyond_the_limit_are_worked_out_again(monkeypatch):
    monkeypatch.setattr(elmo_indexer, "_MAX_WORDS", 2)
    indexer = ElmoCharacterArraysIndexer()
    assert torch.equal(
        batch_tensors(indexer)["elmo_tokens"], batch_tensors(ELMoTokenCharactersIndexer())["elmo_tokens"]
    )
    assert len(indexer._rows) <= 2


def test_copies_are_equal_whatever_they_remember():
    indexer = ElmoCharacterArraysIndexer()
    batch_tensors(indexer)
    assert indexer == ElmoCharacterArraysIndexer()
    assert indexer == pickle.loads(pickle.dumps(indexer)) == copy.deepcopy(indexer)
    assert indexer != ElmoCharacterArraysIndexer(tokens_to_add={"film": 7})
