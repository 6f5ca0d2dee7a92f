"""What all tests share."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Models this small wait for other threads more than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
