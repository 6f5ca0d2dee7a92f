"""What AllenNLP forgets when a run is interrupted and continued."""

import os
from typing import Any, Dict, List, Optional

import allennlp.common.util as common_util
import torch
from allennlp.data import TensorDict
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

# Sums over the batches of an epoch in the trainer, that begin anew with a resumed process.
LOSSES = ("loss", "reg_loss")


@TrainerCallback.register("resumption")
class ResumptionCallback(TrainerCallback):
    """
    Makes a run that `--recover` continues go on as if nothing had happened.

    AllenNLP runs through the batches of the completed epochs again, so that the order of the data is right,
    but it starts with another random state of torch, and so with other dropout; and after a checkpoint in
    the middle of an epoch, that epoch's training loss is the sum over the second part, divided by the number
    of all batches. This callback stores the random state and the sums with each checkpoint.

    A run on the CPU is then equal to one that was not interrupted, with these limits: a *validation* loader
    that shuffles draws from the same random numbers as the training loader, but is not run again; set
    `shuffle: false` in its sampler. After a checkpoint within an epoch, the other training metrics of that
    epoch are those of its second part. In distributed training all processes continue with the random state
    of the first. On a GPU the sums of floating-point numbers have no fixed order.

    Every training run has it while the plugin is loaded, unless `enable_default_callbacks` is false.

    Registered as a `TrainerCallback` with name "resumption".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._random_states: Optional[Dict[str, torch.Tensor]] = None
        self._sums = dict.fromkeys(LOSSES, 0.0)
        self._sums_before = dict(self._sums)

    def on_start(self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        if self._random_states is not None:
            torch.set_rng_state(self._random_states["cpu"])
            if "cuda" in self._random_states and trainer.cuda_device.type == "cuda":
                torch.cuda.set_rng_state(self._random_states["cuda"], trainer.cuda_device)

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
                self._sums[name] += batch_metrics.get("batch_" + name, 0.0)

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if any(self._sums_before.values()):
            for name in LOSSES:
                if "training_" + name in metrics:
                    # This is the trainer's own dictionary, which becomes `metrics.json`.
                    metrics["training_" + name] += self._sums_before[name] / trainer._batches_in_epoch_completed
            if is_primary and self.serialization_dir:
                path = os.path.join(self.serialization_dir, f"metrics_epoch_{epoch}.json")
                common_util.dump_metrics(path, metrics)
        self._sums = dict.fromkeys(LOSSES, 0.0)
        self._sums_before = dict(self._sums)

    def state_dict(self) -> Dict[str, Any]:
        random_states = {"cpu": torch.get_rng_state()}
        if self.trainer is not None and self.trainer.cuda_device.type == "cuda":
            random_states["cuda"] = torch.cuda.get_rng_state(self.trainer.cuda_device)
        return {"random_states": random_states, "sums": dict(self._sums)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        if state_dict:  # else the checkpoint is of a run without this callback
            self._random_states = state_dict["random_states"]
            self._sums = dict(state_dict["sums"])
            self._sums_before = dict(self._sums)
