import inspect
import io
import json
import os
import pickle
import tarfile
import tempfile
import types
import zipfile

import allennlp.models.archival as archival
import numpy as np
import pytest
import torch
from allennlp.common import Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model, load_archive
from allennlp.nn import Activation
from allennlp.nn.initializers import PretrainedModelInitializer
from allennlp.nn.util import read_state_dict
from allennlp.training.checkpointer import Checkpointer

from elmo_tasks.common import data_pickle, untrusted_files
from elmo_tasks.common.untrusted_files import UnsafeFileError
from elmo_tasks.models import SentenceClassifier
from elmo_tasks.training import AtomicCheckpointer


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.fixture
def marker(tmp_path):
    """What a payload makes: not there when the test ends."""
    marker = tmp_path / "marker"
    yield marker
    assert not marker.exists()


@pytest.fixture(params=["zip", "legacy"])
def hostile(request, tmp_path, marker):
    """Weights of torch's new or old kind of file, with a payload beside them."""
    path = tmp_path / "weights.th"
    torch.save(
        {"bias": torch.ones(2), "_": Payload(marker)}, path, _use_new_zipfile_serialization=request.param == "zip"
    )
    return path


def refusal(path):
    return rf"^\S*{path.name} must hold nothing but tensors and plain values, but asks for `(posix|nt)\.mkdir`, which"


# --- weights and training states


def test_the_payload_of_these_tests_does_run_where_nothing_keeps_it(tmp_path):
    made = tmp_path / "made"
    pickle.loads(pickle.dumps(Payload(made)))
    assert made.is_dir()


@pytest.mark.parametrize("load", [torch.load, read_state_dict, PretrainedModelInitializer], ids=lambda f: f.__name__)
def test_a_payload_in_weights_is_refused_in_one_sentence(load, hostile):
    with pytest.raises(ConfigurationError, match=refusal(hostile)) as error:
        load(str(hostile))
    assert isinstance(error.value, pickle.UnpicklingError)
    assert "\n" not in str(error.value)
    assert "weights_only" not in str(error.value), "no advice to switch the protection off"


def test_the_folder_of_a_run_is_loaded_without_its_payload(hostile, tmp_path):
    """As `Model.from_archive` of a folder, with the default weights of a run."""
    hostile.rename(tmp_path / "best.th")
    with pytest.raises(ConfigurationError, match=refusal(tmp_path / "best.th")):
        read_state_dict(archival.get_weights_path(str(tmp_path)))


@pytest.mark.parametrize("checkpointer", [Checkpointer, AtomicCheckpointer])
@pytest.mark.parametrize("hostile_part", ["model_state", "training_state"])
def test_a_payload_in_a_checkpoint_is_refused(checkpointer, hostile_part, tmp_path, marker):
    for part in ("model_state", "training_state"):
        torch.save({"_": Payload(marker) if part == hostile_part else 1}, tmp_path / f"{part}_e1_b0.th")
    with pytest.raises(ConfigurationError, match=rf"{hostile_part}_e1_b0.th must hold nothing but tensors"):
        checkpointer(str(tmp_path)).load_checkpoint()


def test_what_training_saves_is_data(tmp_path):
    """Numbers of numpy and Python, random states, containers."""
    state = {
        "epochs_completed": 3,
        "metric_tracker": {"best": np.float64(0.5), "improved": True, "history": [float("inf"), None]},
        "random": torch.get_rng_state(),
        "order": (3, (1, 2**31), None),
        "rates": np.arange(3.0),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "bytes": b"ab",
    }
    torch.save(state, tmp_path / "state.th")
    for options in ({}, {"pickle_module": data_pickle, "weights_only": False}):
        loaded = torch.load(tmp_path / "state.th", **options)
        assert loaded["metric_tracker"] == state["metric_tracker"]
        assert loaded["order"] == state["order"]
        assert loaded["bytes"] == b"ab"
        assert loaded["rates"].tolist() == [0.0, 1.0, 2.0]
        for key in ("random", "parameter", "half"):
            assert torch.equal(loaded[key], state[key])
            assert loaded[key].dtype == state[key].dtype


def test_torch_that_cannot_be_told_what_is_data_reads_with_a_reader_that_can(hostile, monkeypatch):
    """As before 2.4: there is no list to add to, and no `weights_only` that would let numpy through."""
    monkeypatch.delattr(torch.serialization, "add_safe_globals")
    original = torch.load.__wrapped__

    def old_load(f, map_location=None, pickle_module=pickle, **pickle_load_args):
        return original(f, map_location, pickle_module, weights_only=False, **pickle_load_args)

    monkeypatch.setattr(torch, "load", old_load)
    monkeypatch.setattr(torch.serialization, "load", old_load)
    untrusted_files.load_data_without_code()
    with pytest.raises(UnsafeFileError, match=refusal(hostile)):
        torch.load(hostile)
    assert torch.load(io.BytesIO(saved({"bias": torch.ones(2)})))["bias"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("default", [False, None])
def test_torch_that_unpickles_by_default_is_told_not_to(default, hostile, monkeypatch):
    """As 2.4 and 2.5 do; `None` is today's."""
    original = torch.load.__wrapped__

    def load(f, map_location=None, pickle_module=None, *, weights_only=default, mmap=None, **pickle_load_args):
        return original(f, map_location, pickle_module, weights_only=weights_only, mmap=mmap, **pickle_load_args)

    monkeypatch.setattr(torch, "load", load)
    monkeypatch.setattr(torch.serialization, "load", load)
    untrusted_files.load_data_without_code()
    with pytest.raises(UnsafeFileError, match=refusal(hostile)):
        torch.load(hostile)


def saved(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def test_who_asks_for_objects_gets_them():
    content = saved({"namespace": types.SimpleNamespace(a=1)})
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(content))
    assert torch.load(io.BytesIO(content), weights_only=False)["namespace"].a == 1


def test_weights_that_claim_to_be_larger_than_their_file_are_refused(tmp_path):
    (tmp_path / "stored.th").write_bytes(saved({"bias": torch.zeros(10**6)}))
    with zipfile.ZipFile(tmp_path / "stored.th") as stored, zipfile.ZipFile(tmp_path / "bomb.th", "w") as bomb:
        for member in stored.infolist():
            bomb.writestr(member.filename, stored.read(member), zipfile.ZIP_DEFLATED)
    assert torch.load(tmp_path / "stored.th")["bias"].numel() == 10**6
    with pytest.raises(UnsafeFileError, match=r"bomb.th must hold tensors .* claim to be larger than the file"):
        torch.load(tmp_path / "bomb.th")


def test_weights_whose_parts_cannot_be_looked_at_do_not_reach_torch(tmp_path):
    """Its own reader does not mind a version that `zipfile` refuses to read."""
    content = bytearray(saved({"bias": torch.zeros(2)}))
    central_header = content.index(b"PK\x01\x02")
    content[central_header + 6] = 99
    (tmp_path / "weights.th").write_bytes(content)
    assert torch.load(io.BytesIO(content))["bias"].tolist() == [0, 0]
    with pytest.raises(UnsafeFileError, match=r"weights.th must hold .* cannot be read as such \(zip file version"):
        torch.load(tmp_path / "weights.th")


def test_a_program_in_place_of_weights_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "weights.th", "w") as archive:
        for name in ("constants.pkl", "data.pkl", "code/__torch__.py"):
            archive.writestr(f"archive/{name}", b"")
    with pytest.raises(UnsafeFileError, match="is a TorchScript program; save the state_dict"):
        torch.load(tmp_path / "weights.th")


def test_a_page_in_place_of_weights_is_named(tmp_path):
    (tmp_path / "weights.th").write_text("<html>moved</html>")
    with pytest.raises(ConfigurationError, match=r"weights.th must hold tensors as torch.save writes them, but cannot"):
        read_state_dict(tmp_path / "weights.th")


# --- archives


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    """Where archives are unpacked: empty when the test ends."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@Model.register("for_test_of_untrusted_files")
class Bias(Model):
    def __init__(self, vocab):
        super().__init__(vocab)
        self.bias = torch.nn.Parameter(torch.zeros(2))


CONFIG = {"model": {"type": "for_test_of_untrusted_files"}, "dataset_reader": {"type": "mr"}}


@pytest.fixture
def archive(tmp_path):
    """Makes one that AllenNLP can load, of a config and weights."""

    def make(config=CONFIG, weights=None):
        vocabulary = {"vocabulary/labels.txt": b"no\nyes\n", "vocabulary/non_padded_namespaces.txt": b"*labels\n"}
        weights = saved({"bias": torch.ones(2)}) if weights is None else weights
        path = tmp_path / "model.tar.gz"
        with tarfile.open(path, "w:gz") as file:
            for name, content in {
                "config.json": json.dumps(config).encode(),
                "weights.th": weights,
                **vocabulary,
            }.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
        return str(path)

    return make


@pytest.mark.usefixtures("temporary_folder")
def test_an_archive_is_loaded_and_leaves_nothing_behind(archive):
    model = load_archive(archive()).model
    assert model.bias.tolist() == [1.0, 1.0]
    assert model.vocab.get_vocab_size("labels") == 2


@pytest.mark.usefixtures("temporary_folder")
def test_a_payload_in_an_archive_is_refused_by_the_name_of_archive_and_member(archive, hostile):
    with pytest.raises(ConfigurationError, match=r"model\.tar\.gz\.\w+/weights\.th must hold nothing but tensors"):
        load_archive(archive(weights=hostile.read_bytes()))


@pytest.mark.usefixtures("temporary_folder")
def test_an_archive_with_a_link_is_refused_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "model.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("vocabulary")
        member.type, member.linkname = tarfile.SYMTYPE, "/"
        file.addfile(member)
    with pytest.raises(ConfigurationError, match="its member 'vocabulary' is a link, to '/'"):
        load_archive(path)
    with pytest.raises(ConfigurationError, match="its member 'vocabulary' is a link, to '/'"):
        PretrainedModelInitializer(str(path))


@pytest.mark.usefixtures("temporary_folder")
def test_an_archive_cannot_name_a_command_as_its_model(archive, marker):
    config = {**CONFIG, "model": {"type": "subprocess.Popen", "args": ["mkdir", str(marker)]}}
    with pytest.raises(
        ConfigurationError, match="must be a registered name of a `Model` or the path of a subclass, but"
    ):
        load_archive(archive(config))


# --- classes


def test_classes_of_the_right_kind_may_be_named_by_their_path():
    assert Model.by_name("elmo_tasks.models.SentenceClassifier") is SentenceClassifier
    assert isinstance(Activation.from_params(Params({"type": "torch.nn.SiLU"})), torch.nn.SiLU)
    assert Activation.by_name("relu")()(torch.tensor(-1.0)) == 0


def test_a_function_or_another_class_is_none():
    for name in ("os.system", "subprocess.Popen", "elmo_tasks.common.archives.unpack"):
        with pytest.raises(ConfigurationError, match=f"the path of a subclass, but is '{name}'; derive the class from"):
            Model.by_name(name)
    with pytest.raises(ConfigurationError, match="is not a registered name for 'Model'"):
        Model.by_name("nothing")


# --- applying


def test_protections_may_be_applied_again():
    untrusted_files.apply()
    for replaced in (torch.load, archival.extracted_archive, Registrable.resolve_class_name):
        assert hasattr(replaced, "__wrapped__")
        assert not hasattr(replaced.__wrapped__, "cured_by_elmo_tasks")
    assert "weights_only" in inspect.signature(torch.load).parameters


def test_every_protection_is_in_the_list_and_says_against_what():
    public = {
        function
        for name, function in vars(untrusted_files).items()
        if inspect.isfunction(function) and function.__module__ == untrusted_files.__name__ and not name.startswith("_")
    }
    assert set(untrusted_files.PROTECTIONS) == public - {untrusted_files.apply}
    assert all(len(protection.__doc__.strip().splitlines()) >= 3 for protection in untrusted_files.PROTECTIONS)
