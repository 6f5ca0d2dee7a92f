"""Source archive -> wheel -> installed outside the checkout: all that the checkout offers is there."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from allennlp.common import Registrable

import elmo_tasks

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

OFFERED = """
import json, sys
import elmo_tasks
from allennlp.common import Registrable
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from elmo_tasks.bilm import encode_sentences
from elmo_tasks.modules import ElmoEmbedder

names = sorted(
    [base.__name__, name]
    for base, registered in Registrable._registry.items()
    for name, (kind, _) in registered.items()
    if kind.__module__.split(".")[0] == "elmo_tasks"
)
vectors = ElmoEmbedder(pretrained="mini", dropout=0)(encode_sentences([["a", "warm", "film"]]))
print(json.dumps({"file": elmo_tasks.__file__, "names": names, "vectors": vectors[0, :, :8].tolist()}))
"""

ROWS = ["a warm film_!_1\n", "a dull film_!_0\n", "warm and funny_!_1\n", "dull and long_!_0\n"]
CONFIG = {
    "dataset_reader": {"type": "mr"},
    "train_data_path": "rows.txt",
    "validation_data_path": "rows.txt",
    "model": {
        "type": "elmo_sentence_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo", "pretrained": "mini"}}},
    },
    "data_loader": {"batch_size": 2},
    "trainer": {"num_epochs": 1, "optimizer": "adam", "cuda_device": -1},
}


def process(code_or_module, cwd, **variables):
    done = subprocess.run(
        [sys.executable, *code_or_module],
        cwd=cwd,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that a wheel was installed into. It was built from a source archive of a copy of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, checkout)
    shutil.copytree(ROOT / "elmo_tasks", checkout / "elmo_tasks", ignore=shutil.ignore_patterns("__pycache__"))
    for what, source in (("sdist", checkout), ("wheel", folder / "unpacked")):
        if what == "wheel":
            (archive,) = folder.glob("*.tar.gz")
            with tarfile.open(archive) as file:
                file.extractall(folder)
            next(path for path in folder.glob("elmo_tasks-*") if path.is_dir()).rename(source)
        process(["-c", f"from setuptools import build_meta; build_meta.build_{what}({str(folder)!r})"], source)
    (wheel,) = folder.glob("*.whl")
    target = folder / "target"
    process(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheel)], folder)
    return target


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "nltk_data/tokenizers/punkt").mkdir(parents=True)
    (tmp_path / "rows.txt").write_text("".join(ROWS))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def variables(installed, elsewhere):
    return {"PYTHONPATH": str(installed), "NLTK_DATA": str(elsewhere / "nltk_data")}


def test_everything_that_is_registered_here_is_registered_there_and_the_bundled_bilm_embeds(installed, elsewhere):
    output = process(["-c", OFFERED], elsewhere, **variables(installed, elsewhere))
    offered = json.loads(output.splitlines()[-1])
    assert Path(offered["file"]).parents[1] == installed
    here = {
        (base.__name__, name)
        for base, registered in Registrable._registry.items()
        for name, (kind, _) in registered.items()
        if kind.__module__.split(".")[0] == elmo_tasks.__name__
    }
    assert set(map(tuple, offered["names"])) == here
    assert {"DatasetReader", "Model", "Predictor", "Subcommand", "TokenEmbedder"} <= {base for base, _ in here}
    words = offered["vectors"]
    assert len(words) == 3
    assert all(any(number != 0 for number in word) for word in words)


def test_files_of_the_package_are_all_in_the_wheel(installed):
    def files(root):
        return {
            path.relative_to(root) for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        }

    assert files(installed / "elmo_tasks") == files(ROOT / "elmo_tasks")


def test_commands_run_outside_the_checkout(installed, elsewhere):
    """A config with `--include-package`; then a subcommand of ours, which needs the list of plugins."""
    environment = variables(installed, elsewhere)
    train = ["-m", "allennlp", "train", "config.json", "-s", "run", "--include-package", "elmo_tasks"]
    process(train, elsewhere, **environment)
    (elsewhere / "input.jsonl").write_text('{"sentence": "a warm film"}\n')
    predict = ["predict", "run/model.tar.gz", "input.jsonl", "--output-file", "output.jsonl", "--silent"]
    process(["-m", "allennlp", *predict, "--include-package", "elmo_tasks"], elsewhere, **environment)
    assert json.loads((elsewhere / "output.jsonl").read_text())["label"] in ("0", "1")
    (elsewhere / ".allennlp_plugins").write_text("elmo_tasks\n")
    process(["-m", "allennlp", "report", "run", "--data", "rows.txt"], elsewhere, **environment)
    assert "</html>" in (elsewhere / "run/report.html").read_text()
