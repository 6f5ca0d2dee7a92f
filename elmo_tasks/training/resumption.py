"""What AllenNLP forgets when a run is interrupted and continued."""

import json
import os
import random
from typing import Any, Dict, List, Optional

import allennlp.common.util as common_util
import torch
import torch.distributed as dist
from allennlp.data import TensorDict
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

# Sums over the batches of an epoch in the trainer, that begin anew with a resumed process.
LOSSES = ("loss", "reg_loss")


@TrainerCallback.register("resumption")
class ResumptionCallback(TrainerCallback):
    """
    Makes a run that `--recover` continues go on as if nothing had happened.

    To begin where a checkpoint ended, AllenNLP runs through the batches of the completed epochs without training on
    them. It does not run through the validation, though, whose sampler draws from the same random numbers as that of
    the training data, so that the batches come in another order; torch's random state is that of a new process, and
    so is the dropout; and after a checkpoint within an epoch, that epoch's training loss is the sum over the second
    part, divided by the number of all batches. This callback stores random states and sums with each checkpoint. A run
    that was killed after its last epoch gets the figures of this epoch, and one whose patience is spent trains no more.

    A run on the CPU is then equal to one that was not interrupted, with these limits: after a checkpoint within an
    epoch, the other training metrics of that epoch are those of its second part. In distributed training all
    processes continue with the random states of the first. On a GPU the sums of floating-point numbers have no fixed
    order.

    Every training run has it while the plugin is loaded, unless `enable_default_callbacks` is false.

    Registered as a `TrainerCallback` with name "resumption".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        # What a checkpoint gave; None in a run that begins.
        self._loaded: Optional[Dict[str, Any]] = None
        # Python's random state when the epoch began: AllenNLP's loaders and samplers draw from it.
        self._order_state = random.getstate()
        self._sums = dict.fromkeys(LOSSES, 0.0)

    def on_start(self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        if self._loaded is None:
            self._order_state = random.getstate()
            return
        torch.set_rng_state(self._loaded["cpu"])
        if "cuda" in self._loaded and trainer.cuda_device.type == "cuda":
            torch.cuda.set_rng_state(self._loaded["cuda"], trainer.cuda_device)
        self._restore_order_in_the_resumed_epoch(trainer)
        if trainer._metric_tracker.should_stop_early():
            # AllenNLP looks at the patience after an epoch that it trains, and would train one more.
            trainer._num_epochs = trainer._start_after_epochs_completed

    def _restore_order_in_the_resumed_epoch(self, trainer: GradientDescentTrainer) -> None:
        """There is no call-back between the epochs that are only run through and the first that is trained."""
        train_epoch = trainer._train_epoch

        def train_epoch_in_order(epoch: int) -> Dict[str, float]:
            if epoch == trainer._start_after_epochs_completed:
                random.setstate(self._order_state)
            return train_epoch(epoch)

        trainer._train_epoch = train_epoch_in_order  # type: ignore[method-assign]

    def on_batch(
        self,
        trainer: GradientDescentTrainer,
        batch_inputs: List[TensorDict],
        batch_outputs: List[Dict[str, Any]],
        batch_metrics: Dict[str, Any],
        epoch: int,
        batch_number: int,
        is_training: bool,
        is_primary: bool = True,
        batch_grad_norm: Optional[float] = None,
        **kwargs: Any,
    ) -> None:
        if is_training:
            for name in LOSSES:
                self._sums[name] += _mean_of_processes(batch_metrics.get("batch_" + name, 0.0))

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if self._loaded is not None and any(self._loaded["sums"].values()):
            for name in LOSSES:
                if "training_" + name in metrics:
                    # This is the trainer's own dictionary, which becomes `metrics.json`.
                    metrics["training_" + name] += self._loaded["sums"][name] / trainer._batches_in_epoch_completed
            if is_primary and self.serialization_dir:
                path = os.path.join(self.serialization_dir, f"metrics_epoch_{epoch}.json")
                common_util.dump_metrics(path, metrics)
        self._loaded = None
        self._order_state = random.getstate()
        self._sums = dict.fromkeys(LOSSES, 0.0)

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: Optional[Dict[str, Any]] = None,
        epoch: Optional[int] = None,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if metrics is None or "epoch" in metrics or not self.serialization_dir:
            return
        # No epoch was left to train, but the test: its batches are to come in their order, since a loss is the mean of
        # those of batches. The figures of the last epoch, which `metrics.json` is to hold, are in its file.
        random.setstate(self._order_state)
        path = os.path.join(self.serialization_dir, f"metrics_epoch_{epoch}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as metrics_file:
                metrics.update(json.load(metrics_file))

    def state_dict(self) -> Dict[str, Any]:
        state = {"cpu": torch.get_rng_state(), "order": self._order_state, "sums": dict(self._sums)}
        if self.trainer is not None and self.trainer.cuda_device.type == "cuda":
            state["cuda"] = torch.cuda.get_rng_state(self.trainer.cuda_device)
        return state

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        if "order" in state_dict:  # else the checkpoint is of a run without this callback
            self._loaded = state_dict
            self._order_state = state_dict["order"]
            self._sums = dict(state_dict["sums"])


def _mean_of_processes(value: float) -> float:
    """The process that writes the checkpoints asks no other then: so each batch tells it."""
    return float(dist_reduce_sum(value)) / dist.get_world_size() if common_util.is_distributed() else value
