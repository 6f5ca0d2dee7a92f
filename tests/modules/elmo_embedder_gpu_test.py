import json

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params

from elmo_tasks.modules import ActivationCache, ElmoEmbedder

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda", 0)


def test_vectors_on_the_gpu_equal_those_on_the_cpu_cold_and_warm(files, sentences, to_ids):
    character_ids = to_ids(sentences)
    expected = ElmoEmbedder(**files).eval()(character_ids)
    embedder = ElmoEmbedder(**files, dropout=0.0, cache=ActivationCache()).to(GPU).train()
    for _ in range(2):
        found = embedder(character_ids.to(GPU))
        assert found.device == GPU
        torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-4)


def test_entries_live_on_the_gpu_and_follow_the_model(files, sentences, to_ids, tmp_path):
    character_ids = to_ids(sentences)
    cache = ActivationCache(str(tmp_path))
    embedder = ElmoEmbedder(**files, dropout=0.0, cache=cache).train()
    on_cpu = embedder(character_ids)
    embedder.to(GPU)
    torch.testing.assert_close(embedder(character_ids.to(GPU)).cpu(), on_cpu, rtol=0, atol=1e-6)
    assert {entry.device for entry in cache._memory._entries.values()} == {GPU}


@pytest.mark.parametrize("mix", ["scalar", "token_dependent"])
def test_half_precision_training_is_followed_by_a_full_precision_test(files, tmp_path, sentences, mix):
    lines = [" ".join(words) for words in sentences if words]
    (tmp_path / "rows.txt").write_text("".join(f"{line} _!_{row % 2}\n" for row, line in enumerate(lines)))
    config = {
        "dataset_reader": {"type": "mr"},
        "train_data_path": str(tmp_path / "rows.txt"),
        "validation_data_path": str(tmp_path / "rows.txt"),
        "test_data_path": str(tmp_path / "rows.txt"),
        "evaluate_on_test": True,
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo", **files, "mix": mix, "cache": {}}}},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 2, "optimizer": "adam", "cuda_device": 0, "use_amp": True},
    }
    train_model(Params(config), str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert 0 < metrics["test_loss"] < 100
