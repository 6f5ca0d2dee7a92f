"""What the predictors share: lines of JSON come in, and what is wrong with one is said with its number."""

from typing import Any, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.common.json_text import parse_json
from elmo_tasks.dataset_readers.text_lines import check_utf8

BYTE_ORDER_MARK = "\ufeff"


class JsonLinesPredictor(Predictor):
    """
    Base class of predictors whose input is JSON objects, one a line.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
    frozen : `bool`, optional (default = `True`)
        Whether the model is put into evaluation mode.
    """

    accepted: str
    """What an input must be, in words."""

    advice: str = ""
    """What to do instead, where a line is no JSON at all; it ends the message."""

    line_name: Optional[str] = None
    """What errors of `load_line` call its line. `None`: by its number among the lines that it got."""

    def __init__(self, model: Model, dataset_reader: DatasetReader, frozen: bool = True) -> None:
        super().__init__(model, dataset_reader, frozen)
        self._num_lines = 0

    def load_line(self, line: str) -> JsonDict:
        """
        # Parameters

        line : `str`
            The next line of input that is not blank.

        # Returns

        `JsonDict`
            The object that stands in it.

        # Raises

        `ConfigurationError`
            If the line is not UTF-8, no JSON object, or not one that the predictor accepts.
        """
        self._num_lines += 1
        where = self.line_name or f"line {self._num_lines} of the input (blank lines not counted)"
        try:
            check_utf8(line)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where} {error}") from None
        try:
            inputs = parse_json(line.lstrip(BYTE_ORDER_MARK))
        except ValueError:
            raise ConfigurationError(
                f"{where} must be {self.accepted}, but is {excerpt(line)}.{self.advice and ' ' + self.advice}"
            ) from None
        self.check_inputs(inputs, where)
        return inputs

    def check_inputs(self, inputs: Any, where: str) -> None:
        """
        # Parameters

        inputs : `Any`
            Any JSON.
        where : `str`
            What an error calls it.

        # Raises

        `ConfigurationError`
            If it is not what the predictor accepts; here, if it is no object.
        """
        if not isinstance(inputs, dict):
            raise ConfigurationError(f"{where} must be {self.accepted}, but is {excerpt(inputs)}.")
