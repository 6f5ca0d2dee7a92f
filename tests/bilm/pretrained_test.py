import os
from pathlib import Path

import pytest

from elmo_tasks.bilm import pretrained
from elmo_tasks.bilm.pretrained import resolve

FIXTURE = Path(__file__).parents[2] / "fixtures" / "bilm"


def test_published_names_are_allennlps_urls():
    root = "https://allennlp.s3.amazonaws.com/models/elmo"
    assert resolve("original") == (
        f"{root}/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_options.json",
        f"{root}/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5",
    )
    assert resolve("original_5.5b").weight_file == (
        f"{root}/2x4096_512_2048cnn_2xhighway_5.5B/elmo_2x4096_512_2048cnn_2xhighway_5.5B_weights.hdf5"
    )
    assert resolve("small").options_file == (
        f"{root}/2x1024_128_2048cnn_1xhighway/elmo_2x1024_128_2048cnn_1xhighway_options.json"
    )
    assert resolve("medium").options_file == (
        f"{root}/2x2048_256_2048cnn_1xhighway/elmo_2x2048_256_2048cnn_1xhighway_options.json"
    )


def test_a_folder_is_its_two_files():
    assert resolve(str(FIXTURE)) == (str(FIXTURE / "options.json"), str(FIXTURE / "weights.hdf5"))


def test_the_bundled_bilm_lies_within_the_package(monkeypatch):
    assert os.path.dirname(pretrained.MINI_FOLDER) == os.path.dirname(pretrained.__file__)
    monkeypatch.setattr(pretrained, "MINI_FOLDER", str(FIXTURE))
    assert resolve("mini").options_file == str(FIXTURE / "options.json")


def test_missing_files_are_named(tmp_path, monkeypatch):
    (tmp_path / "options.json").write_text("{}")
    with pytest.raises(ValueError, match=r"must have the files .*weights\.hdf5, but they are missing") as error:
        resolve(str(tmp_path))
    assert "options.json" not in str(error.value)
    monkeypatch.setattr(pretrained, "MINI_FOLDER", str(tmp_path / "mini"))
    with pytest.raises(ValueError, match="'mini' must have the files"):
        resolve("mini")


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"one of mini, original, original_5\.5b, small, medium, or a folder .*'orignal'"
    ):
        resolve("orignal")
