import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def single_thread():
    """The biLMs here are so small that threads wait for one another more than they compute."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)
