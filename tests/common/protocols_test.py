import torch

from elmo_tasks.common.protocols import PreparesForTraining, ReportsMetrics


class Both(torch.nn.Module):
    def prepare_for_training(self, training_instances, all_instances):
        pass

    def get_metrics(self, reset=False):
        return {}


def test_a_module_takes_part_by_having_the_method():
    assert isinstance(Both(), PreparesForTraining)
    assert isinstance(Both(), ReportsMetrics)


def test_a_module_without_the_method_does_not():
    assert not isinstance(torch.nn.Linear(1, 1), PreparesForTraining)
    assert not isinstance(torch.nn.Linear(1, 1), ReportsMetrics)
