import logging

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.vocabulary import WordVocabulary

SPECIAL = ["<S>", "</S>", "<UNK>"]


def words_of(vocabulary):
    return [word for _, word in sorted(vocabulary.get_index_to_token_vocabulary("words").items())]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("b a c\nc d a <UNK>\ne a\n")
    return str(path)


def test_special_words_come_first_then_falling_counts_with_ties_in_text_order(text):
    vocabulary = WordVocabulary.from_text(BiLmTextReader(), text)
    assert words_of(vocabulary) == [*SPECIAL, "a", "c", "b", "d", "e"]


def test_size_and_count_bound_the_words(text):
    assert words_of(WordVocabulary.from_text(BiLmTextReader(), text, max_words=3)) == [*SPECIAL, "a", "c", "b"]
    assert words_of(WordVocabulary.from_text(BiLmTextReader(), text, min_count=2)) == [*SPECIAL, "a", "c"]


def test_coverage_of_the_text_is_logged(text, caplog):
    with caplog.at_level(logging.INFO):
        WordVocabulary.from_text(BiLmTextReader(), text, min_count=2)
    assert "2 of 6 distinct words; they cover 55.56 % of the 9 words" in caplog.text


def test_the_saved_folder_holds_the_file_of_bilm_tf(text, tmp_path):
    vocabulary = WordVocabulary.from_text(BiLmTextReader(), text)
    vocabulary.save_to_files(str(tmp_path / "vocabulary"))
    words_file = tmp_path / "vocabulary" / "words.txt"
    assert words_file.read_text().split() == [*SPECIAL, "a", "c", "b", "d", "e"]
    assert words_of(WordVocabulary.from_words_file(str(words_file))) == words_of(vocabulary)
    # How an archive loads it: by the class of its config, or by AllenNLP's own.
    for class_ in (Vocabulary, WordVocabulary):
        assert words_of(class_.from_files(str(tmp_path / "vocabulary"))) == words_of(vocabulary)


def test_a_config_builds_it_by_name(text):
    params = Params({"type": "bilm_text", "reader": {"type": "bilm_text"}, "data_path": text, "max_words": 1})
    assert words_of(Vocabulary.from_params(params, instances=iter([]))) == [*SPECIAL, "a"]


def test_lower_cased_lines_are_counted_as_the_model_sees_them(tmp_path):
    (tmp_path / "text.txt").write_text("The the\n")
    reader = BiLmTextReader(lowercase_share=1.0)
    assert words_of(WordVocabulary.from_text(reader, str(tmp_path / "text.txt"))) == [*SPECIAL, "the"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("the\na\n", r"must begin with <S>, </S>, <UNK>, but begins with the, a; .* \(in .*words\.txt\)"),
        ("<S>\n</S>\n<UNK>\nthe\na\nthe\n", r"line 6 repeats 'the' \(in .*words\.txt\)"),
    ],
)
def test_a_words_file_of_another_kind_is_an_error(tmp_path, lines, message):
    (tmp_path / "words.txt").write_text(lines)
    with pytest.raises(ConfigurationError, match=message):
        WordVocabulary.from_words_file(str(tmp_path / "words.txt"))


def test_a_words_file_that_is_not_utf8_is_an_error(tmp_path):
    (tmp_path / "words.txt").write_bytes(b"<S>\n</S>\n<UNK>\ncaf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"words\.txt must be UTF-8, but is not"):
        WordVocabulary.from_words_file(str(tmp_path / "words.txt"))
