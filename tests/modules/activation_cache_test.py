import logging
import os

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.disk_tier import FILE_NAME

CPU = torch.device("cpu")
NUM_VALUES = 4


def entry(seed: int, num_tokens: int = 3, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(num_tokens, NUM_VALUES, generator=torch.Generator().manual_seed(seed)).to(dtype)


def key(number: int) -> bytes:
    return b"sentence" + number.to_bytes(8, "little")


def entries(numbers, **options):
    return {key(number): entry(number, **options) for number in numbers}


def warnings_in(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_key_is_of_the_sentence_and_not_of_its_padding():
    cache = ActivationCache()
    character_ids = numpy.arange(2 * 3 * 50, dtype="int16").reshape(2, 3, 50)
    alone = cache.keys(character_ids[:1, :2], [2], b"context")
    padded = numpy.zeros((2, 9, 50), dtype="int16")
    padded[0, :2] = character_ids[0, :2]
    padded[1, :3] = character_ids[1]
    assert cache.keys(padded, [2, 3], b"context")[0] == alone[0]


def test_key_depends_on_all_that_an_entry_depends_on():
    character_ids = numpy.arange(3 * 50, dtype="int16").reshape(1, 3, 50)
    other_ids = character_ids.copy()
    other_ids[0, 2, 49] += 1
    keys = [
        ActivationCache().keys(character_ids, [3], b"context")[0],
        ActivationCache().keys(character_ids, [2], b"context")[0],
        ActivationCache().keys(other_ids, [3], b"context")[0],
        ActivationCache().keys(character_ids, [3], b"another")[0],
        ActivationCache(dtype="float16").keys(character_ids, [3], b"context")[0],
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_entries_outlive_the_process_bit_for_bit(tmp_path, dtype):
    config = {"directory": str(tmp_path / "cache"), "dtype": dtype}
    stored = entries(range(5), dtype=getattr(torch, dtype))
    ActivationCache.from_params(Params(dict(config))).put(stored)
    found = ActivationCache.from_params(Params(dict(config))).get(map(key, range(6)), NUM_VALUES, CPU)
    assert set(found) == set(stored)
    for name, tensor in stored.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_missing_looks_into_both_tiers(tmp_path):
    one = entry(0)
    cache = ActivationCache(str(tmp_path), max_memory_bytes=one.numel() * 4)
    cache.put(entries(range(2)))
    assert cache.missing(map(key, range(3))) == {key(2)}


def test_float16_takes_at_most_52_percent_of_the_room(tmp_path):
    sizes = {}
    for dtype in ("float32", "float16"):
        cache = ActivationCache(str(tmp_path / dtype), dtype=dtype)
        cache.put(entries(range(20), num_tokens=2000, dtype=getattr(torch, dtype)))
        sizes[dtype] = os.path.getsize(tmp_path / dtype / FILE_NAME)
    assert sizes["float16"] <= 0.52 * sizes["float32"]


def test_full_memory_without_a_directory_warns_once(caplog):
    cache = ActivationCache(max_memory_bytes=100)
    cache.put(entries(range(4)))
    cache.put(entries(range(4, 8)))
    assert len(warnings_in(caplog)) == 1
    assert "`max_memory_bytes` with 2 sentences" in warnings_in(caplog)[0]


def test_unknown_dtype_is_refused():
    with pytest.raises(ConfigurationError, match=r"float32.*float16.*'float8'"):
        ActivationCache(dtype="float8")
