"""What all tests share."""

import ctypes
import json
import logging
import shutil
import string
import subprocess
from pathlib import Path

import pytest
import torch
from _jsonnet import evaluate_snippet

OVERRIDES = Path(__file__).parents[1] / "training_configs/overrides"
LOG_LEVEL = logging.root.level


def pytest_addoption(parser):
    parser.addoption("--trials", type=int, default=2, help="how much each test of reliability tries")


@pytest.fixture(scope="session")
def trials(request):
    """
    How much the tests under `tests/reliability` try: a few in each run of all tests, 20 for the figures of the README.
    """
    return request.config.getoption("--trials")


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


@pytest.fixture(scope="session")
def small_bert(tmp_path_factory):
    """The override of `ag_news/bert.jsonnet` with a BERT of random weights, whose word pieces are characters."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    pieces = [prefix + character for prefix in ("", "##") for character in string.ascii_lowercase + string.digits]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *pieces]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(str(folder))
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(str(folder))
    override = OVERRIDES / "transformer.libsonnet"
    return json.loads(evaluate_snippet("small BERT", f"(import '{override}')('{folder}')"))


@pytest.fixture(scope="session")
def compiled_lstm_cell(tmp_path_factory):
    """The source of our operation for GPUs, as a function of tensors on the processor, float32."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the source of an operation for GPUs")
    from elmo_tasks.bilm.lstm_cell import SOURCE

    folder = tmp_path_factory.mktemp("lstm_cell")
    loop = """
    extern "C" void run(long size, const float* i, const float* j, const float* f, const float* o, const float* memory,
                        double bound, float* next, float* cell) {
        for (long n = 0; n < size; ++n)
            lstm_cell<float>(i[n], j[n], f[n], o[n], memory[n], bound, next[n], cell[n]);
    }
    """
    (folder / "cell.cpp").write_text(f"#include <math.h>\n{SOURCE}\n{loop}")
    command = ["g++", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / "cell.so"), str(folder / "cell.cpp")]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(str(folder / "cell.so")).run

    def compiled(*tensors, bound):
        inputs = [tensor.contiguous() for tensor in tensors]
        outputs = [torch.empty_like(inputs[0]) for _ in range(2)]
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in inputs + outputs]
        run(ctypes.c_long(inputs[0].numel()), *pointers[:5], ctypes.c_double(bound), *pointers[5:])
        return outputs

    return compiled
