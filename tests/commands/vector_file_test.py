import errno
import json
import os
import resource
import zipfile

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.vector_file import ArrayType, Hdf5File, NpzFile, vector_file_type

LENGTHS = [("0", 2), ("1", 0), ("2", 5), ("3", 1)]
ARRAY_TYPE = ArrayType((3,), (4,), "float32")
ARRAYS = {
    name: numpy.random.default_rng(length).normal(size=(3, length, 4)).astype("float32") for name, length in LENGTHS
}
INDEX = {"a b": "0", "": "1", "naïve": "3"}


def write(file_type, path, num_arrays, names, close=True):
    file = file_type(path, num_arrays)
    for name in names:
        file.write(name, ARRAYS[name])
    file.flush()
    if close:
        file.close()
    return file


def begin(file_type, path, index=INDEX):
    file_type.begin(path, iter(LENGTHS), ARRAY_TYPE, index)


@pytest.mark.parametrize("index", [INDEX, {}])
@pytest.mark.parametrize("file_type", [Hdf5File, NpzFile])
def test_a_file_that_is_gone_on_with_is_the_same_as_one_that_is_written_at_once(tmp_path, file_type, index):
    whole, parts = str(tmp_path / "whole"), str(tmp_path / "parts")
    for path in (whole, parts):
        begin(file_type, path, index)
    write(file_type, whole, 0, "0123")
    write(file_type, parts, 0, "0")
    write(file_type, parts, 1, "123")
    # The last process was killed after "1" was counted, "2" and "3" are written again.
    write(file_type, parts, 2, "23")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()


@pytest.mark.parametrize("file_type", [Hdf5File, NpzFile])
def test_what_was_flushed_is_there_without_a_close(tmp_path, file_type):
    path, copy = str(tmp_path / "killed"), tmp_path / "copy"
    begin(file_type, path)
    file = write(file_type, path, 0, "012", close=False)
    copy.write_bytes((tmp_path / "killed").read_bytes())  # as the process leaves it that is killed now
    file.close()
    write(file_type, str(copy), 3, "3")
    begin(file_type, path)
    write(file_type, path, 0, "0123")
    assert copy.read_bytes() == (tmp_path / "killed").read_bytes()


def test_hdf5_is_read_as_the_file_of_the_old_command(tmp_path):
    path = str(tmp_path / "vectors.hdf5")
    begin(Hdf5File, path)
    write(Hdf5File, path, 0, "0123")
    with h5py.File(path) as file:
        assert set(file) == {*ARRAYS, "sentence_to_index"}
        for name, array in ARRAYS.items():
            numpy.testing.assert_array_equal(file[name][...], array)
        assert file["sentence_to_index"].shape == (1,)
        assert json.loads(file["sentence_to_index"][0]) == INDEX


def test_hdf5_is_a_valid_file_before_it_is_complete(tmp_path):
    path = str(tmp_path / "vectors.hdf5")
    begin(Hdf5File, path)
    with h5py.File(path) as file:
        assert {name: file[name].shape for name in ARRAYS} == {name: array.shape for name, array in ARRAYS.items()}


def test_npz_is_read_by_numpy_and_is_a_sound_archive(tmp_path):
    path = str(tmp_path / "vectors.npz")
    begin(NpzFile, path)
    write(NpzFile, path, 0, "01")
    write(NpzFile, path, 2, "23")
    with numpy.load(path) as file:
        assert json.loads(file["sentence_to_index"][0]) == INDEX
        for name, array in ARRAYS.items():
            numpy.testing.assert_array_equal(file[name], array)
            assert file[name].dtype == array.dtype
    assert zipfile.ZipFile(path).testzip() is None


def test_npz_goes_on_behind_members_of_more_than_two_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 200)
    whole, parts = str(tmp_path / "whole"), str(tmp_path / "parts")
    for path in (whole, parts):
        begin(NpzFile, path)
    write(NpzFile, whole, 0, "0123")
    write(NpzFile, parts, 0, "012")
    write(NpzFile, parts, 3, "3")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()
    numpy.testing.assert_array_equal(numpy.load(parts)["2"], ARRAYS["2"])


def test_bytes_of_all_arrays_are_known_beforehand():
    assert ARRAY_TYPE.num_bytes(8) == sum(array.nbytes for array in ARRAYS.values())
    assert ArrayType((), (4,), "float16").num_bytes(3) == 24


def test_the_suffix_says_the_type():
    assert vector_file_type("a.HDF5") is vector_file_type("a.h5") is Hdf5File
    assert vector_file_type("a.npz") is NpzFile
    with pytest.raises(ConfigurationError, match=r"a\.npy must end in one of \.hdf5, \.h5, \.npz"):
        vector_file_type("a.npy")


def test_a_full_disk_is_no_secret(tmp_path):
    """HDF5 itself writes small arrays when it forgets them, and ignores what then goes wrong: they would be zeros."""
    path = str(tmp_path / "vectors")
    begin(Hdf5File, path, {})
    with h5py.File(path, "r") as file:  # behind the half that there is room for
        assert file["3"].id.get_offset() > os.path.getsize(path) // 2
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) // 2, resource.RLIM_INFINITY))
        try:
            write(Hdf5File, path, 0, "0123")
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
