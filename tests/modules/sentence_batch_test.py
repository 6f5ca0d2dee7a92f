import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.fields import LabelField, ListField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer, SingleIdTokenIndexer

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.dataset_readers import ElmoCharacterArraysIndexer
from elmo_tasks.modules.sentence_batch import SentenceBatch, sentences_of

SENTENCES = [["a", "film"], [], ["one", "more", "word"]]


def test_lengths_count_the_tokens_of_each_sentence():
    assert SentenceBatch(encode_sentences(SENTENCES)).lengths == [2, 0, 3]


def test_padding_and_its_way_back():
    batch = SentenceBatch(encode_sentences(SENTENCES))
    rows = torch.arange(1.0, 11.0).view(5, 2)
    zeros = [0.0, 0.0]
    padded = [[[1, 2], [3, 4], zeros], [zeros, zeros, zeros], [[5, 6], [7, 8], [9, 10]]]
    assert torch.equal(batch.pad(rows), torch.tensor(padded))
    assert torch.equal(batch.unpad(batch.pad(rows)), rows)


def test_gradients_flow_through_the_padding():
    rows = torch.randn(5, 2, requires_grad=True)
    SentenceBatch(encode_sentences(SENTENCES)).pad(rows).square().sum().backward()
    torch.testing.assert_close(rows.grad, 2 * rows.detach())


def test_sentence_that_goes_on_after_its_padding_is_refused():
    character_ids = encode_sentences(SENTENCES)
    character_ids[2, 1] = 0
    with pytest.raises(ConfigurationError, match="one follows a row of zeros"):
        SentenceBatch(character_ids)


@pytest.mark.parametrize("indexer", [ELMoTokenCharactersIndexer(), ElmoCharacterArraysIndexer()])
@pytest.mark.parametrize("indexed", [False, True])
def test_texts_of_an_instance_that_have_tokens_are_found_under_any_name(indexer, indexed):
    def text(words):
        return TextField([Token(word) for word in words], {"words": SingleIdTokenIndexer(), "any_name": indexer})

    instance = Instance({"first": text(SENTENCES[0]), "list": ListField([text(s) for s in SENTENCES[1:]])})
    instance.add_field("label", LabelField("good"))
    if indexed:
        instance.index_fields(Vocabulary({"tokens": {"a": 1}, "labels": {"good": 1}}))
    found = list(sentences_of(instance))
    texts = [words for words in SENTENCES if words]
    assert len(found) == len(texts)
    for sentence, words in zip(found, texts):
        assert sentence.dtype == numpy.int16
        assert numpy.array_equal(sentence, encode_sentences([words])[0].numpy())
    assert instance.indexed == indexed


@pytest.mark.parametrize(("character_id", "held"), [(65_536, 32_767), (65_636, 32_767), (-65_436, -1)])
def test_ids_beyond_int16_do_not_become_those_of_a_character(character_id, held):
    character_ids = torch.full((1, 1, 50), character_id)
    batch = SentenceBatch(character_ids)
    assert batch.lengths == [1]
    assert (batch.array == held).all()
