import gzip
import io
import json
import os
import tarfile
import zipfile

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.common import archives
from elmo_tasks.common.archives import check_unpacked_size, unpack


def entry(name, content=b"", **properties):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in properties.items():
        setattr(member, key, value)
    return member, content


def packed(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return str(path)


@pytest.fixture
def folder(tmp_path):
    """Two levels down, so that what leaves it is still seen."""
    folder = tmp_path / "outer/inner"
    folder.mkdir(parents=True)
    return folder


def files_in(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir())


def test_files_and_folders_are_unpacked_byte_for_byte(tmp_path, folder):
    weights = os.urandom(3 * 2**20 + 5)
    path = packed(
        tmp_path / "model.tar.gz",
        entry("config.json", b"{}"),
        entry("vocabulary", type=tarfile.DIRTYPE),
        entry("vocabulary/labels.txt", "ja\nnein\né\n".encode()),
        entry("weights.th", weights, mode=0o4777),
        entry("extra/deep/notes.txt", b"n"),
    )
    unpack(path, str(folder))
    assert files_in(folder) == ["config.json", "extra/deep/notes.txt", "vocabulary/labels.txt", "weights.th"]
    assert (folder / "weights.th").read_bytes() == weights
    assert (folder / "vocabulary/labels.txt").read_text(encoding="utf-8") == "ja\nnein\né\n"
    assert not (folder / "weights.th").stat().st_mode & 0o4111, "permissions are those of any new file"


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/tmp/elmo_tasks_evil", "..\\evil", "C:\\evil", "\\\\host\\evil"]
)
def test_a_member_that_would_be_written_elsewhere_is_refused(name, tmp_path, folder):
    path = packed(tmp_path / "model.tar.gz", entry(name, b"evil"))
    with pytest.raises(ConfigurationError) as error:
        unpack(path, str(folder))
    assert str(error.value).startswith(path)
    assert f"its member {name!r} would be written elsewhere" in str(error.value)
    assert files_in(tmp_path) == ["model.tar.gz"]
    assert not os.path.exists("/tmp/elmo_tasks_evil")


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (tarfile.SYMTYPE, "is a link, to '/etc'"),
        (tarfile.LNKTYPE, "is a link, to '/etc'"),
        (tarfile.CHRTYPE, "is a device, a pipe or a sparse file"),
        (tarfile.BLKTYPE, "is a device, a pipe or a sparse file"),
        (tarfile.FIFOTYPE, "is a device, a pipe or a sparse file"),
    ],
)
def test_links_devices_and_pipes_are_refused(kind, fault, tmp_path, folder):
    path = packed(tmp_path / "model.tar.gz", entry("vocabulary", type=kind, linkname="/etc"))
    with pytest.raises(ConfigurationError, match=f"its member 'vocabulary' {fault}; nothing of it was used"):
        unpack(path, str(folder))
    assert list(folder.iterdir()) == []


def test_a_sparse_file_is_refused(tmp_path, folder):
    """A header of 512 bytes may describe a file of terabytes."""
    headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**42)}
    path = packed(tmp_path / "model.tar.gz", entry("weights.th", b"x", pax_headers=headers))
    with pytest.raises(ConfigurationError, match=r"its member 'weights.th' is a device, a pipe or a sparse file"):
        unpack(path, str(folder))


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(archives, "ALWAYS_ALLOWED_BYTES", 10**6)


@pytest.mark.usefixtures("small_limit")
def test_a_bomb_is_refused_before_it_is_written(tmp_path, folder):
    path = packed(tmp_path / "model.tar.gz", entry("config.json", b"{}"), entry("weights.th", bytes(10**7)))
    assert os.path.getsize(path) < 20_000
    with pytest.raises(ConfigurationError, match=r"model.tar.gz must unpack to at most .*; if you trust it, unpack it"):
        unpack(path, str(folder))
    assert files_in(folder) == ["config.json"]


@pytest.mark.usefixtures("small_limit")
def test_many_small_members_are_a_bomb_too(tmp_path, folder):
    path = packed(tmp_path / "model.tar.gz", *(entry(f"{number}.txt") for number in range(300)))
    with pytest.raises(ConfigurationError, match="must unpack to at most"):
        unpack(path, str(folder))
    assert len(files_in(folder)) == 10**6 // 4096


def test_a_header_that_claims_to_be_huge_is_refused_before_memory_is_taken(tmp_path, folder):
    """A long name is read whole by `tarfile`: here one of 8 GiB, of which the archive need hold nothing."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 8 * 2**30 - 1
    path = tmp_path / "model.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(10**6)))
    with pytest.raises(ConfigurationError, match=r"must unpack to at most 1\.0 GiB"):
        unpack(str(path), str(folder))


@pytest.mark.usefixtures("small_limit")
def test_a_large_archive_may_unpack_to_a_multiple_of_its_size(tmp_path, folder):
    path = packed(tmp_path / "model.tar.gz", entry("weights.th", os.urandom(2 * 10**5) + bytes(3 * 10**6)))
    unpack(path, str(folder))
    assert (folder / "weights.th").stat().st_size == 32 * 10**5


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_an_archive_cut_short_is_named(share, tmp_path, folder):
    path = tmp_path / "model.tar.gz"
    packed(path, entry("weights.th", os.urandom(10**5)))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ConfigurationError, match=r"model.tar.gz must be a whole .tar.gz archive"):
        unpack(str(path), str(folder))


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>moved</html>", gzip.compress(b"no archive at all")],
    ids=["empty", "a page", "compressed"],
)
def test_what_is_no_archive_is_named(content, tmp_path, folder):
    path = tmp_path / "model.tar.gz"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"model.tar.gz must be a whole .tar.gz archive"):
        unpack(str(path), str(folder))


def test_the_config_of_an_archive_is_no_program(tmp_path, folder):
    config = b'{"model": {"type": importstr "/etc/hostname", "seed": std.extVar("HOME")}}'
    path = packed(tmp_path / "model.tar.gz", entry("config.json", config))
    with pytest.raises(ConfigurationError, match=r"must have plain JSON in its member config.json, as AllenNLP writes"):
        unpack(path, str(folder))
    unpack(packed(tmp_path / "good.tar.gz", entry("config.json", json.dumps({"a": [1, None]}).encode())), str(folder))


# --- archives of data


def data_archive(path, content):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("mr/rt-polarity.pos", content)
    else:
        with tarfile.open(path, "w:" + path.suffix[1:].replace("tar", "")) as archive:
            member, _ = entry("mr/rt-polarity.pos", content)
            archive.addfile(member, io.BytesIO(content))
    return str(path)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("name", ["mr.zip", "mr.tar.gz", "mr.tar.bz2", "mr.tar.xz"])
def test_data_that_unpack_to_much_more_are_refused(name, tmp_path):
    check_unpacked_size(data_archive(tmp_path / name, bytes(9 * 10**5)))
    with pytest.raises(ConfigurationError, match=rf"{name} must unpack to at most"):
        check_unpacked_size(data_archive(tmp_path / name, bytes(11 * 10**5)))


@pytest.mark.usefixtures("small_limit")
def test_a_tar_that_is_not_compressed_has_the_size_of_its_data(tmp_path):
    check_unpacked_size(data_archive(tmp_path / "mr.tar", os.urandom(11 * 10**5)))


def test_a_header_of_data_that_claims_to_be_huge_is_refused(tmp_path):
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 8 * 2**30 - 1
    path = tmp_path / "mr.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(10**6)))
    with pytest.raises(ConfigurationError, match=r"must unpack to at most 1\.0 GiB"):
        check_unpacked_size(str(path))


@pytest.mark.parametrize(
    "content", [b"", b"a warm film\n", b"PK\x03\x04 half", b"\x1f\x8bhalf", b"BZhalf", b"\xfd7zXZ\0half"]
)
def test_of_what_is_no_archive_nothing_is_said(content, tmp_path):
    path = tmp_path / "mr"
    path.write_bytes(content)
    check_unpacked_size(str(path))
