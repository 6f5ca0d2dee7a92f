import json
import os

from elmo_tasks.common.machine import describe_machine
from elmo_tasks.training import MachineRecordCallback


def test_run_says_which_machine_trains_it(make_trainer):
    trainer = make_trainer()
    (callback,) = (one for one in trainer._callbacks if isinstance(one, MachineRecordCallback))
    callback.on_start(trainer)
    with open(os.path.join(trainer._serialization_dir, "machine.json")) as record:
        assert json.load(record) == describe_machine()


def test_only_the_first_process_writes(make_trainer, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    MachineRecordCallback(str(folder)).on_start(make_trainer(), is_primary=False)
    assert os.listdir(folder) == []
