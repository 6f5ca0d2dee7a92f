"""The bidirectional language model of ELMo: torch, numpy and h5py only. Read `network.py` first."""

from elmo_tasks.bilm.character_ids import encode_sentences
from elmo_tasks.bilm.lstm import LstmState
from elmo_tasks.bilm.network import BiLm, BiLmOutput
from elmo_tasks.bilm.options import BiLmOptions
from elmo_tasks.bilm.pretrained import BiLmFiles, resolve
from elmo_tasks.bilm.weights import load_weights, save_weights, weights_digest
from elmo_tasks.bilm.word_table import WordOptions

__all__ = [
    "BiLm",
    "BiLmFiles",
    "BiLmOptions",
    "BiLmOutput",
    "LstmState",
    "WordOptions",
    "encode_sentences",
    "load_weights",
    "resolve",
    "save_weights",
    "weights_digest",
]
