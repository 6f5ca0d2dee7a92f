"""One name for each class, however the label is written."""

from typing import Dict, Optional, Union

from allennlp.common.checks import ConfigurationError

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.dataset_readers.text_lines import BLANKS

RawLabel = Union[str, int, float]


class LabelNames:
    """
    Maps what stands in the data, or comes in a request, to the name of a class.

    # Parameters

    names : `Optional[Dict[str, str]]`
        Raw label to name. Several raw labels may share a name. The default is `{"0": "0", "1": "1"}`, the
        labels of MR and MRPC as they are. Labels that are neither a raw label nor a name are errors.

    # Raises

    `ConfigurationError`
        If a name is also the raw label of another class.
    """

    def __init__(self, names: Optional[Dict[str, str]] = None) -> None:
        names = {"0": "0", "1": "1"} if names is None else names
        self._names = {_written(raw): name for raw, name in names.items()}
        for raw, name in list(self._names.items()):
            if self._names.setdefault(name, name) != name:
                raise ConfigurationError(
                    f"`label_names` must not name a class like another raw label, but calls {raw!r} {name!r}"
                )

    def __call__(self, label: Optional[RawLabel]) -> Optional[str]:
        """
        # Parameters

        label : `Optional[Union[str, int, float]]`
            A raw label or a name; blanks around it do not count, and the numbers 1 and 1.0, as JSON has them, are the
            text "1". The text "1.0", which a TSV may hold, is another label.

        # Returns

        `Optional[str]`
            The name; `None` for no label, that is `None` or a blank string.

        # Raises

        `ConfigurationError`
            If the label is not known.
        """
        if label is None:
            return None
        # What comes from a file of JSON may be a list, say.
        written = _written(label) if isinstance(label, (str, int, float)) else None
        if written == "":
            return None
        if written not in self._names:
            accepted = ", ".join(repr(name) for name in self._names)
            raise ConfigurationError(
                f"the label must be one of {accepted}, but is {excerpt(label)}; `label_names` declares other labels"
            )
        return self._names[written]


def _written(label: RawLabel) -> str:
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label).strip(BLANKS)
