import json
import shutil

import h5py
import pytest

from elmo_tasks.commands.check_bilm import find_problems


@pytest.fixture
def folder(tmp_path, bilm_folder):
    shutil.copytree(bilm_folder, tmp_path / "bilm")
    return tmp_path / "bilm"


def edit_options(folder, edit):
    options = json.loads((folder / "options.json").read_text())
    edit(options)
    (folder / "options.json").write_text(json.dumps(options))


def test_a_good_pair_is_ok(allennlp, folder):
    assert allennlp("check-bilm", folder) == "ok\n"


def test_everything_that_is_wrong_is_listed_and_the_status_is_1(allennlp, folder, capsys):
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["CNN_proj/b_proj"]
        del file["CNN/b_cnn_0"]
        file["CNN/b_cnn_0"] = [1.0, 2.0]
        file["extra"] = 1.0
    edit_options(folder, lambda options: options["char_cnn"].update(n_characters=261))
    with pytest.raises(SystemExit) as exit_:
        allennlp("check-bilm", folder)
    assert exit_.value.code == 1
    lines = capsys.readouterr().out
    for sentence in (
        "`char_cnn.n_characters` must be 262 where a biLM is used, but is 261",
        "`CNN_proj/b_proj` is missing",
        "`CNN/b_cnn_0` must have shape (16,), but is (2,)",
        "`extra` is unexpected",
    ):
        assert sentence in lines


def test_missing_files_are_named(folder):
    (folder / "weights.hdf5").unlink()
    (folder / "options.json").unlink()
    assert [problem.split("/")[-1] for problem in find_problems(str(folder))] == [
        "options.json is missing",
        "weights.hdf5 is missing",
    ]


def test_options_of_another_kind_of_model_are_told(folder):
    edit_options(folder, lambda options: options.pop("char_cnn"))
    (problem,) = find_problems(str(folder))
    assert "over a word vocabulary are not supported" in problem


def test_a_file_that_is_cut_off_is_told(folder):
    content = (folder / "weights.hdf5").read_bytes()
    (folder / "weights.hdf5").write_bytes(content[: len(content) // 2])
    (problem,) = find_problems(str(folder))
    assert "must be an hdf5 file" in problem


def test_numbers_that_are_none_are_told(folder):
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file["CNN_proj/b_proj"][3] = float("nan")
    (problem,) = find_problems(str(folder))
    assert problem.startswith("`CNN_proj/b_proj` must hold finite numbers")


def test_weights_that_overflow_in_use_are_told(folder):
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file["CNN_proj/W_proj"][...] = 3e38
    problems = find_problems(str(folder))
    assert problems[0] == "layer 0 must give finite numbers, but does not: the weights are too large"
