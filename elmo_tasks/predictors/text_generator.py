"""Text out of a language model, one word or character after the other."""

import math
from typing import Any, List, NoReturn, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.bilm import LstmState
from elmo_tasks.bilm.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN
from elmo_tasks.bilm.word_table import UNKNOWN_WORD
from elmo_tasks.common.excerpts import excerpt, key_names
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.vocabulary import NAMESPACE
from elmo_tasks.models.bilm_language_model import BiLmLanguageModel
from elmo_tasks.predictors.json_lines import JsonLinesPredictor

DEFAULTS = {"prompt": "", "length": 50, "temperature": 1.0, "seed": 0}
# Colder than this, nothing but the likeliest word is ever drawn, and the division leaves the range of float32.
MIN_TEMPERATURE = 1e-6
# What torch can count with.
RANGES = {"length": (0, 2**31 - 1), "temperature": (0, 1e6), "seed": (-(2**63), 2**63 - 1)}
# Never written: the one begins each line by itself, the other is no word.
UNWRITTEN = (BEGIN_SENTENCE_TOKEN, UNKNOWN_WORD)
# Never read from a prompt: its lines get them.
BOUNDARY_MARKS = {BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN}


@Predictor.register("text_generator")
class TextGenerator(JsonLinesPredictor):
    """
    Goes on with a text, by the forward direction of a language model.

    Reads `{"prompt": "...", "length": 20, "temperature": 0.7, "seed": 1}`, all of them optional:

    prompt : `str` (default = `""`)
        Words between blanks, or characters, whichever the model was trained on. Empty: the model begins a line.
    length : `int` (default = `50`)
        Words or characters to add.
    temperature : `float` (default = `1.0`)
        How adventurous: below 1 likely words become more likely still; 0 always takes the likeliest one.
    seed : `int` (default = `0`)
        The same seed gives the same text.

    Gives these back with `text` (prompt and continuation) and `log_likelihood`, the sum over the added words in nats at
    temperature 1. Where the model ends a sentence, a new line begins. "<UNK>" is never written.

    Registered as a `Predictor` with name "text_generator". The default predictor of `bilm_language_model`.
    """

    def __init__(self, model: Model, dataset_reader: DatasetReader, frozen: bool = True) -> None:
        super().__init__(model, dataset_reader, frozen)
        self._model: Any
        self._dataset_reader: Any
        if not isinstance(model, BiLmLanguageModel) or not isinstance(dataset_reader, BiLmTextReader):
            raise ConfigurationError(
                "the predictor `text_generator` must have a bilm_language_model and its reader bilm_text, but has "
                f"{type(model).__name__} and {type(dataset_reader).__name__}"
            )

    accepted = f"a JSON object with keys of {', '.join(DEFAULTS)}"

    def check_inputs(self, inputs: Any, where: str) -> None:
        """See `JsonLinesPredictor`."""
        super().check_inputs(inputs, where)
        unknown = inputs.keys() - DEFAULTS.keys()
        if unknown:
            raise ConfigurationError(f"{where} must be {self.accepted}, but has also {key_names(sorted(unknown))}")
        options = {**DEFAULTS, **inputs}
        for key, kinds in (("prompt", str), ("length", int), ("temperature", (int, float)), ("seed", int)):
            value = options[key]
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise ConfigurationError(f"`{key}` must be like {DEFAULTS[key]!r}, but is {excerpt(value)} in {where}")
        for key, (lowest, highest) in RANGES.items():
            # Which "not a number" is not.
            if not lowest <= options[key] <= highest:
                raise ConfigurationError(
                    f"`{key}` must be between {lowest} and {highest}, but is {excerpt(options[key])} in {where}"
                )

        if not BOUNDARY_MARKS.isdisjoint(self._dataset_reader.split(options["prompt"])):
            raise ConfigurationError(
                f"`prompt` must not hold the boundary marks {BEGIN_SENTENCE_TOKEN} and {END_SENTENCE_TOKEN}, which are "
                f"added to each of its lines, but is {excerpt(options['prompt'])} in {where}"
            )

    def predict(self, prompt: str = "", length: int = 50, temperature: float = 1.0, seed: int = 0) -> JsonDict:
        """The continuation of one prompt."""
        return self.predict_json({"prompt": prompt, "length": length, "temperature": temperature, "seed": seed})

    def predict_json(self, inputs: JsonDict) -> JsonDict:
        """
        # Parameters

        inputs : `JsonDict`
            See the class.

        # Raises

        ConfigurationError
            Where a key is none that is known, a value is not in its range, or the prompt holds a boundary mark.
        """
        self.check_inputs(inputs, "the input")
        options = {**DEFAULTS, **inputs}
        with torch.no_grad():
            words, log_likelihood = self._generate(options)
        reader = self._dataset_reader
        lines = [reader.join(line) for line in _split_at(words, END_SENTENCE_TOKEN)]
        return {**options, "text": "\n".join(lines), "log_likelihood": log_likelihood}

    def predict_batch_json(self, inputs: List[JsonDict]) -> List[JsonDict]:
        """Each for itself."""
        return [self.predict_json(one) for one in inputs]

    def predict_instance(self, instance: Instance) -> NoReturn:
        """No instance is taken: a `ConfigurationError`."""
        self.predict_batch_instance([instance])

    def predict_batch_instance(self, instances: List[Instance]) -> NoReturn:
        """No instances are taken: a `ConfigurationError`."""
        raise ConfigurationError(
            f"the predictor `text_generator` takes {self.accepted} a line, not text as its reader reads it; predict "
            "without --use-dataset-reader"
        )

    def _generate(self, options: JsonDict) -> Tuple[List[str], float]:
        """The words of prompt and continuation, lines apart by "</S>", and the log likelihood of the continuation."""
        generator = torch.Generator().manual_seed(options["seed"])
        vocabulary = self._model.vocab
        unwritten = [vocabulary.get_token_index(word, NAMESPACE) for word in UNWRITTEN]
        # Within the prompt, each line but the last is complete.
        *complete, last = options["prompt"].split("\n")
        states: Optional[List[LstmState]] = None
        words: List[str] = []
        for line in complete:
            line_words = self._dataset_reader.split(line)
            _, states = self._model.predict_next([BEGIN_SENTENCE_TOKEN, *line_words], states)
            words += [*line_words, END_SENTENCE_TOKEN]
            states = self._at_new_line(states)
        unread = [BEGIN_SENTENCE_TOKEN, *self._dataset_reader.split(last)]
        words += unread[1:]
        log_likelihood = 0.0
        for _ in range(options["length"]):
            # (num_words,)
            scores, states = self._model.predict_next(unread, states)
            log_probabilities = scores.cpu()
            scores = log_probabilities.clone()
            scores[unwritten] = -math.inf
            if options["temperature"] < MIN_TEMPERATURE:
                chosen = int(scores.argmax())
            else:
                probabilities = torch.softmax(scores / options["temperature"], dim=0)
                chosen = int(torch.multinomial(probabilities, 1, generator=generator))
            log_likelihood += float(log_probabilities[chosen])
            word = vocabulary.get_token_from_index(chosen, NAMESPACE)
            words.append(word)
            unread = [word]
            if word == END_SENTENCE_TOKEN:
                unread = [BEGIN_SENTENCE_TOKEN]
                states = self._at_new_line(states)
        return words, log_likelihood

    def _at_new_line(self, states: List[LstmState]) -> Optional[List[LstmState]]:
        """A model that was trained on sentences begins each anew; one that was trained on streams reads on."""
        return states if self._dataset_reader.mode == "carry" else None


def _split_at(words: List[str], end: str) -> List[List[str]]:
    lines: List[List[str]] = [[]]
    for word in words:
        if word == end:
            lines.append([])
        else:
            lines[-1].append(word)
    return lines
