import errno
import gzip
import io
import json
import logging
import os
import sys
import types
from pathlib import Path

import allennlp.commands.evaluate as evaluate
import allennlp.commands.find_learning_rate as find_learning_rate
import allennlp.commands.predict as predict
import allennlp.common.logging as common_logging
import allennlp.models.archival as archival
import pytest
from allennlp.common import Params
from allennlp.common.tqdm import logger as tqdm_logger
from allennlp.data import DataLoader, Vocabulary
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.tokenizers import WhitespaceTokenizer
from allennlp.predictors import Predictor

from elmo_tasks.common import faults


def test_false_alarms_are_not_logged_and_others_are(caplog):
    faults.hide_false_alarms()
    trainer_log = logging.getLogger("allennlp.training.gradient_descent_trainer")
    trainer_log.warning("Worker 0 completed its entire epoch (validation).")
    trainer_log.warning("Worker 0 finishing validation early!")
    assert [record.getMessage() for record in caplog.records] == ["Worker 0 finishing validation early!"]
    assert len(trainer_log.filters) == 1


def test_archive_holds_its_files_uncompressed(tmp_path):
    run = tmp_path / "run"
    (run / "vocabulary").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    (run / "best.th").write_bytes(bytes(100_000))  # zeros, which compress to nothing
    archive = archival.archive_model(str(run))
    assert os.path.getsize(archive) > 100_000
    with archival.extracted_archive(archive) as out:
        assert Path(out, "weights.th").read_bytes() == bytes(100_000)


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


@pytest.mark.parametrize(
    "sampler", [{"type": "bucket", "batch_size": 3, "padding_noise": 0.0}, {"type": "bucket"}, "bucket"]
)
def test_evaluation_takes_batches_of_the_size_that_is_asked_for(sampler, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"text": "a b", "label": "1"}) + "\n" for _ in range(5)))
    params = Params({"batch_sampler": sampler, "batch_size": 2})
    reader = TextClassificationJsonReader(tokenizer=WhitespaceTokenizer())
    loader = evaluate.DataLoader.from_params(params=params, reader=reader, data_path=str(data))
    loader.index_with(Vocabulary.from_instances(loader.iter_instances()))
    assert sorted(len(batch["label"]) for batch in loader) == [1, 2, 2]


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


class FullDisk(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def log_on_full_disk(tmp_path):
    """The log of a run that has begun in this process; afterwards all loggers are as they were."""
    root = logging.getLogger()
    before = root.level, root.handlers[:], tqdm_logger.handlers[:], sys.excepthook
    common_logging.prepare_global_logging(tmp_path)
    handler = root.handlers[0]
    handler.setStream(FullDisk()).close()
    yield handler.baseFilename
    level, root.handlers, tqdm_logger.handlers, sys.excepthook = before
    root.setLevel(level)


def test_log_on_a_full_disk_says_so_once(log_on_full_disk, capfd):
    for number in range(3):
        logging.getLogger("elmo_tasks").info("line %s", number)
    assert capfd.readouterr().err == f"{log_on_full_disk} cannot be written and lacks lines: No space left on device\n"


def test_other_errors_of_logging_are_shown_as_before(log_on_full_disk, capfd):
    logging.getLogger().handlers[0].handle(logging.makeLogRecord({"msg": "line %s %s", "args": (1,)}))
    assert "not enough arguments for format string" in capfd.readouterr().err
