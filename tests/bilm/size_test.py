from pathlib import Path

import h5py
import pytest

from elmo_tasks.bilm import BiLm, BiLmOptions, WordOptions, resolve
from elmo_tasks.bilm.size import check_size, num_parameters

MINI = resolve("mini")
FIXTURE = BiLmOptions.from_file(str(Path(__file__).parents[2] / "fixtures/bilm/options.json"))
WORDS = WordOptions(("<S>", "</S>", "<UNK>", "tide"), None, 3, 5, 2, None, None)


@pytest.mark.parametrize("options", [FIXTURE, BiLmOptions.from_file(MINI.options_file), WORDS])
def test_the_count_is_that_of_the_network(options):
    assert num_parameters(options) == sum(parameter.numel() for parameter in BiLm(options).parameters())


def test_the_published_model_has_its_published_size():
    """93.6 million, in the table of the ELMo page."""
    options = BiLmOptions(16, tuple(zip(range(1, 8), (32, 32, 64, 128, 256, 512, 1024))), "relu", 2, 50, 2, 4096, 512)
    assert num_parameters(options) == pytest.approx(93.6e6, rel=1e-3)


def test_the_bundled_files_fit():
    check_size(BiLmOptions.from_file(MINI.options_file), MINI.weight_file)


def test_options_of_a_huge_bilm_are_refused_beside_a_small_file(tmp_path):
    """The array is declared, which takes no room, and would be read as zeros."""
    options = BiLmOptions.from_dict(
        {**FIXTURE.to_dict(), "lstm": {**FIXTURE.to_dict()["lstm"], "dim": 2**30, "n_layers": 1}}
    )
    path = str(tmp_path / "weights.hdf5")
    with h5py.File(path, "w") as file:
        file.create_dataset("RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0", (64, 2**32), "float32", chunks=(1, 2**20))
    with pytest.raises(ValueError, match=r"weights.hdf5 must hold the [\d,]{15} weights of this biLM, but has"):
        check_size(options, path)
