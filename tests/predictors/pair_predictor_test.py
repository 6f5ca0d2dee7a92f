import pytest
from allennlp.predictors import Predictor


def test_predicts_one_pair_and_its_reverse_alike(pair_archive):
    predictor = Predictor.from_path(pair_archive.path, "elmo_pair", import_plugins=False)
    there, back = predictor.predict("Rain fell.", "It was dry."), predictor.predict("It was dry.", "Rain fell.")
    assert there["sentence1_tokens"] == ["Rain", "fell", "."]
    assert there["sentence2_tokens"] == back["sentence1_tokens"]
    assert there["label_probabilities"] == pytest.approx(back["label_probabilities"], abs=1e-6)
