import io
import os
import pickle
import sys
import types
import warnings

import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import TensorCache
from allennlp.data.tokenizers import PretrainedTransformerTokenizer
from allennlp.training.callbacks.wandb import WandBCallback
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

from elmo_tasks.common import compatibility


def scheduler(**config):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    built = LearningRateScheduler.from_params(Params(config), optimizer=optimizer, num_epochs=3, num_steps_per_epoch=4)
    return built, optimizer


def saved_and_loaded(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer)


# --- transformers


def test_tokenizer_of_a_transformer_adds_special_tokens_where_it_is_asked_to(small_bert):
    folder = small_bert["dataset_reader.tokenizer.model_name"]
    for options, words in [({}, "[CLS] o ##i ##l [SEP]"), ({"add_special_tokens": False}, "o ##i ##l")]:
        tokenizer = PretrainedTransformerTokenizer(folder, **options)
        assert [token.text for token in tokenizer.tokenize("Oil")] == words.split()


# --- learning-rate schedulers


def test_reduce_on_plateau_trains_with_and_without_verbose():
    for options in ({}, {"verbose": True}):
        built, optimizer = scheduler(type="reduce_on_plateau", mode="max", factor=0.5, patience=0, **options)
        built.step(0.7)
        built.step(0.6)
        assert optimizer.param_groups[0]["lr"] == 0.5


def test_misspelt_option_of_reduce_on_plateau_is_still_an_error():
    with pytest.raises(ConfigurationError, match="patients"):
        scheduler(type="reduce_on_plateau", patients=3)


@pytest.mark.parametrize(
    "config",
    [
        {"type": "cosine", "t_initial": 5},
        {"type": "slanted_triangular"},
        {"type": "noam", "model_size": 8, "warmup_steps": 2},
        {"type": "polynomial_decay", "warmup_steps": 2},
        {"type": "linear_with_warmup", "warmup_steps": 2},
        {"type": "reduce_on_plateau"},
        {"type": "step", "step_size": 1},
        {
            "type": "combined",
            "schedulers": [
                [1, {"type": "cosine", "t_initial": 5}],
                [2, {"type": "noam", "model_size": 8, "warmup_steps": 2}],
            ],
        },
    ],
    ids=lambda config: config["type"],
)
def test_state_of_a_scheduler_survives_a_checkpoint(config):
    built, optimizer = scheduler(**config)
    for step in range(1, 4):
        optimizer.step()
        built.step_batch(step)
    built.step(0.5)
    state = {"scheduler": built.state_dict(), "optimizer": optimizer.state_dict()}
    loaded = saved_and_loaded(state)

    resumed, resumed_optimizer = scheduler(**config)
    resumed.load_state_dict(loaded["scheduler"])
    resumed_optimizer.load_state_dict(loaded["optimizer"])
    for one, its_optimizer in ((built, optimizer), (resumed, resumed_optimizer)):
        its_optimizer.step()
        one.step_batch(4)
        one.step(0.5)
    assert resumed_optimizer.param_groups[0]["lr"] == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)


# --- torch.load


@pytest.mark.parametrize(
    "value",
    [
        np.float64(0.25),
        np.float32(0.25),
        np.int64(7),
        np.bool_(True),
        np.arange(3.0),
        np.array([[1, 2]], dtype=np.int16),
    ],
    ids=repr,
)
def test_numpy_numbers_and_arrays_in_a_training_state_can_be_loaded(value):
    loaded = saved_and_loaded({"metrics": {"accuracy": value}})["metrics"]["accuracy"]
    assert type(loaded) is type(value)
    assert np.array_equal(loaded, value)


def test_a_training_state_with_code_is_still_refused():
    class Call:
        def __reduce__(self):
            return os.getcwd, ()

    with pytest.raises(pickle.UnpicklingError, match=r"asks for `\w+\.getcwd`"):
        saved_and_loaded({"metrics": Call()})


def test_announcements_about_calls_in_allennlp_are_not_shown():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        compatibility.hide_announcements_to_developers()
        warnings.warn(
            "You are using `torch.load` with `weights_only=False` (the current default value), which ...",
            FutureWarning,
            stacklevel=1,
        )
        warnings.warn("TypedStorage is deprecated. It will be removed ...", UserWarning, stacklevel=1)
        warnings.warn("another matter", FutureWarning, stacklevel=1)
    assert [str(warning.message) for warning in shown] == ["another matter"]


def test_tensor_cache_reads_what_it_wrote(tmp_path):
    cache = TensorCache(tmp_path / "cache")
    tensor = torch.arange(6.0).view(2, 3)
    cache["sentence"] = tensor
    del tensor  # the cache would give the same object back
    assert "sentence" not in cache.cache_cache
    assert cache["sentence"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


# --- the trainer


def test_amp_is_used_under_its_new_names_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        with gradient_descent_trainer.amp.autocast(False):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # without a GPU
            scaler = gradient_descent_trainer.amp.GradScaler()
    assert product.dtype == torch.float32
    assert isinstance(scaler, torch.cuda.amp.GradScaler.__mro__[1])


# --- commands and callbacks


def test_wandb_run_gets_an_id_from_us(tmp_path, monkeypatch):
    started = []
    wandb = types.ModuleType("wandb")
    wandb.util = types.ModuleType("wandb.util")  # without generate_id
    wandb.init = lambda **options: started.append(options["id"])
    wandb.watch = lambda model: None
    wandb.save = lambda *args, **kwargs: None
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    (tmp_path / "config.json").write_text("{}")
    callback = WandBCallback(str(tmp_path))
    callback.on_start(types.SimpleNamespace(model=torch.nn.Linear(1, 1)), is_primary=True)
    resumed = WandBCallback(str(tmp_path))
    resumed.load_state_dict(callback.state_dict())
    resumed.on_start(types.SimpleNamespace(model=torch.nn.Linear(1, 1)), is_primary=True)
    assert len(started[0]) == 8
    assert started[0] == started[1]
