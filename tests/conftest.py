"""What all tests share."""

import logging

import pytest
import torch

LOG_LEVEL = logging.root.level


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Models this small wait for other threads more than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _level_of_the_log():
    """A training run leaves its own behind, and later tests would see messages that they do not see alone."""
    logging.root.setLevel(LOG_LEVEL)
