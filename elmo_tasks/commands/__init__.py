"""Subcommands of `allennlp`."""

from elmo_tasks.commands.cross_validate import CrossValidateCommand
from elmo_tasks.commands.elmo import ElmoCommand
from elmo_tasks.commands.scalar_mix import ScalarMixCommand

__all__ = ["CrossValidateCommand", "ElmoCommand", "ScalarMixCommand"]
