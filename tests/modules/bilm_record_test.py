"""Weights files name the biLM in them, and may leave its weights out."""

import shutil

import h5py
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import load_archive

from elmo_tasks.modules import ElmoEmbedder
from elmo_tasks.modules.bilm_record import BiLmRecord, load_mapped


def test_record_comes_back_from_its_tensor():
    record = BiLmRecord({"lstm": {"dim": 4}}, {"pretrained": "Ω"}, None, True, "0.1.0")
    tensor = record.to_tensor()
    assert BiLmRecord.from_tensor(tensor) == record
    # What `allennlp diff` does with each tensor of two archives.
    assert (tensor - tensor).square().mean() == 0


def test_weights_can_be_left_out_of_checkpoints_and_archives(train, bilm_folder, tmp_path, predictions):
    whole = train({"pretrained": str(bilm_folder)})
    lean = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    assert predictions(lean / "model.tar.gz") == predictions(whole / "model.tar.gz")
    for name in ("best.th", "model_state_e1_b0.th"):
        assert not any(".bilm." in key for key in load_mapped(str(lean / name)))
        assert (lean / name).stat().st_size < 0.1 * (whole / name).stat().st_size
    (record,) = [value for key, value in load_mapped(str(lean / "best.th")).items() if key.endswith("bilm_record")]
    assert BiLmRecord.from_tensor(record).source == {"pretrained": str(bilm_folder)}


def test_archive_without_weights_refuses_another_bilm(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    with h5py.File(bilm_folder / "weights.hdf5", "r+") as weights:
        weights["CNN_proj/b_proj"][0] += 1.0
    with pytest.raises(ConfigurationError, match=r"needs the biLM with digest \w+, from .*bilm.*, but the one at hand"):
        load_archive(str(run / "model.tar.gz"))


def test_archive_without_weights_says_when_its_bilm_is_gone(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    shutil.rmtree(bilm_folder)
    with pytest.raises(ConfigurationError, match=r"the biLM cannot be had.*bilm"):
        load_archive(str(run / "model.tar.gz"))


def test_archive_without_weights_takes_the_same_bilm_from_another_place(train, bilm_folder, tmp_path, predictions):
    run = train({"pretrained": str(bilm_folder), "save_bilm_weights": False})
    expected = predictions(run / "model.tar.gz")
    moved = shutil.move(str(bilm_folder), str(tmp_path / "moved"))
    key = "model.text_field_embedder.token_embedders.elmo.pretrained"
    assert predictions(run / "model.tar.gz", overrides={key: moved}) == expected


def test_state_without_weights_loads_strictly_and_leaves_the_weights_alone(bilm_folder):
    embedder = ElmoEmbedder(pretrained=str(bilm_folder), save_bilm_weights=False)
    before = {name: value.clone() for name, value in embedder.bilm.state_dict().items()}
    state = embedder.state_dict()
    state["scalar_mix.gamma"] = torch.tensor([2.5])
    another = ElmoEmbedder(pretrained=str(bilm_folder), save_bilm_weights=False)
    another.load_state_dict(state, strict=True)
    assert another.scalar_mix.gamma.item() == 2.5
    for name, value in another.bilm.state_dict().items():
        assert torch.equal(value, before[name])


def test_weights_that_are_trained_after_all_are_kept(bilm_folder):
    """Nowhere else are they: the digest of the source would not fit them either."""
    embedder = ElmoEmbedder(pretrained=str(bilm_folder), save_bilm_weights=False)
    embedder.bilm.requires_grad_(True)
    with torch.no_grad():
        embedder.bilm.layers[0].bias += 1.0
    another = ElmoEmbedder(pretrained=str(bilm_folder), save_bilm_weights=False)
    another.load_state_dict(embedder.state_dict(), strict=True)
    assert torch.equal(another.bilm.layers[0].bias, embedder.bilm.layers[0].bias)


def test_missing_weights_are_missed_where_none_were_left_out(bilm_folder):
    embedder = ElmoEmbedder(pretrained=str(bilm_folder))
    state = {name: value for name, value in embedder.state_dict().items() if not name.startswith("bilm.layers")}
    with pytest.raises(RuntimeError, match=r"Missing key.*bilm\.layers"):
        embedder.load_state_dict(state, strict=True)


def test_two_bilms_in_one_archive_are_told_apart(bilm_folder, tmp_path):
    other_folder = tmp_path / "other"
    shutil.copytree(bilm_folder, other_folder)
    with h5py.File(other_folder / "weights.hdf5", "r+") as weights:
        weights["CNN_proj/b_proj"][0] += 1.0
    embedders = torch.nn.ModuleDict({name: ElmoEmbedder(pretrained=str(tmp_path / name)) for name in ("bilm", "other")})
    (tmp_path / "archive").mkdir()
    torch.save(embedders.state_dict(), tmp_path / "archive" / "weights.th")
    shutil.rmtree(bilm_folder)
    shutil.rmtree(other_folder)
    for name in ("bilm", "other"):
        embedder = ElmoEmbedder(pretrained=str(tmp_path / name), serialization_dir=str(tmp_path / "archive"))
        for found, expected in zip(embedder.parameters(), embedders[name].parameters()):
            assert torch.equal(found, expected)
