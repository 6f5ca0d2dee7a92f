"""One archive for each task, trained on a few rows with word vectors, which keep no state."""

import json
from typing import List, NamedTuple

import pytest
from allennlp.commands import main
from allennlp.commands.train import train_model
from allennlp.common import Params

# They register what the configs name.
import elmo_tasks.dataset_readers
import elmo_tasks.predictors  # noqa: F401

INDEXERS = {"words": {"type": "single_id"}}
EMBEDDER = {"token_embedders": {"words": {"type": "embedding", "embedding_dim": 8}}}


def train(folder, reader, data, model):
    """Trains three epochs and gives the archive."""
    config = {
        "dataset_reader": {**reader, "token_indexers": INDEXERS},
        "train_data_path": str(data),
        "model": {**model, "text_field_embedder": EMBEDDER},
        "data_loader": {"batch_size": 4},
        "trainer": {"num_epochs": 3, "optimizer": {"type": "adam", "lr": 0.3}, "cuda_device": -1},
    }
    train_model(Params(config), str(folder), force=True)
    return folder / "model.tar.gz"


SENTENCES = [
    ("a film of quiet wonder", "1"),
    ("two hours that feel like nine", "0"),
    ("warm , odd and very funny", "1"),
    ("the plot gives up before you do", "0"),
    ("every frame is a small gift", "1"),
]

PAIRS = [
    ("The bridge was closed on Monday .", "On Monday the bridge was shut .", "1"),
    ("Rain fell in the north .", "The north had no rain at all .", "0"),
    ('He called it "a fair deal" .', "It was a fair deal , he said .", "1"),
]


class Archive(NamedTuple):
    """An archive, the raw data file that it was trained on, and the rows of that file as JSON inputs."""

    path: object
    data: object
    inputs: List[dict]


@pytest.fixture(scope="session")
def sentence_archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentence")
    data = folder / "train.txt"
    data.write_text("".join(f"{text}_!_{label}\n" for text, label in SENTENCES))
    reader = {"type": "mr", "label_names": {"0": "negative", "1": "positive"}}
    model = {"type": "elmo_sentence_classifier", "positive_label": "positive", "class_weights": "balanced"}
    archive = train(folder / "run", reader, data, model)
    return Archive(archive, data, [{"sentence": text} for text, _ in SENTENCES])


@pytest.fixture(scope="session")
def pair_archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    data = folder / "msr_paraphrase_train.txt"
    lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    lines += [f"{label}\t{row}\t{row + 50}\t{text1}\t{text2}" for row, (text1, text2, label) in enumerate(PAIRS)]
    data.write_text("\n".join(lines) + "\n")
    model = {"type": "elmo_pair_classifier", "positive_label": "1", "symmetric": True}
    archive = train(folder / "run", {"type": "mrpc"}, data, model)
    return Archive(archive, data, [{"sentence1": text1, "sentence2": text2} for text1, text2, _ in PAIRS])


@pytest.fixture
def allennlp(monkeypatch, tmp_path):
    """Runs a command of `allennlp` in this process; `predict` and `evaluate` give the JSON lines that they wrote."""

    def run(command, archive, input_file, *flags):
        output = tmp_path / "output.jsonl"
        flag = {"predict": "--output-file", "evaluate": "--predictions-output-file"}[command]
        arguments = ["allennlp", command, str(archive), str(input_file), flag, str(output), *flags]
        monkeypatch.setattr("sys.argv", arguments)
        # This package is imported already, and allennlp-models takes seconds.
        monkeypatch.setattr("allennlp.commands.import_plugins", lambda: None)
        main()
        return [json.loads(line) for line in output.read_text().splitlines()]

    return run


@pytest.fixture
def json_lines(tmp_path):
    """Writes objects, or lines as they are, to a file of JSON lines."""

    def write(rows):
        path = tmp_path / "input.jsonl"
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write
