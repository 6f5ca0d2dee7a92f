"""The lasting tier of the activation cache: checksummed records in an LMDB file that processes share."""

import logging
import os
import shutil
import struct
import zlib
from typing import Callable, Dict, Iterable, Optional, Set, Tuple, TypeVar, Union

import lmdb
import numpy

logger = logging.getLogger(__name__)

T = TypeVar("T")
Record = Union[bytes, memoryview]

FILE_NAME = "activations.lmdb"

# Length of the payload in bytes, and a checksum over key and payload.
_HEADER = struct.Struct("<QI")

# LMDB allows one handle per file and process, and none from before a fork: each stands with its process id.
_environments: Dict[str, Tuple[int, lmdb.Environment]] = {}


class DiskTier:
    """
    Keeps arrays of bytes in one LMDB file.

    Several processes may use the file at once. A transaction is either whole or absent, so that a process
    killed while it writes leaves nothing behind; a record whose checksum is wrong counts as absent and is
    written anew. A disk that is full, read-only or broken costs one warning, and what works without it goes
    on.

    # Parameters

    directory : `str`
        Folder of the file, made where it is missing. On a disk of this machine: LMDB does not work over a network.
    max_bytes : `int`
        The file never grows beyond this. It takes only what it holds.
    """

    def __init__(self, directory: str, max_bytes: int) -> None:
        self.path = os.path.join(os.path.realpath(directory), FILE_NAME)
        self._max_bytes = max_bytes
        self._is_readable = True
        self._is_writable = True

    @property
    def num_free_bytes(self) -> int:
        """Bytes that the limit and the disk leave; 0 once a warning has said that writing has ended."""
        environment = self._environment()
        if environment is None or not self._is_writable:
            return 0
        num_used_bytes = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        num_bytes_on_disk = shutil.disk_usage(os.path.dirname(self.path)).free
        return max(0, min(self._max_bytes - num_used_bytes, num_bytes_on_disk))

    def present(self, keys: Iterable[bytes]) -> Set[bytes]:
        """
        # Returns

        `Set[bytes]`
            The keys that have a record. Damage shows only when it is read.
        """
        return set(self._read(keys, lambda key, record: True))

    def get(self, keys: Iterable[bytes]) -> Dict[bytes, numpy.ndarray]:
        """
        # Returns

        `Dict[bytes, numpy.ndarray]`
            The payload, uint8, of each key that has an undamaged record.
        """
        # LMDB's own memory ends with the transaction: what leaves it is a copy.
        return self._read(keys, _copy_of_payload)

    def put(self, payloads: Dict[bytes, numpy.ndarray]) -> None:
        """
        Writes all payloads in one transaction. A key that another process wrote meanwhile stays as it is,
        unless its record is damaged.

        # Parameters

        payloads : `Dict[bytes, numpy.ndarray]`
            uint8 arrays.
        """
        environment = self._environment()
        if environment is None or not self._is_writable:
            return
        try:
            with _begin(environment, write=True) as transaction:
                for key, payload in payloads.items():
                    record = transaction.get(key)
                    if record is None or _payload(key, record) is None:
                        transaction.put(key, _HEADER.pack(payload.nbytes, _checksum(key, payload)) + payload.tobytes())
        except lmdb.MapFullError:
            self._is_writable = False
            self._warn(f"has reached its limit of {self._max_bytes:,} bytes")
        except lmdb.Error as error:
            self._is_writable = False
            self._warn("cannot be written", error)

    def _read(self, keys: Iterable[bytes], look: Callable[[bytes, Record], Optional[T]]) -> Dict[bytes, T]:
        environment = self._environment()
        found: Dict[bytes, T] = {}
        if environment is None:
            return found
        try:
            with _begin(environment) as transaction:
                for key in keys:
                    record = transaction.get(key)
                    value = look(key, record) if record is not None else None
                    if value is not None:
                        found[key] = value
        except lmdb.Error as error:
            self._is_readable = self._is_writable = False
            self._warn("cannot be read", error)
        return found

    def _environment(self) -> Optional[lmdb.Environment]:
        if not self._is_readable:
            return None
        try:
            environment = _shared_environment(self.path, self._max_bytes)
        except (lmdb.Error, OSError) as error:
            self._is_readable = self._is_writable = False
            self._warn("cannot be opened", error)
            return None
        if self._is_writable and environment.flags()["readonly"]:
            self._is_writable = False
            self._warn("is read-only")
        return environment

    def _warn(self, what: str, error: Optional[Exception] = None) -> None:
        detail = f" ({error})" if error is not None else ""
        logger.warning(
            "The activation cache %s %s%s; what it does not hold is computed again.", self.path, what, detail
        )


def _shared_environment(path: str, max_bytes: int) -> lmdb.Environment:
    if path in _environments:
        process_id, environment = _environments[path]
        if process_id == os.getpid():
            return environment
        environment.close()
    environment = _open(path, max_bytes)
    _environments[path] = (os.getpid(), environment)
    return environment


def _open(path: str, max_bytes: int) -> lmdb.Environment:
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    # Without a place for the lock file, LMDB can only read.
    is_readonly = not os.access(folder, os.W_OK) or (os.path.exists(path) and not os.access(path, os.W_OK))
    environment = lmdb.open(
        path,
        subdir=False,
        map_size=max(max_bytes, 1),
        readonly=is_readonly,
        lock=not is_readonly,
        # After a crash of the machine the last transaction may be lost, but the file stays whole.
        metasync=False,
        # An epoch reads in random order: reading ahead would read what is not wanted.
        readahead=False,
        meminit=False,
    )
    if not is_readonly:
        # Readers that were killed would keep their pages from being used again.
        environment.reader_check()
    num_bytes = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    if not is_readonly and os.path.getsize(path) < num_bytes:
        # Looking behind the end of a file cut short kills the process; zeros there only fail the checksum.
        os.truncate(path, num_bytes)
    return environment


def _begin(environment: lmdb.Environment, write: bool = False) -> lmdb.Transaction:
    try:
        return environment.begin(write=write, buffers=True)
    except lmdb.MapResizedError:
        # Another process has a higher limit, and has used it.
        environment.set_mapsize(0)
        return environment.begin(write=write, buffers=True)


def _payload(key: bytes, record: Record) -> Optional[numpy.ndarray]:
    if len(record) < _HEADER.size:
        return None
    num_bytes, checksum = _HEADER.unpack_from(record)
    payload = numpy.frombuffer(record, dtype=numpy.uint8, offset=_HEADER.size)
    if payload.nbytes != num_bytes or _checksum(key, payload) != checksum:
        return None
    return payload


def _copy_of_payload(key: bytes, record: Record) -> Optional[numpy.ndarray]:
    payload = _payload(key, record)
    return None if payload is None else payload.copy()


def _checksum(key: bytes, payload: numpy.ndarray) -> int:
    return zlib.crc32(payload.data, zlib.crc32(key))
