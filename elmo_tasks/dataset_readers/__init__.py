"""Readers: from corpus files to instances."""

from elmo_tasks.dataset_readers.ag_news import AgNewsReader
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.bilm_text_loader import BiLmTextLoader
from elmo_tasks.dataset_readers.elmo_indexer import ElmoCharacterArraysIndexer
from elmo_tasks.dataset_readers.labelled_text_reader import PLACEHOLDER_TOKEN, LabelledTextReader
from elmo_tasks.dataset_readers.mr import MrReader
from elmo_tasks.dataset_readers.mrpc import MrpcReader
from elmo_tasks.dataset_readers.sentence_reader import SentenceReader
from elmo_tasks.dataset_readers.tokenizers import AsciiWhitespaceTokenizer, TreebankTokenizer
from elmo_tasks.dataset_readers.vocabulary import WordVocabulary

__all__ = [
    "PLACEHOLDER_TOKEN",
    "AgNewsReader",
    "AsciiWhitespaceTokenizer",
    "BiLmTextLoader",
    "BiLmTextReader",
    "ElmoCharacterArraysIndexer",
    "LabelledTextReader",
    "MrReader",
    "MrpcReader",
    "SentenceReader",
    "TreebankTokenizer",
    "WordVocabulary",
]
