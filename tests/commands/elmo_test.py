import filecmp
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import batch_to_ids
from allennlp.modules.token_embedders import ElmoTokenEmbedder

from elmo_tasks.commands import elmo
from elmo_tasks.modules import ElmoEmbedder

ROOT = Path(__file__).parents[2]

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


@pytest.fixture
def archive(bilm_folder, monkeypatch):
    """A trained model with weights of its own for the layers; gives the embedder."""
    embedder = ElmoEmbedder(pretrained=str(bilm_folder), dropout=0.5)
    with torch.no_grad():
        embedder.scalar_mix.scalar_parameters[2].fill_(1.0)
        embedder.scalar_mix.gamma.fill_(2.0)

    class Archive:
        model = torch.nn.ModuleDict({"embedder": embedder})

    monkeypatch.setattr(elmo, "load_archive", lambda path: Archive)
    return embedder


def read(path):
    """The arrays and the index of a file of vectors."""
    if path.suffix == ".npz":
        with numpy.load(path) as vectors:
            arrays = dict(vectors)
    else:
        with h5py.File(path) as vectors:
            arrays = {name: dataset[...] for name, dataset in vectors.items()}
    index = arrays.pop("sentence_to_index", None)
    return arrays, index if index is None else json.loads(index[0])


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("all", lambda layers: layers),
        ("top", lambda layers: layers[-1]),
        ("average", lambda layers: layers.mean(axis=0)),
    ],
)
def test_every_line_has_the_layers_asked_for_under_its_own_number(
    allennlp, bilm_folder, text_file, layers, tmp_path, choice, expected, suffix
):
    output = tmp_path / f"vectors{suffix}"
    allennlp("elmo", text_file, output, "--layers", choice, "--pretrained", bilm_folder, "--max-tokens", 6)
    arrays, index = read(output)
    assert set(arrays) == set(map(str, range(len(LINES))))
    for line, line_layers in enumerate(layers):
        array = arrays[str(line)]
        assert array.dtype == numpy.float32
        assert array.shape == expected(line_layers).shape
        numpy.testing.assert_allclose(array, expected(line_layers), rtol=0, atol=3e-5)
    assert index["Skip it"] == "2"
    assert index["A quiet film ."] == "4"
    assert len(index) == 5  # two lines are blank, two are equal


@pytest.mark.slow
def test_json_lines_are_read_as_the_same_sentences(allennlp, bilm_folder, text_file, tmp_path):
    rows = [{"tokens": TOKENS[0]}, {"tokens": []}, {"sentence": LINES[2], "label": 1}, {"tokens": TOKENS[3]}]
    rows += [{"sentence": line} for line in LINES[4:]]
    (tmp_path / "sentences.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "no_suffix").write_bytes((tmp_path / "sentences.jsonl").read_bytes())
    named = ["--pretrained", bilm_folder]
    allennlp("elmo", text_file, tmp_path / "text.hdf5", *named)
    allennlp("elmo", tmp_path / "sentences.jsonl", tmp_path / "json.hdf5", *named)
    allennlp("elmo", tmp_path / "no_suffix", tmp_path / "option.hdf5", *named, "--input-format", "json-lines")
    assert filecmp.cmp(tmp_path / "text.hdf5", tmp_path / "json.hdf5", shallow=False)
    assert filecmp.cmp(tmp_path / "text.hdf5", tmp_path / "option.hdf5", shallow=False)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_running_again_gives_an_equal_file(allennlp, bilm_folder, text_file, tmp_path, suffix):
    files = ["--options-file", bilm_folder / "options.json", "--weight-file", bilm_folder / "weights.hdf5"]
    allennlp("elmo", text_file, tmp_path / f"first{suffix}", *files)
    allennlp("elmo", text_file, tmp_path / f"second{suffix}", "--pretrained", bilm_folder)
    assert filecmp.cmp(tmp_path / f"first{suffix}", tmp_path / f"second{suffix}", shallow=False)


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_float16_and_no_sentences_make_a_small_file(allennlp, bilm_folder, text_file, layers, tmp_path, suffix):
    output = tmp_path / f"vectors{suffix}"
    allennlp("elmo", text_file, output, "--pretrained", bilm_folder, "--dtype", "float16", "--forget-sentences")
    arrays, index = read(output)
    assert index is None
    for line, line_layers in enumerate(layers):
        assert arrays[str(line)].dtype == numpy.float16
        numpy.testing.assert_allclose(arrays[str(line)], line_layers, rtol=0, atol=1e-2)


def test_mix_comes_from_the_archive(allennlp, archive, text_file, layers, tmp_path):
    weights = torch.tensor([0.0, 0.0, 1.0]).softmax(dim=0).numpy()
    allennlp("elmo", text_file, tmp_path / "vectors.hdf5", "--layers", "mix", "--archive", "model.tar.gz")
    arrays, _ = read(tmp_path / "vectors.hdf5")
    for line, line_layers in enumerate(layers):
        expected = 2.0 * numpy.tensordot(weights, line_layers, axes=1)
        numpy.testing.assert_allclose(arrays[str(line)], expected, rtol=0, atol=6e-5)


class Killed(BaseException):
    """Nothing handles it, as nothing handles `kill -9`."""


@pytest.fixture
def calls(monkeypatch):
    """The lines whose vectors were computed; `calls.stop_at(line)` makes the process die before that one."""

    class Calls(list):
        stop = None

    calls = Calls()
    original = elmo._vectors

    def noting(embedder, window, *others):
        names = [int(sentence.name) for sentence in window]
        if calls.stop in names:
            raise Killed
        calls.extend(names)
        return original(embedder, window, *others)

    monkeypatch.setattr(elmo, "_vectors", noting)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_an_interrupted_command_is_continued_and_nothing_is_done_twice(
    allennlp, bilm_folder, text_file, tmp_path, calls, suffix
):
    options = ["--pretrained", bilm_folder, "--max-tokens", 1]  # windows of two lines or less
    whole, output = tmp_path / f"whole{suffix}", tmp_path / f"vectors{suffix}"
    allennlp("elmo", text_file, whole, *options)
    for calls.stop in (0, 3, 5):
        with pytest.raises(Killed):
            allennlp("elmo", text_file, output, *options)
        assert not output.exists()
    calls.stop = None
    del calls[:]
    allennlp("elmo", text_file, output, *options)
    assert calls == [5, 6]
    assert filecmp.cmp(whole, output, shallow=False)
    assert {path.name for path in tmp_path.iterdir()} == {whole.name, output.name, "sentences.txt"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--layers", "top"], r"`arrays` was 'float32 \(3, num_tokens, 64\)', but is 'float32 \(num_tokens, 64\)'"),
        (["--dtype", "float16"], "`arrays` was 'float32"),
        (["--forget-sentences"], "`sentence_to_index` was True, but is False"),
        (["--precision", "bfloat16"], "`precision` was 'float32', but is 'bfloat16'"),
    ],
)
def test_a_partial_file_of_other_settings_is_not_continued(
    allennlp, bilm_folder, text_file, tmp_path, calls, change, message
):
    output = tmp_path / "vectors.hdf5"
    options = ["--pretrained", bilm_folder, "--max-tokens", 1]
    calls.stop = 3
    with pytest.raises(Killed):
        allennlp("elmo", text_file, output, *options)
    partial = (tmp_path / "vectors.hdf5.partial").read_bytes()
    calls.stop = None
    with pytest.raises(ConfigurationError, match=message):
        allennlp("elmo", text_file, output, *options, *change)
    assert (tmp_path / "vectors.hdf5.partial").read_bytes() == partial


@pytest.mark.slow
def test_a_partial_file_of_other_sentences_or_weights_is_not_continued(
    allennlp, bilm_folder, text_file, tmp_path, calls, archive
):
    output = tmp_path / "vectors.hdf5"
    options = ["--layers", "mix", "--archive", "model.tar.gz", "--max-tokens", 1]
    calls.stop = 3
    with pytest.raises(Killed):
        allennlp("elmo", text_file, output, *options)
    calls.stop = None
    content = text_file.read_bytes()
    text_file.write_bytes(content.replace(b"Skip", b"Keep"))
    with pytest.raises(ConfigurationError, match="`input` was '7 lines, 15 tokens, digest "):
        allennlp("elmo", text_file, output, *options)
    text_file.write_bytes(content)
    with torch.no_grad():
        archive.scalar_mix.gamma.fill_(3.0)
    with pytest.raises(ConfigurationError, match="`mix` was "):
        allennlp("elmo", text_file, output, *options)
    archive.scalar_mix.gamma.data.fill_(2.0)
    archive.scalar_mix._layer_norm = True
    with pytest.raises(ConfigurationError, match="`mix` was "):
        allennlp("elmo", text_file, output, *options)
    archive.scalar_mix._layer_norm = False
    archive.bilm.layers[0].projection.data.mul_(2.0)
    with pytest.raises(ConfigurationError, match="`biLM` was "):
        allennlp("elmo", text_file, output, *options)


@pytest.mark.slow
def test_smaller_batches_may_go_on_with_a_partial_file(allennlp, bilm_folder, text_file, layers, tmp_path, calls):
    """Who has run out of memory needs them."""
    calls.stop = 3
    with pytest.raises(Killed):
        allennlp("elmo", text_file, tmp_path / "vectors.npz", "--pretrained", bilm_folder, "--max-tokens", 2)
    done = len(calls)
    calls.stop = None
    allennlp("elmo", text_file, tmp_path / "vectors.npz", "--pretrained", bilm_folder, "--max-tokens", 1)
    assert 0 < done < len(LINES)
    assert calls == list(range(len(LINES)))
    arrays, _ = read(tmp_path / "vectors.npz")
    for line, line_layers in enumerate(layers):
        numpy.testing.assert_allclose(arrays[str(line)], line_layers, rtol=0, atol=3e-5)


@pytest.mark.parametrize(
    ("output", "arguments", "message"),
    [
        ("vectors.hdf5", ["--layers", "mix", "--pretrained", "small"], "`--layers mix` must have `--archive`"),
        ("vectors.hdf5", ["--archive", "model.tar.gz", "--pretrained", "small"], "must name the biLM, but all are"),
        ("vectors.hdf5", ["--pretrained", "no such name"], "a pretrained biLM must be one of"),
        ("vectors.hdf5", ["--max-tokens", "0"], "`--max-tokens` must be at least 1, but is 0"),
        ("vectors.txt", [], r"vectors\.txt must end in one of \.hdf5, \.h5, \.npz, but ends in '\.txt'"),
        ("no/vectors.npz", [], r"no/vectors\.npz must be in a folder that can be written to, but .*/no is none"),
        ("old.npz", [], r"old\.npz must be a new file, but is there already"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(allennlp, text_file, tmp_path, output, arguments, message):
    (tmp_path / "old.npz").write_bytes(b"precious")
    with pytest.raises(ConfigurationError, match=message):
        allennlp("elmo", text_file, tmp_path / output, *arguments)
    assert (tmp_path / "old.npz").read_bytes() == b"precious"
    assert {path.name for path in tmp_path.iterdir()} == {"old.npz", "sentences.txt"}


def test_a_bad_line_is_told_before_the_bilm_is_loaded(allennlp, tmp_path, monkeypatch):
    monkeypatch.setattr(elmo, "ElmoEmbedder", lambda **arguments: pytest.fail("it was loaded"))
    (tmp_path / "latin.txt").write_bytes(b"plain\ncaf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.txt, line 2: must be UTF-8, but byte e9 is not"):
        allennlp("elmo", tmp_path / "latin.txt", tmp_path / "vectors.hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["latin.txt"]


class LoadedError(Exception):
    """Instead of a download."""


@pytest.mark.parametrize(("arguments", "is_told"), [([], True), (["--pretrained", "mini"], False)])
def test_it_is_said_what_is_downloaded_by_default(
    allennlp, text_file, tmp_path, monkeypatch, caplog, arguments, is_told
):
    def load(**arguments):
        raise LoadedError

    monkeypatch.setattr(elmo, "ElmoEmbedder", load)
    with caplog.at_level("INFO", "elmo_tasks"), pytest.raises(LoadedError):
        allennlp("elmo", text_file, tmp_path / "vectors.hdf5", *arguments)
    url = "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    told = [line for line in caplog.messages if url in line and "`--pretrained mini` needs no network" in line]
    assert bool(told) == is_told


COMMAND = [sys.executable, "-m", "allennlp", "elmo"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_a_command_that_is_killed_again_and_again_ends_as_one_that_is_not(bilm_folder, tmp_path, suffix):
    text = (ROOT / "fixtures/text/train.txt").read_text(encoding="utf-8")
    (tmp_path / "sentences.txt").write_text(text, encoding="utf-8")
    options = ["--pretrained", str(bilm_folder), "--max-tokens", "16"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    whole, output = tmp_path / f"whole{suffix}", tmp_path / f"vectors{suffix}"
    state = tmp_path / f"vectors{suffix}.partial.json"

    def start(path):
        command = [*COMMAND, str(tmp_path / "sentences.txt"), str(path), *options]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

    assert start(whole).wait() == 0
    done = [0]
    for delay_s in (0.0, 0.05, 0.4):
        process = start(output)
        # Until it has got further than the one before.
        while process.poll() is None and num_arrays(state) <= done[-1]:
            time.sleep(0.01)
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not output.exists()
        done.append(num_arrays(state))
    assert start(output).wait() == 0
    assert done == sorted(set(done))
    assert filecmp.cmp(whole, output, shallow=False)
    assert not state.exists()


def num_arrays(state):
    try:
        return json.loads(state.read_text())["num_arrays"]
    except FileNotFoundError:
        return 0


def memory_mib(field):
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1]) / 1024


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_memory_does_not_grow_with_the_file(bilm_folder, tmp_path, monkeypatch, suffix):
    def zeros(embedder, window, layers, dtype, max_tokens):
        return [numpy.zeros((3, len(sentence.tokens), 64), dtype) for sentence in window]

    monkeypatch.setattr(elmo, "_vectors", zeros)
    embedder = ElmoEmbedder(pretrained=str(bilm_folder))
    for num_lines in (100, 2000):  # the first also pays for what a process needs once
        (tmp_path / "sentences.txt").write_text(f"{'word ' * 80}\n" * num_lines)
        sentences = elmo.SentenceFile(str(tmp_path / "sentences.txt"))
        Path("/proc/self/clear_refs").write_text("5")
        before = memory_mib("VmRSS")
        elmo.embed_file(embedder, sentences, str(tmp_path / f"{num_lines}{suffix}"), max_tokens=512)
    assert (tmp_path / f"2000{suffix}").stat().st_size > 100 * 2**20
    assert memory_mib("VmHWM") - before < 10
