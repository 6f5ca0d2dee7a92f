import json
import shutil

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands import report_config
from elmo_tasks.commands.report import write_report


@pytest.fixture
def second_run(trained_run, tmp_path):
    """The same run with another learning rate in its config, and without an archive."""
    folder = tmp_path / "second"
    shutil.copytree(trained_run, folder)
    (folder / "model.tar.gz").unlink()
    config = json.loads((folder / "config.json").read_text())
    config["trainer"]["optimizer"]["lr"] = 0.25
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def read(path):
    with open(path, encoding="utf-8") as page:
        return page.read()


def test_report_lies_in_the_folder_of_the_run_and_says_where(allennlp, trained_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained_run, folder)
    assert allennlp("report", folder, "--errors", 6).splitlines()[-1] == f"The report is {folder}/report.html"
    page = (folder / "report.html").read_text()
    assert "The 6 of 6 errors" in page
    assert "accuracy 50.0 %" in page
    assert "&lt;script&gt;document.title=&#39;taken&#39;&lt;/script&gt;" in page
    assert f"<td>{json.loads((folder / 'machine.json').read_text())['Python']}</td>" in page


def test_one_run_is_compared_with_the_shipped_config(trained_run, tmp_path):
    page = read(write_report([str(trained_run)], str(tmp_path / "page.html"), num_errors=0))
    assert "What differs from the shipped mr.jsonnet" in page
    assert "<code>trainer.patience</code>" in page


def test_without_the_shipped_config_every_setting_is_shown(trained_run, tmp_path, monkeypatch):
    monkeypatch.setattr(report_config, "SHIPPED_CONFIGS", tmp_path)
    page = read(write_report([str(trained_run)], str(tmp_path / "page.html"), num_errors=0))
    assert "Every setting; there was no config to compare with" in page
    assert "<code>trainer.num_epochs</code>" in page


def test_several_runs_are_compared_with_the_first(trained_run, second_run, tmp_path):
    page = read(write_report([str(trained_run), str(second_run)], str(tmp_path / "page.html"), num_errors=1))
    assert page.count('<th scope="row"><code>') == 1
    assert "<code>trainer.optimizer.lr</code>" in page
    assert "<code>0.1</code>" in page
    assert "<code>0.25</code>" in page
    assert "The run has no archive yet." in page


@pytest.mark.parametrize("form", ["folder", "config"])
def test_the_base_can_be_a_run_or_a_config(trained_run, second_run, tmp_path, form):
    base = second_run if form == "folder" else second_run / "config.json"
    page = read(write_report([str(trained_run)], str(tmp_path / "page.html"), base=str(base), num_errors=0))
    assert page.count('<th scope="row"><code>') == 1
    assert f"What differs from {base}" in page


def test_other_data_can_be_given(trained_run, tmp_path):
    data = str(trained_run.parent / "train.txt")
    page = read(write_report([str(trained_run)], str(tmp_path / "page.html"), data=data, num_errors=0))
    assert f"On the 6 rows of <code>{data}</code>" in page


def test_unlabelled_data_leaves_the_section_out(trained_run, tmp_path):
    data = tmp_path / "unlabelled.jsonl"
    data.write_text('{"sentence": "a film of quiet wonder"}\n')
    page = read(write_report([str(trained_run)], str(tmp_path / "page.html"), data=str(data)))
    assert f"The rows of {data} have no labels." in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_errors": -1}, "`--errors` must be at least 0, but is -1"),
        ({"output": "no/such/folder/page.html"}, "`--output` must be in a folder .*, but no/such/folder is none"),
        ({"output": "."}, r"`--output` must be a file, but \. is a folder"),
        ({"cuda_device": 99}, "cuda_device"),
        ({"data": "no_such_file.txt"}, "must be at hand, but file no_such_file.txt not found"),
    ],
)
def test_what_cannot_be_is_an_error_and_writes_nothing(trained_run, tmp_path, options, message):
    page = tmp_path / "page.html"
    with pytest.raises(ConfigurationError, match=message):
        write_report([str(trained_run)], **{"output": str(page), **options})
    assert not page.exists()
