"""What all tests share."""

import json
import logging
import string
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
