"""What accompanies a training run: checks before it, checkpoints in it, going on after an interruption."""

from elmo_tasks.training.bilm_export import ExportBiLmCallback, export_bilm
from elmo_tasks.training.checkpointer import AtomicCheckpointer
from elmo_tasks.training.default_callbacks import install
from elmo_tasks.training.machine_record import MachineRecordCallback
from elmo_tasks.training.preflight import PreflightCallback
from elmo_tasks.training.resumption import ResumptionCallback
from elmo_tasks.training.token_vector_start import TokenVectorStartCallback

__all__ = [
    "AtomicCheckpointer",
    "ExportBiLmCallback",
    "MachineRecordCallback",
    "PreflightCallback",
    "ResumptionCallback",
    "TokenVectorStartCallback",
    "export_bilm",
]

install()
