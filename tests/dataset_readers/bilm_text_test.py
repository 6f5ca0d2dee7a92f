import allennlp.common.util
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField, TextField

from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader


@pytest.fixture
def write(tmp_path):
    def write_text(text):
        path = tmp_path / "text.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_text


def test_words_are_what_stands_between_blanks_and_empty_lines_are_skipped(write):
    path = write("The  film .\n\n   \nÇa va ?\n")
    assert list(BiLmTextReader().sentences(path)) == [["The", "film", "."], ["Ça", "va", "?"]]


def test_instances_hold_the_same_sentences(write):
    path = write("The film .\nIt ends .\n")
    reader = DatasetReader.from_params(Params({"type": "bilm_text"}))
    instances = list(reader.read(path))
    assert [[token.text for token in instance["tokens"]] for instance in instances] == [
        ["The", "film", "."],
        ["It", "ends", "."],
    ]


def test_a_share_of_the_lines_is_lower_cased_and_the_same_lines_each_time(write):
    path = write("".join(f"Line Number {number}\n" for number in range(2000)))
    reader = BiLmTextReader(lowercase_share=0.3)
    sentences = list(reader.sentences(path))
    lowered = [sentence for sentence in sentences if sentence[0] == "line"]
    assert all(sentence[1] == "number" for sentence in lowered)
    assert 0.26 < len(lowered) / 2000 < 0.34
    assert list(reader.sentences(path)) == sentences
    assert list(BiLmTextReader(lowercase_share=0.3, seed=7).sentences(path)) != sentences


def test_characters_as_words_keep_the_blanks(write):
    path = write("ab c\r\né\n")
    assert list(BiLmTextReader(unit="characters").sentences(path)) == [["a", "b", " ", "c"], ["é"]]


def test_numbers_become_one_word(write):
    path = write("In 1999 it cost $ 3.50 , 1,200 or -7 : 10:30 Boeing747\n")
    (sentence,) = BiLmTextReader(number_word="<NUM>").sentences(path)
    assert " ".join(sentence) == "In <NUM> it cost $ <NUM> , <NUM> or <NUM> : <NUM> Boeing747"


@pytest.mark.parametrize("mark", ["<S>", "</S>"])
def test_a_boundary_mark_in_the_text_is_an_error_with_its_place(write, mark):
    path = write(f"fine\nThe end {mark}\n")
    with pytest.raises(ConfigurationError, match=r"text\.txt, line 2: must not hold"):
        list(BiLmTextReader().sentences(path))


class PairReader(DatasetReader):
    """Two text fields and a label on each line, apart from each other by "|"."""

    def _read(self, file_path):
        with open(file_path) as pairs:
            for line in pairs:
                first, second, label = line.strip().split("|")
                yield Instance(
                    {
                        "first": TextField([Token(word) for word in first.split()]),
                        "second": TextField([Token(word) for word in second.split()]),
                        "label": LabelField(label),
                    }
                )


def test_the_text_fields_of_another_reader_are_sentences(write):
    reader = BiLmTextReader(source=PairReader(max_instances=2))
    path = write("a b|c|yes\nd|e f|no\nout of reach|g|no\n")
    assert list(reader.sentences(path)) == [["a", "b"], ["c"], ["d"], ["e", "f"]]


def test_no_more_lines_are_read_than_asked_for(write):
    path = write("a b\nc\n\nd\ne\n")
    reader = BiLmTextReader(max_instances=4)
    assert list(reader.sentences(path)) == [["a", "b"], ["c"], ["d"]]
    assert list(reader.sentences(f"{path}#-2:")) == [["d"], ["e"]]


def test_of_another_reader_the_first_sentences_are_read(write):
    path = write("a b|c|yes\nd|e f|no\n")
    assert list(BiLmTextReader(source=PairReader(), max_instances=3).sentences(path)) == [["a", "b"], ["c"], ["d"]]


class ShardingPairReader(PairReader):
    """Shares its rows out by itself, as ours do."""

    def __init__(self):
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True)

    def _read(self, file_path):
        yield from self.shard_iterable(super()._read(file_path))


@pytest.mark.parametrize("make_reader", [PairReader, ShardingPairReader])
def test_of_several_processes_each_reads_all_sentences_of_another_reader(write, monkeypatch, make_reader):
    """It is batches that are shared out."""
    monkeypatch.setattr(allennlp.common.util, "is_distributed", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    path = write("a b|c|yes\nd|e f|no\ng|h|no\n")
    assert len(list(make_reader().read(path))) == 1, "this reader gives its share"
    sentences = list(BiLmTextReader(source=make_reader()).sentences(path))
    assert sentences == [["a", "b"], ["c"], ["d"], ["e", "f"], ["g"], ["h"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "stateful"}, "`mode` must be one of .*carry.*sentence.*but is 'stateful'"),
        ({"unit": "bytes"}, "`unit` must be one of"),
        ({"max_instances": 0}, "`max_instances` must be at least 1, but is 0"),
        ({"unroll_steps": 0}, "`unroll_steps` must be at least 1, but is 0"),
        ({"lowercase_share": 1.5}, "`lowercase_share` must be between 0 and 1, but is 1.5"),
    ],
)
def test_impossible_options_are_errors(options, message):
    with pytest.raises(ConfigurationError, match=message):
        BiLmTextReader(**options)
