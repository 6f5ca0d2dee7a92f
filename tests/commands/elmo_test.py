import filecmp
import json

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import batch_to_ids
from allennlp.modules.token_embedders import ElmoTokenEmbedder

from elmo_tasks.modules import ElmoEmbedder

LINES = ["A quiet film .", "", "Skip it", "one\u0085token and\u00a0another", "A quiet film .", "Ω naïve 日本語", "  "]
TOKENS = [line.split(" ") if line.strip() else [] for line in LINES]


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_bytes("\n".join(LINES).encode() + b"\r\n")
    return path


@pytest.fixture
def layers(bilm_folder):
    """All layers of each line by AllenNLP's biLM, `(3, num_tokens, 64)`."""
    stock = ElmoTokenEmbedder(str(bilm_folder / "options.json"), str(bilm_folder / "weights.hdf5"))._elmo._elmo_lstm
    stock._elmo_lstm.stateful = False
    results = []
    for tokens in TOKENS:
        if not tokens:
            results.append(numpy.zeros((3, 0, 64), "float32"))
            continue
        with torch.no_grad():
            activations = stock(batch_to_ids([tokens]))["activations"]
        results.append(torch.stack(activations)[:, 0, 1:-1].numpy())
    return results


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("all", lambda layers: layers),
        ("top", lambda layers: layers[-1]),
        ("average", lambda layers: layers.mean(axis=0)),
    ],
)
def test_every_line_has_the_layers_asked_for_in_its_own_order(
    allennlp, bilm_folder, text_file, layers, tmp_path, choice, expected
):
    output = tmp_path / "vectors.hdf5"
    allennlp("elmo", text_file, output, "--layers", choice, "--pretrained", bilm_folder, "--max-tokens", 6)
    with h5py.File(output) as vectors:
        assert set(vectors) == {*map(str, range(len(LINES))), "sentence_to_index"}
        for line, line_layers in enumerate(layers):
            array = vectors[str(line)][...]
            assert array.dtype == numpy.float32
            assert array.shape == expected(line_layers).shape
            numpy.testing.assert_allclose(array, expected(line_layers), rtol=0, atol=3e-5)
        index = json.loads(vectors["sentence_to_index"][0])
    assert index["Skip it"] == "2"
    assert index["A quiet film ."] == "4"


def test_running_again_gives_an_equal_file(allennlp, bilm_folder, text_file, tmp_path):
    files = ["--options-file", bilm_folder / "options.json", "--weight-file", bilm_folder / "weights.hdf5"]
    allennlp("elmo", text_file, tmp_path / "first.hdf5", *files)
    allennlp("elmo", text_file, tmp_path / "second.hdf5", "--pretrained", bilm_folder)
    assert filecmp.cmp(tmp_path / "first.hdf5", tmp_path / "second.hdf5", shallow=False)


def test_float16_and_no_sentences_make_a_small_file(allennlp, bilm_folder, text_file, layers, tmp_path):
    output = tmp_path / "vectors.hdf5"
    allennlp("elmo", text_file, output, "--pretrained", bilm_folder, "--dtype", "float16", "--forget-sentences")
    with h5py.File(output) as vectors:
        assert "sentence_to_index" not in vectors
        for line, line_layers in enumerate(layers):
            assert vectors[str(line)].dtype == numpy.float16
            numpy.testing.assert_allclose(vectors[str(line)][...], line_layers, rtol=0, atol=1e-2)


def test_mix_comes_from_the_archive(allennlp, bilm_folder, text_file, layers, tmp_path, monkeypatch):
    embedder = ElmoEmbedder(pretrained=str(bilm_folder), dropout=0.5)
    with torch.no_grad():
        embedder.scalar_mix.scalar_parameters[2].fill_(1.0)
        embedder.scalar_mix.gamma.fill_(2.0)
    weights = torch.tensor([0.0, 0.0, 1.0]).softmax(dim=0).numpy()

    class Archive:
        model = torch.nn.ModuleDict({"embedder": embedder})

    monkeypatch.setattr("elmo_tasks.commands.elmo.load_archive", lambda path: Archive)
    output = tmp_path / "vectors.hdf5"
    allennlp("elmo", text_file, output, "--layers", "mix", "--archive", "model.tar.gz")
    with h5py.File(output) as vectors:
        for line, line_layers in enumerate(layers):
            expected = 2.0 * numpy.tensordot(weights, line_layers, axes=1)
            numpy.testing.assert_allclose(vectors[str(line)][...], expected, rtol=0, atol=6e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layers", "mix", "--pretrained", "small"], "`--layers mix` must have `--archive`"),
        (["--archive", "model.tar.gz", "--pretrained", "small"], "must name the biLM, but all are given"),
        (["--pretrained", "no such name"], "a pretrained biLM must be one of"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(allennlp, text_file, tmp_path, arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        allennlp("elmo", text_file, tmp_path / "vectors.hdf5", *arguments)


def test_file_that_is_not_utf8_is_refused_and_leaves_nothing(allennlp, bilm_folder, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.txt must be a text file in UTF-8"):
        allennlp("elmo", tmp_path / "latin.txt", tmp_path / "vectors.hdf5", "--pretrained", bilm_folder)
    assert [path.name for path in tmp_path.iterdir()] == ["latin.txt"]
