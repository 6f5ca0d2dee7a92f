"""What the readers of one text with a label share: the instance."""

from typing import Dict, Optional

from allennlp.data import Field, Instance
from allennlp.data.fields import MetadataField, TextField

from elmo_tasks.dataset_readers.labelled_text_reader import LabelledTextReader
from elmo_tasks.dataset_readers.labels import RawLabel


class SentenceReader(LabelledTextReader):
    """
    Base class of the readers of one text with a label. See `LabelledTextReader` for its parameters.
    """

    text_fields = ("sentence",)

    def text_to_instance(  # type: ignore[override]
        self,
        sentence: str,
        label: Optional[RawLabel] = None,
        id: Optional[str] = None,
        line: Optional[int] = None,
        file: Optional[str] = None,
    ) -> Instance:
        """
        # Parameters

        sentence : `str`
            The text. Without any token in it, it becomes `PLACEHOLDER_TOKEN`.
        label : `Union[str, int]`, optional (default = `None`)
            A raw label or its name.
        id : `str`, optional (default = `None`)
            For the metadata, as are `line`, the row's line in the file counted from 1, and `file`.

        # Returns

        `Instance`
            With the fields `tokens`, `label` (if there is one) and `metadata`: a dictionary of `id`, `line`,
            `file` and `tokens`, the words as strings.

        # Raises

        `ConfigurationError`
            If the text is not a string, or the label is unknown.
        """
        tokens = self._tokenize(sentence)
        metadata = {"id": id, "line": line, "file": file, "tokens": [token.text for token in tokens]}
        fields: Dict[str, Field] = {"tokens": TextField(tokens), **self._label_fields(label)}
        return Instance({**fields, "metadata": MetadataField(metadata)})
