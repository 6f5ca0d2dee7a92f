import logging
import multiprocessing
import os
import resource
import shutil
import signal
import zlib

import numpy
import pytest

from elmo_tasks.modules import disk_tier
from elmo_tasks.modules.disk_tier import FILE_NAME, INDEX_NAME, DiskTier


def key(number: int) -> bytes:
    return b"sentence" + number.to_bytes(8, "little")


def payloads(numbers, num_bytes: int = 20_000):
    return {
        key(number): numpy.random.default_rng(number).integers(0, 256, num_bytes).astype("uint8") for number in numbers
    }


def warnings_in(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_full_disk_tier_warns_once_and_still_reads(tmp_path, caplog):
    tier = DiskTier(str(tmp_path), 200_000)
    tier.put(payloads(range(5)))
    tier.put(payloads(range(5, 20)))
    tier.put(payloads(range(20, 25)))
    assert len(warnings_in(caplog)) == 1
    assert "limit of 200,000 bytes" in warnings_in(caplog)[0]
    assert tier.num_free_bytes == 0
    assert set(tier.get(map(key, range(25)))) == set(map(key, range(9)))
    assert 180_000 < os.path.getsize(tmp_path / FILE_NAME) + os.path.getsize(tmp_path / INDEX_NAME) <= 200_000


def test_directory_that_cannot_be_made_warns_once(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    tier = DiskTier(str(tmp_path / "file" / "cache"), 10**6)
    for _ in range(2):
        tier.put(payloads(range(2)))
        assert tier.get([key(0)]) == {}
    assert len(warnings_in(caplog)) == 1
    assert "cannot be opened" in warnings_in(caplog)[0]


def test_file_that_is_no_cache_warns_once_and_is_left_alone(tmp_path, caplog):
    (tmp_path / INDEX_NAME).write_bytes(b"something else " * 1000)
    tier = DiskTier(str(tmp_path), 10**6)
    tier.put(payloads(range(2)))
    assert tier.get([key(0)]) == {}
    assert len(warnings_in(caplog)) == 1
    assert (tmp_path / INDEX_NAME).read_bytes() == b"something else " * 1000
    assert not (tmp_path / FILE_NAME).exists()


def test_damaged_record_counts_as_absent_and_is_written_anew(tmp_path):
    stored = payloads(range(3))
    DiskTier(str(tmp_path), 10**6).put(stored)
    contents = bytearray((tmp_path / FILE_NAME).read_bytes())
    contents[contents.index(stored[key(1)].tobytes()[:64]) + 17_000] ^= 1
    (tmp_path / FILE_NAME).write_bytes(contents)
    tier = DiskTier(str(tmp_path), 10**6)
    assert set(tier.get(stored)) == {key(0), key(2)}
    tier.put(stored)
    assert numpy.array_equal(tier.get(stored)[key(1)], stored[key(1)])


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_truncated_file_loses_records_but_never_gives_wrong_ones(tmp_path, share):
    stored = payloads(range(20))
    DiskTier(str(tmp_path), 10**7).put(stored)
    os.truncate(tmp_path / FILE_NAME, int(share * os.path.getsize(tmp_path / FILE_NAME)) // 4096 * 4096)
    found = DiskTier(str(tmp_path), 10**7).get(stored)
    assert len(found) < len(stored)
    for name, payload in found.items():
        assert numpy.array_equal(payload, stored[name])


def test_index_that_is_cut_off_while_it_is_read_loses_its_last_record_only(tmp_path, monkeypatch):
    stored = payloads(range(3))
    DiskTier(str(tmp_path), 10**6).put(stored)
    stat = os.stat

    def cut_off_after(path, *arguments, **options):
        status = stat(path, *arguments, **options)
        if str(path).endswith(INDEX_NAME):
            os.truncate(path, 3 * 40 - 7)
        return status

    monkeypatch.setattr(os, "stat", cut_off_after)
    tier = DiskTier(str(tmp_path), 10**6)
    assert set(tier.get(stored)) == set(list(stored)[:2])
    monkeypatch.undo()
    tier.put(stored)
    assert set(DiskTier(str(tmp_path), 10**6).get(stored)) == set(stored)


def test_record_under_another_key_counts_as_absent(tmp_path):
    tier = DiskTier(str(tmp_path), 10**6)
    tier.put(payloads([0]))
    with open(tmp_path / INDEX_NAME, "ab") as index_file:
        entry = key(1) + tier._entries[key(0)][16:-4]
        index_file.write(entry + zlib.crc32(entry).to_bytes(4, "little"))
    assert len(tier) == 2
    assert set(tier.get([key(0), key(1)])) == {key(0)}


def test_child_of_a_fork_uses_the_file_beside_its_parent(tmp_path):
    tier = DiskTier(str(tmp_path), 10**7)
    tier.put(payloads([0]))
    child = multiprocessing.get_context("fork").Process(target=tier.put, args=(payloads([1]),))
    child.start()
    child.join()
    assert child.exitcode == 0
    tier.put(payloads([2]))
    found = tier.get(map(key, range(3)))
    assert set(found) == set(map(key, range(3)))


def write_all(directory, numbers, barrier):
    tier = DiskTier(directory, 10**8)
    barrier.wait()
    for number in numbers:
        tier.put(payloads([number]))


def test_two_writers_fill_one_file_without_doubles(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    writers = [
        context.Process(target=write_all, args=(str(tmp_path), numbers, barrier))
        for numbers in (range(60), range(20, 80))
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    tier = DiskTier(str(tmp_path), 10**8)
    found = tier.get(map(key, range(80)))
    assert all(numpy.array_equal(found[name], payload) for name, payload in payloads(range(80)).items())
    assert len(tier) == 80
    # No payload was written twice.
    assert os.path.getsize(tmp_path / FILE_NAME) == 80 * 20_000


def write_until_killed(directory, written):
    tier = DiskTier(directory, 10**9)
    number = 0
    while True:
        tier.put(payloads(range(number, number + 5)))
        number += 5
        written.value = number


def test_killed_writer_leaves_a_whole_file(tmp_path):
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        written = context.Value("i", 0)
        writer = context.Process(target=write_until_killed, args=(str(tmp_path), written))
        writer.start()
        while written.value < 10:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        tier = DiskTier(str(tmp_path), 10**9)
        found = tier.get(map(key, range(written.value)))
        assert set(found) == set(map(key, range(written.value)))
        assert all(numpy.array_equal(payload, found[name]) for name, payload in payloads(range(10)).items())
        tier.put(payloads([10**6]))
        assert set(tier.get([key(10**6)])) == {key(10**6)}


def test_read_only_directory_warns_once_and_still_reads(tmp_path, caplog, monkeypatch):
    DiskTier(str(tmp_path), 10**7).put(payloads([0]))
    # Permissions alone would not stop a test that runs as root.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    tier = DiskTier(str(tmp_path), 10**7)
    tier.put(payloads([1]))
    tier.put(payloads([2]))
    assert set(tier.get(map(key, range(3)))) == {key(0)}
    assert len(warnings_in(caplog)) == 1
    assert "is read-only" in warnings_in(caplog)[0]


def fill_beyond_the_size_of_a_file(directory, connection):
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    messages = []
    disk_tier.logger.addFilter(lambda record: messages.append(record.getMessage()))
    tier = DiskTier(directory, 10**8)
    for number in range(40):
        tier.put(payloads([number]))
    connection.send((set(tier.get(map(key, range(40)))), messages))


def test_full_disk_warns_once_and_keeps_what_was_written(tmp_path):
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=fill_beyond_the_size_of_a_file, args=(str(tmp_path), theirs))
    child.start()
    found, messages = ours.recv()
    child.join()
    assert len(messages) == 1
    assert "cannot be written" in messages[0]
    assert 5 < len(found) < 20
    assert set(DiskTier(str(tmp_path), 10**8).get(found)) == found


def test_two_limits_for_one_file_are_no_trouble(tmp_path):
    DiskTier(str(tmp_path), 10**5).put(payloads([0]))
    context = multiprocessing.get_context("fork")
    child = context.Process(target=put_with_another_limit, args=(str(tmp_path),))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert set(DiskTier(str(tmp_path), 10**5).get(map(key, range(30)))) == set(map(key, range(30)))


def put_with_another_limit(directory):
    DiskTier(directory, 10**8).put(payloads(range(30)))


def test_room_is_what_the_limit_and_the_disk_leave(tmp_path, monkeypatch):
    tier = DiskTier(str(tmp_path), 10**6)
    before = tier.num_free_bytes
    tier.put(payloads([0], num_bytes=100_000))
    assert 100_000 <= before - tier.num_free_bytes < 120_000
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9 - 5000, 5000))
    assert tier.num_free_bytes == 5000
