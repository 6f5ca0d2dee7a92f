import json

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.report_runs import read_runs


@pytest.fixture
def folder_of_run(tmp_path):
    """Writes a folder as `allennlp train` would leave it; `None` leaves a file out."""

    def write(name="run", epochs=({"training_loss": 0.7}, {"training_loss": 0.5}), **files):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        contents = {"config": {"trainer": {"validation_metric": "+accuracy"}}, **files}
        for number, epoch in enumerate(epochs):
            contents[f"metrics_epoch_{number}"] = epoch
        for stem, content in contents.items():
            if content is not None:
                (folder / f"{stem}.json").write_text(json.dumps(content))
        return folder

    return write


def read_run(folder):
    (run,) = read_runs([str(folder)])
    return run


def test_epochs_come_in_the_order_of_their_numbers(folder_of_run):
    epochs = [{"training_loss": float(number), "best_epoch": 3} for number in range(12)]
    run = read_run(folder_of_run(epochs=epochs))
    assert list(run.epochs) == list(range(12))
    assert run.values("training_loss") == [float(number) for number in range(12)]
    assert run.values("unknown") == [None] * 12


def test_best_epoch_and_metric_that_selects(folder_of_run):
    run = read_run(folder_of_run(metrics={"best_epoch": 1}, config={"trainer": {"validation_metric": ["-loss"]}}))
    assert run.best_epoch == 1
    assert run.selecting_metric == "loss"


def test_run_that_goes_on_has_the_best_epoch_so_far(folder_of_run):
    run = read_run(folder_of_run(epochs=[{"best_epoch": 0}, {"best_epoch": 1}]))
    assert run.metrics == {}
    assert run.best_epoch == 1
    assert run.archive is None


def test_facts_come_from_figures_log_and_records(folder_of_run):
    folder = folder_of_run(
        metrics={"training_duration": "0:06:51.711826", "peak_worker_0_memory_MB": 1315.37},
        meta={"version": "2.10.1"},
        machine={"processor": "Fast Chip, 2 cores", "torch": "2.9"},
    )
    (folder / "out.log").write_text("2026-01-31 15:45:02,021 - INFO - checks - Pytorch version: 2.8\n")
    assert read_run(folder).facts() == {
        "started": "2026-01-31 15:45",
        "training time": "0:06:51",
        "peak worker 0 memory": "1,315 MB",
        "processor": "Fast Chip, 2 cores",
        "torch": "2.9",
        "AllenNLP": "2.10.1",
    }


def test_torch_of_a_run_without_a_record_of_its_machine_is_that_of_the_log(folder_of_run):
    folder = folder_of_run()
    (folder / "out.log").write_text("2026-01-31 15:45:02,021 - INFO - checks - Pytorch version: 2.8\n")
    assert read_run(folder).facts() == {"started": "2026-01-31 15:45", "torch": "2.8"}


def test_run_of_which_nothing_is_known_has_no_facts(folder_of_run):
    assert read_run(folder_of_run()).facts() == {}


def test_runs_are_named_without_what_their_paths_share(folder_of_run):
    one, two = folder_of_run("study/fold_0/seed_0"), folder_of_run("study/fold_1/seed_0")
    assert [run.name for run in read_runs([str(one), str(two)])] == ["fold_0/seed_0", "fold_1/seed_0"]
    assert read_run(one).name == "seed_0"


def test_folder_of_something_else_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"must be a folder that `allennlp train -s` made, with config\.json"):
        read_runs([str(tmp_path)])


def test_an_archive_in_place_of_its_folder_is_an_error_that_says_so(folder_of_run):
    archive = folder_of_run() / "model.tar.gz"
    archive.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="give the folder that the archive is in"):
        read_runs([str(archive)])


def test_run_without_an_epoch_is_an_error(folder_of_run):
    with pytest.raises(ConfigurationError, match="has an epoch ended"):
        read_runs([str(folder_of_run(epochs=()))])


def test_the_same_run_twice_is_an_error(folder_of_run):
    folder = folder_of_run()
    with pytest.raises(ConfigurationError, match="is given again"):
        read_runs([str(folder), f"{folder}/../run"])
