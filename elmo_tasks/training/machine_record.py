"""Writes down which machine trained a run."""

import json
import os
from typing import Any

from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

from elmo_tasks.common.files import written_whole
from elmo_tasks.common.machine import describe_machine

FILE_NAME = "machine.json"


@TrainerCallback.register("machine_record")
class MachineRecordCallback(TrainerCallback):
    """
    Writes `machine.json` to the folder of the run when training starts: system, processor, GPUs, versions of Python and
    torch (`describe_machine`). A run that `--recover` continues gets the machine that continues it.

    Every training run has it while the plugin is loaded, unless `enable_default_callbacks` is false.

    Registered as a `TrainerCallback` with name "machine_record".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    """

    def on_start(self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        if is_primary:
            with written_whole(os.path.join(self.serialization_dir, FILE_NAME)) as partial, open(
                partial, "w"
            ) as record:
                json.dump(describe_machine(), record, indent=2)
