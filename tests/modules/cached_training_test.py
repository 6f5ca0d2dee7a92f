"""Training processes that share a cache, are killed, or work together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from elmo_tasks.modules.disk_tier import FILE_NAME, DiskTier

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NUM_INSTANCES = 200


@pytest.fixture
def start(tmp_path):
    """Starts `allennlp train` on the sample; gives the process and the folder of the run."""
    processes = []

    def start(name, max_tokens=4096, distributed=False, **cache):
        embedder = {
            "type": "elmo",
            "pretrained": str(ROOT / "fixtures" / "bilm"),
            "dropout": 0.0,
            "max_tokens_per_forward": max_tokens,
        }
        if cache:
            embedder["cache"] = cache
        config = {
            "dataset_reader": {"type": "mr", "max_instances": NUM_INSTANCES},
            "train_data_path": str(ROOT / "fixtures" / "mr" / "rt_train.txt"),
            "model": {
                "type": "elmo_sentence_classifier",
                "text_field_embedder": {"token_embedders": {"elmo": embedder}},
            },
            "data_loader": {"batch_size": 20},
            "trainer": {"num_epochs": 3, "optimizer": {"type": "adam", "lr": 0.01}, "cuda_device": -1},
        }
        if distributed:
            config["distributed"] = {"cuda_devices": [-1, -1]}
            del config["trainer"]["cuda_device"]
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
        command = [sys.executable, "-m", "allennlp", "train", f"{name}.json", "-s", name]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        with open(tmp_path / f"{name}.log", "w") as log:
            processes.append(
                subprocess.Popen(
                    [*command, "--include-package", "elmo_tasks"],
                    cwd=tmp_path,
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
        return processes[-1], tmp_path / name

    yield start
    for process in processes:
        process.kill()


def losses(process, run):
    assert process.wait(timeout=500) == 0, run.with_suffix(".log").read_text()[-3000:]
    return [json.loads((run / f"metrics_epoch_{epoch}.json").read_text())["training_loss"] for epoch in range(3)]


def distinct_sentences():
    lines = (ROOT / "fixtures" / "mr" / "rt_train.txt").read_text().splitlines()[:NUM_INSTANCES]
    return {tuple(line.split("_!_")[0].split()) for line in lines}


def test_two_runs_at_once_fill_one_cache_with_each_sentence_once(start, tmp_path):
    cache = {"directory": str(tmp_path / "cache")}
    first, second, plain = start("first", 64, **cache), start("second", 64, **cache), start("plain")
    expected = losses(*plain)
    assert losses(*first) == pytest.approx(expected, abs=1e-5)
    assert losses(*second) == pytest.approx(expected, abs=1e-5)
    assert len(DiskTier(str(tmp_path / "cache"), 10**9)) == len(distinct_sentences())


def test_run_killed_while_it_fills_the_cache_leaves_one_that_serves(start, tmp_path):
    cache = {"directory": str(tmp_path / "cache"), "max_memory_bytes": 0}
    file = tmp_path / "cache" / FILE_NAME
    killed, _ = start("killed", 1, **cache)
    # A sentence at a time, each written before the next: a time to kill.
    while not (file.exists() and file.stat().st_size > 200_000):
        assert killed.poll() is None, "the cache was filled before it could be interrupted"
        time.sleep(0.002)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    num_entries = len(DiskTier(str(tmp_path / "cache"), 10**9))
    assert 0 < num_entries < len(distinct_sentences())
    again, plain = start("again", **cache), start("plain")
    assert losses(*again) == pytest.approx(losses(*plain), abs=1e-5)


def test_two_processes_of_one_training_share_the_cache_and_agree_on_the_mix(start, tmp_path):
    run = start("distributed", distributed=True, directory=str(tmp_path / "cache"))
    assert losses(*run)[-1] < losses(*run)[0]
    state = torch.load(run[1] / "best.th")
    (gamma,) = [value for name, value in state.items() if name.endswith("scalar_mix.gamma")]
    assert gamma.item() != 1.0
    assert len(DiskTier(str(tmp_path / "cache"), 10**9)) == len(distinct_sentences())
