import json

import h5py
import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model

from elmo_tasks.bilm import BiLmOptions
from elmo_tasks.dataset_readers import WordVocabulary


@pytest.fixture
def run(tmp_path, bilm_folder):
    """The folder of a run with untrained weights."""
    options = BiLmOptions.from_file(str(bilm_folder / "options.json")).to_dict()
    reader = {"type": "bilm_text"}
    config = {
        "dataset_reader": reader,
        "vocabulary": {"type": "bilm_text", "reader": reader, "data_path": "gone.txt"},
        "model": {"type": "bilm_language_model", "network": {"type": "characters", "options": options}},
    }
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    vocabulary = WordVocabulary.from_words(["<S>", "</S>", "<UNK>", "a"])
    torch.manual_seed(2)
    model = Model.from_params(Params(config["model"]), vocab=vocabulary)
    vocabulary.save_to_files(str(folder / "vocabulary"))
    torch.save(model.state_dict(), folder / "best.th")
    with torch.no_grad():
        model.network.bilm.character_encoder.characters.fill_(0.25)
    torch.save(model.state_dict(), folder / "model_state_e0_b10.th")
    return folder


def test_a_run_becomes_two_files_that_check_out(allennlp, run, tmp_path):
    assert "are in" in allennlp("export-bilm", run, tmp_path / "bilm")
    assert allennlp("check-bilm", tmp_path / "bilm") == "ok\n"


def test_half_precision_and_the_weights_of_a_checkpoint_on_request(allennlp, run, tmp_path):
    checkpoint = run / "model_state_e0_b10.th"
    allennlp("export-bilm", run, tmp_path / "bilm", "--dtype", "float16", "--weights-file", checkpoint)
    with h5py.File(tmp_path / "bilm/weights.hdf5", "r") as file:
        assert file["char_embed"].dtype == numpy.float16
        assert (file["char_embed"][...] == 0.25).all()


def test_a_file_in_place_of_the_folder_is_told_before_a_model_is_read(allennlp, tmp_path):
    (tmp_path / "bilm").touch()
    with pytest.raises(ConfigurationError, match=r"bilm must be a folder, new or not, but .*bilm is a file"):
        allennlp("export-bilm", "no_such_model", tmp_path / "bilm")


@pytest.mark.slow
def test_files_are_replaced_only_by_force(allennlp, run, tmp_path):
    allennlp("export-bilm", run, tmp_path / "bilm")
    with pytest.raises(ConfigurationError, match="must be empty, but is not; choose another or add --force"):
        allennlp("export-bilm", run, tmp_path / "bilm")
    allennlp("export-bilm", run, tmp_path / "bilm", "--force")
