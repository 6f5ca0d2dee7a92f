import copy
import json

import h5py
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights, save_weights
from elmo_tasks.training.bilm_export import export_bilm

OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 6,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 10,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 4], [2, 5]],
        "n_highway": 1,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
SENTENCES = [["Der", "Film", "ist", "gut", "."], ["文字", "😀"], ["Why"]]


def config(text, network=None, **trainer):
    def reader():
        return {"type": "bilm_text", "unroll_steps": 5}

    return Params(
        {
            "dataset_reader": reader(),
            "train_data_path": str(text),
            "validation_data_path": str(text),
            "vocabulary": {"type": "bilm_text", "reader": reader(), "data_path": str(text)},
            "model": {
                "type": "bilm_language_model",
                "network": network or {"type": "characters", "options": copy.deepcopy(OPTIONS)},
            },
            "data_loader": {"type": "bilm_text", "batch_size": 2},
            "trainer": {
                "num_epochs": 2,
                "validation_metric": "-perplexity",
                "optimizer": {"type": "adam", "lr": 0.01},
                "cuda_device": -1,
                **trainer,
            },
        }
    )


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Der Film ist gut .\nWhy not ?\nĀrgh 😀 文字\nжизнь и жизнь\nDer Film endet .\n", encoding="utf-8")
    return path


@pytest.fixture
def run(text, tmp_path):
    callback = {"type": "export_bilm"}
    train_model(config(text, callbacks=[callback]), serialization_dir=str(tmp_path / "run"))
    return tmp_path / "run"


def stock_layers(folder):
    stock = _ElmoBiLm(str(folder / "options.json"), str(folder / "weights.hdf5"))
    stock._elmo_lstm.stateful = False
    return stock(batch_to_ids(SENTENCES))["activations"]


def test_text_in_other_scripts_is_trained_on_as_the_bytes_of_261_characters(text, tmp_path):
    training_options = copy.deepcopy(OPTIONS)
    training_options["char_cnn"]["n_characters"] = 261  # as bilm-tf writes them while it trains
    network = {"type": "characters", "options": training_options}
    model = train_model(config(text, network, num_epochs=1), serialization_dir=str(tmp_path / "run"))
    assert len(model.network.bilm.character_encoder.characters) == 261
    words = model.vocab.get_token_to_index_vocabulary("words")
    assert {"😀", "文字", "жизнь"} <= set(words)
    assert json.loads((tmp_path / "run/metrics.json").read_text())["best_validation_perplexity"] < len(words)


def test_the_export_at_the_end_of_training_gives_the_models_layers_in_allennlps_elmo(run):
    model = load_archive(run / "model.tar.gz").model
    layers = stock_layers(run / "bilm")
    assert len(layers) == 3
    for expected, actual in zip(model.network.bilm(encode_sentences(SENTENCES)).activations, layers):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)
    assert json.loads((run / "bilm/options.json").read_text()) == OPTIONS


def test_the_exported_weights_are_the_best_ones(text, tmp_path):
    """With a rate at which training gets worse, the best epoch is not the last."""
    run = tmp_path / "run"
    callback = {"type": "export_bilm", "folder": str(tmp_path / "elsewhere")}
    optimizer = {"type": "sgd", "lr": 0.1}
    train_model(
        config(
            text,
            callbacks=[callback],
            optimizer=optimizer,
            num_epochs=3,
            validation_metric="+perplexity",
            checkpointer={"type": "atomic", "keep_most_recent_by_count": None},
        ),
        serialization_dir=str(run),
    )
    assert json.loads((run / "metrics.json").read_text())["best_epoch"] == 0
    exported = BiLm(BiLmOptions.from_dict(OPTIONS))
    load_weights(exported, str(tmp_path / "elsewhere/weights.hdf5"))
    best, last = (torch.load(run / f"model_state_e{epoch}_b0.th") for epoch in (1, 3))
    name = "layers.0.recurrent_kernel"
    assert torch.equal(exported.state_dict()[name], best[f"network.bilm.{name}"])
    assert not torch.equal(exported.state_dict()[name], last[f"network.bilm.{name}"])


def test_reading_an_exported_file_and_writing_it_again_changes_no_bit(run, tmp_path):
    bilm = BiLm(BiLmOptions.from_file(str(run / "bilm/options.json")))
    load_weights(bilm, str(run / "bilm/weights.hdf5"))
    save_weights(bilm, str(tmp_path / "again.hdf5"))
    arrays = []
    for path in (run / "bilm/weights.hdf5", tmp_path / "again.hdf5"):
        with h5py.File(path, "r") as file:
            found = {}
            file.visititems(
                lambda key, item, found=found: found.update({key: item[...]} if hasattr(item, "shape") else {})
            )
            arrays.append(found)
    assert arrays[0].keys() == arrays[1].keys()
    assert all(arrays[0][key].tobytes() == arrays[1][key].tobytes() for key in arrays[0])
    assert len(arrays[0]) == 23


def test_half_the_bytes_are_nearly_the_same_to_allennlps_elmo(run, tmp_path):
    export_bilm(load_archive(run / "model.tar.gz").model, tmp_path / "half", "float16")
    for expected, actual in zip(stock_layers(run / "bilm"), stock_layers(tmp_path / "half")):
        assert not torch.equal(actual, expected)
        torch.testing.assert_close(actual, expected, rtol=0, atol=2e-3)


def test_only_a_language_model_over_characters_can_be_exported(text, tmp_path):
    words = {"type": "words", "projection_dim": 4, "cell_dim": 4}
    train_model(config(text, network=words, num_epochs=1), serialization_dir=str(tmp_path / "run"))
    model = load_archive(tmp_path / "run").model
    with pytest.raises(ConfigurationError, match="since ELMo is over characters, but this is a WordNetwork"):
        export_bilm(model, tmp_path / "out")
    with pytest.raises(ConfigurationError, match="only a bilm_language_model can be exported, but this is a Model"):
        export_bilm(Model(model.vocab), tmp_path / "out")
    assert not (tmp_path / "out").exists()
