"""The bounds of `setup.py` for cached_path and filelock hold: a run with the oldest and with the newest of both."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LIBRARIES = ("cached_path", "filelock")

# Config, weights and data by relative and by absolute path, and data and weights out of an archive; vocabularies are
# written and read under a lock.
PROGRAM = """
import json, os
import cached_path, filelock
from allennlp.commands.train import train_model_from_file
from allennlp.predictors import Predictor
import elmo_tasks

probabilities = []
for name in ("relative", os.path.abspath("absolute")):
    train_model_from_file(f"{name}.json", name)
    predictor = Predictor.from_path(f"{name}/model.tar.gz")
    probabilities.append(predictor.predict_json({"sentence": "a warm film"})["label_probabilities"])
print(json.dumps({"modules": [cached_path.__file__, filelock.__file__], "probabilities": probabilities}))
"""


def requirements(age):
    """The oldest release that `setup.py` allows, exactly; or the bounds, within which pip takes the newest."""
    bounds = re.findall(r'"((?:cached_path|filelock)\b[^"]*)"', (ROOT / "setup.py").read_text())
    assert [re.split("[<>=]", bound)[0] for bound in bounds] == list(LIBRARIES)
    return [re.sub(r">=([\d.]+).*", r"==\1", bound) if age == "oldest" else bound for bound in bounds]


def write_config(path, files):
    """A short run whose files lie at the prefix `files`."""
    embedder = {"type": "elmo", "options_file": f"{files}options.json", "weight_file": f"{files}weights.hdf5"}
    config = {
        "dataset_reader": {"type": "mr"},
        "train_data_path": f"{files}rows.txt",
        "validation_data_path": f"{files}rows.zip!rows.txt",
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder}},
        },
        "data_loader": {"batch_size": 4},
        "trainer": {"num_epochs": 1, "optimizer": "adam", "cuda_device": -1},
    }
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("age", ["oldest", "newest"])
def test_local_files_are_found_with_the_oldest_and_the_newest_allowed_release(age, environment, tmp_path):
    libraries = tmp_path / "libraries"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", libraries]
    subprocess.run([*install, *requirements(age)], check=True)

    for name in ("options.json", "weights.hdf5"):
        shutil.copy(ROOT / "fixtures/bilm" / name, tmp_path)
    (tmp_path / "rows.txt").write_text("".join(f"row number {i} ._!_{i % 2}\n" for i in range(8)))
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.write(tmp_path / "rows.txt", "rows.txt")
    write_config(tmp_path / "relative.json", "")
    write_config(tmp_path / "absolute.json", f"{tmp_path}/")

    search_path = os.pathsep.join([str(libraries), environment["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": search_path, "ALLENNLP_CACHE_ROOT": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert [Path(module).relative_to(libraries).parts[0] for module in report["modules"]] == list(LIBRARIES)
    relative, absolute = report["probabilities"]
    assert relative == absolute
