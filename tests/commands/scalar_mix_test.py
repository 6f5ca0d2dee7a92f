import json
import tarfile

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import ElmoTokenEmbedder

from elmo_tasks.commands.scalar_mix import read_mixes
from elmo_tasks.modules import ElmoEmbedder


@pytest.fixture
def archived(bilm_folder, tmp_path):
    """Writes the weights of embedders as a model would; gives the archive, or the folder of the run."""

    def archived(run, file_name="best.th", **embedders):
        folder = tmp_path / run
        folder.mkdir()
        torch.save(torch.nn.ModuleDict(embedders).state_dict(), folder / file_name)
        if file_name != "weights.th":
            return folder
        with tarfile.open(folder / "model.tar.gz", "w:gz") as archive:
            archive.add(folder / "weights.th", "weights.th")
        return folder / "model.tar.gz"

    return archived


@pytest.fixture
def files(bilm_folder):
    return {"options_file": str(bilm_folder / "options.json"), "weight_file": str(bilm_folder / "weights.hdf5")}


def set_mix(mix, scalars, gamma):
    with torch.no_grad():
        for parameter, scalar in zip(mix.scalar_parameters, scalars):
            parameter.fill_(scalar)
        mix.gamma.fill_(gamma)


@pytest.mark.parametrize("file_name", ["weights.th", "best.th"])
def test_weights_and_gamma_are_those_of_the_weights_file(allennlp, archived, files, tmp_path, file_name):
    embedder = ElmoEmbedder(**files)
    set_mix(embedder.scalar_mix, [0.0, 1.0, 2.0], 1.5)
    path = archived("run", file_name, elmo=embedder)
    lines = allennlp("scalar-mix", path, "--json", tmp_path / "mix.json").splitlines()
    exponentials = torch.tensor([0.0, 1.0, 2.0]).exp()
    expected = (exponentials / exponentials.sum()).tolist()
    assert lines[0].split() == ["model", "mix", "layer", "0", "layer", "1", "layer", "2", "gamma"]
    assert lines[1].split() == [str(path), "elmo.scalar_mix", "0.0900", "0.2447", "0.6652", "1.5000"]
    (row,) = json.loads((tmp_path / "mix.json").read_text())
    assert row["path"] == str(path)
    assert row["weights"] == pytest.approx(expected)
    assert sum(row["weights"]) == pytest.approx(1.0)
    assert row["gamma"] == 1.5


def test_fresh_model_weighs_all_layers_alike(archived, files):
    (mix,) = read_mixes(str(archived("run", elmo=ElmoEmbedder(**files))))
    assert mix.weights == pytest.approx([1 / 3] * 3)
    assert mix.gamma == 1.0


def test_mix_of_allennlps_embedder_is_read_too(archived, files):
    stock = ElmoTokenEmbedder(**files)
    set_mix(stock._elmo.scalar_mix_0, [-9e10, 1.0, -9e10], 0.5)
    (mix,) = read_mixes(str(archived("run", elmo=stock)))
    assert mix == (str(mix.path), "elmo._elmo.scalar_mix_0", [0.0, 1.0, 0.0], 0.5)


def test_every_mix_of_every_model_has_a_line(allennlp, archived, files):
    one = archived("one", first=ElmoEmbedder(**files), second=ElmoEmbedder(**files))
    two = archived("two", only=ElmoEmbedder(**files))
    lines = allennlp("scalar-mix", one, two).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        [str(one), "first.scalar_mix"],
        [str(one), "second.scalar_mix"],
        [str(two), "only.scalar_mix"],
    ]


def test_config_shows_the_mix_that_training_starts_from(files, tmp_path):
    fresh = {"type": "elmo", **files}
    chosen = {"type": "elmo", **files, "mix": {"initial": [0.2, 0.3, 0.5], "normalized": True}}
    model = {"text_field_embedder": {"token_embedders": {"fresh": fresh, "chosen": chosen}}}
    (tmp_path / "config.json").write_text(json.dumps({"model": model}))
    weights = {mix.mix.split(".")[-2]: mix.weights for mix in read_mixes(str(tmp_path / "config.json"))}
    assert weights == {"fresh": pytest.approx([1 / 3] * 3), "chosen": pytest.approx([0.2, 0.3, 0.5])}


def test_model_without_a_scalar_mix_is_an_error(archived):
    path = archived("run", linear=torch.nn.Linear(2, 3))
    with pytest.raises(ConfigurationError, match="must have an ELMo embedder with a scalar mix"):
        read_mixes(str(path))


def test_run_before_its_first_epoch_has_ended_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="has an epoch ended"):
        read_mixes(str(tmp_path))
