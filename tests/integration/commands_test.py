"""The path that every user takes: train, evaluate, predict, and the commands around it, on the sample."""

import functools
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SMOKE = "import 'training_configs/overrides/smoke.libsonnet'"
TEST_FILES = {"mr": "fixtures/mr/rt_val.txt", "mrpc": "fixtures/mrpc/msr_paraphrase_test.txt"}
ROWS = {
    "mr": {"sentence": "a warm and funny film ."},
    "mrpc": {"sentence1": "The mill closed in May.", "sentence2": "In May, the mill was shut."},
}


@pytest.fixture(scope="module", params=["mr", "mrpc"])
def task(request):
    return request.param


@pytest.fixture(scope="module")
def runs(allennlp, tmp_path_factory):
    """Trains a task once; gives the directory of the run, and what the command printed."""

    @functools.lru_cache(maxsize=None)
    def run(task):
        directory = tmp_path_factory.mktemp("run") / task
        return directory, allennlp("train", f"training_configs/{task}.jsonnet", "-s", directory, "-o", SMOKE)

    return run


@pytest.fixture(scope="module")
def trained(task, runs):
    return runs(task)


@pytest.fixture(scope="module")
def trained_mr(runs):
    return runs("mr")[0]


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_training_evaluates_both_parts_and_makes_an_archive_without_a_complaint(trained, complaints):
    directory, output = trained
    assert complaints(output) == []
    metrics = json.loads((directory / "metrics.json").read_text())
    assert metrics["epoch"] == 1
    for part in ("training", "validation", "best_validation", "test"):
        assert 0.0 <= metrics[f"{part}_accuracy"] <= 1.0
    with tarfile.open(directory / "model.tar.gz") as archive:
        assert {"config.json", "weights.th"} <= set(archive.getnames())
    assert not list(directory.glob("*.partial"))


def test_evaluate_gives_the_metrics_that_training_gave_for_the_test_part(task, trained, allennlp, complaints, tmp_path):
    directory, _ = trained
    output = allennlp(
        *(
            "evaluate",
            directory / "model.tar.gz",
            TEST_FILES[task],
            "-o",
            json.dumps({"dataset_reader.max_instances": 64}),
        ),
        *("--output-file", tmp_path / "metrics.json", "--predictions-output-file", tmp_path / "predictions.jsonl"),
    )
    assert complaints(output) == []
    evaluated = json.loads((tmp_path / "metrics.json").read_text())
    trained_metrics = json.loads((directory / "metrics.json").read_text())
    assert evaluated["accuracy"] == trained_metrics["test_accuracy"]
    assert evaluated["loss"] == pytest.approx(trained_metrics["test_loss"], rel=1e-4)
    assert len(rows_of(tmp_path / "predictions.jsonl")) == 64


def test_an_archive_of_a_gpu_run_predicts_on_the_cpu_from_another_directory(
    task, trained, allennlp, complaints, tmp_path
):
    directory, _ = trained
    with tarfile.open(directory / "model.tar.gz") as archive:
        archive.extractall(tmp_path / "archive")
    config = json.loads((tmp_path / "archive/config.json").read_text())
    config["trainer"]["cuda_device"] = 0
    (tmp_path / "archive/config.json").write_text(json.dumps(config))
    (tmp_path / "input.jsonl").write_text(json.dumps(ROWS[task]) + "\n")
    output = allennlp(
        *("predict", "archive", "input.jsonl", "--output-file", "output.jsonl", "--include-package", "elmo_tasks"),
        cwd=tmp_path,
    )
    assert complaints(output) == []
    (row,) = rows_of(tmp_path / "output.jsonl")
    assert row["label"] in row["label_probabilities"]
    assert sum(row["label_probabilities"].values()) == pytest.approx(1.0)


def test_predict_reads_the_corpus_file_and_answers_row_by_row(trained_mr, allennlp, tmp_path):
    lines = (ROOT / TEST_FILES["mr"]).read_text().splitlines()[:5]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    allennlp(
        *("predict", trained_mr / "model.tar.gz", tmp_path / "rows.txt", "--use-dataset-reader", "--silent"),
        *("--batch-size", 2, "--output-file", tmp_path / "output.jsonl"),
    )
    rows = rows_of(tmp_path / "output.jsonl")
    assert [" ".join(row["tokens"]) for row in rows] == [line.rsplit("_!_", 1)[0].strip() for line in lines]


def test_evaluate_runs_from_any_directory_with_the_package_named(trained_mr, allennlp, tmp_path):
    data = ROOT / TEST_FILES["mr"]
    command = ("evaluate", trained_mr / "model.tar.gz", data, "--include-package", "elmo_tasks")
    allennlp(*command, "--output-file", "metrics.json", cwd=tmp_path)
    evaluated = json.loads((tmp_path / "metrics.json").read_text())
    trained_metrics = json.loads((trained_mr / "metrics.json").read_text())
    assert evaluated["scalar_mix_gamma"] == pytest.approx(trained_metrics["best_validation_scalar_mix_gamma"])


def test_find_lr_writes_its_table(allennlp, complaints, tmp_path):
    output = allennlp(
        *("find-lr", "training_configs/mr.jsonnet", "-s", tmp_path / "lr", "-o", SMOKE, "--num-batches", 11)
    )
    assert complaints(output) == []
    table = json.loads((tmp_path / "lr/lr-losses.json").read_text())
    assert len(table["learning_rates"]) == len(table["losses"]) == 12
    assert table["learning_rates"][0] == pytest.approx(1e-5)
    assert (tmp_path / "lr/lr-losses.png").is_file()


def test_print_results_and_diff_read_a_run(trained_mr, allennlp):
    output = allennlp("print-results", trained_mr.parent, "--keys", "epoch", "best_validation_accuracy")
    accuracy = json.loads((trained_mr / "metrics.json").read_text())["best_validation_accuracy"]
    assert f"{trained_mr}/metrics.json, 1, {accuracy}" in output

    best, archived = trained_mr / "best.th", f"{trained_mr}/model.tar.gz!weights.th"
    output = allennlp("diff", best, archived)
    assert "scalar_mix" in output
    assert not re.search(r"^[+\-!]\w", output, re.M)  # an archive holds the best weights


def test_count_instances_counts_the_training_part(allennlp):
    output = allennlp("count-instances", "training_configs/mr.jsonnet")
    num_instances = int(re.search(r"One epoch of training contains (\d+) instances", output).group(1))
    assert 0 < num_instances < 434  # the file without its dev part


def test_a_missing_gpu_is_the_first_thing_that_is_said(allennlp, tmp_path):
    overrides = json.dumps({"trainer.cuda_device": 0})
    output = allennlp("train", "training_configs/mr.jsonnet", "-s", tmp_path / "run", "-o", overrides, fails=True)
    assert "Experiment specified a GPU but none is available" in output
    assert "loading instances" not in output
    assert not (tmp_path / "run").exists()


def test_no_command_asked_for_the_network(network_attempts):
    """Stands here since it is about all the commands above."""
    assert not network_attempts.exists()


def test_a_process_that_asks_for_the_network_is_refused_and_noted(environment, tmp_path):
    program = "import socket; socket.create_connection(('example.org', 80))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "NETWORK_ATTEMPTS": str(tmp_path / "attempts.txt")},
        capture_output=True,
        text=True,
    )
    assert "the tests allow no network" in done.stderr
    assert "example.org" in (tmp_path / "attempts.txt").read_text()
