"""Callbacks for the commands that the tests run, included by `--include-package observers`."""

import io
import json
import os
import signal
import time
from pathlib import Path

import torch
from allennlp.training.callbacks import TrainerCallback


@TrainerCallback.register("kill_for_test")
class KillForTest(TrainerCallback):
    """
    Kills its own process, in epoch 2 of a run, as `kill -9` does.

    The environment variable `KILL_AT` says when: `batch`, after a batch; `model_state` or `training_state`, when
    half of this file of the checkpoint is on the disk; `best`, between the checkpoint and the best weights.
    Without it nothing happens: the config of a run and of its recovery must be the same.
    """

    def on_start(self, trainer, is_primary=True, **kwargs):
        moment = os.environ.get("KILL_AT")
        save = torch.save

        def save_half(content, file, *args, **kwargs):
            if os.path.basename(getattr(file, "name", file)).startswith(f"{moment}_e2_b0"):
                buffer = io.BytesIO()
                save(content, buffer)
                file.write(buffer.getvalue()[: buffer.tell() // 2])
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            save(content, file, *args, **kwargs)

        torch.save = save_half

    def on_batch(self, trainer, *args, is_training=False, **kwargs):
        epoch, batch_number = args[3], args[4]
        if os.environ.get("KILL_AT") == "batch" and is_training and (epoch, batch_number) == (1, 2):
            os.kill(os.getpid(), signal.SIGKILL)


@TrainerCallback.register("record_for_test")
class RecordForTest(TrainerCallback):
    """
    Writes `rank<n>.json` into the run's directory: the rows that the process read, those that came in batches
    (a list per epoch), and the parameters of the layer mix before and after the training.
    """

    def on_start(self, trainer, is_primary=True, **kwargs):
        super().on_start(trainer, is_primary, **kwargs)
        self._record = {
            "read": [instance["metadata"].metadata["line"] for instance in trainer.data_loader.iter_instances()],
            "batches": [[]],
            "start": self._mix(),
        }

    def on_batch(self, trainer, batch_inputs, *args, is_training=False, **kwargs):
        if is_training:
            for batch in batch_inputs:
                self._record["batches"][-1].extend(row["line"] for row in batch["metadata"])

    def on_epoch(self, trainer, *args, **kwargs):
        self._record["batches"].append([])

    def on_end(self, trainer, **kwargs):
        self._record["end"] = self._mix()
        path = Path(trainer._serialization_dir) / f"rank{trainer._rank}.json"
        path.write_text(json.dumps(self._record))

    def _mix(self):
        return {
            name: parameter.tolist()
            for name, parameter in self.trainer.model.named_parameters()
            if "scalar_mix" in name
        }


@TrainerCallback.register("kill_one_for_test")
class KillOneForTest(TrainerCallback):
    """
    Kills one process of several in epoch 2, and leaves the time of it in `killed` in the run's directory.

    The environment variable `KILL_ONE` says which: `rank`, the second process; `command`, the one that started them;
    `node`, the second process and its command at once, at the end of the epoch, before its checkpoint.
    """

    def on_batch(self, trainer, *args, is_training=False, **kwargs):
        victim = {"rank": os.getpid(), "command": os.getppid()}.get(os.environ.get("KILL_ONE"))
        if victim and is_training and args[3] == 1 and torch.distributed.get_rank() == 1:
            self._leave_the_time(trainer)
            os.kill(victim, signal.SIGKILL)

    def on_epoch(self, trainer, metrics, epoch, **kwargs):
        if os.environ.get("KILL_ONE") == "node" and epoch == 1 and torch.distributed.get_rank() == 1:
            self._leave_the_time(trainer)
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _leave_the_time(self, trainer):
        (Path(trainer._serialization_dir) / "killed").write_text(str(time.time()))
