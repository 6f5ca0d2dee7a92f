import os
import pickle

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.bulk_input import Part
from elmo_tasks.commands.bulk_output import bulk_output


def part(number, *rows):
    return Part(number, [f"row {row}" for row in rows], pickle.dumps(rows))


def begin(folder, **settings):
    with bulk_output(folder, settings):
        pass


@pytest.fixture
def folder(tmp_path):
    """Of two finished parts."""
    with bulk_output(tmp_path / "bulk", {"archive": "a"}) as output:
        for number in range(2):
            assert not output.has(part(number, number))
            output.write(part(number, number), f"output {number}\n")
    return tmp_path / "bulk"


def test_finished_parts_are_found_again(folder):
    with bulk_output(folder, {"archive": "a"}) as output:
        assert output.has(part(0, 0))
        assert output.has(part(1, 1))
    assert (folder / "part-000001.jsonl").read_text() == "output 1\n"


def test_outputs_of_other_rows_are_removed(folder):
    with bulk_output(folder, {"archive": "a"}) as output:
        assert not output.has(part(1, 2))
    assert not (folder / "part-000001.jsonl").exists()
    assert (folder / "part-000000.jsonl").exists()


def test_outputs_of_an_unknown_hand_do_not_count(folder):
    (folder / "part-000002.jsonl").write_text("half")
    with bulk_output(folder, {"archive": "a"}) as output:
        assert not output.has(part(2, 2))


@pytest.mark.parametrize(("num_steps", "is_there"), [(1, False), (2, True)])
def test_a_part_that_is_there_counts_whenever_its_writer_was_killed(folder, monkeypatch, num_steps, is_there):
    replace, steps = os.replace, iter(range(1, num_steps + 1))

    def stop_after_some(source, target):
        replace(source, target)
        if next(steps) == num_steps:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, bulk_output(folder, {"archive": "a"}) as output:
        patch.setattr(os, "replace", stop_after_some)
        with pytest.raises(KeyboardInterrupt):
            output.write(part(2, 2), "output 2\n")
    assert (folder / "part-000002.jsonl").exists() == is_there
    with bulk_output(folder, {"archive": "a"}) as output:
        assert output.has(part(2, 2)) == is_there


def test_outputs_of_longer_inputs_are_removed_at_the_end(folder):
    with bulk_output(folder, {"archive": "a"}) as output:
        output.finish(1)
    assert {path.name for path in folder.iterdir()} == {"bulk.json", "part-000000.jsonl"}


def test_a_folder_begun_with_other_settings_is_refused(folder):
    with pytest.raises(ConfigurationError, match="but `archive` was 'a', but is 'b'; repeat the command"):
        begin(folder, archive="b")
    assert (folder / "part-000000.jsonl").exists()


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "precious.txt").touch()
    with pytest.raises(ConfigurationError, match="must be new, empty or the folder of a bulk prediction, but is none"):
        begin(tmp_path)


def test_a_command_that_was_killed_early_can_be_repeated(tmp_path):
    begin(tmp_path)
    (tmp_path / "part-000000.jsonl.partial").write_text("half")
    with bulk_output(tmp_path, {}) as output:
        output.write(part(0, 0), "whole\n")
    assert {path.name for path in tmp_path.iterdir()} == {"bulk.json", "part-000000.jsonl"}


def test_two_processes_cannot_write_to_one_folder(folder):
    refused = pytest.raises(ConfigurationError, match="must be written by one process, but another one is at it")
    with bulk_output(folder, {"archive": "a"}), refused:
        begin(folder, archive="a")
