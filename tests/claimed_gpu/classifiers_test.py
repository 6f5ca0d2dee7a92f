"""Every shipped classifier scores on a GPU what it scores on the processor, and takes its metrics there."""

from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.nn.util import move_to_device

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parents[2] / "training_configs"
CLASSIFIERS = sorted(
    str(path.relative_to(CONFIGS).with_suffix(""))
    for path in CONFIGS.rglob("*.jsonnet")
    if path.parent.name != "pretrain"
)
TEXTS = ("a warm and quiet film .", "it gives up", "naïve , but 日本語 , and the rest of a longer line .")


@pytest.mark.parametrize("config", CLASSIFIERS)
def test_scores_are_those_of_the_processor(config, machine, request, monkeypatch):
    monkeypatch.chdir(CONFIGS.parent)
    import_plugins()
    overrides = request.getfixturevalue("small_bert") if config == "ag_news/bert" else {}
    params = Params.from_file(str(CONFIGS / f"{config}.jsonnet"), params_overrides=overrides)
    reader = DatasetReader.from_params(params["dataset_reader"])
    labels = ["1", "2", "3"] if config.startswith("ag_news") else ["0", "1", "1"]
    instances = []
    for text, label in zip(TEXTS, labels):
        instances.append(reader.text_to_instance(*[text] * len(reader.text_fields), label=label))
        reader.apply_token_indexers(instances[-1])
    torch.manual_seed(0)
    model = Model.from_params(params["model"], vocab=Vocabulary.from_instances(instances)).eval()
    batch = Batch(instances)
    batch.index_instances(model.vocab)
    outputs = []
    for device in (torch.device("cpu"), machine.gpu):
        model.to(device)
        found = model(**move_to_device(batch.as_tensor_dict(), device))
        outputs.append((found["logits"].cpu(), found["loss"].cpu(), model.get_metrics(reset=True)))
        assert found["logits"].device == device
    for ours, theirs in zip(*outputs):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert len(model.forward_on_instances(instances)) == len(instances)
