import gzip
import json
import pickle

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.predictors import Predictor

from elmo_tasks.commands.bulk_input import BulkInput


@pytest.fixture(scope="module")
def predictor(trained_run):
    return Predictor.from_path(str(trained_run / "model.tar.gz"))


@pytest.fixture
def write(tmp_path):
    def write(name, *sentences):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps({"sentence": sentence}) + "\n" for sentence in sentences))
        return str(path)

    return write


def sentences_of(part):
    return [row["sentence"] for row in pickle.loads(part.payload)]


def test_rows_are_cut_in_their_order_and_each_file_begins_a_part(predictor, write):
    paths = [write("b.jsonl", "1", "2", "3"), write("a.jsonl", "4")]
    bulk_input = BulkInput(predictor, paths)
    assert bulk_input.check() == 4
    parts = list(bulk_input.parts(2))
    assert [part.number for part in parts] == [0, 1, 2]
    assert [sentences_of(part) for part in parts] == [["1", "2"], ["3"], ["4"]]
    assert parts[1].places == (f"{paths[0]}, line 3",)


def test_blank_lines_are_no_rows_and_count_as_lines(predictor, tmp_path):
    (tmp_path / "rows.jsonl").write_text('\n{"sentence": "1"}\n  \n{"sentence": "2"}')
    (part,) = BulkInput(predictor, [str(tmp_path / "rows.jsonl")]).parts(9)
    assert [place[-6:] for place in part.places] == ["line 2", "line 4"]


@pytest.mark.parametrize("pattern", ["parts", "parts/*.jsonl"])
def test_a_folder_or_pattern_stands_for_its_files_by_name(predictor, write, tmp_path, pattern):
    for name in ("2", "10", "1"):
        write(f"parts/{name}.jsonl", name)
    (tmp_path / "parts/.hidden").write_text("no JSON")
    (tmp_path / "parts/folder").mkdir()
    parts = BulkInput(predictor, [str(tmp_path / pattern)]).parts(9)
    assert [sentences_of(part) for part in parts] == [["1"], ["10"], ["2"]]


def test_compressed_lines_are_read(predictor, tmp_path):
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as file:
        file.write('{"sentence": "1"}\n')
    assert BulkInput(predictor, [str(tmp_path / "rows.jsonl.gz")]).check() == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "rows.jsonl, line 2: the row must be a JSON object"),
        (b'{"text": "a"}', "rows.jsonl, line 2: the row must be .* but has no 'sentence'"),
        (b'{"sentence": "\xe9"}', "rows.jsonl, line 2: must be UTF-8, but byte e9 is not"),
    ],
)
def test_a_line_that_is_no_row_is_named_before_anything_is_computed(predictor, tmp_path, line, message):
    (tmp_path / "rows.jsonl").write_bytes(b'{"sentence": "fine"}\n' + line + b"\n")
    with pytest.raises(ConfigurationError, match=message):
        BulkInput(predictor, [str(tmp_path / "rows.jsonl")]).check()


def test_what_stands_for_no_file_is_refused(predictor, tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "missing.jsonl", tmp_path / "*.jsonl", tmp_path / "empty"):
        with pytest.raises(ConfigurationError, match="must be a file, a folder of files or a pattern"):
            BulkInput(predictor, [str(path)])


def test_rows_of_a_data_file_are_those_of_the_reader(predictor, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"row {number}_!_1\n" for number in range(5)))
    bulk_input = BulkInput(predictor, [str(path)], use_dataset_reader=True)
    assert bulk_input.check() is None
    parts = list(bulk_input.parts(3))
    assert [[row["metadata"]["line"] for row in pickle.loads(part.payload)] for part in parts] == [[1, 2, 3], [4, 5]]
    assert parts[1].places == (f"{path}, row 4", f"{path}, row 5")


def test_the_digest_is_that_of_the_rows(predictor, write, tmp_path):
    def digests(path, **options):
        return [part.digest for part in BulkInput(predictor, [path], **options).parts(1)]

    first = digests(write("rows.jsonl", "1", "2", "1"))
    assert first[0] == first[2] != first[1]
    assert digests(write("rows.jsonl", "1", "3", "1")) == [first[0], digests(write("other", "3"))[0], first[2]]
    (tmp_path / "rows.txt").write_text("row 1_!_1\nrow 2_!_0\n")
    of_reader = [digests(str(tmp_path / "rows.txt"), use_dataset_reader=True) for _ in range(2)]
    assert of_reader[0] == of_reader[1]
    assert len(set(of_reader[0])) == 2
