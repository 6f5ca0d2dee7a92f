from math import exp, tanh

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2VecEncoder

from elmo_tasks.models.pooling import Pooling
from elmo_tasks.models.self_attentive_pooling import SelfAttentivePooling

NOISE = 1e9


@pytest.fixture
def pooling():
    """Scores a token by `2 tanh(x) - tanh(y)`."""
    pooling = SelfAttentivePooling(embedding_dim=2, attention_dim=2)
    pooling.hidden.weight.data = torch.eye(2)
    pooling.score.weight.data = torch.tensor([[2.0, -1.0]])
    return pooling


def test_tokens_weigh_as_the_formula_of_the_source_says(pooling):
    tokens = [(0.5, 1.0), (-1.0, 0.25), (2.0, 0.0)]
    weights = [exp(2 * tanh(x) - tanh(y)) for x, y in tokens]
    expected = [sum(w * token[i] for w, token in zip(weights, tokens)) / sum(weights) for i in range(2)]
    assert pooling(torch.tensor([tokens]))[0].tolist() == pytest.approx(expected)


def test_padding_takes_no_part(pooling):
    tokens = torch.tensor([[[0.5, 1.0], [-1.0, 0.25], [NOISE, 0.0]]])
    mask = torch.tensor([[True, True, False]])
    torch.testing.assert_close(pooling(tokens, mask), pooling(tokens[:, :2]))


def test_scores_far_below_zero_still_have_weights_that_sum_to_one(pooling):
    pooling.score.weight.data *= 1e4
    tokens = torch.tensor([[[-3.0, 3.0], [0.0, 0.0]]])
    mask = torch.tensor([[True, False]])
    torch.testing.assert_close(pooling(tokens, mask), tokens[:, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sentence_without_tokens_gets_zeros(pooling, dtype):
    tokens = torch.full((2, 2, 2), 3.0, dtype=dtype)
    mask = torch.tensor([[True, True], [False, False]])
    assert pooling.to(dtype)(tokens, mask).tolist() == [[3.0, 3.0], [0.0, 0.0]]


def test_it_is_built_by_name_and_fits_the_pooling_of_the_classifiers():
    encoder = Seq2VecEncoder.from_params(Params({"type": "self_attentive", "embedding_dim": 3}))
    assert Pooling(3, encoder).get_output_dim() == 3
    assert encoder.hidden.weight.shape == (350, 3)


def test_attention_without_size_is_an_error():
    with pytest.raises(ConfigurationError, match="`attention_dim` must be at least 1, but is 0"):
        SelfAttentivePooling(3, attention_dim=0)
