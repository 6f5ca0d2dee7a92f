import json
import re

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.results import tabulate
from elmo_tasks.commands.study import Study
from elmo_tasks.commands.study_results import study_results, write_results


@pytest.fixture
def study_folder(tmp_path):
    """Makes the folder of a finished study whose seeds have these test accuracies."""

    def study_folder(name, test_path, accuracies):
        config = {"test_data_path": test_path, "trainer": {"validation_metric": "+accuracy"}}
        study = Study(tmp_path / name, config, 0, len(accuracies))
        for run, accuracy in zip(study.runs, accuracies):
            run.directory.mkdir(parents=True)
            metrics = {"training_duration": "0:00:30.4", "test_accuracy": accuracy, "test_f1": accuracy / 2}
            (run.directory / "metrics.json").write_text(json.dumps(metrics))
        write_results(study_results(study), study.directory)
        return str(study.directory)

    return study_folder


def test_studies_are_rows_of_one_table_on_the_console_and_in_a_file(study_folder, tmp_path, allennlp, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    mr = study_folder("mr_seeds", "data/mr/rt_val.txt", [0.7, 0.8])
    mrpc = study_folder("mrpc_seeds", "data/mrpc/test.txt", [0.6, 0.6])
    page = tmp_path / "results.md"
    printed = allennlp("results", mr, mrpc, "--metrics", "test_accuracy", "test_f1", "--markdown", page)
    # 0.7 and 0.8: mean 0.75, deviation 0.1 / sqrt(2), interval 0.75 +- 12.706 * 0.05.
    cells = (
        "| mr_seeds | mr/rt_val.txt | 0.7500 ± 0.0707 | 0.1147 to 1.3853 | 0.3750 ± 0.0354 | 0.0573 to 0.6927 | 30 s |"
    )
    assert cells in page.read_text()
    assert page.read_text().startswith("2 seeds\n")
    assert all(figure in printed for figure in re.findall(r"\d\.\d+", cells))
    assert "mrpc_" in printed


def test_rows_keep_the_order_of_the_folders(study_folder):
    folders = [study_folder(name, "data/mr/rt_val.txt", [0.5]) for name in ("b", "a")]
    table = tabulate(folders)
    assert [row[0] for row in table.body] == ["b", "a"]
    assert table.header == ["name", "test_accuracy", "95 % interval", "training"]


def test_a_run_is_a_row_beside_studies(study_folder, tmp_path):
    study = study_folder("mr_seeds", "data/mr/rt_val.txt", [0.7, 0.8])
    run = tmp_path / "mr_words"
    run.mkdir()
    config = {"test_data_path": "data/mr/rt_val.txt", "trainer": {"validation_metric": "+accuracy"}}
    (run / "config.json").write_text(json.dumps(config))
    metrics = {"training_duration": "0:01:05", "best_validation_accuracy": 0.76, "test_accuracy": 0.75}
    (run / "metrics.json").write_text(json.dumps(metrics))
    table = tabulate([study, str(run)])
    assert table.title == "mr/rt_val.txt"
    assert table.body[1] == ["mr_words", "1 seed", "0.7500", "", "1 min 5 s"]


def test_a_page_that_cannot_be_written_is_told_first():
    with pytest.raises(ConfigurationError, match="`--markdown` must be in a folder that can be written to, but no is"):
        tabulate(["no_study"], markdown="no/results.md")


def test_a_run_that_is_not_finished_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=f"{tmp_path} must be the folder of a finished run with test figures"):
        tabulate([str(tmp_path)])
