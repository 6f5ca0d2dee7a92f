"""Microsoft Research Paraphrase Corpus: two sentences, one label."""

from typing import Any, Dict, List, Optional, Set

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Field, Instance, TokenIndexer, Tokenizer
from allennlp.data.fields import MetadataField, TextField

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.dataset_readers.data_path import DataFile, locate
from elmo_tasks.dataset_readers.labelled_text_reader import LabelledTextReader
from elmo_tasks.dataset_readers.labels import RawLabel
from elmo_tasks.dataset_readers.row_formats import ColumnNames, Fields, JsonLines, RowFormat, TabSeparated
from elmo_tasks.dataset_readers.rows import Row
from elmo_tasks.dataset_readers.text_lines import BLANKS, read_lines
from elmo_tasks.dataset_readers.tokenizers import TreebankTokenizer


@DatasetReader.register("mrpc")
class MrpcReader(LabelledTextReader):
    """
    Reads the Microsoft Research Paraphrase Corpus and other labelled pairs of sentences:

    - `*.jsonl`, `*.json`: one JSON object a line;
    - all else: tab-separated columns under a header, without quoting, in any order.

    Besides the column names given by the options, those of the corpus are understood: `#1 String`, `#2
    String`, `Quality`, `#1 ID`, `#2 ID`. This covers `msr_paraphrase_train.txt` and
    `msr_paraphrase_test.txt`, and GLUE's `train.tsv`, `dev.tsv` and `test.tsv` (the last without label).

    The id of a pair joins those of its two texts, `702876-702977`; these may also stand in columns `id1` and
    `id2`. A pair without them is named by file and line, `dev:17`.

    The corpus has an official test file but no dev part: `#train` and `#dev` of a path are taken from one
    file, by `dev_ids_file` if it is given, otherwise as a stratified share.

    Registered as a `DatasetReader` with name "mrpc".

    # Parameters

    tokenizer : `Tokenizer`, optional (default = `TreebankTokenizer()`)
        The corpus is raw text.
    token_indexers, label_names, max_tokens, lowercase_elmo, encoding, train_share, max_instances
        See `LabelledTextReader`.
    dev_share : `float`, optional (default = `0.1`)
        The share of the rows that `#dev` holds, taken from each class alike.
    split_seed : `int`, optional (default = `0`)
        Another seed gives another share.
    dev_ids_file : `str`, optional (default = `None`)
        The pairs of `#dev`, such as GLUE's `mrpc_dev_ids.tsv`: two text ids a line, in any order. A path, URL
        or archive member. `dev_share` and `split_seed` must then be left out.
    sentence1_column, sentence2_column : `str`, optional (default = `"sentence1"`, `"sentence2"`)
        The columns of the texts in tab-separated files, and their keys in `.jsonl` files.
    label_column : `str`, optional (default = `"label"`)
        The same for the label.

    # Raises

    `ConfigurationError`
        If `dev_ids_file` and options of the share are given.

    # Source

    Dolan and Brockett 2005, "Automatically constructing a corpus of sentential paraphrases".
    """

    text_fields = ("sentence1", "sentence2")

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        label_names: Optional[Dict[str, str]] = None,
        max_tokens: Optional[int] = None,
        lowercase_elmo: bool = False,
        encoding: Optional[str] = None,
        dev_share: Optional[float] = None,
        split_seed: Optional[int] = None,
        train_share: float = 1.0,
        dev_ids_file: Optional[str] = None,
        sentence1_column: str = "sentence1",
        sentence2_column: str = "sentence2",
        label_column: str = "label",
        max_instances: Optional[int] = None,
    ) -> None:
        super().__init__(
            tokenizer or TreebankTokenizer(),
            token_indexers=token_indexers,
            label_names=label_names,
            max_tokens=max_tokens,
            lowercase_elmo=lowercase_elmo,
            encoding=encoding,
            dev_share=0.1 if dev_share is None else dev_share,
            split_seed=split_seed or 0,
            train_share=train_share,
            max_instances=max_instances,
        )
        if dev_ids_file is not None and (dev_share is not None or split_seed is not None):
            raise ConfigurationError(
                "`dev_ids_file` names the dev pairs, so `dev_share` and `split_seed` must be left out"
            )
        self._dev_ids_file = dev_ids_file
        self._required: ColumnNames = {
            "sentence1": (sentence1_column, "#1 String"),
            "sentence2": (sentence2_column, "#2 String"),
        }
        self._optional: ColumnNames = {
            "label": (label_column, "Quality"),
            "id1": ("id1", "#1 ID"),
            "id2": ("id2", "#2 ID"),
        }

    def text_to_instance(  # type: ignore[override]
        self,
        sentence1: str,
        sentence2: str,
        label: Optional[RawLabel] = None,
        id: Optional[str] = None,
        line: Optional[int] = None,
        file: Optional[str] = None,
    ) -> Instance:
        """
        # Parameters

        sentence1, sentence2 : `str`
            The texts. Without any token in it, a text becomes `PLACEHOLDER_TOKEN`.
        label : `Union[str, int]`, optional (default = `None`)
            A raw label or its name.
        id : `str`, optional (default = `None`)
            For the metadata, as are `line`, the row's line in the file counted from 1, and `file`.

        # Returns

        `Instance`
            With the fields `sentence1`, `sentence2`, `label` (if there is one) and `metadata`: a dictionary
            of `id`, `line`, `file`, `sentence1_tokens` and `sentence2_tokens`, the words as strings.

        # Raises

        `ConfigurationError`
            If a text is not a string, or the label is unknown.
        """
        tokens1, tokens2 = self._tokenize(sentence1), self._tokenize(sentence2)
        metadata = {
            "id": id,
            "line": line,
            "file": file,
            "sentence1_tokens": [token.text for token in tokens1],
            "sentence2_tokens": [token.text for token in tokens2],
        }
        fields: Dict[str, Field] = {"sentence1": TextField(tokens1), "sentence2": TextField(tokens2)}
        return Instance({**fields, **self._label_fields(label), "metadata": MetadataField(metadata)})

    def _row_format(self, file: DataFile, every_row: bool) -> RowFormat:
        if file.suffix in (".jsonl", ".json"):
            return JsonLines(self._required, self._optional)
        return TabSeparated(self._required, self._optional)

    def _row_id(self, fields: Fields, file: DataFile, line: int) -> str:
        ids = [fields.get(name) for name in ("id1", "id2")]
        if None not in ids:
            return _pair_id(*ids)
        return super()._row_id(fields, file, line)

    def _check_part(self, part: Optional[str]) -> None:
        if part == "test":
            raise ConfigurationError(
                "the part must be `#train` or `#dev`, but is `#test`; the test part is a file of its own, "
                "msr_paraphrase_test.txt"
            )

    def _parts(self, rows: List[Row]) -> List[str]:
        if self._dev_ids_file is None:
            return super()._parts(rows)
        dev_ids = self._read_dev_ids(self._dev_ids_file, rows)
        return ["dev" if row.id in dev_ids else "train" for row in rows]

    def _read_dev_ids(self, path: str, rows: List[Row]) -> Set[str]:
        """The ids of the rows that the file lists, whichever text it names first."""
        ids = {row.id for row in rows}
        expected = "two text ids"
        dev_ids: Set[str] = set()
        file = locate(path)
        for number, line in enumerate(read_lines(file, None, expected, self._warn), start=1):
            pair = line.split()
            if not pair:
                continue
            if len(pair) != 2:
                raise ConfigurationError(f"{path}, line {number}: must be {expected}, but is {line!r}")
            found = ids & {_pair_id(*pair), _pair_id(*reversed(pair))}
            if not found:
                raise ConfigurationError(
                    f"{path}, line {number}: must name a pair of {rows[0].file}, "
                    f"but it has no {_pair_id(*pair)}; "
                    "the dev ids belong to the full training file of the corpus"
                )
            dev_ids |= found
        return dev_ids


def _pair_id(id1: Any, id2: Any) -> str:
    for id in (id1, id2):
        if not isinstance(id, (str, int, float)):
            raise ConfigurationError(f"the ids of a pair must be strings or numbers, but one is {excerpt(id)}")
    return f"{str(id1).strip(BLANKS)}-{str(id2).strip(BLANKS)}"
