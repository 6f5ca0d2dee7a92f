"""`allennlp predict-bulk` with local workers, while its processes are killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

import elmo_tasks  # noqa: F401 registers the parts of the config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PLUGINS = Path(__file__).parent / "plugins"
NUM_ROWS = 400
PART_SIZE = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With an archive, and with rows in two files."""
    folder = tmp_path_factory.mktemp("bulk")
    (folder / "train.txt").write_text("a film of quiet wonder_!_1\ntwo hours that feel like nine_!_0\n" * 4)
    elmo = {"type": "elmo", "pretrained": str(ROOT / "fixtures/bilm")}
    config = {
        "dataset_reader": {"type": "mr"},
        "train_data_path": str(folder / "train.txt"),
        "model": {"type": "elmo_sentence_classifier", "text_field_embedder": {"token_embedders": {"elmo": elmo}}},
        "data_loader": {"batch_size": 4},
        "trainer": {"num_epochs": 1, "optimizer": {"type": "adam", "lr": 0.01}, "cuda_device": -1},
    }
    train_model(Params(config), str(folder / "run"))
    words = (ROOT / "fixtures/text/train.txt").read_text().split()
    generator = random.Random(0)
    lines = [
        json.dumps({"id": number, "sentence": " ".join(generator.choices(words, k=generator.randint(0, 40)))}) + "\n"
        for number in range(NUM_ROWS)
    ]
    (folder / "rows").mkdir()
    (folder / "rows/1.jsonl").write_text("".join(lines[: NUM_ROWS // 3]))
    (folder / "rows/2.jsonl").write_text("".join(lines[NUM_ROWS // 3 :]))
    return folder


@pytest.fixture(scope="module")
def environment(folder):
    variables = {"PYTHONPATH": f"{PLUGINS}{os.pathsep}{ROOT}", "PREDICTED_ROWS": str(folder / "predicted")}
    return {**os.environ, **variables, "ALLENNLP_LOG_LEVEL": "WARNING", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def plain_outputs(folder, environment):
    """Those of `allennlp predict`."""
    (folder / "rows.jsonl").write_text("".join(path.read_text() for path in sorted((folder / "rows").iterdir())))
    command = [
        sys.executable,
        "-m",
        "allennlp",
        "predict",
        str(folder / "run/model.tar.gz"),
        str(folder / "rows.jsonl"),
    ]
    command += ["--output-file", str(folder / "plain"), "--silent", "--batch-size", "4"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (folder / "plain").read_text().splitlines()


@pytest.fixture
def start(folder, environment):
    def start(name="bulk", **options):
        command = [sys.executable, "-m", "allennlp", "predict-bulk", str(folder / "run/model.tar.gz")]
        command += [str(folder / "rows"), "-s", str(folder / name), "--workers", "2", "--batch-size", "4"]
        command += [
            "--part-size",
            str(PART_SIZE),
            "--predictor",
            "slow_for_test",
            "--include-package",
            "slow_predictor",
        ]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )

    return start


def wait_until(condition, process=None):
    deadline = time.time() + 300
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.time() < deadline
        time.sleep(0.02)


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_killed_workers_and_killed_commands_lose_nothing_and_repeat_nothing(folder, start, plain_outputs, trials):
    """
    The command is killed again and again, each time after a number of finished parts that is drawn by lot; the last
    one runs to its end, though one of its workers is killed too.
    """
    generator = random.Random(trials)
    log = folder / "predicted"
    parts = {}  # what is finished, and when

    def look():
        """Notes what is finished; nothing that was is done again."""
        found = {path.name: path.stat().st_mtime_ns for path in (folder / "bulk").glob("part-*.jsonl")}
        assert {name: found[name] for name in parts} == parts
        parts.update(found)
        return len(found)

    num_parts = 41  # of 133 and 267 rows
    moments = sorted(generator.sample(range(1, num_parts - 8), trials - 1))
    for moment in moments:
        process = start()
        wait_until(lambda moment=moment: look() >= moment, process)
        process.kill()
        process.communicate()
        workers = {int(line.split()[0]) for line in log.read_text().splitlines()}
        wait_until(lambda workers=workers: not any(map(runs, workers)))
        look()

    num_before = len(log.read_text().splitlines()) if moments else 0
    process = start()
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) > num_before + 4, process)
    victim = int(log.read_text().splitlines()[-1].split()[0])
    os.kill(victim, signal.SIGKILL)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    # Nothing is said of a death that cost nothing; the bar writes over itself.
    assert output.splitlines()[-1] == f"{NUM_ROWS} rows are predicted: {folder}/bulk/part-*.jsonl"
    assert all(line.startswith("rows:") for line in output.replace("\r", "\n").splitlines()[:-1] if line.strip())

    assert look() == num_parts
    outputs = [line for name in sorted(parts) for line in (folder / "bulk" / name).read_text().splitlines()]
    assert Counter(json.loads(line)["id"] for line in outputs) == Counter(map(str, range(NUM_ROWS)))
    for line, plain in zip(outputs, plain_outputs):
        line, plain = json.loads(line), json.loads(plain)
        assert line.pop("label_probabilities") == pytest.approx(plain.pop("label_probabilities"), abs=1e-6)
        assert line == plain
    # Whatever was predicted twice belonged to a part that a killed process was at, or had just handed over.
    num_rows_predicted = len(log.read_text().splitlines())
    assert num_rows_predicted <= NUM_ROWS + PART_SIZE * (2 * 2 * len(moments) + 2)


def test_ctrl_c_is_told_in_a_line_and_the_same_command_goes_on(folder, start):
    # As from a console: all processes of the command hear it.
    process = start("interrupted", start_new_session=True)
    wait_until(lambda: any((folder / "interrupted").glob("part-*.jsonl")), process)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output.splitlines()[-1] == "Interrupted. The same command goes on from here."
    assert all(line.startswith("rows:") for line in output.replace("\r", "\n").splitlines()[:-1] if line.strip())

    finished = {path: path.stat().st_mtime_ns for path in (folder / "interrupted").glob("part-*.jsonl")}
    process = start("interrupted")
    output, _ = process.communicate(timeout=600)
    assert output.splitlines()[-1] == f"{NUM_ROWS} rows are predicted: {folder}/interrupted/part-*.jsonl"
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
