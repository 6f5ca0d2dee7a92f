import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.data_path import DataFile
from elmo_tasks.dataset_readers.text_lines import check_encoding, check_utf8, read_lines, split_lines


@pytest.fixture
def read(tmp_path):
    """Writes bytes to a file of this name; returns what is read back and the warnings."""

    def write_and_read(name, data, encoding=None):
        (tmp_path / name).write_bytes(data)
        warnings = []
        lines = read_lines(DataFile(name, tmp_path / name), encoding, "text", warnings.append)
        return lines, warnings

    return write_and_read


def test_only_newline_and_carriage_return_end_a_line():
    assert split_lines("a\nb\r\nc\rd") == ["a", "b", "c", "d"]
    inside = "a\x85b\u2028c\u2029d\x0be\x0cf\x1cg\x1dh\x1ei"
    assert split_lines(inside + "\n") == [inside]


def test_last_line_end_starts_no_line_but_blank_lines_count():
    assert split_lines("a\n\nb\n\n") == ["a", "", "b", ""]
    assert split_lines("") == []


def test_polarity_files_are_windows_1252(read):
    lines, warnings = read("rt-polarity.pos", b"a caf\xe9 \x97 and then\x85\nthe end\n")
    assert lines == ["a café — and then…", "the end"]
    assert warnings == []


def test_bytes_that_windows_1252_leaves_undefined_stay_with_one_warning(read):
    lines, warnings = read("rt-polarity.neg", b"fine\nod\x81d\ngood\n\x8d\x8f\x90\x9d\n")
    assert lines == ["fine", "od\x81d", "good", "\x8d\x8f\x90\x9d"]
    assert len(warnings) == 1
    assert "rt-polarity.neg: 2 line(s), the first of them line 2" in warnings[0]


def test_polarity_file_that_looks_like_utf8_gives_a_warning(read):
    lines, (warning,) = read("rt-polarity.pos", "a café".encode())
    assert lines == ["a cafÃ©"]
    assert "set `encoding` to utf-8" in warning
    assert read("rt-polarity.pos", "a café".encode(), "utf-8") == (["a café"], [])


def test_other_files_are_utf8_and_keep_u0085(read):
    assert read("rt_train.txt", "well\x85 not\x85\nso\n".encode()) == (["well\x85 not\x85", "so"], [])


@pytest.mark.parametrize("name", ["msr.txt", "rt-polarity.pos"])
@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_byte_order_mark_is_dropped(read, name, encoding):
    assert read(name, b"\xef\xbb\xbfQualit\xc3\xa9\n", encoding) == (["Qualité"], [])


def test_undecodable_byte_is_an_error_with_file_line_and_option(read):
    with pytest.raises(ConfigurationError, match=r"dev\.tsv, line 3: must be utf-8, but byte 97 is not.*`encoding`"):
        read("dev.tsv", b"\xef\xbb\xbfa\nb\nc \x97 d\ne\n")
    assert read("dev.tsv", b"c \x97 d\n", "cp1252") == (["c — d"], [])


def test_line_of_an_undecodable_byte_at_the_start_of_a_line(read):
    with pytest.raises(ConfigurationError, match="line 2:"):
        read("dev.tsv", b"a\n\x97\n")


@pytest.mark.parametrize(
    "page", [b"<!DOCTYPE html>\n<html>", b"\n <html lang=en>", b'\xef\xbb\xbf<?xml version="1.0"?>']
)
def test_web_page_is_an_error_that_says_what_was_expected(read, page):
    with pytest.raises(ConfigurationError, match=r"rt-polarity\.pos, line 1: must be text, but is '<.*web page"):
        read("rt-polarity.pos", page)


def test_archive_without_member_is_an_error(read):
    with pytest.raises(ConfigurationError, match=r"archive\.zip!file"):
        read("mr.tar.gz", b"\x1f\x8b\x08\x00")


def test_encoding_names_are_those_of_python():
    assert check_encoding("Windows-1252") == "cp1252"
    assert check_encoding("UTF8") == "utf-8"
    assert check_encoding(None) is None
    with pytest.raises(ConfigurationError, match="but is 'utf-ate'"):
        check_encoding("utf-ate")


@pytest.mark.parametrize("encoding", ["hex", "rot13", "undefined", "no such"])
def test_a_codec_that_is_none_of_text_is_an_error(encoding):
    with pytest.raises(ConfigurationError, match=f"must be one of text that Python knows.*but is '{encoding}'"):
        check_encoding(encoding)


def test_a_byte_that_is_no_utf8_is_named():
    check_utf8("naïve")
    with pytest.raises(ConfigurationError, match="must be UTF-8, but byte e9 is not"):
        check_utf8(b"caf\xe9".decode(errors="surrogateescape"))
