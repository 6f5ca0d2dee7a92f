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


def numbers_of(text, first_cell):
    """The figures in the row of a table that begins so."""
    row = next(line for line in text.splitlines() if line.strip("│ ").startswith(first_cell))
    return [float(cell) for cell in row.strip("│ ").split("│")[1:]]


@pytest.fixture(autouse=True)
def wide_console(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


@pytest.mark.parametrize("file_name", ["weights.th", "best.th"])
def test_weights_and_gamma_are_those_of_the_weights_file(allennlp, archived, files, tmp_path, file_name):
    embedder = ElmoEmbedder(**files)
    set_mix(embedder.scalar_mix, [0.0, 1.0, 2.0], 1.5)
    path = archived("run", file_name, elmo=embedder)
    text = allennlp("scalar-mix", path, "--json", tmp_path / "mix.json")
    exponentials = torch.tensor([0.0, 1.0, 2.0]).exp()
    expected = (exponentials / exponentials.sum()).tolist()
    assert "elmo.scalar_mix" in text.splitlines()[0]
    assert numbers_of(text, str(path)) == [0.0900, 0.2447, 0.6652, 1.5000]
    assert "mean" not in text
    numbers = json.loads((tmp_path / "mix.json").read_text())
    (row,) = numbers["mixes"]
    assert row["path"] == str(path)
    assert row["weights"] == pytest.approx(expected)
    assert sum(row["weights"]) == pytest.approx(1.0)
    assert row["gamma"] == 1.5
    assert numbers["over_models"] == []


def test_several_models_have_a_mean_and_a_standard_deviation(allennlp, archived, files, tmp_path):
    paths = []
    for number, gamma in enumerate([1.0, 2.0, 6.0]):
        embedder = ElmoEmbedder(**files)
        set_mix(embedder.scalar_mix, [0.0, 0.0, -9e10 if number else 0.0], gamma)
        paths.append(archived(str(number), elmo=embedder))
    text = allennlp("scalar-mix", *paths, "--json", tmp_path / "mix.json")
    assert numbers_of(text, str(paths[0])) == [0.3333, 0.3333, 0.3333, 1.0]
    assert numbers_of(text, str(paths[2])) == [0.5, 0.5, 0.0, 6.0]
    # (1/3 + 1/2 + 1/2) / 3 and (1/3 + 0 + 0) / 3; gamma differs from its mean 3 by -2, -1 and 3: sqrt(14 / 2).
    assert numbers_of(text, "mean") == [0.4444, 0.4444, 0.1111, 3.0]
    assert numbers_of(text, "standard deviation") == [0.0962, 0.0962, 0.1925, 2.6458]
    (over_models,) = json.loads((tmp_path / "mix.json").read_text())["over_models"]
    assert over_models["num_models"] == 3
    assert over_models["mean"] == {"weights": pytest.approx([4 / 9, 4 / 9, 1 / 9]), "gamma": 3.0}
    assert over_models["standard_deviation"]["gamma"] == pytest.approx(7**0.5)


def test_fresh_model_weighs_all_layers_alike(archived, files):
    (mix,) = read_mixes(str(archived("run", elmo=ElmoEmbedder(**files))))
    assert mix.weights == pytest.approx([1 / 3] * 3)
    assert mix.gamma == 1.0


def test_mix_of_allennlps_embedder_is_read_too(archived, files):
    stock = ElmoTokenEmbedder(**files)
    set_mix(stock._elmo.scalar_mix_0, [-9e10, 1.0, -9e10], 0.5)
    (mix,) = read_mixes(str(archived("run", elmo=stock)))
    assert mix[1:] == ("elmo._elmo.scalar_mix_0", [0.0, 1.0, 0.0], 0.5, None)


def test_every_mix_has_a_table_with_every_model(allennlp, archived, files):
    one = archived("one", first=ElmoEmbedder(**files), second=ElmoEmbedder(**files))
    two = archived("two", first=ElmoEmbedder(**files))
    text = allennlp("scalar-mix", one, two)
    first, second = text.split("second.scalar_mix")
    assert "first.scalar_mix" in first
    assert [str(path) in first for path in (one, two)] == [True, True]
    assert [str(path) in second for path in (one, two)] == [True, False]
    assert "mean" in first
    assert "mean" not in second


def test_a_long_path_is_whole_in_a_narrow_console(allennlp, archived, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    path = archived("a_run_with_a_long_name_that_does_not_fit", elmo=ElmoEmbedder(**files))
    cells = [line.split("│")[1].strip() for line in allennlp("scalar-mix", path).splitlines() if "│" in line]
    assert "".join(cells) == str(path)


def test_config_shows_the_mix_that_training_starts_from(files, tmp_path):
    fresh = {"type": "elmo", **files}
    chosen = {"type": "elmo", **files, "mix": {"initial": [0.2, 0.3, 0.5], "normalized": True}}
    model = {"text_field_embedder": {"token_embedders": {"fresh": fresh, "chosen": chosen}}}
    (tmp_path / "config.json").write_text(json.dumps({"model": model}))
    weights = {mix.mix.split(".")[-2]: mix.weights for mix in read_mixes(str(tmp_path / "config.json"))}
    assert weights == {"fresh": pytest.approx([1 / 3] * 3), "chosen": pytest.approx([0.2, 0.3, 0.5])}


def test_model_without_a_scalar_mix_is_an_error(archived):
    path = archived("run", linear=torch.nn.Linear(2, 3))
    with pytest.raises(ConfigurationError, match="must have an ELMo embedder with a mix that is trained"):
        read_mixes(str(path))


def test_run_before_its_first_epoch_has_ended_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="has an epoch ended"):
        read_mixes(str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--picture", "mix.gif"], r"mix\.gif must end in one of \.png, \.svg, \.pdf, but ends in '\.gif'"),
        (["--picture", "no/mix.png"], "`--picture` must be in a folder that can be written to, but no is none"),
        (["--json", "no/mix.json"], "`--json` must be in a folder that can be written to, but no is none"),
        (["--num-tokens", "-1"], "`--num-tokens` must be at least 0, but is -1"),
        (["--sentences", "nowhere.txt"], r"nowhere\.txt must be a file of sentences"),
    ],
)
def test_options_that_make_no_sense_are_told_before_a_model_is_read(allennlp, arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        allennlp("scalar-mix", "no_such_model", *arguments)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_a_sentence_is_told_before_a_model_is_read(allennlp, tmp_path, content):
    (tmp_path / "empty.txt").write_text(content)
    with pytest.raises(
        ConfigurationError, match=r"`--sentences` must have a sentence or more, but .*empty\.txt has none"
    ):
        allennlp("scalar-mix", "no_such_model", "--sentences", tmp_path / "empty.txt")


def test_the_picture_is_drawn(allennlp, archived, files, tmp_path):
    allennlp("scalar-mix", archived("run", elmo=ElmoEmbedder(**files)), "--picture", tmp_path / "mix.png")
    assert (tmp_path / "mix.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_model_is_named(allennlp, tmp_path):
    (tmp_path / "notes.txt").write_text("the weights are elsewhere")
    with pytest.raises(ConfigurationError, match=r"notes\.txt must be an archive, the folder of a run or a config"):
        allennlp("scalar-mix", tmp_path / "notes.txt")
