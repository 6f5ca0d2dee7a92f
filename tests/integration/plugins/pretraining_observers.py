"""Callbacks for the pretraining commands that the tests run, by `--include-package pretraining_observers`."""

import json
import os
import signal

from allennlp.training.callbacks import TrainerCallback


@TrainerCallback.register("observe_pretraining_for_test")
class ObservePretraining(TrainerCallback):
    """
    Appends a line for each training batch to `rank<n>.jsonl` in the run's directory: its epoch, its number, and the
    forward targets. Kills its own process, as `kill -9` does, after the batch of epoch 1 whose number the environment
    variable `KILL_AT_BATCH` has, if it has one.
    """

    def on_batch(self, trainer, batch_inputs, *args, is_training=False, **kwargs):
        if not is_training:
            return
        epoch, batch_number = args[2], args[3]
        (batch,) = batch_inputs
        targets = batch["forward_targets"][batch["mask"]].tolist()
        with open(os.path.join(trainer._serialization_dir, f"rank{trainer._rank}.jsonl"), "a") as record:
            record.write(json.dumps({"epoch": epoch, "batch": batch_number, "targets": targets}) + "\n")
        if epoch == 1 and str(batch_number) == os.environ.get("KILL_AT_BATCH"):
            os.kill(os.getpid(), signal.SIGKILL)
