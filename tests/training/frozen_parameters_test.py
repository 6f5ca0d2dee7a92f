import os

import pytest
import torch

from elmo_tasks.training.frozen_parameters import FrozenParameters


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bilm = torch.nn.Linear(3, 3)
        self.bilm.requires_grad_(False)
        self.head = torch.nn.Linear(3, 1)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "frozen_parameters.th")


def test_frozen_parameters_are_left_out_and_come_back(path):
    model = Model()
    whole = {name: value.clone() for name, value in model.state_dict().items()}
    kept = FrozenParameters(path).leave_out(model, model.state_dict())
    assert set(kept) == {"head.weight", "head.bias"}
    completed = FrozenParameters(path).complete(kept)
    assert set(completed) == set(whole)
    assert all(torch.equal(completed[name], whole[name]) for name in whole)


def test_the_file_is_written_once(path):
    model = Model()
    frozen = FrozenParameters(path)
    frozen.leave_out(model, model.state_dict())
    written = os.stat(path)
    frozen.leave_out(model, model.state_dict())
    FrozenParameters(path).leave_out(model, model.state_dict())  # in the process that recovers
    assert os.stat(path).st_ino == written.st_ino
    assert os.stat(path).st_mtime_ns == written.st_mtime_ns


def test_what_is_thawed_and_trained_is_in_the_state_also_when_frozen_again(path):
    model = Model()
    frozen = FrozenParameters(path)
    frozen.leave_out(model, model.state_dict())
    model.bilm.bias.requires_grad_(True)
    torch.optim.SGD([model.bilm.bias], lr=1.0).zero_grad()
    model.bilm(torch.ones(1, 3)).sum().backward()
    torch.optim.SGD([model.bilm.bias], lr=1.0).step()
    trained = model.bilm.bias.detach().clone()
    for requires_grad in (True, False):
        model.bilm.bias.requires_grad_(requires_grad)
        kept = frozen.leave_out(model, model.state_dict())
        assert set(kept) == {"bilm.bias", "head.weight", "head.bias"}
        assert torch.equal(frozen.complete(kept)["bilm.bias"], trained)


def test_a_process_that_recovers_looks_whether_the_file_still_tells_the_truth(path):
    model = Model()
    FrozenParameters(path).leave_out(model, model.state_dict())
    with torch.no_grad():
        model.bilm.bias += 1
    kept = FrozenParameters(path).leave_out(model, model.state_dict())
    assert set(kept) == {"bilm.bias", "head.weight", "head.bias"}


def test_what_is_frozen_after_the_file_was_written_stays_in_the_state(path):
    model = Model()
    frozen = FrozenParameters(path)
    frozen.leave_out(model, model.state_dict())
    model.head.requires_grad_(False)
    assert set(frozen.leave_out(model, model.state_dict())) == {"head.weight", "head.bias"}


def test_without_a_file_a_state_is_complete_as_it_is(path):
    state = {"head.weight": torch.ones(1)}
    assert FrozenParameters(path).complete(state) is state
