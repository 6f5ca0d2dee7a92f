import ast
import os
import re
from pathlib import Path

import pytest

from elmo_tasks.common import environment
from elmo_tasks.common.environment import KNOBS, SOURCE_CHECKOUT, set_defaults

FOLDER_KNOBS = [knob for knob in KNOBS if knob.is_folder]


@pytest.fixture(autouse=True)
def _no_knob_is_set(monkeypatch):
    for knob in KNOBS:
        monkeypatch.delenv(knob.name, raising=False)


def test_what_the_user_sets_stays(monkeypatch):
    monkeypatch.setenv("ELMO_TASKS_MR", "/data/mr")
    monkeypatch.setenv("ELMO_TASKS_CACHE", "/data/cache")
    set_defaults()
    assert os.environ["ELMO_TASKS_MR"] == "/data/mr"
    assert os.environ["ELMO_TASKS_CACHE"] == "/data/cache"


@pytest.mark.parametrize("knob", FOLDER_KNOBS, ids=lambda knob: knob.name)
def test_sample_folder_of_the_working_directory_comes_first(knob, tmp_path, monkeypatch):
    (tmp_path / knob.default).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    set_defaults()
    assert os.environ[knob.name] == knob.default


@pytest.mark.parametrize("knob", FOLDER_KNOBS, ids=lambda knob: knob.name)
def test_elsewhere_the_sample_folder_is_the_one_of_the_checkout(knob, tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    (checkout / knob.default).mkdir(parents=True)
    monkeypatch.setattr(environment, "SOURCE_CHECKOUT", checkout)
    monkeypatch.chdir(tmp_path)
    set_defaults()
    assert os.environ[knob.name] == str(checkout / knob.default)


def test_without_sources_the_relative_path_stays_for_the_error_message(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "SOURCE_CHECKOUT", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)
    set_defaults()
    assert os.environ["ELMO_TASKS_MR"] == "fixtures/mr"


def test_configs_read_exactly_these_variables():
    read = set()
    for config in (SOURCE_CHECKOUT / "training_configs").rglob("*sonnet"):
        read.update(re.findall(r"std\.extVar\('(\w+)'\)", config.read_text()))
    assert read == {knob.name for knob in KNOBS}


def test_every_variable_has_one_sentence():
    for knob in KNOBS:
        assert knob.meaning.endswith(".")
        assert ". " not in knob.meaning


def test_no_other_module_reads_or_sets_environment_variables():
    offenders = []
    for source in (SOURCE_CHECKOUT / "elmo_tasks").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, (ast.Attribute, ast.Name)):
                name = node.attr if isinstance(node, ast.Attribute) else node.id
                if name in ("environ", "environb", "getenv", "putenv"):
                    offenders.append(source)
    assert set(offenders) == {Path(environment.__file__).resolve()}
