"""
Commands that are killed with `kill -9`, again and again at random moments, and then continued as their user would: the
end is that of a run that nothing interrupted.

A moment is a time, anywhere between the imports and the end, or one of the operations on files in the folder of the
run, before it happens: between two of these lie the states that a time seldom hits.

What is not compared: durations and memory. After a checkpoint within an epoch, the training metrics of that epoch
besides its loss: AllenNLP keeps the counts of a metric in the model, where no checkpoint sees them
(`ResumptionCallback`). Everything else is equal: weights and figures within 1e-6, since batches in another order round
in another way, and other files to the last byte.
"""

import contextlib
import errno
import functools
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest
import torch
from allennlp.commands import main
from allennlp.models.archival import load_archive
from allennlp.training.callbacks import TrainerCallback

import elmo_tasks  # noqa: F401 imported once, for all commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BILM = str(ROOT / "fixtures/bilm")
FILE_OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
# The tail of a run's log is of one process, and what trained it is of that process too.
LOGS = {"out.log", "machine.json", "meta.json", ".lock"}
ROOM = 60_000
SIZE_OF_SMALL_DISK = 64 << 20
RECORD = "RECORD_FOR_INTERRUPTION_TEST"


@TrainerCallback.register("record_batches_for_interruption_test")
class RecordBatches(TrainerCallback):
    """Adds a line for each batch that a run was trained on to a file that outlives its folder."""

    def on_batch(self, trainer, *args, is_training=False, **kwargs):
        epoch, batch_number = args[3], args[4]
        if is_training:
            with open(os.environ[RECORD], "a") as record:
                run = os.path.relpath(self.serialization_dir, os.path.splitext(os.environ[RECORD])[0])
                record.write(f"{run} {epoch} {batch_number}\n")


def kill_this_process():
    os.kill(os.getpid(), signal.SIGKILL)


def limit_files():
    """
    Stands for a full disk: no file grows beyond what logs and metrics need. The error is another one, EFBIG instead of
    ENOSPC, and comes from the same calls of the system.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))


class Command:
    """
    A command of `allennlp`, run in children of this process, which has paid for the imports.

    # Parameters

    folder : `Path`
        All that it writes; file operations are counted here.
    arguments : `List[str]`
        Of the first try.
    again : `List[str]`
        What is added to them once there is something to continue in the folder.
    """

    def __init__(self, folder, arguments, again=()):
        folder.mkdir(parents=True)
        self.folder = folder
        self.log = folder.with_suffix(".log")
        self.record = folder.with_suffix(".record")
        self._operations = folder.with_suffix(".operations")
        self._arguments = arguments
        self._again = again
        self.num_tries = 0

    def run(self):
        """Runs to the end. Gives its time in seconds, and how many operations on files it had."""
        start = time.monotonic()
        assert self.outcome(self.begin()) == 0, self.log.read_text()[-5000:]
        return time.monotonic() - start, int(self._operations.read_text())

    def killed(self, moment):
        """Whether the kill came before the end."""
        child = self.begin(moment if isinstance(moment, int) else None, kill_this_process)
        if isinstance(moment, float):
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
        outcome = self.outcome(child)
        assert outcome in (0, -signal.SIGKILL), self.log.read_text()[-5000:]
        return outcome != 0

    def meets_full_disk(self, number, fill, error):
        """Whether it ends in an error, where the disk is full from a file operation on."""
        log_before = self.log.stat().st_size if self.log.exists() else 0
        outcome = self.outcome(self.begin(number, fill))
        log = self.log.read_text()[log_before:]
        assert outcome in (0, 1), log[-5000:]
        assert "--- Logging error ---" not in log
        if outcome == 1:
            expected = rf"OSError: \[Errno {error}\] .* cannot be written.*{os.strerror(error)}.*"
            assert re.fullmatch(expected, log.splitlines()[-1]), log
        return outcome != 0

    def outcome(self, child):
        """Waits for it. Its exit code, or the signal that ended it as a negative number."""
        _, status = os.waitpid(child, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def begin(self, at_operation=None, happens=None):
        """Starts it, and gives its process id. Before an operation on files, something may happen to it."""
        self.num_tries += 1
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            again = self._again if any(self.folder.iterdir()) else ()
            sys.argv = ["allennlp", *map(str, [*self._arguments, *again])]
            os.chdir(ROOT)
            os.environ[RECORD] = str(self.record)
            counter = self._count_operations(at_operation, happens)
            main(prog="allennlp")
            self._operations.write_text(str(next(counter)))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _count_operations(self, number, happens):
        counter = iter(range(sys.maxsize))
        prefix = str(self.folder) + os.sep

        def hook(event, arguments):
            is_ours = event in FILE_OPERATIONS and str(arguments[0]).startswith(prefix)
            if is_ours and next(counter) == number:
                happens()

        sys.addaudithook(hook)
        return counter


def figures(path, besides=()):
    """The content of a JSON file of metrics under flat names, without what is measured of the machine."""

    def flat(name, value):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
        if items is None:
            yield name, value
        else:
            for key, part in items:
                yield from flat(f"{name}/{key}", part)

    hidden = ("duration", "memory_MB", "tokens_per_second", *besides)
    return {name: value for name, value in flat("", json.loads(path.read_text())) if not name.endswith(hidden)}


def files_in(folder):
    paths = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {path for path in paths if os.path.basename(path) not in LOGS and "activations" not in path}


def check_runs(one, whole, what, besides=(), most_repeated=0):
    """Every run below two folders has ended in the same way, and no batch was trained on without need."""
    assert files_in(one.folder) == files_in(whole.folder), what
    for name in sorted(files_in(whole.folder)):
        mine, other = one.folder / name, whole.folder / name
        if "metrics" in name or "cross_validation" in name:
            check_figures(figures(mine, besides), figures(other, besides), (what, name))
        elif name.endswith("best.th"):
            check_weights(torch.load(mine), torch.load(other), f"{what}, {name}")
        elif name.endswith("model.tar.gz"):
            check_weights(*(load_archive(path).model.state_dict() for path in (mine, other)), f"{what}, {name}")
        elif name.endswith("config.json"):
            texts = (
                path.read_text().replace(str(folder), "")
                for path, folder in ((mine, one.folder), (other, whole.folder))
            )
            assert len(set(texts)) == 1, (what, name)
        elif name.endswith((".json", ".txt", ".hdf5")):
            assert mine.read_bytes() == other.read_bytes(), (what, name)
    batches, expected = (Counter(command.record.read_text().splitlines()) for command in (one, whole))
    assert set(batches) == set(expected), what
    repeated = sum(batches.values()) - len(expected)
    assert repeated <= most_repeated * (one.num_tries - 1), (what, repeated)


def check_figures(mine, other, what):
    assert mine.keys() == other.keys(), what
    for name, value in other.items():
        assert mine[name] == (pytest.approx(value, rel=0, abs=1e-6) if isinstance(value, float) else value), (
            what,
            name,
        )


def check_weights(mine, other, what):
    assert mine.keys() == other.keys(), what
    for name, tensor in other.items():
        torch.testing.assert_close(
            mine[name], tensor, rtol=0, atol=1e-6, msg=lambda text, n=name: f"{what}, {n}: {text}"
        )


MR = {
    "trainer.num_epochs": 4,
    # It stops by itself, one epoch early.
    "trainer.patience": 1,
    "trainer.callbacks": [{"type": "record_batches_for_interruption_test"}],
    "dataset_reader.max_instances": 64,
    "data_loader.batch_sampler.batch_size": 8,
    "model.text_field_embedder.token_embedders.elmo.pretrained": BILM,
}


CROSS_VALIDATION = {
    **MR,
    "trainer.num_epochs": 2,
    "dataset_reader.max_instances": None,
    "data_loader.batch_sampler.batch_size": 32,
}

PRETRAINING = {
    "train_data_path": "fixtures/text/train.txt#:30",
    "validation_data_path": "fixtures/text/heldout.txt#:10",
    "vocabulary.data_path": "fixtures/text/train.txt#:30",
    "vocabulary.max_words": 300,
    "dataset_reader.mode": "carry",
    "dataset_reader.unroll_steps": 10,
    "data_loader.batch_size": 4,
    "distributed": None,
    "model.network.options": {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": 8,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": 16,
            "n_layers": 2,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": [[1, 8], [2, 8]],
            "n_highway": 1,
            "embedding": {"dim": 4},
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
    },
    "model.softmax.num_samples": 50,
    "model.dropout": 0.2,
    "model.precision": "float32",
    "trainer.num_epochs": 2,
    "trainer.callbacks": [{"type": "record_batches_for_interruption_test"}, {"type": "export_bilm"}],
    "trainer.checkpointer.save_every_num_batches": 3,
    "trainer.learning_rate_scheduler.warmup_steps": 2,
}
# Of an epoch that had a checkpoint within.
TRAINING_METRICS = ["training_perplexity", "training_forward_perplexity", "training_backward_perplexity"]


def training(folder):
    overrides = {**MR, "model.text_field_embedder.token_embedders.elmo.cache.directory": str(folder / "activations")}
    arguments = ["train", "training_configs/mr.jsonnet", "-s", folder / "run", "-o", json.dumps(overrides)]
    return Command(folder, arguments, ["--recover"])


def pretraining(folder):
    """With streams that carry their states, dropout, a sampled softmax, checkpoints in the epoch, and the export."""
    arguments = ["train", "training_configs/pretrain/mini.jsonnet", "-s", folder / "run"]
    return Command(folder, [*arguments, "-o", json.dumps(PRETRAINING)], ["--recover"])


def cross_validation(folder):
    arguments = ["cross-validate", "training_configs/mr.jsonnet", "-s", folder / "study", "--folds", "2"]
    return Command(folder, [*arguments, "--data", "fixtures/mr", "-o", json.dumps(CROSS_VALIDATION)])


def vectors(folder, suffix):
    sentences = folder.parent / "sentences.txt"
    lines = (ROOT / "fixtures/text/heldout.txt").read_text().splitlines(keepends=True)
    sentences.write_text("".join(lines[:40]))
    arguments = ["elmo", sentences, folder / f"vectors.{suffix}"]
    return Command(folder, [*arguments, "--pretrained", BILM, "--max-tokens", "32"])


def check_files(one, whole, what):
    assert os.listdir(one.folder) == os.listdir(whole.folder), what
    for path in one.folder.iterdir():
        assert path.read_bytes() == (whole.folder / path.name).read_bytes(), what


# For each: the command, and how two ends are compared; at most, the batches since a checkpoint are trained on again.
CASES = {
    "training": (training, functools.partial(check_runs, most_repeated=8)),
    "pretraining": (pretraining, functools.partial(check_runs, most_repeated=4, besides=TRAINING_METRICS)),
    "cross-validation": (cross_validation, functools.partial(check_runs, most_repeated=13)),
    "hdf5": (functools.partial(vectors, suffix="hdf5"), check_files),
    "npz": (functools.partial(vectors, suffix="npz"), check_files),
}


class Case(NamedTuple):
    """A command, and a whole run of it."""

    name: str
    prepare: Callable[[], Command]
    """Makes it in a new folder."""
    check: Callable[[Command, Any], None]
    """Compares its end with that of the whole run, and says at which moments it was interrupted."""
    duration_s: float
    num_operations: int
    """On files."""

    def moment(self, drawn):
        """A number of seconds or of operations at random."""
        return drawn.choice([drawn.uniform(0, self.duration_s), drawn.randrange(self.num_operations)])


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    prepare, check = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    whole = prepare(folder / "whole")
    duration_s, num_operations = whole.run()

    def check_with_whole(command, moments):
        check(command, whole, f"{request.param} at {moments}, see {command.log}")
        shutil.rmtree(command.folder, ignore_errors=True)  # a disk of its own stays

    numbers = itertools.count()
    return Case(
        request.param,
        lambda: prepare(folder / str(next(numbers))),
        check_with_whole,
        duration_s,
        num_operations,
    )


def test_killed_command_ends_as_if_nothing_had_happened(case, trials):
    """Killed once, at a time and at a file operation in turn."""
    drawn = random.Random(case.name)
    num_kills = 0
    for trial in range(trials):
        command = case.prepare()
        moment = drawn.randrange(case.num_operations) if trial % 2 else drawn.uniform(0, case.duration_s)
        if command.killed(moment):
            num_kills += 1
            command.run()
        case.check(command, moment)
    print(f"{case.name}: {num_kills} kills of {trials}; a run has {case.duration_s:.1f} s")


def test_command_that_is_killed_again_and_again_gets_through(case, trials):
    """Each time within the time of a whole run, so that it takes several tries."""
    drawn = random.Random(case.name)
    for _ in range(1 + trials // 5):
        command = case.prepare()
        moments = []
        while not moments or command.killed(moments[-1]):
            moments.append(case.moment(drawn))
        case.check(command, moments)
        print(f"{case.name}: {command.num_tries} tries")


@contextlib.contextmanager
def no_disk(folder):
    yield limit_files, lambda: None


@contextlib.contextmanager
def small_disk(folder):
    """
    For `with`: the folder is a disk of its own; gives what fills it, and what makes room again.

    Only who may mount can have one; for everybody else the case with `limit_files` stands in.
    """
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_OF_SMALL_DISK}", "tmpfs", folder]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting a disk is not allowed here: {done.stderr.strip()}")
    filler = folder / "filler"

    def fill():
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    try:
        yield fill, lambda: filler.unlink(missing_ok=True)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize(
    ("disk", "error"), [(no_disk, errno.EFBIG), (small_disk, errno.ENOSPC)], ids=["limit of files", "small disk"]
)
def test_full_disk_ends_in_one_sentence_and_the_run_goes_on_when_there_is_room(case, trials, disk, error):
    drawn = random.Random(case.name)
    num_errors = 0
    for _ in range(trials):
        command = case.prepare()
        number = drawn.randrange(case.num_operations)
        with disk(command.folder) as (fill, make_room):
            if command.meets_full_disk(number, fill, error):
                num_errors += 1
                make_room()
                command.run()
            make_room()
            case.check(command, number)
    print(f"{case.name}: {num_errors} errors of {trials}")
