"""The lasting tier of the activation cache: checksummed records in two files that processes share."""

import contextlib
import io
import logging
import os
import shutil
import struct
import zlib
from typing import BinaryIO, Dict, Iterable, List, Optional, Set, cast

import numpy
from filelock import FileLock

logger = logging.getLogger(__name__)

FILE_NAME = "activations.data"
INDEX_NAME = "activations.index"
_LOCK_NAME = "activations.lock"

# Key; place and length of the payload in the data file, in bytes; a checksum over key and payload; one over all these.
_ENTRY = struct.Struct("<16sQQII")
_CHECKSUM = struct.Struct("<I")

# Of a writer that waits for another one.
_SECONDS_BETWEEN_TRIES = 0.005


class DiskTier:
    """
    Keeps arrays of bytes in a data file, and in an index beside it where they are.

    One thread at a time uses a tier. Several processes may use the files at once: writers follow one another,
    readers wait for nobody. A payload is written before its entry in the index, so that a process killed while it
    writes leaves nothing that counts. Entries have one size and a checksum each, and payloads have one: whatever
    happens to the files, in use or not, what is damaged counts as absent and is written anew. A disk that is full,
    read-only or broken costs one warning, and what works without it goes on.

    # Parameters

    directory : `str`
        Folder of the files, made where it is missing. On a disk of this machine: locks may not work over a network.
    max_bytes : `int`
        Both files together never grow beyond this. They take only what they hold.
    """

    def __init__(self, directory: str, max_bytes: int) -> None:
        self._folder = os.path.realpath(directory)
        self.path = os.path.join(self._folder, FILE_NAME)
        self._index_path = os.path.join(self._folder, INDEX_NAME)
        self._max_bytes = max_bytes
        self._is_readable = True
        self._is_writable = True
        # What was read of the index; its file, by its number in the file system; how much; and where the data end.
        self._entries: Dict[bytes, bytes] = {}
        self._index_number: Optional[int] = None
        self._num_index_bytes = 0
        self._num_data_bytes = 0

    def __len__(self) -> int:
        """Keys that have a record, also those that other processes wrote."""
        self._refresh()
        return len(self._entries)

    @property
    def num_free_bytes(self) -> int:
        """Bytes that the limit and the disk leave; 0 once a warning has said that writing has ended."""
        if not self._can_write() or not self._refresh():
            return 0
        num_bytes_on_disk = shutil.disk_usage(self._folder).free
        return max(0, min(self._max_bytes - self._num_data_bytes - self._num_index_bytes, num_bytes_on_disk))

    def present(self, keys: Iterable[bytes]) -> Set[bytes]:
        """
        # Returns

        `Set[bytes]`
            The keys that have a record. Damage shows only when it is read.
        """
        keys = set(keys)
        if not self._is_readable or not (keys <= self._entries.keys() or self._refresh()):
            return set()
        return keys & self._entries.keys()

    def get(self, keys: Iterable[bytes]) -> Dict[bytes, numpy.ndarray]:
        """
        # Returns

        `Dict[bytes, numpy.ndarray]`
            The payload, uint8, of each key that has an undamaged record.
        """
        found: Dict[bytes, numpy.ndarray] = {}
        present = self.present(keys)
        if not present:
            return found
        try:
            with open(self.path, "rb", buffering=0) as data_file:
                for key in present:
                    payload = self._payload(data_file, key)
                    if payload is not None:
                        found[key] = payload
        except FileNotFoundError:  # somebody has removed it; the next writer makes it anew
            pass
        except OSError as error:
            self._give_up("cannot be read", error)
        return found

    def put(self, payloads: Dict[bytes, numpy.ndarray]) -> None:
        """
        Writes the payloads, as far as there is room. A key that another process wrote meanwhile stays as it is, unless
        its record is damaged.

        # Parameters

        payloads : `Dict[bytes, numpy.ndarray]`
            uint8 arrays, under keys of 16 bytes.
        """
        if not self._can_write():
            return
        try:
            with FileLock(os.path.join(self._folder, _LOCK_NAME)).acquire(poll_interval=_SECONDS_BETWEEN_TRIES):
                if self._refresh():
                    self._write(payloads)
        except OSError as error:
            self._is_writable = False
            self._warn("cannot be written", error)

    def _write(self, payloads: Dict[bytes, numpy.ndarray]) -> None:
        entries: List[bytes] = []
        end = self._num_data_bytes
        with _opened_to_write(self.path) as data_file, _opened_to_write(self._index_path) as index_file:
            try:
                for key, payload in payloads.items():
                    if key in self._entries and self._payload(data_file, key) is not None:
                        continue
                    num_index_bytes = self._num_index_bytes + _ENTRY.size * (len(entries) + 1)
                    if end + payload.nbytes + num_index_bytes > self._max_bytes:
                        self._is_writable = False
                        self._warn(f"has reached its limit of {self._max_bytes:,} bytes")
                        break
                    _write_at(data_file, end, payload.data)
                    entries.append(_pack(key, end, payload))
                    end += payload.nbytes
                _write_at(index_file, self._num_index_bytes, memoryview(b"".join(entries)))
            except OSError:
                # What the full disk took of a payload, it gives back.
                with contextlib.suppress(OSError):
                    data_file.truncate(end)
                raise
        self._refresh()

    def _payload(self, data_file: BinaryIO, key: bytes) -> Optional[numpy.ndarray]:
        _, offset, num_bytes, checksum, _ = _ENTRY.unpack(self._entries[key])
        if offset + num_bytes > os.fstat(data_file.fileno()).st_size:
            return None
        payload = numpy.empty(num_bytes, dtype=numpy.uint8)
        data_file.seek(offset)
        is_whole = cast(io.RawIOBase, data_file).readinto(payload.data) == num_bytes
        return payload if is_whole and _checksum(key, payload) == checksum else None

    def _refresh(self) -> bool:
        """Reads what is new in the index. Whether that is possible."""
        if self._is_readable:
            try:
                self._read_index()
            except FileNotFoundError:  # nobody has written yet
                self._forget()
            except OSError as error:
                self._give_up("cannot be opened", error)
        return self._is_readable

    def _read_index(self) -> None:
        status = os.stat(self._index_path)
        num_bytes = status.st_size // _ENTRY.size * _ENTRY.size
        if status.st_ino != self._index_number or num_bytes < self._num_index_bytes:
            self._forget()
        if num_bytes == self._num_index_bytes:
            return
        with open(self._index_path, "rb") as index_file:
            index_file.seek(self._num_index_bytes)
            contents = index_file.read(num_bytes - self._num_index_bytes)
        # It may have been cut off just now.
        contents = contents[: len(contents) // _ENTRY.size * _ENTRY.size]
        for start in range(0, len(contents), _ENTRY.size):
            entry = contents[start : start + _ENTRY.size]
            key, offset, length, _, checksum = _ENTRY.unpack(entry)
            if zlib.crc32(entry[: -_CHECKSUM.size]) == checksum:
                self._entries[key] = entry
                self._num_data_bytes = max(self._num_data_bytes, offset + length)
        if not self._entries:
            raise OSError("it is no index of activations, or all of it is damaged; remove it")
        self._index_number = status.st_ino
        self._num_index_bytes += len(contents)

    def _forget(self) -> None:
        self._entries.clear()
        self._index_number = None
        self._num_index_bytes = self._num_data_bytes = 0

    def _can_write(self) -> bool:
        if self._is_writable:
            try:
                os.makedirs(self._folder, exist_ok=True)
            except OSError as error:
                self._give_up("cannot be opened", error)
            else:
                paths = [path for path in (self._folder, self.path, self._index_path) if os.path.exists(path)]
                if not all(os.access(path, os.W_OK) for path in paths):
                    self._is_writable = False
                    self._warn("is read-only")
        return self._is_writable

    def _give_up(self, what: str, error: OSError) -> None:
        self._is_readable = self._is_writable = False
        self._warn(what, error)

    def _warn(self, what: str, error: Optional[Exception] = None) -> None:
        detail = f" ({error})" if error is not None else ""
        logger.warning(
            "The activation cache %s %s%s; what it does not hold is computed again.", self.path, what, detail
        )


def _opened_to_write(path: str) -> BinaryIO:
    # Without a buffer: nothing is written late, nothing is read twice.
    return cast(BinaryIO, os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0))


def _write_at(file: BinaryIO, offset: int, content: memoryview) -> None:
    file.seek(offset)
    while content:
        content = content[file.write(content) :]


def _pack(key: bytes, offset: int, payload: numpy.ndarray) -> bytes:
    entry = _ENTRY.pack(key, offset, payload.nbytes, _checksum(key, payload), 0)[: -_CHECKSUM.size]
    return entry + _CHECKSUM.pack(zlib.crc32(entry))


def _checksum(key: bytes, payload: numpy.ndarray) -> int:
    return zlib.crc32(payload.data, zlib.crc32(key))
