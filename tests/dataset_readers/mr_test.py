import zipfile
from collections import Counter

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_tasks.dataset_readers import MrReader

POSITIVE = b"a warm caf\xe9 comedy \nbold \x97 and funny\x85 \nsharp , quick , fun\n"
NEGATIVE = b"a dull\x85 film\nit never begins\n"
NAMES = {"0": "negative", "1": "positive"}


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "rt-polarity.pos").write_bytes(POSITIVE)
    (tmp_path / "rt-polarity.neg").write_bytes(NEGATIVE)
    return tmp_path


@pytest.fixture
def write(tmp_path):
    def write_text(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        return tmp_path / name

    return write_text


def read(reader, path):
    """Id, words and label of each instance."""
    return [
        (
            instance["metadata"]["id"],
            [token.text for token in instance["tokens"].tokens],
            instance["label"].label if "label" in instance.fields else None,
        )
        for instance in reader.read(path)
    ]


EXPECTED = [
    ("pos:1", ["a", "warm", "café", "comedy"], "1"),
    ("pos:2", ["bold", "—", "and", "funny…"], "1"),
    ("pos:3", ["sharp", ",", "quick", ",", "fun"], "1"),
    ("neg:1", ["a", "dull…", "film"], "0"),
    ("neg:2", ["it", "never", "begins"], "0"),
]


def test_folder_holds_the_pair_of_polarity_files(corpus):
    assert read(DatasetReader.from_params(Params({"type": "mr"})), corpus) == EXPECTED


def test_one_polarity_file_alone_has_the_label_of_its_name(corpus):
    assert read(MrReader(), corpus / "rt-polarity.pos") == EXPECTED[:3]
    assert read(MrReader(label_names=NAMES), corpus / "rt-polarity.neg")[0][2] == "negative"


def test_two_polarity_files_are_read_together(corpus):
    pair = [str(corpus / "rt-polarity.pos"), str(corpus / "rt-polarity.neg")]
    assert read(MrReader(), pair) == EXPECTED


def test_folder_in_an_archive_holds_the_pair(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("allennlp.common.file_utils.CACHE_DIRECTORY", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "mr.zip", "w") as archive:
        for name in ("rt-polarity.pos", "rt-polarity.neg"):
            archive.write(corpus / name, f"data/{name}")
    assert read(MrReader(), f"{tmp_path}/mr.zip!data") == EXPECTED
    assert read(MrReader(), f"{tmp_path}/mr.zip!data/rt-polarity.neg") == EXPECTED[3:]
    assert len(read(MrReader(dev_share=0.4), f"{tmp_path}/mr.zip!data#dev")) == 2


def test_format_of_a_download_follows_from_its_url(corpus, monkeypatch):
    cached = corpus / "0123abcd"
    cached.write_bytes(NEGATIVE)
    monkeypatch.setattr("elmo_tasks.dataset_readers.data_path.cached_path", lambda *_, **__: str(cached))
    assert read(MrReader(), "https://example.org/rt-polarity.neg") == EXPECTED[3:]


def test_folder_without_the_pair_is_an_error_that_names_what_is_missing(corpus):
    (corpus / "rt-polarity.neg").unlink()
    with pytest.raises(ConfigurationError, match=r"must hold .* but lacks rt-polarity\.neg"):
        list(MrReader().read(corpus))


def test_labelled_lines_keep_u0085_and_u2028_inside_a_word(write):
    path = write("rt_train.txt", "good\x85 or \u2028bad\xa0_!_1\r\nso it's _!_0")
    assert read(MrReader(), path) == [
        ("rt_train:1", ["good\x85", "or", "\u2028bad\xa0"], "1"),
        ("rt_train:2", ["so", "it's"], "0"),
    ]


def test_two_latin1_lines_with_byte_85_are_two_instances(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\x85two_!_1\nthree_!_0\n")
    rows = read(MrReader(encoding="latin-1"), tmp_path / "a.txt")
    assert [words for _, words, _ in rows] == [["one\x85two"], ["three"]]


def test_number_of_tokens_is_that_of_blanks_plus_one(write):
    line = "it's a film -- really , don't miss it ."
    ((_, words, _),) = read(MrReader(), write("a.txt", f"{line}_!_1"))
    assert len(words) == line.count(" ") + 1


def test_separator_in_the_text_is_text(write):
    rows = read(MrReader(), write("a.txt", "good _!_ fun_!_1\n"))
    assert rows == [("a:1", ["good", "_!_", "fun"], "1")]


def test_line_without_separator_is_an_error_with_file_and_line(write):
    path = write("a.txt", "good_!_1\nbad 0\n")
    with pytest.raises(ConfigurationError, match=r"a\.txt, line 2: .*`text_!_label`, but is 'bad 0'"):
        list(MrReader().read(path))


def test_unlabelled_lines_are_read(write):
    assert read(MrReader(), write("a.txt", "good_!_\nbad_!_ \n")) == [("a:1", ["good"], None), ("a:2", ["bad"], None)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dev.tsv", 'label\tid\tsentence\n1\tx\t"so good\n0\ty\tso bad"\n'),
        ("dev.jsonl", '{"sentence": "\\"so good", "label": 1}\n{"label": "0 ", "sentence": "so bad\\""}\n'),
        ("dev.json", '{"sentence": "\\"so good", "label": "positive"}\n{"label": 0, "sentence": "so bad\\""}\n'),
    ],
)
def test_tables_and_json_lines_have_named_columns(write, name, text):
    rows = read(MrReader(label_names=NAMES), write(name, text))
    assert [words for _, words, _ in rows] == [['"so', "good"], ["so", 'bad"']]
    assert [label for _, _, label in rows] == ["positive", "negative"]
    assert [row_id for row_id, _, _ in rows] == (["dev:2", "dev:3"] if name == "dev.tsv" else ["dev:1", "dev:2"])


@pytest.mark.parametrize(
    ("name", "text"), [("a.tsv", "review\tstars\nfine\t1\n"), ("a.jsonl", '{"review": "fine", "stars": 1}')]
)
def test_columns_can_have_other_names(write, name, text):
    path = write(name, text)
    reader = MrReader(sentence_column="review", label_column="stars")
    assert [row[1:] for row in read(reader, path)] == [(["fine"], "1")]
    with pytest.raises(ConfigurationError, match=r"line 1: must be .* with `sentence`"):
        list(MrReader().read(path))


def test_table_without_label_column_is_unlabelled(write):
    assert read(MrReader(), write("test.tsv", "index\tsentence\n0\tfine\n")) == [("test:2", ["fine"], None)]


def test_metadata_say_where_a_row_stands(corpus):
    last = list(MrReader().read(corpus))[-1]["metadata"].metadata
    assert last == {
        "id": "neg:2",
        "line": 2,
        "file": str(corpus / "rt-polarity.neg"),
        "tokens": ["it", "never", "begins"],
    }
    request = MrReader().text_to_instance("a film", id="q7")["metadata"].metadata
    assert request == {"id": "q7", "line": None, "file": None, "tokens": ["a", "film"]}


@pytest.mark.parametrize("label", [1, "1", "1 ", "positive"])
def test_label_may_be_raw_or_a_name(label):
    instance = MrReader(label_names=NAMES).text_to_instance("a film", label)
    assert instance["label"].label == "positive"


def test_label_is_optional():
    assert "label" not in MrReader().text_to_instance("a film").fields


def test_web_page_in_place_of_the_corpus_is_an_error(write):
    with pytest.raises(ConfigurationError, match=r"rt-polarity\.pos, line 1: .*web page"):
        list(MrReader().read(write("rt-polarity.pos", "<!DOCTYPE html><html></html>")))


@pytest.fixture
def forty_rows(write):
    return write("a.txt", "".join(f"row {index}_!_{index % 2}\n" for index in range(40)))


def test_parts_of_every_fold_are_disjoint_and_complete(forty_rows):
    tested = Counter()
    for fold in range(10):
        parts = {part: read(MrReader(fold=fold), f"{forty_rows}#{part}") for part in ("train", "dev", "test")}
        assert {part: len(rows) for part, rows in parts.items()} == {"train": 32, "dev": 4, "test": 4}
        assert Counter(label for *_, label in parts["test"]) == {"0": 2, "1": 2}
        seen = Counter(row_id for rows in parts.values() for row_id, *_ in rows)
        assert seen == Counter(f"a:{line}" for line in range(1, 41))
        tested.update(row_id for row_id, *_ in parts["test"])
    assert set(tested.values()) == {1}


def test_without_fold_there_are_train_and_dev_alone(forty_rows):
    train, dev = (read(MrReader(dev_share=0.2), f"{forty_rows}#{part}") for part in ("train", "dev"))
    assert (len(train), len(dev)) == (32, 8)
    assert Counter(label for *_, label in dev) == {"0": 4, "1": 4}
    assert not {row_id for row_id, *_ in train} & {row_id for row_id, *_ in dev}
    with pytest.raises(ConfigurationError, match="`#test` needs the option `fold`"):
        list(MrReader().read(f"{forty_rows}#test"))


def test_path_without_part_is_all_rows_and_a_fold_then_gives_a_warning(forty_rows, caplog):
    assert len(read(MrReader(), forty_rows)) == 40
    assert caplog.messages == []
    assert len(read(MrReader(fold=0), forty_rows)) == 40
    assert "names no part" in caplog.text


@pytest.mark.parametrize("options", [{"fold": 10}, {"fold": -1}, {"fold": 3, "num_folds": 3}])
def test_fold_that_does_not_exist_is_an_error(options):
    with pytest.raises(ConfigurationError, match="`fold` must be one of 0 to"):
        MrReader(**options)


def test_one_fold_is_an_error():
    with pytest.raises(ConfigurationError, match="`num_folds` must be at least 2"):
        MrReader(num_folds=1)
