import gzip
import inspect
import io
import json
import logging
import os
import pickle
import sys
import types
import warnings
from pathlib import Path

import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.predict as predict
import allennlp.common.util as common_util
import allennlp.models.archival as archival
import allennlp.training.gradient_descent_trainer as gradient_descent_trainer
import allennlp.training.util as training_util
import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import TensorCache
from allennlp.data import DataLoader
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.tokenizers import PretrainedTransformerTokenizer, WhitespaceTokenizer
from allennlp.predictors import Predictor
from allennlp.training.callbacks.wandb import WandBCallback
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.moving_average import ExponentialMovingAverage

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


# --- applying


def test_cures_may_be_applied_again_and_in_any_order():
    for cure in [*reversed(compatibility.CURES), *compatibility.CURES]:
        cure()
    wrapped = WandBCallback.on_start
    assert hasattr(wrapped, "__wrapped__")
    assert not hasattr(wrapped.__wrapped__, "__wrapped__")
    built, _ = scheduler(type="reduce_on_plateau")
    assert built.lr_scheduler.factor == 0.1


def test_every_cure_of_the_module_is_in_the_list_and_says_what_it_is_for():
    public = [
        function
        for name, function in vars(compatibility).items()
        if inspect.isfunction(function) and function.__module__ == compatibility.__name__ and not name.startswith("_")
    ]
    assert {cure.__name__ for cure in compatibility.CURES} == {f.__name__ for f in public} - {"apply"}
    assert all(len(cure.__doc__.strip().splitlines()) >= 3 for cure in compatibility.CURES)


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


def test_false_alarms_are_not_logged_and_others_are(caplog):
    compatibility.hide_false_alarms()
    trainer_log = logging.getLogger("allennlp.training.gradient_descent_trainer")
    trainer_log.warning("Worker 0 completed its entire epoch (validation).")
    trainer_log.warning("Worker 0 finishing validation early!")
    assert [record.getMessage() for record in caplog.records] == ["Worker 0 finishing validation early!"]
    assert len(trainer_log.filters) == 1


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


def test_metrics_are_replaced_and_not_rewritten(tmp_path):
    path, link = tmp_path / "metrics.json", tmp_path / "link.json"
    common_util.dump_metrics(str(path), {"epoch": 0})
    os.link(path, link)
    common_util.dump_metrics(str(path), {"epoch": 1})
    assert (json.loads(path.read_text()), json.loads(link.read_text())) == ({"epoch": 1}, {"epoch": 0})
    common_util.dump_metrics(None, {"epoch": 2}, log=True)
    assert sorted(os.listdir(tmp_path)) == ["link.json", "metrics.json"]


def test_best_weights_are_replaced_and_not_rewritten(tmp_path):
    model = torch.nn.Linear(1, 1)
    trainer = types.SimpleNamespace(_ddp_wrapped_model=None, model=model)
    path, link = tmp_path / "best.th", tmp_path / "link.th"
    save = gradient_descent_trainer.GradientDescentTrainer._save_model_state
    save(trainer, str(path))
    os.link(path, link)
    old_bias = model.bias.item()
    with torch.no_grad():
        model.bias += 1
    save(trainer, str(path))
    assert torch.load(link)["bias"].item() == old_bias
    assert torch.load(path)["bias"].item() == model.bias.item()


def test_moving_averages_follow_the_model_after_a_recovery():
    model = torch.nn.Linear(1, 1, bias=False)
    averages = ExponentialMovingAverage(model.named_parameters(), decay=0.5)
    loaded = saved_and_loaded(averages.state_dict())

    resumed = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        resumed.weight.copy_(model.weight)
    resumed_averages = ExponentialMovingAverage(resumed.named_parameters(), decay=0.5)
    resumed_averages.load_state_dict(loaded)
    before = resumed.weight.item()
    with torch.no_grad():
        resumed.weight += 2.0
    resumed_averages.apply()
    resumed_averages.assign_average_value()
    assert resumed.weight.item() == pytest.approx(before + 1.0)
    resumed_averages.restore()
    assert resumed.weight.item() == pytest.approx(before + 2.0)


# --- devices


@pytest.mark.parametrize(
    "config",
    [
        {"trainer": {"cuda_device": 0}},
        {"distributed": {"cuda_devices": [0, 1]}, "trainer": {}},
    ],
)
@pytest.mark.parametrize("command", [training_util, find_learning_rate])
def test_missing_gpu_is_an_error_before_anything_is_written(config, command, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigurationError, match="specified a GPU but none is available"):
        command.create_serialization_dir(Params(config), str(tmp_path / "run"), recover=False, force=False)
    assert not (tmp_path / "run").exists()


def test_amp_without_a_gpu_is_an_error_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match=r"use_amp.*must be false without a GPU"):
        training_util.create_serialization_dir(
            Params({"trainer": {"use_amp": True}}), str(tmp_path / "run"), recover=False, force=False
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"trainer": {}},
        {"trainer": {"cuda_device": None}},
        {"trainer": {"cuda_device": -1, "use_amp": False}},
        {"distributed": {"cuda_devices": [-1, -1]}, "trainer": {}},
        {"distributed": None},
    ],
)
def test_config_for_the_cpu_passes_the_check_of_devices(config, tmp_path):
    training_util.create_serialization_dir(Params(config), str(tmp_path / "run"), recover=False, force=False)
    assert (tmp_path / "run").is_dir()


# --- archives


def test_archive_holds_its_files_uncompressed(tmp_path):
    run = tmp_path / "run"
    (run / "vocabulary").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    (run / "best.th").write_bytes(bytes(100_000))  # zeros, which compress to nothing
    archive = archival.archive_model(str(run))
    assert os.path.getsize(archive) > 100_000
    with archival.extracted_archive(archive) as out:
        assert Path(out, "weights.th").read_bytes() == bytes(100_000)


# --- commands and callbacks


@pytest.mark.parametrize("with_matplotlib", [True, False])
def test_find_lr_keeps_its_numbers(with_matplotlib, tmp_path, monkeypatch):
    if not with_matplotlib:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    else:
        pyplot = types.ModuleType("matplotlib.pyplot")
        for name in ("ylabel", "xlabel", "xscale", "plot"):
            setattr(pyplot, name, lambda *args: None)
        pyplot.savefig = lambda path: (tmp_path / os.path.basename(path)).write_text("plot")
        matplotlib = types.ModuleType("matplotlib")
        matplotlib.use, matplotlib.pyplot = lambda name: None, pyplot
        monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    find_learning_rate._save_plot([0.1, 0.2], [3.0, 2.5], str(tmp_path / "lr-losses.png"))
    table = json.loads((tmp_path / "lr-losses.json").read_text())
    assert table == {"learning_rates": [0.1, 0.2], "losses": [3.0, 2.5]}
    assert (tmp_path / "lr-losses.png").exists() == with_matplotlib


class Echo(Predictor):
    """Shows the lines that it gets."""

    def __init__(self):
        self.lines = []

    def load_line(self, line):
        self.lines.append(line)
        return {}

    def predict_json(self, inputs):
        return inputs


@pytest.mark.parametrize("source", ["file", "file.gz", "-"])
def test_predictors_see_bytes_that_are_not_utf8(source, tmp_path, monkeypatch):
    data = "caf\xe9\n".encode("latin-1") + "café\n".encode()
    stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    path = source if source == "-" else str(tmp_path / source)
    if source != "-":
        with (gzip.open if source.endswith(".gz") else open)(path, "wb") as file:
            file.write(data)
    predictor = Echo()
    predict._PredictManager(predictor, path, None, 1, False, False).run()
    assert predictor.lines == ["caf\udce9\n", "café\n"]


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


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["spawn", "fork"])
def test_loader_workers_start(start_method, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"text": f"word {i}", "label": "1"}) + "\n" for i in range(5)))
    loader = DataLoader.from_params(
        Params({"type": "multiprocess", "batch_size": 2, "num_workers": 1, "start_method": start_method}),
        reader=TextClassificationJsonReader(tokenizer=WhitespaceTokenizer()),
        data_path=str(data),
    )
    texts = [instance["tokens"][1].text for instance in loader.iter_instances()]
    assert texts == ["0", "1", "2", "3", "4"]
