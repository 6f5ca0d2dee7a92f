from collections import Counter
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from allennlp.data.tokenizers import CharacterTokenizer

from elmo_tasks.dataset_readers import AgNewsReader

SAMPLE = Path(__file__).parents[2] / "fixtures/ag_news"


@pytest.fixture
def write(tmp_path):
    def write_text(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        return tmp_path / name

    return write_text


def read(reader, path):
    """Id, text and class of each instance."""
    return [
        (
            instance["metadata"]["id"],
            " ".join(instance["metadata"]["tokens"]),
            instance["label"].label if "label" in instance.fields else None,
        )
        for instance in reader.read(path)
    ]


def test_rows_of_the_corpus_have_quotes_commas_and_backslashes_inside(write):
    path = write(
        "train.csv",
        '"3","Oil up, again","Crude rose to \\$54.10\\and fell, a trader said."\r\n'
        '"1","Vote ""void""","He said ""no""."\r\n'
        '4,Moon,"Probe\'s ""eye"", open"\r\n'
        '"2","","Rovers won."\r\n',
    )
    assert read(DatasetReader.from_params(Params({"type": "ag_news"})), path) == [
        ("train:1", "Oil up , again Crude rose to $ 54 . 10 and fell , a trader said .", "Business"),
        ("train:2", 'Vote " void " He said " no " .', "World"),
        ("train:3", 'Moon Probe \' s " eye " , open', "Sci/Tech"),
        ("train:4", "Rovers won .", "Sports"),
    ]


def test_line_of_a_row_is_in_the_metadata(write):
    path = write("test.csv", '"1","A","B"\n\n"2","C","D"\n')
    _, second = AgNewsReader().read(path)
    assert second["metadata"].metadata == {"id": "test:3", "line": 3, "file": str(path), "tokens": ["C", "D"]}


@pytest.mark.parametrize(
    "line",
    [
        '{"class": 2, "title": "Rovers win", "description": "At last.", "url": "x"}',
        '{"label": "Sports", "description": "At last.", "title": "Rovers\\\\win"}',
    ],
)
def test_json_lines_have_the_same_columns_in_any_order(write, line):
    assert read(AgNewsReader(), write("a.jsonl", f"{line}\n")) == [("a:1", "Rovers win At last .", "Sports")]


def test_text_columns_are_chosen_and_ordered_by_the_option(write):
    path = write("train.csv", '"1","Title","Description"\n')
    assert read(AgNewsReader(text_columns=["title"]), path)[0][1] == "Title"
    assert read(AgNewsReader(text_columns=["description", "title"]), path)[0][1] == "Description Title"
    other = write("a.json", '{"text": "All of it", "label": 0}\n')
    reader = AgNewsReader(text_columns=["text"], label_names={"0": "World", "1": "Sports"})
    assert read(reader, other) == [("a:1", "All of it", "World")]


def test_classes_can_have_other_names(write):
    path = write("train.csv", '"4","A","B"\n"1","C","D"\n"Tech","E","F"\n')
    reader = AgNewsReader(label_names={"1": "Rest", "2": "Rest", "3": "Rest", "4": "Tech"})
    assert [label for *_, label in read(reader, path)] == ["Tech", "Rest", "Tech"]


def test_characters_can_be_the_tokens(write):
    (instance,) = AgNewsReader(CharacterTokenizer()).read(write("train.csv", '"1","A b","c"\n'))
    assert instance["metadata"]["tokens"] == ["A", " ", "b", " ", "c"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"1","A"', "must be comma-separated `class`, `title`, `description`, but has 2 comma-separated fields"),
        ('"1","A","B","C"', "but has 4 comma-separated fields: "),
        ('"1","A","B', "must be comma-separated `class`, `title`, `description`, but is "),
        ('"1","A" b,"C"', r"but is '\"1\",\"A\" b,\"C\"' \(.*expected after"),
        ('"5","A","B"', "label must be one of '1', '2', '3', '4', 'World', .*, but is '5'"),
        ('"Class Index","Title","Description"', "but is 'Class Index'"),
        ('"1"," ","\\"', "`sentence` must not be blank"),
    ],
)
def test_malformed_row_is_an_error_with_file_and_line(write, row, message):
    path = write("train.csv", f'"1","A","B"\n{row}\n')
    with pytest.raises(ConfigurationError, match=rf"train\.csv, line 2: .*{message}"):
        list(AgNewsReader().read(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"title": "A", "class": 1}', "with `title` and `description`, but has `title`, `class`"),
        ('{"title": "A", "description": 3, "class": 1}', "`description` must be a string, but is 3"),
    ],
)
def test_malformed_json_line_is_an_error_with_file_and_line(write, line, message):
    with pytest.raises(ConfigurationError, match=rf"a\.jsonl, line 1: .*{message}"):
        list(AgNewsReader().read(write("a.jsonl", f"{line}\n")))


def test_every_row_is_kept_when_predicting(write):
    reader = AgNewsReader()
    reader.keep_every_row = True
    path = write("test.csv", ',"A","B"\n\n"1","C"\n"9","D","E"\n')
    assert read(reader, path) == [
        ("test:1", "A B", None),
        ("test:2", "<blank>", None),
        ("test:3", "<blank>", None),
        ("test:4", "D E", None),
    ]


def test_columns_that_the_csv_files_do_not_have_are_an_error(write):
    with pytest.raises(ConfigurationError, match=r"a\.csv has the text columns title, description, but .* is text"):
        list(AgNewsReader(text_columns=["text"]).read(write("a.csv", '"1","A","B"\n')))
    with pytest.raises(ConfigurationError, match="at least one column"):
        AgNewsReader(text_columns=[])


def test_sample_has_as_many_rows_of_each_class():
    for name, number in [("train.csv", 160), ("test.csv", 40)]:
        labels = Counter(label for *_, label in read(AgNewsReader(), SAMPLE / name))
        assert labels == dict.fromkeys(("World", "Sports", "Business", "Sci/Tech"), number)


def test_dev_part_is_a_tenth_of_each_class_of_the_training_file():
    train, dev = (read(AgNewsReader(), f"{SAMPLE}/train.csv#{part}") for part in ("train", "dev"))
    assert Counter(label for *_, label in dev) == dict.fromkeys(("World", "Sports", "Business", "Sci/Tech"), 16)
    assert sorted(train + dev) == sorted(read(AgNewsReader(), SAMPLE / "train.csv"))


def test_the_test_part_is_a_file_of_its_own():
    with pytest.raises(ConfigurationError, match=r"must be `#train` or `#dev`, but is `#test`.*test\.csv"):
        list(AgNewsReader().read(f"{SAMPLE}/train.csv#test"))
