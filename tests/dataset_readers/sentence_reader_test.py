import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers import AgNewsReader, MrReader


@pytest.mark.parametrize(
    ("reader", "words", "label"),
    [(MrReader(), ["Oil,", "again"], "1"), (AgNewsReader(), ["Oil", ",", "again"], "World")],
)
def test_instance_holds_the_words_the_label_and_where_they_come_from(reader, words, label):
    instance = reader.text_to_instance("Oil, again", label=1, id="a:3", line=3, file="a.csv")
    assert [token.text for token in instance["tokens"].tokens] == words
    assert instance["label"].label == label
    assert instance["metadata"].metadata == {"id": "a:3", "line": 3, "file": "a.csv", "tokens": words}


def test_without_a_label_there_is_no_label_field_and_without_words_a_placeholder():
    instance = MrReader().text_to_instance("  ")
    assert set(instance.fields) == {"tokens", "metadata"}
    assert [token.text for token in instance["tokens"].tokens] == ["<blank>"]
    assert instance["metadata"].metadata == {"id": None, "line": None, "file": None, "tokens": ["<blank>"]}


def test_text_that_is_no_string_is_an_error():
    with pytest.raises(ConfigurationError, match="the text must be a string, but is 7"):
        AgNewsReader().text_to_instance(7)
