import torch

from elmo_tasks.modules.memory_tier import MemoryTier

CPU = torch.device("cpu")
NUM_VALUES = 4


def key(number: int) -> bytes:
    return b"sentence" + number.to_bytes(8, "little")


def entry(seed: int, num_tokens: int = 3) -> torch.Tensor:
    return torch.randn(num_tokens, NUM_VALUES, generator=torch.Generator().manual_seed(seed))


def test_budget_is_kept_and_what_came_first_stays():
    one = entry(0)
    tier = MemoryTier(2 * one.numel() * one.element_size())
    assert [tier.put(key(number), entry(number)) for number in range(3)] == [True, True, False]
    assert tier.num_free_bytes == 0
    assert [tier.get(key(number), CPU) is not None for number in range(3)] == [True, True, False]
    torch.testing.assert_close(tier.get(key(1), CPU), entry(1), rtol=0, atol=0)


def test_entry_counts_once():
    tier = MemoryTier(1000)
    tier.put(key(0), entry(0))
    tier.put(key(0), entry(0))
    assert len(tier) == 1
    assert tier.num_free_bytes == 1000 - entry(0).numel() * 4


def test_entry_does_not_hold_on_to_the_batch_it_came_from():
    batch = entry(0, num_tokens=100)
    tier = MemoryTier(10_000)
    tier.put(key(0), batch[:2])
    stored = tier.get(key(0), CPU)
    assert len(stored.untyped_storage()) == 2 * NUM_VALUES * 4
    batch.zero_()
    torch.testing.assert_close(stored, entry(0, num_tokens=100)[:2], rtol=0, atol=0)
