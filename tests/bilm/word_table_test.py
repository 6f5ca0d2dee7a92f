import copy
import json

import pytest
import torch

from elmo_tasks.bilm import BiLm, WordOptions, encode_sentences, load_weights, save_weights, weights_digest
from elmo_tasks.bilm.character_ids import encode_token
from elmo_tasks.bilm.word_table import WordTable

LONG = "a" * 60
WORDS = ("<S>", "</S>", "<UNK>", "fog", "Fog", "<NUM>", "naïve", LONG)


def options_of(words=WORDS, number_word="<NUM>", **sizes):
    sizes = {"num_layers": 2, "cell_dim": 6, "projection_dim": 4, "cell_clip": 3.0, "projection_clip": None, **sizes}
    return WordOptions(words=words, number_word=number_word, **sizes)


def places(options, words):
    """Where the table finds each word."""
    table = WordTable(options)
    with torch.no_grad():
        table.vectors.copy_(torch.arange(len(options.words)).unsqueeze(1).expand_as(table.vectors))
    return table(torch.tensor([encode_token(word) for word in words]))[:, 0].long().tolist()


def test_each_word_has_its_own_row():
    assert places(options_of(), WORDS) == list(range(len(WORDS)))


def test_other_words_are_unknown():
    assert places(options_of(), ["FOG", "fo", "fogs", "", "\N{CLAPPER BOARD}", "1st", "-", "."]) == [2] * 8


def test_numbers_share_the_row_of_the_number_word():
    assert places(options_of(), ["7", "1,500.25", "-3", "+9:30", "2004/05", "12."]) == [5] * 6


def test_numbers_are_words_like_others_without_a_number_word():
    assert places(options_of(words=(*WORDS, "1984"), number_word=None), ["1984", "1985"]) == [8, 2]


def test_a_number_is_unknown_where_the_text_of_pretraining_had_none():
    assert places(options_of(words=WORDS[:5]), ["7"]) == [2]


def test_words_that_differ_behind_the_last_character_are_the_first_of_them():
    assert places(options_of(words=(*WORDS, LONG + "b")), [LONG + "b", "a" * 48, "a" * 47]) == [7, 7, 2]


def test_no_words_have_no_vectors():
    assert WordTable(options_of())(torch.zeros(0, 50, dtype=torch.int64)).shape == (0, 4)


@pytest.mark.parametrize("number", range(3))
def test_a_missing_special_word_is_named(number):
    with pytest.raises(ValueError, match=f"but {WORDS[number]} is missing"):
        options_of(words=WORDS[:number] + WORDS[number + 1 :])


def test_options_survive_json():
    options = options_of()
    assert WordOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    assert options.bilm_dim == 8
    assert options.num_representations == 3


def test_a_bilm_over_words_is_its_layers_over_looked_up_vectors():
    """Step by step, by the formulas of the layer's docstring; the second layer has a residual connection."""
    torch.manual_seed(0)
    bilm = BiLm(options_of()).requires_grad_(False)
    output = bilm(encode_sentences([["fog", "at", "9"], ["Fog"]]))
    for row, ids in enumerate([[0, 3, 2, 5, 1], [0, 4, 1]]):
        inputs = bilm.character_encoder.vectors[ids]
        torch.testing.assert_close(output.token_vectors[row, : len(ids)], inputs)
        both = torch.cat([inputs, inputs], dim=1)
        for number, layer in enumerate(bilm.layers):
            below, halves = both, []
            for direction in (0, 1):
                inputs = below[:, 4 * direction : 4 * direction + 4]
                steps = range(len(ids)) if direction == 0 else reversed(range(len(ids)))
                memory, hidden, outputs = torch.zeros(6), torch.zeros(4), torch.zeros(len(ids), 4)
                for step in steps:
                    i, j, f, o = (
                        layer.input_kernel[direction] @ inputs[step]
                        + layer.recurrent_kernel[direction] @ hidden
                        + layer.bias[direction]
                    ).chunk(4)
                    memory = ((f + 1).sigmoid() * memory + i.sigmoid() * j.tanh()).clamp(-3, 3)
                    hidden = outputs[step] = layer.projection[direction] @ (o.sigmoid() * memory.tanh())
                halves.append(outputs + inputs if number > 0 else outputs)
            both = torch.cat(halves, dim=1)
            found = output.contextual[number][row, : len(ids)]
            torch.testing.assert_close(found, both, rtol=0, atol=1e-5)


def test_digest_tells_words_and_weights_apart(tmp_path):
    bilm = BiLm(options_of())
    other_words = BiLm(options_of(words=("fog", *WORDS[:3], *WORDS[4:])))
    other_words.load_state_dict(bilm.state_dict())
    other_vector = copy.deepcopy(bilm)
    with torch.no_grad():
        other_vector.character_encoder.vectors[3, 0] += 1
    assert len({weights_digest(each) for each in (bilm, other_words, other_vector)}) == 3
    # All weights are in the table of files, too.
    save_weights(bilm, str(tmp_path / "weights.hdf5"))
    load_weights(other_vector, str(tmp_path / "weights.hdf5"))
    assert weights_digest(other_vector) == weights_digest(bilm)
