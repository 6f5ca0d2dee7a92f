import pytest
import torch
from allennlp.common import Params
from allennlp.models import Model
from allennlp.nn.util import move_to_device

from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.bilm_text_loader import BiLmTextLoader
from elmo_tasks.dataset_readers.vocabulary import WordVocabulary

TEXT = "the film is good .\nA man in a boat\nWhy ?\nthe man is in the film .\n"
WORDS = {"type": "words", "projection_dim": 6, "cell_dim": 10}
CHARACTERS = {
    "type": "characters",
    "options": {
        "lstm": {
            "use_skip_connections": True, "projection_dim": 6, "cell_clip": 3, "proj_clip": 3, "dim": 10, "n_layers": 2,
        },
        "char_cnn": {
            "activation": "relu", "filters": [[1, 4], [2, 5]], "n_highway": 1, "embedding": {"dim": 3},
            "n_characters": 262, "max_characters_per_token": 50,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("network", [CHARACTERS, WORDS], ids=["characters", "words"])
@pytest.mark.parametrize("softmax", ["full", "sampled", "adaptive"])
@pytest.mark.parametrize("mode", [{"mode": "sentence"}, {"mode": "carry", "unroll_steps": 3}], ids=str)
def test_perplexities_are_those_of_the_processor(machine, tmp_path, network, softmax, mode):
    (tmp_path / "text.txt").write_text(TEXT)
    vocabulary = WordVocabulary.from_text(BiLmTextReader(), str(tmp_path / "text.txt"))
    options = {"full": {}, "sampled": {"num_samples": 4}, "adaptive": {"cutoffs": [4]}}[softmax]
    params = {"type": "bilm_language_model", "network": network, "softmax": {"type": softmax, **options}}
    loader = BiLmTextLoader(BiLmTextReader(**mode), str(tmp_path / "text.txt"), 2)
    loader.index_with(vocabulary)
    torch.manual_seed(0)
    model = Model.from_params(Params(params), vocab=vocabulary).eval()
    metrics = []
    for device in (torch.device("cpu"), machine.gpu):
        model.to(device)
        for training in (True, False):
            model.train(training)
            model._num_steps = 0
            for batch in loader:
                model(**move_to_device(batch, device))
        metrics.append(model.get_metrics(reset=True))
    for name, value in metrics[0].items():
        assert "per_second" in name or metrics[1][name] == pytest.approx(value, rel=1e-4), name
