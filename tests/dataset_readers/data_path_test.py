import zipfile
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.data_path import DataFile, locate, parse_path, parse_paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mr/rt_train.txt", ("mr/rt_train.txt", None)),
        ("mr/rt_train.txt#dev", ("mr/rt_train.txt", "dev")),
        (Path("mr") / "rt_train.txt#test", ("mr/rt_train.txt", "test")),
        ("https://example.org/mr.zip!a/rt_train.txt#train", ("https://example.org/mr.zip!a/rt_train.txt", "train")),
        ("c#/rt_train.txt", ("c#/rt_train.txt", None)),
    ],
)
def test_part_is_taken_from_the_end_of_a_path(path, expected):
    assert parse_path(path) == expected


def test_existing_file_with_a_hash_sign_in_its_name_is_a_file(tmp_path):
    (tmp_path / "take#2").touch()
    assert parse_path(tmp_path / "take#2") == (str(tmp_path / "take#2"), None)


def test_unknown_part_is_an_error():
    with pytest.raises(ConfigurationError, match=r"one of train, dev, test, but is 'tset'"):
        parse_path("rt_train.txt#tset")


def test_paths_of_one_data_set_share_their_part():
    assert parse_paths(["a.pos#dev", "a.neg#dev"]) == (["a.pos", "a.neg"], "dev")
    assert parse_paths("a.pos") == (["a.pos"], None)
    with pytest.raises(ConfigurationError, match="same part"):
        parse_paths(["a.pos#dev", "a.neg"])


@pytest.mark.parametrize("paths", [[], {"mr": "a.pos"}, ""])
def test_neither_a_path_nor_a_list_of_paths_is_an_error(paths):
    with pytest.raises(ConfigurationError, match="a path or a list of paths"):
        parse_paths(paths)


@pytest.mark.parametrize(
    ("given", "name", "stem", "suffix"),
    [
        ("mr/rt-polarity.pos", "rt-polarity.pos", "rt-polarity", ".pos"),
        ("mr.zip!data/Dev.TSV", "Dev.TSV", "Dev", ".tsv"),
        ("https://example.org/a/dev.jsonl?download=1", "dev.jsonl", "dev", ".jsonl"),
        ("https://example.org/mr.tar.gz!a/rt_train.txt", "rt_train.txt", "rt_train", ".txt"),
    ],
)
def test_name_is_the_one_that_the_user_wrote(given, name, stem, suffix):
    file = DataFile(given, Path("cache/0123abcd"))
    assert (file.name, file.stem, file.suffix) == (name, stem, suffix)


def test_archive_member_and_folder_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("allennlp.common.file_utils.CACHE_DIRECTORY", str(tmp_path / "cache"))
    archive = tmp_path / "mr.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data/rt-polarity.pos", "a warm film\n")
    assert locate(f"{archive}!data/rt-polarity.pos").local.read_text() == "a warm film\n"
    folder = locate(f"{archive}!data")
    assert folder.local.is_dir()
    assert folder.member("rt-polarity.pos").local.is_file()
    with pytest.raises(FileNotFoundError):
        locate(f"{archive}!data/rt-polarity.neg")


def test_archive_that_unpacks_to_much_more_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("allennlp.common.file_utils.CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr("elmo_tasks.common.archives.ALWAYS_ALLOWED_BYTES", 10**6)
    archive = tmp_path / "mr.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("data/rt-polarity.pos", bytes(10**7))
    with pytest.raises(ConfigurationError, match=r"mr\.zip must unpack to at most"):
        locate(f"{archive}!data/rt-polarity.pos")
    assert not list(tmp_path.rglob("*rt-polarity*"))


def test_exclamation_mark_in_a_folder_name_is_no_archive(tmp_path):
    path = tmp_path / "wow!" / "a.txt"
    path.parent.mkdir()
    path.touch()
    assert locate(str(path)).local == path


def test_missing_file_is_an_error_that_names_it_and_those_beside_it(tmp_path):
    missing = tmp_path / "rt_train.txt"
    with pytest.raises(FileNotFoundError, match=rf"file {missing} not found; {tmp_path} has nothing$"):
        locate(str(missing))
    for name in ("rt-polarity.pos", "rt-polarity.neg"):
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match=rf"not found; {tmp_path} has rt-polarity.neg, rt-polarity.pos$"):
        locate(str(missing))
    for number in range(9):
        (tmp_path / f"part{number}").touch()
    with pytest.raises(FileNotFoundError, match=r"has part0, part1, .*part7, …$"):
        locate(str(missing))
    with pytest.raises(FileNotFoundError, match=r"rt_train.txt not found$"):
        locate(str(tmp_path / "no_such_folder" / "rt_train.txt"))
