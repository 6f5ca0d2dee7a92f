"""A language model's archive as the biLM of an embedder."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model, load_archive

from elmo_tasks.bilm import WordOptions
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.mrpc import MrpcReader
from elmo_tasks.dataset_readers.vocabulary import SPECIAL_WORDS, WordVocabulary
from elmo_tasks.modules import ElmoEmbedder
from elmo_tasks.modules.language_model_source import bilm_of_language_model, is_language_model

FIXTURES = Path(__file__).parents[2] / "fixtures"
WORD_BILM = FIXTURES / "word_bilm"

# Known words, unknown ones, numbers, one that a row of characters has no room for.
SENTENCES = [
    ["The", "company", "said", "the", "zeppelin", "cost", "$", "1,500", "."],
    [],
    ["9:30", "Ωmega", "a" * 60],
    ["the"],
]


def save_run(folder, network, **reader):
    """What a run leaves, of a language model as it is drawn."""
    torch.manual_seed(3)
    vocabulary = WordVocabulary.from_words([*SPECIAL_WORDS, "the", "film", "<NUM>"])
    config = {
        "dataset_reader": {"type": "bilm_text", **reader},
        "vocabulary": {"type": "bilm_text"},
        "model": {"type": "bilm_language_model", "network": network, "softmax": {"type": "full"}},
    }
    model = Model.from_params(Params(json.loads(json.dumps(config["model"]))), vocab=vocabulary)
    vocabulary.save_to_files(str(folder / "vocabulary"))
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(model.state_dict(), folder / "weights.th")
    return model


def test_the_sample_is_what_its_readme_says():
    options = bilm_of_language_model(str(WORD_BILM)).options
    sizes = (options.cell_dim, options.projection_dim, options.num_layers, options.number_word)
    assert sizes == (32, 16, 2, "<NUM>")
    reader = BiLmTextReader(number_word="<NUM>", source=MrpcReader())
    train_file = str(FIXTURES / "mrpc/msr_paraphrase_train.txt")
    expected = WordVocabulary.from_text(reader, train_file, min_count=2).get_token_to_index_vocabulary("words")
    assert list(options.words) == list(expected)
    assert sum(path.stat().st_size for path in WORD_BILM.rglob("*")) < 300_000


@pytest.mark.parametrize("options", [{}, {"cache": {}}, {"max_tokens_per_forward": 4}], ids=str)
def test_layers_over_words_are_those_of_the_language_model(options, to_ids):
    language_model = load_archive(WORD_BILM).model.eval()
    # What the language model was trained on, made by the reader that it was trained with.
    reader = BiLmTextReader(number_word="<NUM>")
    with torch.no_grad():
        expected = language_model.layer_activations([reader.split(" ".join(words)) for words in SENTENCES])
    params = Params({"pretrained": str(WORD_BILM), **options})
    layers = ElmoEmbedder.from_params(params).eval().layers(to_ids(SENTENCES))
    torch.testing.assert_close(layers, torch.stack(expected), rtol=0, atol=1e-6)
    assert layers.abs().amax(dim=-1).gt(0.01).sum(dim=-1).tolist() == [[9, 0, 3, 1]] * 3


@pytest.mark.parametrize("word", ["7", "1,500.25", "-3", "+9:30", "2004/05", "12.", "1st", "$5", "3-4", ".5", "٣"])
def test_numbers_are_those_of_the_text_of_pretraining(word, to_ids):
    is_number = BiLmTextReader(number_word="<NUM>").split(word) == ["<NUM>"]
    table = bilm_of_language_model(str(WORD_BILM)).character_encoder
    vectors = table(to_ids([[word, "<NUM>", "zeppelin"]])[0])
    assert torch.equal(vectors[0], vectors[1 if is_number else 2])
    assert not torch.equal(vectors[1], vectors[2])


def test_layers_over_characters_are_those_of_the_language_model(bilm_folder, tmp_path, to_ids):
    options = json.loads((bilm_folder / "options.json").read_text())
    model = save_run(tmp_path, {"type": "characters", "options": options}).eval()
    layers = ElmoEmbedder(pretrained=str(tmp_path)).eval().layers(to_ids(SENTENCES))
    with torch.no_grad():
        torch.testing.assert_close(layers, torch.stack(model.layer_activations(SENTENCES)), rtol=0, atol=1e-6)


def test_the_average_is_a_third_of_each_layer(to_ids):
    params = Params({"pretrained": str(WORD_BILM), "mix": {"type": "scalar", "trainable": False}})
    embedder = ElmoEmbedder.from_params(params).eval()
    character_ids = to_ids(SENTENCES)
    torch.testing.assert_close(embedder(character_ids), embedder.layers(character_ids).sum(dim=0) / 3)
    assert not any(parameter.requires_grad for parameter in embedder.parameters())


def test_archive_predicts_the_same_after_the_language_model_is_gone(train, tmp_path, predictions):
    language_model = Path(shutil.copytree(WORD_BILM, tmp_path / "words"))
    run = train({"pretrained": str(language_model), "cache": {}})
    expected = predictions(run / "model.tar.gz")
    shutil.rmtree(language_model)
    assert predictions(run / "model.tar.gz") == expected
    (embedder,) = [
        module for module in load_archive(run / "model.tar.gz").model.modules() if isinstance(module, ElmoEmbedder)
    ]
    assert isinstance(embedder.bilm.options, WordOptions)
    assert list(embedder.bilm.options.words) == (WORD_BILM / "vocabulary/words.txt").read_text().splitlines()
    # The classifier has no words of its own.
    assert not (run / "vocabulary/words.txt").exists()


def test_the_seed_of_an_untrained_one_says_its_weights():
    one, same, other = (
        ElmoEmbedder(pretrained=str(WORD_BILM), untrained_seed=seed).bilm.state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(same[name], one[name]) for name in one)
    assert not torch.equal(other["character_encoder.vectors"], one["character_encoder.vectors"])


def test_what_is_a_language_model():
    assert is_language_model("https://example.org/words/model.tar.gz")
    assert is_language_model(str(WORD_BILM))
    assert not is_language_model(str(FIXTURES / "bilm"))
    assert not is_language_model("original")


def test_a_language_model_of_single_characters_is_refused(tmp_path):
    save_run(tmp_path, {"type": "words", "projection_dim": 2, "cell_dim": 3}, unit="characters")
    with pytest.raises(ConfigurationError, match="must be a language model over words, but its `unit` is 'characters'"):
        ElmoEmbedder(pretrained=str(tmp_path))


def test_an_archive_of_a_classifier_is_refused(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder)})
    with pytest.raises(ConfigurationError, match="of a `bilm_language_model`, but is one of a SentenceClassifier"):
        ElmoEmbedder(pretrained=str(run / "model.tar.gz"))


def test_an_archive_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"the biLM cannot be had: .*model\.tar\.gz"):
        ElmoEmbedder(pretrained=str(tmp_path / "model.tar.gz"))


def test_states_between_batches_are_refused_for_words():
    with pytest.raises(ConfigurationError, match="`stateful` must be false for a biLM over words"):
        ElmoEmbedder(pretrained=str(WORD_BILM), stateful=True)
