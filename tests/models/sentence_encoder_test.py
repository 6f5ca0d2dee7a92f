import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.modules import Seq2SeqEncoder

from elmo_tasks.common.protocols import PreparesForTraining
from elmo_tasks.models.sentence_encoder import SentenceEncoder


def lstm(toy):
    params = {"type": "lstm", "input_size": toy.embedding_dim, "hidden_size": 5}
    return Seq2SeqEncoder.from_params(Params(params))


def ids(*sentences):
    return {"words": {"tokens": torch.tensor(sentences)}}


def test_without_encoder_the_tokens_are_those_of_the_embedder(toy):
    embedder = toy.embedder()
    text = ids([2, 3, 0], [4, 5, 6])
    vectors, mask = SentenceEncoder(embedder)(text)
    assert mask.tolist() == [[True, True, False], [True, True, True]]
    assert torch.equal(vectors[mask], embedder(text)[mask])
    assert vectors[0, 2].tolist() == [0.0] * toy.embedding_dim


def test_encoder_gives_its_size_and_its_output(toy):
    seq2seq = lstm(toy)
    encoder = SentenceEncoder(toy.embedder(), seq2seq)
    text = ids([2, 3, 0], [4, 5, 6])
    vectors, mask = encoder(text)
    assert encoder.get_output_dim() == 5
    torch.testing.assert_close(vectors, seq2seq(encoder.text_field_embedder(text), mask))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(2, 0, dtype=torch.long),
        torch.zeros(2, 3, dtype=torch.long),
        torch.zeros(2, 3, 50, dtype=torch.long),
    ],
    ids=["no tokens", "padding", "characters of padding"],
)
def test_batch_without_a_single_token_gives_zeros(toy, tensor):
    vectors, mask = SentenceEncoder(toy.embedder(), lstm(toy))({"words": {"tokens": tensor}})
    assert not vectors.any()
    assert not mask.any()
    assert vectors.shape == (2, max(tensor.size(1), 1), 5)
    assert mask.shape == vectors.shape[:2]


def test_sizes_that_do_not_match_are_an_error(toy):
    seq2seq = Seq2SeqEncoder.from_params(Params({"type": "lstm", "input_size": 99, "hidden_size": 5}))
    with pytest.raises(ConfigurationError, match="input of seq2seq_encoder"):
        SentenceEncoder(toy.embedder(), seq2seq)


def test_misspelt_key_of_an_indexer_is_an_error_with_both_lists_of_keys(toy):
    encoder = SentenceEncoder(toy.embedder())
    assert isinstance(encoder, PreparesForTraining)
    sentence = toy.sentence("a film")
    encoder.prepare_for_training(lambda: iter([sentence]), None)
    sentence["tokens"].token_indexers = {"word": SingleIdTokenIndexer("words")}
    with pytest.raises(ConfigurationError, match=r"of the model, \['words'\], but has \['word'\]"):
        encoder.prepare_for_training(lambda: iter([sentence]), None)
