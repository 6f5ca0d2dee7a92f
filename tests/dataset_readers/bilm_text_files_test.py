import gzip
import lzma
import tracemalloc

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.bilm_text_files import MAX_LINE_LENGTH, find_sources, first_lines, interleave


@pytest.fixture
def ten_lines(tmp_path):
    path = tmp_path / "ten.txt"
    path.write_text("".join(f"line {number}\n" for number in range(10)))
    return path


def texts(data_path):
    return [line.text.strip() for source in find_sources(data_path) for line in source.lines()]


@pytest.mark.parametrize(
    ("slice_", "expected"),
    [
        ("", range(10)),
        ("#:3", range(3)),
        ("#-2:", range(8, 10)),
        ("#:-2", range(8)),
        ("#2:4", range(2, 4)),
        ("#:90%", range(9)),
        ("#90%:", range(9, 10)),
        ("#20:", range(0)),
    ],
)
def test_a_slice_chooses_lines_as_in_python(ten_lines, slice_, expected):
    (source,) = find_sources(f"{ten_lines}{slice_}")
    assert [line.text for line in source.lines()] == [f"line {number}\n" for number in expected]
    assert [line.number for line in source.lines()] == [number + 1 for number in expected]
    assert len(source) == len(expected)


@pytest.mark.parametrize(
    ("max_lines", "expected"),
    [(2, ["2", "3"]), (3, ["2", "3", "4"]), (4, ["2", "3", "4", "0"]), (99, ["2", "3", "4", "0", "1"])],
)
def test_the_first_lines_are_those_of_the_first_sources(ten_lines, max_lines, expected):
    sources = first_lines(find_sources([f"{ten_lines}#2:5", f"{ten_lines}#:2"]), max_lines)
    assert [line.text.split()[1] for source in sources for line in source.lines()] == expected
    assert sum(len(source) for source in sources) == len(expected)


def test_compressed_files_read_like_plain_ones(tmp_path):
    for name, opener in {"a.txt": open, "a.txt.gz": gzip.open, "a.txt.xz": lzma.open}.items():
        with opener(tmp_path / name, "wt", encoding="utf-8") as text_file:
            text_file.write("één zin\nnog een\n")
        assert texts(str(tmp_path / name)) == ["één zin", "nog een"]


def test_a_glob_reads_its_files_in_the_order_of_their_names(tmp_path):
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text(name)
    assert texts(str(tmp_path / "*.txt")) == ["a.txt", "b.txt"]
    assert texts(str(tmp_path / "*.txt") + "#1:") == []


def test_separators_of_other_alphabets_do_not_end_a_line(tmp_path):
    (tmp_path / "a.txt").write_text("one\x85still one\u2028still\x1c one\r\ntwo\n", newline="")
    assert len(texts(str(tmp_path / "a.txt"))) == 2


def test_a_path_without_files_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nothing matches .*no_such"):
        find_sources(str(tmp_path / "no_such*.txt"))


def test_a_file_that_is_not_utf8_is_named_with_the_line(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"fine\n" * 3000 + b"caf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.txt, line 3001: must be UTF-8, but byte e9 is not"):
        find_sources(str(tmp_path / "latin.txt"))


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone two\n")
    assert texts(str(tmp_path / "a.txt")) == ["one two"]


@pytest.mark.parametrize(("name", "compress"), [("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)])
def test_a_damaged_compressed_file_is_named(tmp_path, name, compress):
    for content in (compress(b"a line\n" * 1000)[:-9], b"no such thing"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=rf"{name} must be whole, but cannot be read after line \d+: "):
            find_sources(str(tmp_path / name))


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as text_file:
        text_file.write(b"a line\n")
        for _ in range(16):
            text_file.write(b"a" * MAX_LINE_LENGTH)
    assert path.stat().st_size < 2 * 2**20
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError) as error:
            find_sources(str(path))
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_LINE_LENGTH
    finally:
        tracemalloc.stop()
    assert str(error.value) == f"{path}, line 2: must be one sentence, but has 16,777,216 characters or more"


def test_the_longest_line_is_read(tmp_path):
    line = "a" * (MAX_LINE_LENGTH - 2) + "\n"
    (tmp_path / "a.txt").write_text(line + "b\n")
    assert texts(str(tmp_path / "a.txt")) == [line.strip(), "b"]


def test_sources_are_interleaved_in_proportion_and_end_together(tmp_path):
    (tmp_path / "large").write_text("".join(f"l{n}\n" for n in range(9)))
    (tmp_path / "small").write_text("".join(f"s{n}\n" for n in range(3)))
    sources = find_sources([str(tmp_path / "large"), str(tmp_path / "small")])
    order = "".join(line.text[0] for block in interleave(sources, 1) for line in block)
    assert order == "llslllslllsl"


def test_interleaved_blocks_are_consecutive_lines(tmp_path):
    (tmp_path / "a").write_text("".join(f"a{n}\n" for n in range(5)))
    (tmp_path / "b").write_text("".join(f"b{n}\n" for n in range(5)))
    blocks = interleave(find_sources([str(tmp_path / "a"), str(tmp_path / "b")]), 2)
    assert ["".join(line.text.strip() for line in block) for block in blocks] == [
        "a0a1",
        "b0b1",
        "a2a3",
        "b2b3",
        "a4",
        "b4",
    ]
