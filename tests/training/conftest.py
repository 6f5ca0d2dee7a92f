"""A model that trains in milliseconds, and trainers for it as `allennlp train` would build them."""

import json
import random

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.data.fields import TensorField
from allennlp.data.samplers import BucketBatchSampler
from allennlp.models import Model
from allennlp.training.metrics import Average
from allennlp.training.trainer import Trainer

import elmo_tasks  # noqa: F401  (as a run with the plugin loaded)


class TinyModel(Model):
    """A frozen layer as wide as wanted, averaged to 8 numbers, dropout, and a small trained layer."""

    def __init__(self, frozen_dim: int, dropout: float):
        super().__init__(Vocabulary())
        self.frozen = torch.nn.Linear(4, frozen_dim)
        self.frozen.requires_grad_(False)
        self.dropout = torch.nn.Dropout(dropout)
        self.head = torch.nn.Linear(8, 1)
        self.size = Average()

    def forward(self, x):
        # (batch_size, 8)
        averages = self.frozen(x).view(len(x), 8, -1).mean(-1)
        y = self.head(self.dropout(averages))
        self.size(y.abs().mean().item())
        return {"loss": ((y - x.sum(-1, keepdim=True)) ** 2).mean()}

    def get_metrics(self, reset: bool = False):
        metrics = {"size": self.size.get_metric(reset)}
        if not self.training:
            metrics["size_in_evaluation"] = metrics["size"]
        return metrics


def seed_all():
    """As AllenNLP does at the start of every process."""
    random.seed(13370)
    np.random.seed(1337)
    torch.manual_seed(133)


class NumberReader(DatasetReader):
    """Reads as many vectors as its path says."""

    def _read(self, file_path):
        generator = torch.Generator().manual_seed(file_path)
        for _ in range(file_path):
            yield Instance({"x": TensorField(torch.randn(4, generator=generator))})


def loader(num_instances: int) -> DataLoader:
    """In batches of 3, of similar length and in random order, as our configs have it for all parts."""
    sampler = BucketBatchSampler(batch_size=3, sorting_keys=["x"])
    built = MultiProcessDataLoader(NumberReader(), num_instances, batch_sampler=sampler, quiet=True)
    built.index_with(Vocabulary())
    return built


@pytest.fixture
def make_trainer(tmp_path):
    """Builds a trainer on 12 training and 6 validation instances, in batches of 3, as a new process would."""

    def make(model=None, serialization_dir=tmp_path, validation=True, frozen_dim=8, dropout=0.5, **trainer_config):
        seed_all()
        trainer_config = {"num_epochs": 3, "cuda_device": -1, **trainer_config}
        serialization_dir.mkdir(exist_ok=True)
        (serialization_dir / "config.json").write_text(json.dumps({"trainer": trainer_config}))
        return Trainer.from_params(
            Params(json.loads(json.dumps(trainer_config))),
            model=model or TinyModel(frozen_dim, dropout),
            serialization_dir=str(serialization_dir),
            data_loader=loader(12),
            validation_data_loader=loader(6) if validation else None,
            local_rank=0,
        )

    return make
