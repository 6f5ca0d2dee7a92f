"""
Training in one, two and four processes, and on two "nodes", of the same batches: all arrive at the same.

Without a shuffle and without dropout, a step of four processes on two rows each is the step of one process on eight.
"""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import torch
from allennlp.common.util import find_open_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NUM_ROWS = 16
NUM_ROWS_OF_A_STEP = 8
NUM_EPOCHS = 3


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("processes") / "rows.txt"
    path.write_text("".join(f"row number {i} ._!_{i % 3 % 2}\n" for i in range(NUM_ROWS)))
    return path


@pytest.fixture(scope="module")
def start(environment, rows):
    """Starts a training; all its processes are in a session of their own."""

    def start(directory, num_processes, distributed, *arguments, **variables):
        overrides = {
            "train_data_path": str(rows),
            "validation_data_path": str(rows),
            "test_data_path": str(rows),
            "data_loader": {"batch_size": NUM_ROWS_OF_A_STEP // num_processes},
            "validation_data_loader": {"batch_size": NUM_ROWS_OF_A_STEP // num_processes},
            "model.text_field_embedder.token_embedders.elmo.dropout": 0.0,
            "trainer.num_epochs": NUM_EPOCHS,
            "trainer.callbacks": [{"type": "record_for_test"}, {"type": "kill_one_for_test"}],
            **({"distributed": distributed} if distributed else {}),
        }
        command = [sys.executable, "-m", "allennlp", "train", "training_configs/mr.jsonnet", "-s", str(directory)]
        command += ["-o", json.dumps(overrides), "--include-package", "observers", *map(str, arguments)]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**environment, "ELMO_TASKS_BILM": "fixtures/bilm", "OMP_NUM_THREADS": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return start


def finish(process):
    """What it printed; its failure is an error."""
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output[-5000:]
    return output


@pytest.fixture(scope="module")
def one(start, rows):
    directory = rows.parent / "one"
    finish(start(directory, 1, None))
    return directory


@pytest.fixture(scope="module")
def four(start, rows, complaints):
    directory = rows.parent / "four"
    output = finish(start(directory, 4, {"cuda_devices": [-1] * 4}))
    assert complaints(output) == []
    return directory


@pytest.fixture(scope="module")
def start_nodes(start):
    """Starts two nodes with one process each, which meet at a port: the same one when they recover."""
    port = find_open_port()

    def start_nodes(directories, *arguments, **variables):
        distributed = {
            "cuda_devices": [-1],
            "num_nodes": 2,
            "primary_address": "127.0.0.1",
            "primary_port": port,
        }
        return [
            start(folder, 2, distributed, "--node-rank", rank, *arguments, **variables)
            for rank, folder in enumerate(directories)
        ]

    return start_nodes


@pytest.fixture(scope="module")
def nodes(start_nodes, rows):
    """The folders of two nodes."""
    directories = [rows.parent / f"node{rank}" for rank in range(2)]
    for process in start_nodes(directories):
        finish(process)
    return directories


class Killed:
    """What is left of a training after something was killed: what it printed, when it ended, what still runs."""

    def __init__(self, process, directory, killed_in=None):
        self.output, _ = process.communicate(timeout=600)
        self.directory = directory
        killed_s = float(((killed_in or directory) / "killed").read_text())
        while processes_of(process.pid) and time.time() < killed_s + 90:
            time.sleep(0.1)
        self.returncode = process.returncode
        self.seconds = time.time() - killed_s
        self.left = processes_of(process.pid)


@pytest.fixture(scope="module")
def killed_worker(start, rows):
    directory = rows.parent / "two"
    return Killed(start(directory, 2, {"cuda_devices": [-1, -1]}, KILL_ONE="rank"), directory)


@pytest.fixture(scope="module")
def killed_command(start, killed_worker):
    distributed = {"cuda_devices": [-1, -1]}
    return Killed(
        start(killed_worker.directory, 2, distributed, "--recover", KILL_ONE="command"), killed_worker.directory
    )


@pytest.fixture(scope="module")
def two(start, killed_command):
    """A run that a killed worker ended, and then a kill of the command itself."""
    finish(start(killed_command.directory, 2, {"cuda_devices": [-1, -1]}, "--recover"))
    return killed_command.directory


@pytest.fixture(scope="module")
def killed_node(start_nodes, rows):
    """The first of two nodes, of which the second was killed at once with its command."""
    directories = [rows.parent / f"machine{rank}" for rank in range(2)]
    first, second = start_nodes(directories, KILL_ONE="node")
    assert second.wait(timeout=600) == -signal.SIGKILL
    return Killed(first, directories[0], killed_in=directories[1])


@pytest.fixture(scope="module")
def recovered_nodes(start_nodes, killed_node):
    directories = [killed_node.directory, killed_node.directory.with_name("machine1")]
    for process in start_nodes(directories, "--recover"):
        finish(process)
    return directories


def processes_of(session):
    """The processes of a session that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # After the name of the program, in parentheses: state, parent, group, session.
            state, _, _, its_session, *_ = path.read_text().rpartition(")")[2].split()
            if int(its_session) == session and state != "Z":
                found.append(int(path.parent.name))
    return found


def records_of(directory):
    return [json.loads(path.read_text()) for path in sorted(directory.glob("rank*.json"))]


def metrics_of(directory):
    metrics = json.loads((directory / "metrics.json").read_text())
    return {name: value for name, value in metrics.items() if not name.endswith(("duration", "memory_MB"))}


def check_same(directory, one):
    assert metrics_of(directory) == pytest.approx(metrics_of(one), abs=1e-5)
    weights, expected = (torch.load(folder / "best.th") for folder in (directory, one))
    assert set(weights) == set(expected)
    for name, weight in expected.items():
        torch.testing.assert_close(weights[name], weight, rtol=0, atol=1e-5)


def test_four_processes_train_as_one(four, one):
    check_same(four, one)


def test_two_nodes_train_as_one(nodes, one):
    """Each has the results, in a folder of its own."""
    for directory in nodes:
        check_same(directory, one)


def test_each_row_is_trained_on_once_in_an_epoch(four, nodes):
    for records in (records_of(four), [record for node in nodes for record in records_of(node)]):
        assert len(records) in (4, 2)
        for epoch in range(NUM_EPOCHS):
            trained = Counter(row for record in records for row in record["batches"][epoch])
            assert trained == Counter(range(1, NUM_ROWS + 1))


def test_the_layer_mix_is_the_same_in_all_processes(four, nodes, one):
    (alone,) = records_of(one)
    for records in (records_of(four), [record for node in nodes for record in records_of(node)]):
        assert all(record["end"] == records[0]["end"] for record in records)
        for name, value in records[0]["end"].items():
            assert value != records[0]["start"][name]
            assert value == pytest.approx(alone["end"][name], abs=1e-5)


def test_a_killed_worker_stops_the_rest_with_a_message(killed_worker):
    assert killed_worker.left == []
    assert killed_worker.seconds < 60
    assert killed_worker.returncode not in (0, -signal.SIGKILL)
    assert "process 1 terminated with signal SIGKILL" in killed_worker.output


def test_workers_of_a_killed_command_end(killed_command):
    assert killed_command.returncode == -signal.SIGKILL
    assert killed_command.left == []
    assert killed_command.seconds < 60


def test_a_run_recovers_from_both_to_the_run_of_one_process(two, one):
    check_same(two, one)


def test_a_killed_node_stops_the_other_with_a_message(killed_node):
    assert killed_node.left == []
    assert killed_node.seconds < 60
    assert killed_node.returncode not in (0, -signal.SIGKILL)
    assert re.search("Connection (closed|reset) by", killed_node.output)


def test_nodes_recover_from_the_newest_checkpoint_that_both_have(recovered_nodes, one):
    """The one that was killed had no checkpoint of its last epoch; the other one may have."""
    for directory in recovered_nodes:
        check_same(directory, one)
