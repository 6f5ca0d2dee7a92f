"""Thousands of predictions and many epochs: memory, file handles, threads and child processes stay what they were."""

import ctypes
import gc
import json
import os
import random
from pathlib import Path
from typing import List, NamedTuple, Tuple

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.training import TrainerCallback

from elmo_tasks.modules import ElmoEmbedder
from elmo_tasks.predictors import PairPredictor, SentencePredictor

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_in_the_checkout")]

CALLS_PER_TRIAL = 100
NUM_EPOCHS = 50
# The system gives memory in pages of up to 2 MB, and a few more are touched after any warm-up: 3.5 MB were seen after
# 300 calls, and not a page more up to 1,600. An answer holds some 10 kB of vectors: over 2,000 calls that is 20 MB.
SLACK_BYTES = 8_000_000
# Objects that Python keeps an eye on; an answer has dozens. An epoch leaves four: `re` and `fnmatch` remember, up to a
# bound of their own, the patterns that find its checkpoint.
SLACK_OBJECTS = 400
WORDS = [f"{beginning}{end}" for beginning in ("film", "naïve", "日本", "x" * 60) for end in range(50)]


class InUse(NamedTuple):
    """What this process has: bytes of memory; objects; file handles, threads and child processes."""

    num_bytes: int
    num_objects: int
    handles: Tuple[int, int, int]

    @classmethod
    def now(cls):
        gc.collect()
        # What is free goes back to the system, so that it does not count.
        ctypes.CDLL(None).malloc_trim(0)
        process = Path("/proc/self")
        num_pages = int((process / "statm").read_text().split()[1])
        threads = list((process / "task").iterdir())
        children = [child for thread in threads for child in (thread / "children").read_text().split()]
        handles = (len(os.listdir(process / "fd")), len(threads), len(children))
        return cls(num_pages * os.sysconf("SC_PAGE_SIZE"), len(gc.get_objects()), handles)

    def check_no_more_than(self, before):
        """Also prints how much more it is, for who runs with `-rP`."""
        num_bytes, num_objects = self.num_bytes - before.num_bytes, self.num_objects - before.num_objects
        print(f"{num_bytes:,} bytes and {num_objects} objects more than after the warm-up")
        assert self.handles == before.handles
        assert num_bytes < SLACK_BYTES
        assert num_objects < SLACK_OBJECTS


def predictor_of(config, predictor_class, cache):
    params = Params.from_file(f"training_configs/{config}.jsonnet").as_dict()
    params["model"]["text_field_embedder"]["token_embedders"]["elmo"]["cache"] = cache
    vocabulary = Vocabulary()
    vocabulary.add_tokens_to_namespace(["0", "1", "negative", "positive"], "labels")
    model = Model.from_params(Params(params["model"]), vocab=vocabulary)
    return predictor_class(model, DatasetReader.from_params(Params(params["dataset_reader"])))


@pytest.mark.parametrize(("config", "predictor_class"), [("mr", SentencePredictor), ("mrpc", PairPredictor)])
def test_predictions_leave_nothing_behind(config, predictor_class, tmp_path, trials):
    """Half of the calls without a cache, half with one that is full, in memory and on disk, and cannot take all."""
    cache = {"directory": str(tmp_path), "max_memory_bytes": 100_000, "max_disk_bytes": 400_000}
    predictors = [predictor_of(config, predictor_class, each) for each in (None, cache)]
    (cached,) = [module for module in predictors[1]._model.modules() if isinstance(module, ElmoEmbedder)]
    order = random.Random(0)

    def call(number):
        # Most are short, as sentences are; one in a hundred is long.
        texts = [" ".join(order.choices(WORDS, k=order.choice([0, 3, 10, 20]))) for _ in predictor_class.text_keys]
        if number % 100 == 0:
            texts[0] = " ".join(order.choices(WORDS, k=300))
        inputs = dict(zip(predictor_class.text_keys, texts))
        output = predictors[number % 2].predict_json(inputs)
        assert set(output["label_probabilities"]) == set(predictors[0]._model.label_names)
        return inputs

    reader = predictors[1]._dataset_reader
    instances = [reader.text_to_instance(*call(number).values()) for number in range(100)]
    for instance in instances:
        reader.apply_token_indexers(instance)
    cached.prepare_for_training(lambda: instances, lambda: instances)
    for number in range(100):
        call(number)
    before = InUse.now()
    for number in range(CALLS_PER_TRIAL * trials):
        call(number)
    InUse.now().check_no_more_than(before)


@TrainerCallback.register("notes_what_is_in_use")
class NotesWhatIsInUse(TrainerCallback):
    """After each epoch."""

    notes: List[InUse] = []

    def on_epoch(self, trainer, metrics, epoch, is_primary=True, **kwargs):
        self.notes.append(InUse.now())


def test_epochs_leave_nothing_behind(tmp_path):
    overrides = {
        "dataset_reader.max_instances": 32,
        "trainer.num_epochs": NUM_EPOCHS,
        "trainer.patience": None,
        "trainer.callbacks": [{"type": "notes_what_is_in_use"}],
        "trainer.cuda_device": -1,
    }
    notes = NotesWhatIsInUse.notes
    notes.clear()
    train_model(Params.from_file("training_configs/mr.jsonnet", json.dumps(overrides)), str(tmp_path / "run"))
    assert len(notes) == NUM_EPOCHS
    notes[-1].check_no_more_than(notes[9])


def test_what_is_kept_is_seen():
    """The measure finds what these tests are to find."""
    before = InUse.now()
    kept = [torch.ones(10_000) for _ in range(1000)]
    handle = os.open(os.devnull, os.O_RDONLY)
    after = InUse.now()
    os.close(handle)
    assert after.num_bytes - before.num_bytes > 4 * SLACK_BYTES
    assert after.num_objects - before.num_objects > 2 * SLACK_OBJECTS
    assert after.handles[0] == before.handles[0] + 1
    assert len(kept) == 1000
