import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2VecEncoder

from elmo_tasks.models.pooling import MaxPooling, Pooling

NOISE = 1e9


def test_mean_is_over_the_tokens_alone():
    vectors = torch.tensor([[[1.0, -4.0], [3.0, 0.0], [NOISE, NOISE]]])
    mask = torch.tensor([[True, True, False]])
    assert Pooling(2)(vectors, mask).tolist() == [[2.0, -2.0]]


def test_maximum_is_over_the_tokens_alone():
    vectors = torch.tensor([[[-1.0, -4.0], [-3.0, -2.0], [NOISE, 0.0]]])
    mask = torch.tensor([[True, True, False]])
    assert MaxPooling(2)(vectors, mask).tolist() == [[-1.0, -2.0]]
    assert MaxPooling(2)(vectors).tolist() == [[NOISE, 0.0]]


def test_maximum_is_built_by_name():
    encoder = Seq2VecEncoder.from_params(Params({"type": "max_pooling", "embedding_dim": 3}))
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (3, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_maximum_of_an_empty_sentence_is_zero_in_reduced_precision(dtype):
    vectors = torch.full((1, 2, 3), -2.0, dtype=dtype)
    assert MaxPooling(3)(vectors, torch.zeros(1, 2, dtype=torch.bool)).tolist() == [[0.0] * 3]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {"type": "max_pooling", "embedding_dim": 4},
        {"type": "bag_of_embeddings", "embedding_dim": 4},
        {"type": "lstm", "input_size": 4, "hidden_size": 3, "bidirectional": True},
        {"type": "cnn", "embedding_dim": 4, "num_filters": 2, "ngram_filter_sizes": [2, 3], "output_dim": 5},
    ],
    ids=["mean", "max", "sum", "lstm", "cnn"],
)
def test_padding_and_neighbours_change_no_pooled_vector(params):
    torch.manual_seed(0)
    encoder = None if params is None else Seq2VecEncoder.from_params(Params(params))
    pooling = Pooling(4, encoder).eval()
    vectors = torch.randn(3, 3, 4)
    mask = torch.tensor([[True] * 3, [True] * 3, [False] * 3])
    alone = torch.cat([pooling(vectors[i : i + 1], mask[i : i + 1]) for i in range(3)])
    padded = torch.cat([vectors, torch.full((3, 2, 4), NOISE)], dim=1)
    padded_mask = torch.cat([mask, torch.zeros(3, 2, dtype=torch.bool)], dim=1)
    together = pooling(padded * padded_mask.unsqueeze(-1), padded_mask)
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-6)
    assert together[2].tolist() == [0.0] * pooling.get_output_dim()
    assert together[0].abs().max() > 0


def test_sizes_that_do_not_match_are_an_error():
    with pytest.raises(ConfigurationError, match="input of seq2vec_encoder"):
        Pooling(4, MaxPooling(5))
