"""Pretraining as real commands: the way from text to a classifier, and runs that are killed."""

import json
from collections import Counter
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONFIG = "training_configs/pretrain/mini.jsonnet"
TRAIN, HELDOUT = "fixtures/text/train.txt#:60", "fixtures/text/heldout.txt#:10"
TINY = {
    "train_data_path": TRAIN,
    "validation_data_path": HELDOUT,
    "vocabulary.data_path": TRAIN,
    "vocabulary.max_words": 300,
    "data_loader.batch_size": 4,
    "model.network.options.lstm": {
        "use_skip_connections": True,
        "projection_dim": 8,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 16,
        "n_layers": 2,
    },
    "model.network.options.char_cnn.filters": [[1, 8], [2, 8]],
    "model.softmax.num_samples": 50,
    "model.precision": "float32",
    "trainer.num_epochs": 2,
    "trainer.learning_rate_scheduler.warmup_steps": 2,
}


def test_from_text_to_a_classifier(allennlp, tmp_path):
    """Pretrain, export, check, train MR on the export, predict; and let the language model write."""
    run = tmp_path / "pretrain"
    allennlp("train", CONFIG, "-s", run, "-o", json.dumps({**TINY, "distributed": None}))
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["best_validation_perplexity"] < 303  # of 303 words, were they all alike

    # The callback of the config has exported already; the command does it again, elsewhere.
    allennlp("export-bilm", run / "model.tar.gz", tmp_path / "bilm")
    for folder in (run / "bilm", tmp_path / "bilm"):
        assert allennlp("check-bilm", folder).splitlines()[-1] == "ok"

    smoke = "import 'training_configs/overrides/smoke.libsonnet'"
    mr = tmp_path / "mr"
    allennlp("train", "training_configs/mr.jsonnet", "-s", mr, "-o", smoke, ELMO_TASKS_BILM=str(tmp_path / "bilm"))
    (tmp_path / "input.jsonl").write_text('{"sentence": "a warm and clever film"}\n')
    allennlp(
        *("predict", mr / "model.tar.gz", tmp_path / "input.jsonl", "--output-file", tmp_path / "output.jsonl"),
        "--silent",
    )
    prediction = json.loads((tmp_path / "output.jsonl").read_text())
    assert prediction["label"] in ("positive", "negative")

    (tmp_path / "prompt.jsonl").write_text('{"prompt": "The man", "length": 5, "temperature": 0}\n')
    allennlp(
        *("predict", run / "model.tar.gz", tmp_path / "prompt.jsonl", "--output-file", tmp_path / "text.jsonl"),
        "--silent",
    )
    written = json.loads((tmp_path / "text.jsonl").read_text())
    assert written["text"].startswith("The man ")
    assert len(written["text"].split()) >= 3


@pytest.mark.parametrize("num_processes", [1, 2])
def test_a_killed_run_goes_on_where_it_was(allennlp, tmp_path, num_processes):
    """Streams with carried states, dropout and samples: the end is that of a run that nothing interrupted."""
    overrides = json.dumps(
        {
            **TINY,
            "dataset_reader.mode": "carry",
            "dataset_reader.unroll_steps": 10,
            "dataset_reader.lowercase_share": 0.0,
            "vocabulary.reader.lowercase_share": 0.0,
            "model.dropout": 0.2,
            "trainer.callbacks": [{"type": "observe_pretraining_for_test"}],
            "trainer.checkpointer.save_every_num_batches": 3,
            "distributed": {"cuda_devices": [-1] * num_processes} if num_processes > 1 else None,
        }
    )

    def train(run, *arguments, **options):
        command = ("train", CONFIG, "-s", run, "-o", overrides, "--include-package", "pretraining_observers")
        allennlp(*command, *arguments, **options)

    def records_of(run):
        """For each process, what it trained on at each batch, in order; a later line replaces an earlier one."""
        lines = [(run / f"rank{rank}.jsonl").read_text().splitlines() for rank in range(num_processes)]
        return [{(r["epoch"], r["batch"]): r["targets"] for r in map(json.loads, rank_lines)} for rank_lines in lines]

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(whole)
    # In one process, the command itself is killed; with two, it sees a worker die.
    train(killed, KILL_AT_BATCH="8", **({"killed": True} if num_processes == 1 else {"fails": True}))
    assert (killed / "model_state_e1_b6.th").is_file()
    assert not (killed / "model.tar.gz").exists()
    lines_before = [len((killed / f"rank{rank}.jsonl").read_text().splitlines()) for rank in range(num_processes)]
    train(killed, "--recover")

    # It went on with batch 7 of epoch 1.
    for rank in range(num_processes):
        first = json.loads((killed / f"rank{rank}.jsonl").read_text().splitlines()[lines_before[rank]])
        assert (first["epoch"], first["batch"]) == (1, 7)
    assert records_of(killed) == records_of(whole)
    # Each epoch has each prediction of the text once, over all processes.
    words = (whole / "vocabulary/words.txt").read_text().splitlines()
    text = (ROOT / "fixtures/text/train.txt").read_text().splitlines()[:60]
    expected = Counter(word if word in words else "<UNK>" for line in text for word in [*line.split(), "</S>"])
    for epoch in range(2):
        seen = Counter(
            words[target]
            for rank in records_of(whole)
            for (batch_epoch, _), targets in rank.items()
            for target in targets
            if batch_epoch == epoch
        )
        assert seen == expected

    losses = [json.loads((run / "metrics_epoch_1.json").read_text())["training_loss"] for run in (whole, killed)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    weights = [torch.load(run / "best.th") for run in (whole, killed)]
    for name, parameter in weights[0].items():
        if isinstance(parameter, torch.Tensor):
            assert torch.equal(parameter, weights[1][name]), name
