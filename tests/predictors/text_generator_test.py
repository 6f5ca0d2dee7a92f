import math

import pytest
import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_tasks.dataset_readers import BiLmTextReader, WordVocabulary
from elmo_tasks.dataset_readers.bilm_text_loader import BiLmTextLoader
from elmo_tasks.models import BiLmLanguageModel
from elmo_tasks.modules import FullSoftmax, WordNetwork
from elmo_tasks.predictors.text_generator import TextGenerator

# Each trains a language model until it knows its text by heart.
pytestmark = pytest.mark.slow

LINES = "the film is good\nwhy not\n"


def train(path, reader):
    """A model that knows a text of two lines by heart."""
    path.write_text(LINES)
    vocabulary = WordVocabulary.from_text(reader, str(path))
    torch.manual_seed(3)
    model = BiLmLanguageModel(
        vocabulary,
        Lazy(WordNetwork, constructor_extras={"projection_dim": 12, "cell_dim": 16}),
        Lazy(FullSoftmax),
        dropout=0.0,
    )
    loader = BiLmTextLoader(reader, str(path), batch_size=1)
    loader.index_with(vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        for batch in loader:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
    return TextGenerator(model, reader)


@pytest.fixture(scope="module")
def word_generator(tmp_path_factory):
    return train(tmp_path_factory.mktemp("words") / "text.txt", BiLmTextReader(unroll_steps=100))


@pytest.fixture(scope="module")
def character_generator(tmp_path_factory):
    reader = BiLmTextReader(unit="characters", mode="sentence", unroll_steps=100)
    return train(tmp_path_factory.mktemp("characters") / "text.txt", reader)


def test_temperature_0_takes_the_likeliest_words(word_generator):
    output = word_generator.predict("the film", length=6, temperature=0)
    assert output["text"] == "the film is good\nwhy not\n"
    assert -1 < output["log_likelihood"] < 0


def test_a_temperature_near_0_takes_them_too(word_generator):
    assert word_generator.predict("the film", length=6, temperature=1e-320)["text"] == "the film is good\nwhy not\n"


def test_characters_go_on_without_blanks_between_them(character_generator):
    assert character_generator.predict("the fi", length=10, temperature=0)["text"] == "the film is good"


def test_without_a_prompt_a_line_begins(word_generator):
    assert word_generator.predict(length=4, temperature=0)["text"] in ("the film is good", "why not\nwhy")


def test_lines_of_a_prompt_are_sentences_before(word_generator):
    """A model of streams knows that the second line follows the first."""
    assert word_generator.predict("the film is good\n", length=2, temperature=0)["text"] == "the film is good\nwhy not"


def test_the_likelihood_is_that_of_the_chosen_words(word_generator):
    model, vocabulary = word_generator._model, word_generator._model.vocab
    output = word_generator.predict("the", length=2, temperature=2.0, seed=5)
    words = output["text"].split(" ")
    expected = 0.0
    for count in (1, 2):
        log_probabilities, _ = model.predict_next(["<S>", *words[:count]])
        expected += log_probabilities[vocabulary.get_token_index(words[count], "words")].item()
    assert output["log_likelihood"] == pytest.approx(expected, rel=1e-4)


def test_the_same_seed_writes_the_same_and_others_something_else(word_generator):
    texts = [word_generator.predict("why", length=8, temperature=5.0, seed=seed)["text"] for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_unknown_and_begin_are_never_written(word_generator):
    text = word_generator.predict("xyz", length=300, temperature=100.0)["text"]
    assert text.startswith("xyz ")
    assert "<UNK>" not in text
    assert "<S>" not in text


def test_length_0_gives_the_prompt_back(word_generator):
    output = word_generator.predict("why not", length=0)
    assert (output["text"], output["log_likelihood"]) == ("why not", 0.0)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"promt": "a"}, "must be a JSON object with keys of prompt, length, temperature, seed, but has also `promt`"),
        ({"length": "9"}, "`length` must be like 50, but is '9'"),
        ({"length": -1}, "`length` must be between 0 and 2147483647, but is -1"),
        ({"temperature": -0.5}, "`temperature` must be between 0 and 1000000.0, but is -0.5"),
        ({"temperature": math.nan}, "`temperature` must be between 0 and 1000000.0, but is nan"),
        ({"seed": 2**70}, "`seed` must be between -9223372036854775808 and 9223372036854775807, but is 1180"),
        ({"prompt": None}, "`prompt` must be like '', but is None"),
        ({"prompt": "the </S>"}, "`prompt` must not hold the boundary marks <S> and </S>.* is 'the </S>' in the input"),
        ({"prompt": "why\n<S> not"}, "`prompt` must not hold the boundary marks"),
    ],
)
def test_wrong_inputs_are_errors(word_generator, inputs, message):
    with pytest.raises(ConfigurationError, match=message):
        word_generator.predict_json(inputs)


def test_boundary_marks_are_characters_to_a_model_of_these(character_generator):
    assert character_generator.predict("</S>", length=0)["text"] == "</S>"


def test_rows_of_the_reader_are_an_error_that_says_what_is_taken(word_generator):
    instance = word_generator._dataset_reader.text_to_instance(["the", "film"])
    message = r"takes a JSON object with keys of prompt, .* a line.*without --use-dataset-reader"
    with pytest.raises(ConfigurationError, match=message):
        word_generator.predict_instance(instance)
    with pytest.raises(ConfigurationError, match=message):
        word_generator.predict_batch_instance([instance])


def test_a_reader_of_another_kind_is_an_error(word_generator):
    with pytest.raises(ConfigurationError, match="must have a bilm_language_model and its reader bilm_text"):
        TextGenerator(word_generator._model, DatasetReader())
