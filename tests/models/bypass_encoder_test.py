import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2SeqEncoder

from elmo_tasks.models.bypass_encoder import BypassEncoder


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    lstm = {"type": "lstm", "input_size": 3, "hidden_size": 2, "bidirectional": True}
    return Seq2SeqEncoder.from_params(Params({"type": "bypass", "encoder": lstm, "bypass_dim": 2})).eval()


def test_first_features_are_encoded_and_the_last_ones_stand_beside_them(encoder):
    inputs, mask = torch.randn(2, 4, 5), torch.tensor([[True] * 4, [True, True, False, False]])
    outputs = encoder(inputs, mask)
    assert torch.equal(outputs[:, :, :4], encoder.encoder(inputs[:, :, :3].contiguous(), mask))
    assert torch.equal(outputs[:, :, 4:], inputs[:, :, 3:])


def test_what_goes_around_does_not_reach_the_encoder(encoder):
    inputs, mask = torch.randn(1, 4, 5), torch.ones(1, 4, dtype=torch.bool)
    changed = inputs.clone()
    changed[:, :, 3:] += 1.0
    assert torch.equal(encoder(inputs, mask)[:, :, :4], encoder(changed, mask)[:, :, :4])


def test_sizes_are_those_of_both_ways(encoder):
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (5, 6)
    assert encoder.is_bidirectional()


def test_way_around_without_size_is_an_error(encoder):
    with pytest.raises(ConfigurationError, match="`bypass_dim` must be at least 1, but is 0"):
        BypassEncoder(encoder.encoder, bypass_dim=0)
