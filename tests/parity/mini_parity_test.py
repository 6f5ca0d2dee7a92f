"""The biLM that comes with the package: what its card says, and that AllenNLP's own ELMo reads it."""

import re
from pathlib import Path

import h5py
import pytest
import torch
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights, resolve, weights_digest
from elmo_tasks.bilm.pretrained import MINI_FOLDER
from elmo_tasks.commands.check_bilm import find_problems

FILES = resolve("mini")
SENTENCES = [
    ["a", "warm", ",", "funny", "and", "quietly", "moving", "portrait", "of", "two", "sisters", "."],
    ["The", "minister", "declined", "to", "comment", "on", "Tuesday", "."],
    ["dull"],
]


@pytest.fixture(scope="module")
def mini():
    bilm = BiLm(BiLmOptions.from_file(FILES.options_file))
    load_weights(bilm, FILES.weight_file)
    return bilm.requires_grad_(False)


def test_mini_has_no_faults_and_at_most_16_megabytes():
    assert find_problems(MINI_FOLDER) == []
    assert sum(path.stat().st_size for path in Path(MINI_FOLDER).iterdir()) < 16e6


def test_mini_holds_numbers_and_no_text():
    with h5py.File(FILES.weight_file, "r") as weights:
        arrays = []
        weights.visititems(lambda name, item: arrays.append(item) if isinstance(item, h5py.Dataset) else None)
        assert {array.dtype.name for array in arrays} == {"float16", "float32"}
        assert not weights.attrs


def test_allennlps_own_elmo_gives_the_same_layers(mini):
    stock = _ElmoBiLm(FILES.options_file, FILES.weight_file)
    stock._elmo_lstm.stateful = False
    ours, theirs = mini(encode_sentences(SENTENCES)), stock(batch_to_ids(SENTENCES))
    for one, other in zip(ours.activations, theirs["activations"]):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_card_names_the_weights_that_are_there(mini):
    card = Path(MINI_FOLDER, "README.md").read_text(encoding="utf-8")
    assert re.search(r"SHA-256 .*`([0-9a-f]{64})`", card).group(1) == weights_digest(mini)


@pytest.mark.parametrize(
    ("word", "kindred", "looks_alike"),
    [
        ("good", "great", "food"),
        ("boring", "dull", "burning"),
        ("actor", "actress", "factor"),
        ("film", "movie", "firm"),
    ],
)
def test_token_vectors_know_meaning_from_spelling(mini, word, kindred, looks_alike):
    # (3, projection_dim)
    vectors = mini.character_encoder(encode_sentences([[word], [kindred], [looks_alike]]).flatten(0, 1))
    likeness = torch.cosine_similarity(vectors[:1], vectors[1:])
    assert likeness[0] > likeness[1] + 0.1
