"""A tiny biLM, and `allennlp` commands in this process."""

import sys
from pathlib import Path

import pytest
from allennlp.commands import main
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.plugins import import_plugins

import elmo_tasks  # noqa: F401  (registers what configs name)

FOLDER = Path(__file__).parents[2] / "fixtures" / "bilm"


@pytest.fixture
def bilm_folder():
    return FOLDER


@pytest.fixture(scope="session")
def plugins():
    """Imported once: looking for them takes a command half a second."""
    import_plugins()


@pytest.fixture
def allennlp(monkeypatch, capsys, plugins):
    """Runs a command; gives what it printed."""
    monkeypatch.setattr("allennlp.commands.import_plugins", lambda: None)

    def allennlp(*arguments):
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, arguments)])
        main()
        return capsys.readouterr().out

    return allennlp


SENTENCES = [
    ("a film of quiet wonder", "1"),
    ("two hours that feel like nine", "0"),
    ("warm , odd and very funny", "1"),
    ("the plot gives up before you do", "0"),
    ("every frame is a small gift", "1"),
    ("<script>document.title='taken'</script> and \"quoted\" & so on", "0"),
]


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory):
    """The folder of a run of three epochs, tested on sentences that it cannot all know, one of them with HTML in it."""
    root = tmp_path_factory.mktemp("report")
    (root / "train.txt").write_text("".join(f"{text}_!_{label}\n" for text, label in SENTENCES))
    # The same sentences with the other label too: whatever the model predicts, half of it is wrong.
    rows = [(text, label) for text, _ in SENTENCES for label in "01"]
    (root / "test.txt").write_text("".join(f"{text}_!_{label}\n" for text, label in rows))
    embedder = {"type": "elmo", "pretrained": str(FOLDER), "cache": {}}
    config = {
        "dataset_reader": {"type": "mr", "label_names": {"0": "bad", "1": "<b>good</b>"}},
        "train_data_path": str(root / "train.txt"),
        "validation_data_path": str(root / "train.txt"),
        "test_data_path": str(root / "test.txt"),
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder}},
        },
        "data_loader": {"batch_size": 3},
        "trainer": {
            "num_epochs": 3,
            "optimizer": {"type": "adam", "lr": 0.1},
            "validation_metric": "+accuracy",
            "cuda_device": -1,
        },
        "evaluate_on_test": True,
    }
    train_model(Params(config), str(root / "run"))
    return root / "run"
