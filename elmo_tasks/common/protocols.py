"""What a module may offer to the training run and to the model around it."""

from typing import Callable, Dict, Iterator

from allennlp.data import Instance
from typing_extensions import Protocol, runtime_checkable

InstanceSource = Callable[[], Iterator[Instance]]


@runtime_checkable
class PreparesForTraining(Protocol):
    """
    A module that wants to see the data once, before the first epoch: to count labels, or to fill a cache.

    The training run calls it on every sub-module of the model that has this method (`elmo_tasks.training`).
    An implementation must leave the global random states untouched: with and without it, the same batches
    come.
    """

    def prepare_for_training(self, training_instances: InstanceSource, all_instances: InstanceSource) -> None:
        """
        # Parameters

        training_instances : `Callable[[], Iterator[Instance]]`
            Gives a fresh iterator over this process's share of the training part.
        all_instances : `Callable[[], Iterator[Instance]]`
            The same, over the training and the validation part.
        """
        ...


@runtime_checkable
class ReportsMetrics(Protocol):
    """A module inside a model whose figures belong into the model's metrics, such as a learned layer mix."""

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            Names of metrics to plain Python floats.
        """
        ...
