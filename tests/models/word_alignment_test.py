import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.modules.matrix_attention import BilinearMatrixAttention, DotProductMatrixAttention

from elmo_tasks.models.word_alignment import WordAlignment


def alignment(dim=3, matrix_attention=None, encoder=None):
    projection = FeedForward(4 * dim, 1, 5, torch.nn.Tanh())
    return WordAlignment(projection, matrix_attention, encoder).eval()


def lstm(input_size=5):
    return Seq2SeqEncoder.from_params(Params({"type": "lstm", "input_size": input_size, "hidden_size": 4}))


def mask(*lengths):
    return torch.arange(max(max(lengths), 1)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


class Unchanged(torch.nn.Module):
    """In place of a projection: shows what is projected."""

    def get_input_dim(self):
        return 4

    get_output_dim = get_input_dim

    def forward(self, tensor):
        return tensor


def test_words_are_compared_with_the_average_of_the_other_sentence():
    # exp(0) and exp(log 3): the word 0 sees (1/2, 1/2), the word log 3 sees weights 1/4 and 3/4.
    log3 = torch.tensor(3.0).log().item()
    words1, words2 = torch.tensor([[[0.0], [log3]]]), torch.tensor([[[0.0], [1.0]]])
    aligned1, aligned2 = WordAlignment(Unchanged())(words1, mask(2), words2, mask(2))
    expected1 = [[0.0, 0.5, -0.5, 0.0], [log3, 0.75, log3 - 0.75, log3 * 0.75]]
    expected2 = [[0.0, log3 / 2, -log3 / 2, 0.0], [1.0, log3 * 0.75, 1 - log3 * 0.75, log3 * 0.75]]
    torch.testing.assert_close(aligned1, torch.tensor([expected1]))
    torch.testing.assert_close(aligned2, torch.tensor([expected2]))


def test_dot_product_is_the_default_similarity():
    assert isinstance(alignment().matrix_attention, DotProductMatrixAttention)


def test_padding_takes_no_part_even_beside_very_unlike_words():
    # All similarities of real words lie 400 below that of padding, where exp() is zero.
    align = alignment()
    words1, words2 = torch.full((1, 2, 3), 20.0), -torch.rand(1, 2, 3) - 10
    alone = align(words1, mask(2), words2, mask(2))
    padding = torch.zeros(1, 3, 3)
    padded_mask = torch.tensor([[True, True, False, False, False]])
    padded = align(torch.cat([words1, padding], 1), padded_mask, torch.cat([words2, padding], 1), padded_mask)
    for short, long in zip(alone, padded):
        torch.testing.assert_close(short, long[:, :2], rtol=0, atol=1e-6)
    assert not torch.allclose(alone[0], align(words1, mask(2), 0 * words2, mask(2))[0], atol=1e-2)


def test_words_beside_an_empty_sentence_see_zeros():
    words = torch.tensor([[[0.3], [2.0]]])
    aligned, _ = WordAlignment(Unchanged())(words, mask(2), torch.full((1, 1, 1), 9.0), mask(0))
    torch.testing.assert_close(aligned, torch.tensor([[[0.3, 0.0, 0.3, 0.0], [2.0, 0.0, 2.0, 0.0]]]))


def test_encoder_runs_over_the_projected_words_of_each_sentence():
    torch.manual_seed(1)
    encoder = lstm()
    with_encoder = alignment(encoder=encoder)
    without = WordAlignment(with_encoder.projection)
    words1, words2 = torch.randn(2, 4, 3), torch.randn(2, 2, 3)
    masks = mask(4, 3), mask(1, 2)
    for projected, encoded, tokens in zip(
        without(words1, masks[0], words2, masks[1]), with_encoder(words1, masks[0], words2, masks[1]), masks
    ):
        torch.testing.assert_close(encoded, encoder(projected, tokens))
    assert (with_encoder.get_output_dim(), without.get_output_dim()) == (4, 5)


def test_encoder_is_spared_a_batch_of_empty_sentences():
    aligned1, aligned2 = alignment(encoder=lstm())(torch.randn(2, 3, 3), mask(3, 1), torch.zeros(2, 1, 3), mask(0, 0))
    assert aligned1[0].abs().min() > 0
    assert torch.equal(aligned2, torch.zeros(2, 1, 4))


def test_symmetric_alignment_swaps_with_the_sentences():
    torch.manual_seed(2)
    bilinear = BilinearMatrixAttention(3, 3)
    torch.nn.init.normal_(bilinear._weight_matrix)
    align = alignment(matrix_attention=bilinear)
    words1, mask1, words2, mask2 = torch.randn(2, 4, 3), mask(4, 2), torch.randn(2, 5, 3), mask(1, 5)
    one, two = align(words1, mask1, words2, mask2, symmetric=True)
    swapped_two, swapped_one = align(words2, mask2, words1, mask1, symmetric=True)
    assert torch.equal(one, swapped_one)
    assert torch.equal(two, swapped_two)
    plain_one, _ = align(words1, mask1, words2, mask2)
    _, plain_swapped_one = align(words2, mask2, words1, mask1)
    assert not torch.allclose(plain_one, plain_swapped_one, atol=1e-3)


def test_sizes_that_do_not_match_are_an_error():
    with pytest.raises(ConfigurationError, match="input of the alignment's encoder"):
        alignment(encoder=lstm(input_size=9))
