"""Files with an array for each line: HDF5 in the layout of AllenNLP 0.9, and NumPy's `.npz`."""

import io
import json
import os
import struct
from abc import ABC, abstractmethod
from typing import BinaryIO, Dict, Iterable, Iterator, NamedTuple, Tuple, Type
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import h5py
import numpy
from allennlp.common.checks import ConfigurationError

# Beside the arrays; a JSON object from sentences to the names of theirs.
INDEX_NAME = "sentence_to_index"


class ArrayType(NamedTuple):
    """
    What the arrays of a file have in common.

    # Parameters

    before, after : `Tuple[int, ...]`
        Their shape before and after the number of tokens.
    dtype : `str`
        "float32" or "float16".
    """

    before: Tuple[int, ...]
    after: Tuple[int, ...]
    dtype: str

    def shape(self, num_tokens: int) -> Tuple[int, ...]:
        """Of the array of a sentence."""
        return (*self.before, num_tokens, *self.after)

    def describe_shape(self) -> str:
        """For people."""
        return "(" + ", ".join(map(str, (*self.before, "num_tokens", *self.after))) + ")"

    def num_bytes(self, num_tokens: int) -> int:
        """Of the arrays of all sentences together."""
        return int(numpy.prod(self.shape(num_tokens), dtype="int64")) * numpy.dtype(self.dtype).itemsize


class VectorFile(ABC):
    """
    A file that is begun once, and then takes arrays in the order of their lines. A process that is killed loses those
    since the last `flush`; the next one goes on behind them.

    # Parameters

    path : `str`
        What `begin` has written.
    num_arrays : `int`
        How many are in it already. What comes behind them was not flushed, and is written again.
    """

    @abstractmethod
    def __init__(self, path: str, num_arrays: int) -> None: ...

    @staticmethod
    @abstractmethod
    def begin(path: str, lengths: Iterable[Tuple[str, int]], array_type: ArrayType, index: Dict[str, str]) -> None:
        """
        Writes a file without vectors, in place of what is there.

        # Parameters

        path : `str`
        lengths : `Iterable[Tuple[str, int]]`
            Name and number of tokens of each array.
        array_type : `ArrayType`
        index : `Dict[str, str]`
            For "sentence_to_index"; empty: the file has none.
        """

    @abstractmethod
    def write(self, name: str, array: numpy.ndarray) -> None:
        """Adds the array of the next line."""

    @abstractmethod
    def flush(self) -> None:
        """Hands what was written to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Completes the file, or, with arrays missing, leaves it to be gone on with."""


class Hdf5File(VectorFile):
    """
    All sizes are known before the first vector is. So the file is laid out first, and is a valid one from then on:
    vectors are written into their places, and nothing else changes. HDF5 only says where these are: what it writes
    itself, it may write late, and then tells nobody that the disk is full.
    """

    def __init__(self, path: str, num_arrays: int) -> None:
        self._file = h5py.File(path, "r")
        self._stream = open(path, "r+b")  # noqa: SIM115 closed by `close`

    @staticmethod
    def begin(path: str, lengths: Iterable[Tuple[str, int]], array_type: ArrayType, index: Dict[str, str]) -> None:
        in_place = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        in_place.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        in_place.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        with h5py.File(path, "w") as file:
            if index:
                file.create_dataset(INDEX_NAME, (1,), dtype=h5py.string_dtype())[0] = json.dumps(index)
            for name, num_tokens in lengths:
                file.create_dataset(name, array_type.shape(num_tokens), dtype=array_type.dtype, dcpl=in_place)

    def write(self, name: str, array: numpy.ndarray) -> None:
        dataset = self._file[name]
        if array.size:  # else it has no place
            self._stream.seek(dataset.id.get_offset())
            self._stream.write(numpy.ascontiguousarray(array, dtype=dataset.dtype).data)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._file.close()
        self._stream.close()


class NpzFile(VectorFile):
    """
    A ZIP archive grows at its end, and its table of contents comes last. So what a killed process left is whole up to
    the last flush, and the table is made anew from the headers of the members.

    The table takes some 600 bytes of memory for each line, as it does where `numpy.load` reads it.
    """

    def __init__(self, path: str, num_arrays: int) -> None:
        self._stream = open(path, "r+b")  # noqa: SIM115 closed by `close`
        members = list(_members(self._stream, num_arrays))
        self._stream.truncate()
        self._archive = ZipFile(self._stream, "w", ZIP_STORED)
        self._archive.infolist().extend(members)

    @staticmethod
    def begin(path: str, lengths: Iterable[Tuple[str, int]], array_type: ArrayType, index: Dict[str, str]) -> None:
        with ZipFile(path, "w", ZIP_STORED) as archive:
            if index:
                _append(archive, INDEX_NAME, numpy.array([json.dumps(index)]))

    def write(self, name: str, array: numpy.ndarray) -> None:
        _append(self._archive, name, array)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._archive.close()
        self._stream.close()


def vector_file_type(path: str) -> Type[VectorFile]:
    """
    # Returns

    `Type[VectorFile]`
        What belongs to the suffix of the path.

    # Raises

    ConfigurationError
        Where nothing does.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _TYPES:
        raise ConfigurationError(f"{path} must end in one of {', '.join(_TYPES)}, but ends in {suffix!r}")
    return _TYPES[suffix]


_TYPES: Dict[str, Type[VectorFile]] = {".hdf5": Hdf5File, ".h5": Hdf5File, ".npz": NpzFile}

# What stands before each member: signature, version, flags, method, time, date, checksum, size in the archive, size,
# lengths of the name and of what follows it.
_HEADER = struct.Struct("<4s5H3L2H")
_NPY_SUFFIX = ".npy"
_INDEX_MEMBER = INDEX_NAME + _NPY_SUFFIX


def _append(archive: ZipFile, name: str, array: numpy.ndarray) -> None:
    content = io.BytesIO()
    numpy.lib.format.write_array(content, numpy.ascontiguousarray(array), allow_pickle=False)
    # A `ZipInfo` has no time of its own: equal vectors make equal files.
    archive.writestr(ZipInfo(name + _NPY_SUFFIX), content.getbuffer())


def _members(stream: BinaryIO, num_arrays: int) -> Iterator[ZipInfo]:
    """The first members of an archive that may lack its table: the index, if it has one, and so many arrays."""
    has_index = stream.read(_HEADER.size + len(_INDEX_MEMBER))[_HEADER.size :] == _INDEX_MEMBER.encode()
    stream.seek(0)
    for _ in range(has_index + num_arrays):
        offset = stream.tell()
        *_, checksum, _, size, name_length, extra_length = _HEADER.unpack(stream.read(_HEADER.size))
        member = ZipInfo(stream.read(name_length).decode())
        extra = stream.read(extra_length)
        if extra:  # of a large member: number and length of the field, then its true sizes
            _, _, size, _ = struct.unpack("<HHQQ", extra)
        member.header_offset, member.CRC, member.file_size, member.compress_size = offset, checksum, size, size
        member.external_attr = 0o600 << 16  # as `writestr` has it
        yield member
        stream.seek(size, os.SEEK_CUR)
