import os
import resource

import pytest
import torch

from elmo_tasks.common.files import save_whole, written_whole


def test_the_file_is_there_when_it_is_complete(tmp_path):
    path = tmp_path / "metrics.json"
    with written_whole(path) as partial:
        with open(partial, "w") as file:
            file.write("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert os.listdir(tmp_path) == ["metrics.json"]


def interrupted_writing(path):
    with open(path, "w") as file:
        file.write("ha")
    raise KeyboardInterrupt


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), written_whole(path) as partial:
        interrupted_writing(partial)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["metrics.json"]


def test_an_error_before_the_first_byte_is_not_hidden_by_the_clean_up(tmp_path):
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "metrics.json"):
        raise ZeroDivisionError


def test_a_killed_process_leaves_the_old_file_and_a_partial_one(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text("old")
    child = os.fork()
    if child == 0:
        with written_whole(path) as partial, open(partial, "w") as file:
            file.write("ha")
            file.flush()
            os._exit(0)  # as after kill -9: no clean-up runs
    os.waitpid(child, 0)
    assert path.read_text() == "old"
    assert (tmp_path / "metrics.json.partial").read_text() == "ha"


def test_a_hard_link_to_the_old_file_keeps_its_content(tmp_path):
    path, link = tmp_path / "model.th", tmp_path / "best.th"
    path.write_text("old")
    os.link(path, link)
    with written_whole(path) as partial, open(partial, "w") as file:
        file.write("new")
    assert (path.read_text(), link.read_text()) == ("new", "old")


def test_a_name_without_a_folder_is_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with written_whole("metrics.json") as partial, open(partial, "w") as file:
        file.write("whole")
    assert (tmp_path / "metrics.json").read_text() == "whole"


def test_a_full_disk_is_told_in_one_sentence(tmp_path):
    """Torch alone says "unexpected pos 576 vs 534"."""
    path = tmp_path / "best.th"
    save_whole({"weight": torch.zeros(10)}, path)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        try:
            save_whole({"weight": torch.zeros(100_000)}, path)
        except OSError as error:
            expected = f"[Errno 27] {path} cannot be written, and is left as it was: File too large"
            os._exit(0 if str(error) == expected else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert os.listdir(tmp_path) == ["best.th"]
    assert torch.equal(torch.load(path)["weight"], torch.zeros(10))
