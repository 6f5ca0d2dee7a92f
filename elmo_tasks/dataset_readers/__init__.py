"""Readers: from corpus files to instances."""

from elmo_tasks.dataset_readers.labelled_text_reader import PLACEHOLDER_TOKEN, LabelledTextReader
from elmo_tasks.dataset_readers.mr import MrReader
from elmo_tasks.dataset_readers.mrpc import MrpcReader
from elmo_tasks.dataset_readers.tokenizers import AsciiWhitespaceTokenizer, TreebankTokenizer

__all__ = [
    "PLACEHOLDER_TOKEN",
    "AsciiWhitespaceTokenizer",
    "LabelledTextReader",
    "MrReader",
    "MrpcReader",
    "TreebankTokenizer",
]
