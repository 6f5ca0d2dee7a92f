"""Real `allennlp` commands, each in a process of its own, without a GPU and without a network."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture(scope="session")
def network_attempts(tmp_path_factory):
    """The file in which processes note that they asked for another machine."""
    return tmp_path_factory.mktemp("network") / "attempts.txt"


@pytest.fixture(scope="session")
def environment(tmp_path_factory, network_attempts):
    """The environment variables of a user who sets none of ours, on a machine without a GPU and without a network."""
    nltk_data = tmp_path_factory.mktemp("nltk_data")
    (nltk_data / "tokenizers/punkt").mkdir(parents=True)  # as in the environment that `make` builds
    variables = {name: value for name, value in os.environ.items() if not name.startswith("ELMO_TASKS_")}
    variables.update(
        PYTHONPATH=f"{PLUGINS}{os.pathsep}{ROOT}",
        NLTK_DATA=str(nltk_data),
        CUDA_VISIBLE_DEVICES="",
        NETWORK_ATTEMPTS=str(network_attempts),
    )
    return variables


@pytest.fixture(scope="session")
def allennlp(environment):
    """
    Runs one command and gives all that it printed; a failure is an error, unless `fails` (or `killed`) is true.

    It runs in the checkout, where `.allennlp_plugins` lists this package, unless `cwd` says otherwise.
    """

    def run(*arguments, cwd=ROOT, fails=False, killed=False, **variables):
        command = [sys.executable, "-m", "allennlp", *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        expected = done.returncode == -signal.SIGKILL if killed else (done.returncode != 0) == fails
        assert expected, f"{command} ended with {done.returncode}:\n{done.stdout[-5000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def complaints():
    """
    Finds the lines of an output that call themselves a warning or an error, of logging or of Python, and what NLTK
    prints; not those of this package, which are about the data or the model, such as one that predicts the same label
    for every row.
    """
    pattern = re.compile(r" - (WARNING|ERROR|CRITICAL) - (?!elmo_tasks\.)|\b\w*Warning: |\[nltk_data\]|Traceback")
    return lambda output: [line for line in output.splitlines() if pattern.search(line)]
