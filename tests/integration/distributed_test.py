"""Training in two processes on the CPU, each of which reads its data with two workers."""

import json
import re
from collections import Counter

import pytest
from allennlp.predictors import Predictor

pytestmark = pytest.mark.slow

NUM_ROWS = 11


@pytest.fixture(scope="module")
def run(allennlp, complaints, tmp_path_factory):
    """The finished run's directory."""
    directory = tmp_path_factory.mktemp("distributed")
    (directory / "rows.txt").write_text("".join(f"row number {i} ._!_{i % 2}\n" for i in range(NUM_ROWS)))
    overrides = {
        "train_data_path": str(directory / "rows.txt"),
        "validation_data_path": str(directory / "rows.txt"),
        "test_data_path": str(directory / "rows.txt"),
        "data_loader": {"batch_size": 2, "shuffle": True, "num_workers": 2},
        "distributed": {"cuda_devices": [-1, -1]},
        "trainer.num_epochs": 2,
        "trainer.callbacks": [{"type": "record_for_test"}],
    }
    output = allennlp(
        *("train", "training_configs/mr.jsonnet", "-s", directory / "run", "-o", json.dumps(overrides)),
        *("--include-package", "observers"),
    )
    early = "finishing (training|validation) early!"  # shares of 6 and 5 rows
    assert [line for line in complaints(output) if not re.search(early, line)] == []
    return directory / "run"


@pytest.fixture(scope="module")
def ranks(run):
    """What both processes saw."""
    return [json.loads((run / f"rank{rank}.json").read_text()) for rank in (0, 1)]


def test_every_row_is_read_once_over_all_processes_and_workers(ranks):
    read = Counter(line for rank in ranks for line in rank["read"])
    assert read == Counter(range(1, NUM_ROWS + 1))


def test_no_row_is_trained_on_twice_in_an_epoch(ranks):
    """Processes with unequal shares stop together, after as many batches as the smaller share has."""
    for epoch in range(2):
        trained = Counter(line for rank in ranks for line in rank["batches"][epoch])
        assert set(trained.values()) == {1}
        assert len(trained) >= NUM_ROWS - 1


def test_the_layer_mix_moves_and_is_the_same_in_both_processes(ranks):
    assert ranks[0]["start"] == ranks[1]["start"]
    assert ranks[0]["end"] == ranks[1]["end"]
    assert len(ranks[0]["end"]) >= 2
    for name, value in ranks[0]["end"].items():
        assert value != ranks[0]["start"][name], name


def test_test_figure_is_of_all_rows(run):
    """Not of the share of the process that computes it."""
    predictor = Predictor.from_path(str(run / "model.tar.gz"))
    instances = list(predictor._dataset_reader.read(str(run.parent / "rows.txt")))
    outputs = predictor.predict_batch_instance(instances)
    right = [output["label"] == instance["label"].label for output, instance in zip(outputs, instances)]
    metrics = json.loads((run / "metrics.json").read_text())
    assert len(right) == NUM_ROWS
    assert metrics["test_accuracy"] == pytest.approx(sum(right) / NUM_ROWS)
