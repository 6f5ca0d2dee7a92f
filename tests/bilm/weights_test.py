import re
import shutil
from pathlib import Path

import h5py
import numpy
import pytest
import torch

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights, save_weights, weights_digest

FIXTURE = Path(__file__).parents[2] / "fixtures" / "bilm"
OPTIONS = BiLmOptions.from_file(str(FIXTURE / "options.json"))
CELL = "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell"


def read(path):
    arrays = {}
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda key, found: arrays.update({key: found[...]}) if isinstance(found, h5py.Dataset) else None
        )
    return arrays


def load_fixture():
    bilm = BiLm(OPTIONS)
    load_weights(bilm, str(FIXTURE / "weights.hdf5"))
    return bilm


@pytest.fixture
def weight_file(tmp_path):
    """A copy of the fixture to spoil."""
    return shutil.copy(FIXTURE / "weights.hdf5", tmp_path / "weights.hdf5")


def test_a_file_that_was_read_is_written_again_bit_for_bit(tmp_path):
    path = str(tmp_path / "weights.hdf5")
    save_weights(load_fixture(), path)
    written, original = read(path), read(FIXTURE / "weights.hdf5")
    assert list(written) == list(original)
    for key, array in original.items():
        assert written[key].dtype == array.dtype == numpy.float32
        assert written[key].tobytes() == array.tobytes(), key


def test_a_model_that_was_written_is_read_again_bit_for_bit(tmp_path):
    path = str(tmp_path / "weights.hdf5")
    bilm, twin = BiLm(OPTIONS), BiLm(OPTIONS)
    save_weights(bilm, path)
    load_weights(twin, path)
    for one, other in zip(bilm.parameters(), twin.parameters()):
        assert torch.equal(one, other)


def test_half_precision_takes_half_the_place_and_is_read_back(tmp_path):
    full, half = str(tmp_path / "full.hdf5"), str(tmp_path / "half.hdf5")
    bilm = load_fixture()
    save_weights(bilm, full)
    save_weights(bilm, half, dtype="float16")
    assert Path(half).stat().st_size < 0.6 * Path(full).stat().st_size
    twin = BiLm(OPTIONS)
    load_weights(twin, half)
    for name, one in bilm.named_parameters():
        other = twin.get_parameter(name)
        assert other.dtype == torch.float32
        # AllenNLP adds 1 to biases of the LSTMs in the type of the file, and would round them again.
        assert torch.equal(one if re.fullmatch(r"layers\.\d\.bias", name) else one.half().float(), other)


def test_loading_is_seen_by_a_frozen_bilm_that_was_used_before():
    bilm = BiLm(OPTIONS).requires_grad_(False)
    ids = encode_sentences([["fog"]])
    bilm(ids)
    load_weights(bilm, str(FIXTURE / "weights.hdf5"))
    for one, other in zip(bilm(ids).activations, load_fixture().requires_grad_(False)(ids).activations):
        assert torch.equal(one, other)


def test_everything_that_is_wrong_is_said_at_once_and_nothing_is_loaded(weight_file):
    with h5py.File(weight_file, "a") as file:
        del file["CNN/b_cnn_0"]
        del file["CNN_proj"]
        file["extra/array"] = numpy.zeros(3, dtype="float32")
        del file[f"{CELL}/B"]
        file[f"{CELL}/B"] = numpy.zeros(255, dtype="float32")
        del file[f"{CELL}/W_P_0"]
        file[f"{CELL}/W_P_0"] = numpy.zeros((64, 32), dtype="int32")
    bilm = BiLm(OPTIONS)
    before = [parameter.clone() for parameter in bilm.parameters()]
    with pytest.raises(ValueError, match="do options and weights belong together") as error:
        load_weights(bilm, weight_file)
    lines = str(error.value).splitlines()
    assert lines[0].startswith(f"{weight_file} does not hold the weights of this biLM")
    assert sorted(lines[1:]) == [
        "- `CNN/b_cnn_0` is missing",
        "- `CNN_proj/W_proj` is missing",
        "- `CNN_proj/b_proj` is missing",
        f"- `{CELL}/B` must have shape (256,), but is (255,)",
        f"- `{CELL}/W_P_0` must be one of ('float32', 'float16'), but is int32",
        "- `extra` is unexpected",
    ]
    for one, other in zip(before, bilm.parameters()):
        assert torch.equal(one, other)


def test_a_character_table_with_a_row_for_padding_is_refused(weight_file):
    with h5py.File(weight_file, "a") as file:
        table = file["char_embed"][...]
        del file["char_embed"]
        file["char_embed"] = numpy.concatenate([numpy.zeros((1, 8), dtype="float32"), table])
    with pytest.raises(ValueError, match=r"`char_embed` must have shape \(261, 8\), but is \(262, 8\)"):
        load_weights(BiLm(OPTIONS), weight_file)


def test_options_of_another_size_are_refused():
    options = BiLmOptions.from_dict({**OPTIONS.to_dict(), "lstm": {**OPTIONS.to_dict()["lstm"], "n_layers": 3}})
    with pytest.raises(ValueError, match="Cell2/LSTMCell/W_0` is missing"):
        load_weights(BiLm(options), str(FIXTURE / "weights.hdf5"))


@pytest.mark.parametrize("link", [h5py.SoftLink("/CNN_proj/W_proj"), h5py.ExternalLink("other.hdf5", "/char_embed")])
def test_links_are_not_followed(weight_file, link):
    with h5py.File(weight_file, "a") as file:
        del file["char_embed"]
        file["char_embed"] = link
    with pytest.raises(ValueError, match="`char_embed` must be in the file itself, but is a link to elsewhere"):
        load_weights(BiLm(OPTIONS), weight_file)


def test_arrays_whose_numbers_lie_in_another_file_are_refused(weight_file, tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(261 * 8 * 4))
    with h5py.File(weight_file, "a") as file:
        del file["char_embed"]
        file.create_dataset(
            "char_embed", (261, 8), "float32", external=[(str(tmp_path / "secret.bin"), 0, 261 * 8 * 4)]
        )
        del file["CNN/b_cnn_0"]
        layout = h5py.VirtualLayout((16,), "float32")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.hdf5"), "bias", (16,))
        file["CNN"].create_virtual_dataset("b_cnn_0", layout)
    with pytest.raises(ValueError, match="`CNN/b_cnn_0` must be in the file itself") as error:
        load_weights(BiLm(OPTIONS), weight_file)
    assert "`char_embed` must be in the file itself, but its numbers are in another" in str(error.value)


def test_pieces_larger_than_their_array_are_refused(weight_file):
    """HDF5 would take memory for one piece, here 4 GiB less a little, which a few bytes of zeros unpack to."""
    with h5py.File(weight_file, "a") as file:
        del file["CNN_proj/b_proj"]
        file.create_dataset("CNN_proj/b_proj", (32,), "float32", maxshape=(None,), chunks=(2**30 - 1,))
    with pytest.raises(ValueError, match=r"b_proj` must be stored in pieces no larger than itself, but they are"):
        load_weights(BiLm(OPTIONS), weight_file)


def test_a_group_that_holds_itself_is_not_walked_for_ever(weight_file):
    with h5py.File(weight_file, "a") as file:
        file["CNN/CNN"] = file["CNN"]
        file[f"{CELL}/RNN_0"] = file["RNN_0"]
    with pytest.raises(ValueError, match="`CNN/CNN` is unexpected") as error:
        load_weights(BiLm(OPTIONS), weight_file)
    assert len(str(error.value).splitlines()) == 3


def test_a_group_in_place_of_an_array_is_refused(weight_file):
    with h5py.File(weight_file, "a") as file:
        del file["char_embed"]
        file.create_group("char_embed")
    with pytest.raises(ValueError, match="`char_embed` must be an array, but is a group"):
        load_weights(BiLm(OPTIONS), weight_file)


def test_a_file_that_is_no_hdf5_or_cut_short_is_refused(weight_file, tmp_path):
    page = tmp_path / "page.hdf5"
    page.write_text("<html>moved</html>")
    cut = tmp_path / "cut.hdf5"
    cut.write_bytes(Path(weight_file).read_bytes()[:1000])
    for path in (page, cut):
        with pytest.raises(ValueError, match=f"{path.name} must be an hdf5 file, but cannot be read as one"):
            load_weights(BiLm(OPTIONS), str(path))
    with pytest.raises(FileNotFoundError):
        load_weights(BiLm(OPTIONS), str(tmp_path / "nowhere.hdf5"))


def test_weights_too_large_for_half_precision_are_refused_and_leave_the_old_file(tmp_path):
    path = tmp_path / "weights.hdf5"
    path.write_text("the old file")
    bilm = load_fixture()
    with torch.no_grad():
        bilm.layers[1].projection[0, 3, 5] = 1e6
    with pytest.raises(
        ValueError, match=f"`{CELL}/W_P_0` must be finite in float16, but its largest weight is 1000000"
    ):
        save_weights(bilm, str(path), dtype="float16")
    assert [entry.name for entry in tmp_path.iterdir()] == ["weights.hdf5"]
    assert path.read_text() == "the old file"


def test_another_type_than_the_two_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`dtype` must be one of"):
        save_weights(load_fixture(), str(tmp_path / "weights.hdf5"), dtype="int8")


def test_the_digest_is_of_options_and_all_weights():
    digest = weights_digest(load_fixture())
    assert len(digest) == 64
    assert weights_digest(load_fixture()) == digest
    seen = {digest}
    for index, _ in enumerate(load_fixture().parameters()):
        bilm = load_fixture()
        with torch.no_grad():
            list(bilm.parameters())[index].flatten()[-1] += 1e-3
        seen.add(weights_digest(bilm))
    other_clip = BiLm(
        BiLmOptions.from_dict({**OPTIONS.to_dict(), "lstm": {**OPTIONS.to_dict()["lstm"], "proj_clip": 2}})
    )
    load_weights(other_clip, str(FIXTURE / "weights.hdf5"))
    seen.add(weights_digest(other_clip))
    assert len(seen) == 2 + len(list(load_fixture().parameters()))


def test_the_digest_of_the_fixture_is_the_same_in_any_process():
    assert weights_digest(load_fixture()) == "3c57b3ac12ebcd5024c01c678d7069e3f01c20e2a500739a3142a4f86277c89f"
