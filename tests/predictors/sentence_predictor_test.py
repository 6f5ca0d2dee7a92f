from allennlp.predictors import Predictor


def test_predicts_one_sentence(sentence_archive):
    predictor = Predictor.from_path(sentence_archive.path, "elmo_sentence", import_plugins=False)
    output = predictor.predict("a film of quiet wonder")
    assert output["tokens"] == ["a", "film", "of", "quiet", "wonder"]
    assert output == predictor.predict_json({"sentence": "a film of quiet wonder"})
