from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Instance, Token
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.modules.token_embedders import ElmoTokenEmbedder, TokenEmbedder

from elmo_tasks.bilm import encode_sentences, lstm_cell
from elmo_tasks.modules import ActivationCache, ElmoEmbedder

BILM = Path(__file__).parents[2] / "fixtures/bilm"
FILES = {"options_file": str(BILM / "options.json"), "weight_file": str(BILM / "weights.hdf5")}
SENTENCES = [
    ["A", "quiet", "film", "with", "a", "loud", "heart", "."],
    ["Skip", "it"],
    [],
    ["naïve", "Ωmega", "日本語", "🎬" * 20, "a" * 60],
    ["."],
    ["A", "quiet", "film", "with", "a", "loud", "heart", "."],
]
CHARACTER_IDS = encode_sentences(SENTENCES)


def test_the_machine_refuses_what_a_gpu_refuses(machine):
    there, here = torch.ones(3, device=machine.gpu), torch.ones(3)
    assert there.is_cuda
    assert (there + 1).device == machine.gpu
    assert type((there + there).cpu()) is torch.Tensor
    for wrong in (lambda: there + here, lambda: here[there.long()]):
        with pytest.raises(AssertionError, match="of a GPU and of the processor"):
            wrong()
    with pytest.raises(RuntimeError, match="numpy"):
        there.numpy()
    assert machine.started["add"] == 2


def make(**options):
    torch.manual_seed(0)
    return TokenEmbedder.from_params(Params({"type": "elmo", "dropout": 0.0, **FILES, **options})).eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "bfloat16"},
        {"mix": {"type": "scalar", "initial": [0.2, 0.5, 0.3], "layer_norm": True}},
        {"mix": "token_dependent"},
        {"mix": {"type": "single_layer", "layer": 1}, "projection_dim": 3},
        {"stateful": True},
        {"max_tokens_per_forward": 9},
    ],
    ids=str,
)
def test_vectors_are_those_of_the_processor(machine, options):
    expected = make(**options)(CHARACTER_IDS)
    embedder = make(**options).to(machine.gpu)
    machine.started.clear()
    found = embedder(CHARACTER_IDS.to(machine.gpu))
    assert found.device == machine.gpu
    tolerance = 2e-2 if "precision" in options else 1e-5
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=tolerance)
    assert (machine.started["lstm_cell"] > 0) == (not options.get("stateful"))


def test_vectors_are_those_of_the_processor_with_a_torch_that_cannot_make_our_operation(machine, monkeypatch):
    monkeypatch.setattr(lstm_cell, "IS_AVAILABLE", False)
    found = make().to(machine.gpu)(CHARACTER_IDS.to(machine.gpu))
    torch.testing.assert_close(found.cpu(), make()(CHARACTER_IDS), rtol=0, atol=1e-5)
    assert machine.started["lstm_cell"] == 0
    assert machine.started["tanh_"] > 0


def test_entries_of_the_cache_live_where_the_model_is(machine, tmp_path):
    indexer = {"elmo": ELMoTokenCharactersIndexer()}
    instances = [Instance({"text": TextField([Token(word) for word in words], indexer)}) for words in SENTENCES]
    expected = make()(CHARACTER_IDS)
    for folder in (None, str(tmp_path)):
        cache = ActivationCache(folder)
        embedder = ElmoEmbedder(**FILES, dropout=0.0, cache=cache).to(machine.gpu).train()
        embedder.prepare_for_training(lambda: instances, lambda: instances)
        machine.started.clear()
        torch.testing.assert_close(embedder(CHARACTER_IDS.to(machine.gpu)).cpu(), expected, rtol=0, atol=1e-5)
        assert machine.started["bmm"] == 0, "the biLM ran again"
        assert {entry.device for entry in cache._memory._entries.values()} == {machine.gpu}
    # What another process left on disk goes to the GPU, too.
    embedder = ElmoEmbedder(**FILES, dropout=0.0, cache=ActivationCache(str(tmp_path))).to(machine.gpu).train()
    torch.testing.assert_close(embedder(CHARACTER_IDS.to(machine.gpu)).cpu(), expected, rtol=0, atol=1e-5)
    assert machine.started["bmm"] == 0, "the biLM ran again"


def test_entries_that_a_gpu_rounds_have_names_of_their_own(machine):
    """A container may set it in its environment."""
    embedder = ElmoEmbedder(**FILES)
    names = [embedder._runner._context()]
    embedder.to(machine.gpu)
    names.append(embedder._runner._context())
    try:
        torch.set_float32_matmul_precision("high")
        names.append(embedder._runner._context())
    finally:
        torch.set_float32_matmul_precision("highest")
    assert names[0] == names[1] == embedder._runner._context() != names[2]


def test_a_gpu_starts_an_eighth_of_the_operations_that_allennlp_starts(machine):
    """With batches of this size a GPU waits for each start, not for the work in it."""
    character_ids = encode_sentences([(SENTENCES[row % 6] * 9)[: 12 + row] for row in range(32)]).to(machine.gpu)
    counts = []
    for embedder in (ElmoTokenEmbedder(**FILES).eval(), make()):
        embedder.to(machine.gpu)(character_ids)
        machine.started.clear()
        embedder(character_ids)
        counts.append(sum(machine.started.values()))
    assert counts[1] < counts[0] / 8
