"""A tiny biLM, and `allennlp` commands in this process."""

import sys
from pathlib import Path

import pytest
import torch
from allennlp.commands import main

FOLDER = Path(__file__).parents[2] / "fixtures" / "bilm"


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """A biLM this small waits for other threads more than it computes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def bilm_folder():
    return FOLDER


@pytest.fixture
def allennlp(monkeypatch, capsys):
    """Runs a command; gives what it printed."""

    def allennlp(*arguments):
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, arguments), "--include-package", "elmo_tasks"])
        main()
        return capsys.readouterr().out

    return allennlp
