import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm import BiLmOptions
from elmo_tasks.modules.bilm_network import BiLmNetwork, CharacterNetwork, WordNetwork


def test_characters_are_the_default_and_use_the_bilm(bilm_folder):
    options = BiLmOptions.from_file(str(bilm_folder / "options.json"))
    network = BiLmNetwork.from_params(Params({"options": options.to_dict()}), num_words=9)
    assert isinstance(network, CharacterNetwork)
    assert network.projection_dim == options.projection_dim
    assert list(network.lstm_layers) == list(network.bilm.layers)
    character_ids = torch.randint(1, 262, (5, 50))
    assert torch.equal(
        network.token_vectors(character_ids, torch.zeros(5, dtype=torch.int64)),
        network.bilm.character_encoder(character_ids),
    )


def test_words_look_their_vectors_up():
    network = BiLmNetwork.from_params(
        Params({"type": "words", "projection_dim": 4, "cell_dim": 6, "num_layers": 3}), num_words=9
    )
    assert isinstance(network, WordNetwork)
    assert network.projection_dim == 4
    assert [tuple(layer.projection.shape) for layer in network.lstm_layers] == [(2, 4, 6)] * 3
    vectors = network.token_vectors(torch.ones(2, 50, dtype=torch.int64), torch.tensor([8, 0]))
    assert torch.equal(vectors, network.table.weight[[8, 0]])


def test_impossible_options_are_an_error():
    with pytest.raises(ConfigurationError, match="must be those of an ELMo: `char_cnn` must be among the options"):
        CharacterNetwork(9, {"lstm": {"use_skip_connections": True}})
