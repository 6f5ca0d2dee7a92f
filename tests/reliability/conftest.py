from pathlib import Path

import pytest

from elmo_tasks.common.environment import KNOBS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _in_the_checkout(monkeypatch):
    """The shipped configs run in this process on the fixtures, with the small biLM."""
    monkeypatch.chdir(ROOT)
    for knob in KNOBS:
        monkeypatch.setenv(knob.name, knob.default)
    monkeypatch.setenv("ELMO_TASKS_BILM", "fixtures/bilm")
