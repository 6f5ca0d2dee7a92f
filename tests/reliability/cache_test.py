"""
What happens to the activation cache on disk: damage of its files, killed processes, many processes, full disks. Never a
wrong vector, never a crash, and never more bytes than allowed.

Each child of these tests ends with 0 where all was well; a signal or a failed assertion gives another number.
"""

import os
import random
import resource
import shutil
import signal
import time
import traceback
from pathlib import Path

import numpy
import pytest
import torch

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights
from elmo_tasks.modules import disk_tier
from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.bilm_runner import BiLmRunner
from elmo_tasks.modules.disk_tier import FILE_NAME, INDEX_NAME, DiskTier
from elmo_tasks.modules.memory_tier import MemoryTier
from elmo_tasks.modules.sentence_batch import SentenceBatch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LIMIT = 10**6


def key(number):
    return b"sentence" + number.to_bytes(8, "little")


def payloads(numbers):
    """Of 100 to 3,000 bytes; the number says which."""
    drawn = {number: numpy.random.default_rng(number) for number in numbers}
    return {key(n): r.integers(0, 256, r.integers(100, 3000), dtype="uint8") for n, r in drawn.items()}


def check(found, stored):
    for name, payload in found.items():
        assert numpy.array_equal(payload, stored[name])


def child(function, *arguments):
    """Runs it in a child, and gives the process id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        function(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(process):
    """Exit code of a child, or the signal that ended it as a negative number."""
    _, status = os.waitpid(process, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def files(directory):
    return [os.path.join(directory, name) for name in (FILE_NAME, INDEX_NAME)]


def num_bytes(directory):
    return sum(os.path.getsize(path) for path in files(directory) if os.path.exists(path))


# Damages

STORED = range(60)


def flip_a_bit(path, drawn):
    with open(path, "r+b") as file:
        position = drawn.randrange(os.path.getsize(path))
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1 << drawn.randrange(8)]))


def cut(path, drawn):
    os.truncate(path, drawn.randrange(os.path.getsize(path)))


def overwrite_a_page(path, drawn):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(drawn.randrange(size))
        content = drawn.choice([bytes(4096), drawn.getrandbits(8 * 4096).to_bytes(4096, "little")])
        file.write(content[: size - file.tell()])


def remove(path, drawn):
    os.remove(path)


DAMAGES = [flip_a_bit, cut, overwrite_a_page, remove]


def damage_and_look(original, directory, damage, seeds):
    stored = payloads(STORED)
    more = payloads(range(100, 110))
    for seed in seeds:
        drawn = random.Random(seed)
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(original, directory)
        before = DiskTier(directory, LIMIT)  # of a process that has read the index already
        assert len(before) == len(stored)
        damage(drawn.choice(files(directory)), drawn)
        for tier in (DiskTier(directory, LIMIT), before):
            found = tier.get(stored)
            check(found, stored)
            if damage is flip_a_bit:
                assert len(found) >= len(stored) - 1
            tier.put(stored)
            tier.put(more)
            found = tier.get({**stored, **more})
            check(found, {**stored, **more})
            # All is there again, unless the index has nothing in it that could be told from another file.
            assert len(found) == len(stored) + len(more) or not tier._is_readable
            assert tier._is_readable or damage in (cut, overwrite_a_page)
        assert num_bytes(directory) <= LIMIT


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_mended_and_gives_no_wrong_vector(tmp_path, trials, damage):
    original = str(tmp_path / "original")
    DiskTier(original, LIMIT).put(payloads(STORED))
    seeds = range(50 * trials)
    process = child(damage_and_look, original, str(tmp_path / "damaged"), damage, seeds)
    assert ended(process) == 0
    print(f"{damage.__name__}: {len(seeds)} files")


# Processes


def write_and_read(directory, numbers, written=None, seconds=None):
    """Writes what is missing, in batches, and reads all so far; until the time is over, or once."""
    stored = payloads(numbers)
    tier = DiskTier(directory, LIMIT)
    end = time.monotonic() + (seconds or 0)
    while True:
        for start in range(0, len(numbers), 5):
            batch = {key(number): stored[key(number)] for number in numbers[start : start + 5]}
            tier.put({name: batch[name] for name in batch.keys() - tier.present(batch)})
            if written is not None:
                os.write(written, bytes([start // 5]))
            check(tier.get(stored), stored)
        if time.monotonic() >= end:
            return


def test_killed_process_loses_nothing_that_it_wrote(tmp_path, trials):
    numbers = list(range(200))
    stored = payloads(numbers)
    drawn = random.Random(0)
    directory = str(tmp_path / "cache")
    num_kills = 0
    for _ in range(5 * trials):
        shutil.rmtree(directory, ignore_errors=True)
        ours, theirs = os.pipe()
        shuffled = [drawn.sample(numbers, len(numbers)) for _ in range(2)]
        killed = child(write_and_read, directory, shuffled[0], theirs)
        other = child(write_and_read, directory, shuffled[1])
        time.sleep(drawn.uniform(0, 0.3))
        os.kill(killed, signal.SIGKILL)
        num_kills += ended(killed) == -signal.SIGKILL
        os.close(theirs)
        assert ended(other) == 0
        tier = DiskTier(directory, LIMIT)
        whole_batches = os.read(ours, 1000)
        os.close(ours)
        written = {key(n) for batch in whole_batches for n in shuffled[0][5 * batch : 5 * batch + 5]}
        found = tier.get(stored)
        # The other one has written the rest.
        assert found.keys() == stored.keys() >= written
        check(found, stored)
        assert os.path.getsize(tmp_path / "cache" / FILE_NAME) == sum(p.nbytes for p in stored.values())
    print(f"{num_kills} of {5 * trials} killed before their end")


def test_files_that_are_damaged_in_use_give_no_wrong_vector(tmp_path, trials):
    directory = str(tmp_path / "cache")
    numbers = list(range(100))
    write_and_read(directory, numbers)
    drawn = random.Random(0)
    workers = [child(write_and_read, directory, drawn.sample(numbers, 100), None, 0.5 * trials) for _ in range(3)]
    end = time.monotonic() + 0.5 * trials
    num_damages = 0
    while time.monotonic() < end:
        path = drawn.choice(files(directory))
        if os.path.exists(path) and os.path.getsize(path):
            drawn.choice(DAMAGES)(path, drawn)
            num_damages += 1
        time.sleep(0.01)
    assert [ended(worker) for worker in workers] == [0, 0, 0]
    assert num_bytes(directory) <= LIMIT
    print(f"{num_damages} damages in use")


def run_bilm(bilm, directory, sentences, expected):
    """A sentence at a time: products of other sizes round in another way."""
    runner = BiLmRunner(bilm, ActivationCache(directory, max_memory_bytes=0), max_tokens_per_forward=1)
    runner.fill_cache(sentence for sentence in sentences)
    for sentence in sentences:
        rows = runner.rows(SentenceBatch(torch.from_numpy(sentence[None].astype("int64"))))
        assert torch.equal(rows, expected[sentence.tobytes()])


def test_four_processes_with_two_precisions_share_a_cache(tmp_path):
    lines = (ROOT / "fixtures/text/heldout.txt").read_text().splitlines()[:12]
    arrays = [encode_sentences([line.split()])[0].numpy().astype("int16") for line in dict.fromkeys(lines)]
    drawn = random.Random(0)
    directory = str(tmp_path / "cache")
    processes = []
    for precision in ("float32", "bfloat16"):
        bilm = BiLm(BiLmOptions.from_file(str(ROOT / "fixtures/bilm/options.json"))).requires_grad_(False).eval()
        load_weights(bilm, str(ROOT / "fixtures/bilm/weights.hdf5"))
        bilm.precision = precision
        plain = BiLmRunner(bilm, None, max_tokens_per_forward=1)
        batches = {array.tobytes(): SentenceBatch(torch.from_numpy(array[None].astype("int64"))) for array in arrays}
        expected = {name: plain.rows(batch) for name, batch in batches.items()}
        for _ in range(2):
            shuffled = drawn.sample(arrays, len(arrays))
            processes.append(child(run_bilm, bilm, directory, shuffled, expected))
    assert [ended(process) for process in processes] == [0] * 4
    assert len(DiskTier(directory, LIMIT)) == 2 * len(arrays)


# Budgets


def write_only(directory, numbers, limit):
    tier = DiskTier(directory, limit)
    for number in numbers:
        tier.put(payloads([number]))
    stored = payloads(numbers)
    check(tier.get(stored), stored)


def test_four_writers_keep_the_budget_of_the_disk(tmp_path):
    directory = str(tmp_path)
    limit = 200_000
    writers = [child(write_only, directory, range(100 * n, 100 * n + 100), limit) for n in range(4)]
    sizes = []
    while len(sizes) < 100:
        sizes.append(num_bytes(directory))
        time.sleep(0.01)
    assert [ended(writer) for writer in writers] == [0] * 4
    assert max(*sizes, num_bytes(directory)) <= limit
    assert num_bytes(directory) > limit - 3_100


def write_until_the_disk_is_full(directory, num_bytes_of_a_file):
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes_of_a_file, resource.RLIM_INFINITY))
    messages = []
    disk_tier.logger.addFilter(lambda record: messages.append(record.getMessage()))
    stored = payloads(range(100))
    tier = DiskTier(directory, LIMIT)
    for number in range(0, 100, 5):
        tier.put({key(n): stored[key(n)] for n in range(number, number + 5)})
    assert len(messages) == 1, messages
    assert "cannot be written" in messages[0]
    check(tier.get(stored), stored)


def test_full_disk_costs_a_warning_and_no_record_before_it(tmp_path, trials):
    stored = payloads(range(100))
    drawn = random.Random(0)
    for trial in range(5 * trials):
        directory = str(tmp_path / str(trial))
        # Below 4,000 the index is what does not fit.
        size = drawn.choice([drawn.randrange(1, 4_000), drawn.randrange(4_000, 100_000)])
        assert ended(child(write_until_the_disk_is_full, directory, size)) == 0, size
        tier = DiskTier(directory, LIMIT)
        check(tier.get(stored), stored)
        tier.put(stored)  # there is room again
        assert tier.get(stored).keys() == stored.keys()
        shutil.rmtree(directory)


def test_memory_holds_no_more_than_its_budget(trials):
    drawn = random.Random(0)
    for _ in range(trials):
        budget = drawn.randrange(1, 100_000)
        tier = MemoryTier(budget)
        batch = torch.zeros(64, 64)
        for number in range(200):
            # Parts of a batch, which must not keep all of it.
            tier.put(key(number), batch[: drawn.randrange(1, 64), : drawn.randrange(1, 64)])
        kept = [entry for entry in (tier.get(key(n), torch.device("cpu")) for n in range(200)) if entry is not None]
        assert sum(entry.untyped_storage().nbytes() for entry in kept) == tier.num_bytes <= budget
