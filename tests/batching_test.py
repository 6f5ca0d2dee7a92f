"""How the shipped configs put sentences together."""

import json
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Vocabulary

import elmo_tasks  # noqa: F401  registers the readers

ROOT = Path(__file__).parents[1]
PAIRS = ROOT / "fixtures/mrpc/msr_paraphrase_train.txt"
TWINS = ROOT / "training_configs/json"


def batches(batch_sampler):
    """Each batch as the lists of lengths of its first and its second sentences."""
    reader = DatasetReader.from_params(Params({"type": "mrpc", "token_indexers": {"words": {"type": "single_id"}}}))
    loader = DataLoader.from_params(
        Params({"type": "multiprocess", "batch_sampler": batch_sampler}), reader=reader, data_path=str(PAIRS)
    )
    loader.index_with(Vocabulary.from_instances(loader.iter_instances()))
    names = ("sentence1", "sentence2")
    return [[batch[name]["words"]["tokens"].ne(0).sum(dim=1).tolist() for name in names] for batch in loader]


def test_little_of_a_batch_of_the_shipped_config_is_padding():
    """Less than 15 %, with a batch size that is to the sample what the config's is to the corpus."""
    sampler = json.loads((TWINS / "mrpc.json").read_text())["data_loader"]["batch_sampler"]
    padded = tokens = 0
    for batch in batches({**sampler, "batch_size": 8}):
        for lengths in batch:
            tokens += sum(lengths)
            padded += len(lengths) * max(lengths)
    assert 1 - tokens / padded < 0.15


@pytest.mark.parametrize("max_tokens", [200, 20])
def test_no_batch_exceeds_a_budget_of_tokens_unless_a_pair_does(max_tokens):
    sampler = {"type": "max_tokens_sampler", "max_tokens": max_tokens, "sorting_keys": ["sentence1", "sentence2"]}
    found = batches(sampler)
    assert sum(len(first) for first, _ in found) == 251
    sizes = [len(first) for first, _ in found]
    padded = [len(first) * max(max(first), max(second)) for first, second in found]
    assert all(tokens <= max_tokens or size == 1 for tokens, size in zip(padded, sizes))
    assert any(tokens > max_tokens for tokens in padded) == (max_tokens == 20)
    # Whether 20 tokens hold two pairs depends on the noise of the sampler.
    assert max(sizes) > 1 or max_tokens == 20
