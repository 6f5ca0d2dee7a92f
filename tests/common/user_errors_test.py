import errno
import io
import logging
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_tasks.common.config_checks import check_config
from elmo_tasks.common.user_errors import log, show_only_the_message, told_to_go_on

ROOT = Path(__file__).parents[2]


@pytest.fixture
def end_with(monkeypatch):
    """Ends a command by an error; gives the messages that are told, and the errors that are shown as before."""
    messages, shown = [], []

    def tell(message, error):
        messages.append(message)

    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: shown.append(error))
    monkeypatch.delenv("ALLENNLP_DEBUG", raising=False)

    def end_with(error):
        show_only_the_message(tell)
        sys.excepthook(type(error), error, error.__traceback__)
        return messages, shown

    return end_with


@pytest.fixture
def _command(monkeypatch):
    monkeypatch.setitem(sys.modules, "allennlp.__main__", types.ModuleType("allennlp.__main__"))


@pytest.mark.usefixtures("_command")
def test_an_error_of_the_user_is_its_message(end_with):
    """Ours says what to do; of another one, the place may help."""
    with pytest.raises(ConfigurationError) as raised:
        check_config({"trainer": {"num_epoch": 1}})
    end_with(raised.value)
    messages, shown = end_with(ConfigurationError("a"))
    assert messages == [str(raised.value), "a (`ALLENNLP_DEBUG=1` shows where)"]
    assert shown == []


@pytest.mark.usefixtures("_command")
def test_a_file_that_the_user_named_and_that_is_not_there_is_its_message(end_with):
    with pytest.raises(FileNotFoundError) as raised:
        cached_path("no_such_file.jsonnet")
    assert end_with(raised.value) == (["file no_such_file.jsonnet not found (`ALLENNLP_DEBUG=1` shows where)"], [])


@pytest.mark.usefixtures("_command")
@pytest.mark.parametrize("error", [ValueError("1"), KeyboardInterrupt(), FileNotFoundError(errno.ENOENT, "No", "x")])
def test_any_other_error_is_shown_as_before(end_with, error):
    assert end_with(error) == ([], [error])


@pytest.mark.usefixtures("_command")
def test_who_looks_for_a_fault_sees_where_it_was(end_with, monkeypatch):
    monkeypatch.setenv("ALLENNLP_DEBUG", "1")
    error = ConfigurationError("`x` must be 1")
    assert end_with(error) == ([], [error])


def test_a_log_has_the_traceback_that_the_console_lacks(tmp_path, monkeypatch):
    console = io.StringIO()
    file = logging.FileHandler(tmp_path / "out.log")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(console), file])
    try:
        raise ConfigurationError("50 % is no number")
    except ConfigurationError as error:
        log("50 % is no number", error)
    file.close()
    assert console.getvalue() == "50 % is no number\n"
    lines = (tmp_path / "out.log").read_text().splitlines()
    assert lines[:2] == ["50 % is no number", "Traceback (most recent call last):"]
    assert lines[-1] == "allennlp.common.checks.ConfigurationError: 50 % is no number"


def test_other_programs_keep_their_ways(end_with):
    error = ConfigurationError("`x` must be 1")
    assert end_with(error) == ([], [error])


def test_ctrl_c_ends_a_command_with_a_line_and_its_exit_code(capsys, monkeypatch):
    monkeypatch.delenv("ALLENNLP_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended, told_to_go_on():
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted. The same command goes on from here.\n"


def test_who_looks_for_a_fault_sees_where_ctrl_c_came(monkeypatch):
    monkeypatch.setenv("ALLENNLP_DEBUG", "1")
    with pytest.raises(KeyboardInterrupt), told_to_go_on():
        raise KeyboardInterrupt


@pytest.mark.slow
def test_a_debugger_can_import_the_package(tmp_path):
    """It leaves `__main__` without a specification."""
    script = tmp_path / "script.py"
    script.write_text("import elmo_tasks\n")
    done = subprocess.run(
        [sys.executable, "-m", "pdb", "-c", "continue", "-c", "quit", str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "Error" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [["-m", "allennlp"], ["-c", "from allennlp.__main__ import run; run()"]])
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["results", "."], "Error: . must be a folder of `allennlp train`"),
        (
            ["train", "training_configs/mr.jsonnet", "-o", '{"model.droput": 0.5}', "-s"],
            "CRITICAL - root - Extra parameters passed to SentenceClassifier: {'droput': 0.5}",
        ),
    ],
    ids=["results", "train"],
)
def test_a_command_ends_with_the_message(tmp_path, command, arguments, line):
    arguments = [*arguments, str(tmp_path / "run")] if arguments[-1] == "-s" else arguments
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert line in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stdout + done.stderr
