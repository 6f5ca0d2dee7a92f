"""Subcommands of `allennlp`."""

from elmo_tasks.commands.check_bilm import CheckBiLmCommand
from elmo_tasks.commands.compare import CompareCommand
from elmo_tasks.commands.cross_validate import CrossValidateCommand
from elmo_tasks.commands.elmo import ElmoCommand
from elmo_tasks.commands.export_bilm import ExportBiLmCommand
from elmo_tasks.commands.predict_bulk import PredictBulkCommand
from elmo_tasks.commands.report import ReportCommand
from elmo_tasks.commands.results import ResultsCommand
from elmo_tasks.commands.scalar_mix import ScalarMixCommand
from elmo_tasks.commands.sweep import SweepCommand

__all__ = [
    "CheckBiLmCommand",
    "CompareCommand",
    "CrossValidateCommand",
    "ElmoCommand",
    "ExportBiLmCommand",
    "PredictBulkCommand",
    "ReportCommand",
    "ResultsCommand",
    "ScalarMixCommand",
    "SweepCommand",
]
