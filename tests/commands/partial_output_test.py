import json
import os
from collections import namedtuple

import numpy
import pytest
from allennlp.common.checks import ConfigurationError
from filelock import FileLock

from elmo_tasks.commands import partial_output as module
from elmo_tasks.commands.partial_output import partial_output
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.commands.vector_file import ArrayType

ARRAY_TYPE = ArrayType((), (4,), "float32")


@pytest.fixture
def sentences(tmp_path):
    (tmp_path / "sentences.txt").write_text("a b\n\nc\n")
    return SentenceFile(str(tmp_path / "sentences.txt"))


@pytest.fixture
def opened(tmp_path, sentences):
    def opened(**settings):
        return partial_output(str(tmp_path / "vectors.npz"), sentences, ARRAY_TYPE, settings, with_sentences=True)

    return opened


def arrays(sentences):
    return [numpy.ones((len(sentence.tokens), 4), "float32") for sentence in sentences]


def interrupted(opened, some):
    with opened() as output:
        output.write(some, arrays(some))
        raise KeyboardInterrupt


def test_the_file_has_its_name_when_it_is_complete(opened, sentences, tmp_path):
    with opened() as output:
        output.write(list(sentences), arrays(sentences))
        assert not (tmp_path / "vectors.npz").exists()
    assert set(os.listdir(tmp_path)) == {"sentences.txt", "vectors.npz"}
    with numpy.load(tmp_path / "vectors.npz") as vectors:
        assert {name: vectors[name].shape for name in "012"} == {"0": (2, 4), "1": (0, 4), "2": (1, 4)}


def test_what_is_written_is_counted_and_kept(opened, sentences, tmp_path, caplog):
    with pytest.raises(KeyboardInterrupt):
        interrupted(opened, list(sentences)[:2])
    assert set(os.listdir(tmp_path)) == {"sentences.txt", "vectors.npz.partial", "vectors.npz.partial.json"}
    with caplog.at_level("INFO"), opened() as output:
        assert output.num_arrays == 2
        output.write(list(sentences)[2:], arrays(list(sentences)[2:]))
    assert "vectors.npz.partial is continued after line 2." in caplog.text


def test_other_settings_are_named(opened, sentences):
    with pytest.raises(KeyboardInterrupt):
        interrupted(opened, [])
    with pytest.raises(ConfigurationError, match="`layers` was not set, but is 'top'; repeat the command"), opened(
        layers="top"
    ):
        pass


def test_half_a_layout_is_begun_anew(opened, sentences, tmp_path):
    """Also where the state of an older file was left behind."""
    (tmp_path / "vectors.npz.partial").write_bytes(b"half")
    with opened() as output:
        assert output.num_arrays == 0
        output.write(list(sentences), arrays(sentences))
    assert (tmp_path / "vectors.npz").is_file()


def test_the_state_of_an_older_file_goes_before_a_new_one_is_laid_out(opened, tmp_path, monkeypatch):
    (tmp_path / "vectors.npz.partial.json").write_text(json.dumps({"num_arrays": 3, "settings": {}}))
    monkeypatch.setattr(module.PartialOutput, "_save_state", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt), opened():
        pass
    assert not (tmp_path / "vectors.npz.partial.json").exists()


def test_two_processes_do_not_write_one_file(opened, tmp_path):
    with FileLock(str(tmp_path / "vectors.npz.lock")), pytest.raises(
        ConfigurationError, match=r"vectors\.npz must be written by one process, but another one is at it"
    ), opened():
        pass


def test_a_disk_that_is_too_small_is_told(opened, tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")(47)  # three tokens have 48 bytes
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(ConfigurationError, match=r"needs 0\.0 MB, but its disk has 0\.0 MB free"), opened():
        pass
    assert os.listdir(tmp_path) == ["sentences.txt"]


def test_a_process_killed_at_its_last_step_leaves_nothing_to_the_next(opened, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(module.PartialOutput, "forget", lambda output: None)  # as if it were killed before
    with opened() as output:
        output.write(list(sentences), arrays(sentences))
    monkeypatch.undo()
    assert set(os.listdir(tmp_path)) == {"sentences.txt", "vectors.npz", "vectors.npz.partial.json"}
    whole = (tmp_path / "vectors.npz").read_bytes()
    with opened() as output:
        assert output.num_arrays == 3
    assert set(os.listdir(tmp_path)) == {"sentences.txt", "vectors.npz"}
    assert (tmp_path / "vectors.npz").read_bytes() == whole


def written_to_a_full_disk(opened, some, monkeypatch):
    def full(path):
        raise OSError(28, "some words of a library")

    with opened() as output, monkeypatch.context() as patch:
        patch.setattr(module, "flush_to_disk", full)
        output.write(some, arrays(some))


def test_a_full_disk_is_told_with_the_way_on(opened, sentences, tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"partial cannot be written: No space.*line 0"):
        written_to_a_full_disk(opened, list(sentences)[:1], monkeypatch)
    with opened() as output:
        output.write(list(sentences), arrays(sentences))
    assert set(os.listdir(tmp_path)) == {"sentences.txt", "vectors.npz"}
