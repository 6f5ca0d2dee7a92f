import pytest
import torch

from elmo_tasks.bilm.character_ids import (
    MAX_CHARACTERS_PER_TOKEN,
    add_boundaries,
    distinct_words,
    encode_sentences,
    encode_token,
)


def test_a_token_is_its_bytes_between_two_marks():
    # "é" is the bytes C3 A9; every id is one more than the byte.
    assert encode_token("aé", 8) == [259, ord("a") + 1, 0xC3 + 1, 0xA9 + 1, 260, 261, 261, 261]
    assert len(encode_token("a")) == MAX_CHARACTERS_PER_TOKEN == 50


def test_a_token_of_48_bytes_fills_its_row_and_a_longer_one_is_cut():
    row = encode_token("x" * 48)
    assert row == [259] + [ord("x") + 1] * 48 + [260]
    assert encode_token("x" * 60) == row


def test_a_character_may_be_cut_in_its_middle():
    # 47 bytes and the first of the two of "é".
    assert encode_token("x" * 47 + "é")[48:] == [0xC3 + 1, 260]


def test_ids_of_any_script_are_below_262():
    rows = encode_sentences([["Привет", "東京", "😀", "\ud800", "", "\0"]])
    assert int(rows.max()) == 261
    assert int(rows.min()) == 1


def test_boundary_tokens_have_their_own_characters():
    assert encode_token("<S>", 5) == [259, 257, 260, 261, 261]
    assert encode_token("</S>", 5) == [259, 258, 260, 261, 261]


def test_shorter_sentences_are_padded_with_zeros():
    rows = encode_sentences([["a"], [], ["b", "c"]])
    assert rows.shape == (3, 2, 50)
    assert (rows > 0).any(-1).tolist() == [[True, False], [False, False], [True, True]]
    assert encode_sentences([[], []]).shape == (2, 0, 50)


def test_a_string_is_not_a_sentence():
    with pytest.raises(ValueError, match="must be a list of tokens, but is the string 'good film'"):
        encode_sentences(["good film"])


def test_boundaries_stand_around_each_sentence():
    rows, lengths = add_boundaries(encode_sentences([["a"], [], ["b", "c"]]))
    begin, end, zeros = encode_token("<S>"), encode_token("</S>"), [0] * 50
    assert lengths.tolist() == [3, 2, 4]
    assert rows[0].tolist() == [begin, encode_token("a"), end, zeros]
    assert rows[1].tolist() == [begin, end, zeros, zeros]
    assert rows[2].tolist() == [begin, encode_token("b"), encode_token("c"), end]


def test_a_token_behind_padding_is_refused():
    rows = encode_sentences([["a", "b"], ["a", "b"]])
    rows[1, 0] = 0
    with pytest.raises(ValueError, match="row 1 has a token after a row of zeros"):
        add_boundaries(rows)


def test_distinct_words_give_the_tokens_back_and_hold_no_word_twice():
    tokens = encode_sentences([["the", "cat", "and", "the", "dog", "and", "the", "tac"]])[0]
    words, word_of_token = distinct_words(tokens)
    assert torch.equal(words[word_of_token], tokens)
    assert len(words) == 5


def test_words_whose_sums_collide_are_still_told_apart(monkeypatch):
    # With a multiplier of one, "cat" and "tac" have the same sum.
    monkeypatch.setattr("elmo_tasks.bilm.character_ids._MULTIPLIER", 1)
    tokens = encode_sentences([["cat", "tac", "cat", "dog"]])[0]
    words, word_of_token = distinct_words(tokens)
    assert torch.equal(words[word_of_token], tokens)
    assert len(words) == 3
