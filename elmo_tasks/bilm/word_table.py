"""
The first layer of a biLM over words: a vector for each word of a vocabulary. ELMo has `character_encoder.py` instead.

It is given character ids as well, and recognises a word by its bytes: so that indexers, batches and caches are those of
ELMo, and no one needs the vocabulary but the biLM itself.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import numpy
import torch
from torch import nn
from torch.nn.functional import embedding

from elmo_tasks.bilm.character_ids import (
    BEGIN_SENTENCE_TOKEN,
    END_SENTENCE_TOKEN,
    END_WORD_ID,
    MAX_CHARACTERS_PER_TOKEN,
    encode_token,
)

UNKNOWN_WORD = "<UNK>"
# What a biLM with a word for numbers sees as one, here and in the text that it is pretrained on.
NUMBER = re.compile(r"[-+]?\d[\d.,:/]*")


@dataclass(frozen=True)
class WordOptions:
    """
    The shape of a biLM over words, and the words. What `BiLmOptions` is to ELMo.

    # Parameters

    words : `Tuple[str, ...]`
        The vocabulary, with "<S>", "</S>" and "<UNK>".
    number_word : `Optional[str]`
        The word that stands for each number; `None`: a number is a word like others.
    num_layers : `int`
        LSTM layers.
    cell_dim : `int`
        Size of the memory cell of one direction.
    projection_dim : `int`
        Size of a token vector, and of the output of one direction.
    cell_clip, projection_clip : `Optional[float]`
        Bounds of memory cells and outputs; `None`: no bound.

    # Raises

    ValueError
        Where one of the words that there must be is missing.
    """

    words: Tuple[str, ...]
    number_word: Optional[str]
    num_layers: int
    cell_dim: int
    projection_dim: int
    cell_clip: Optional[float]
    projection_clip: Optional[float]

    def __post_init__(self) -> None:
        needed = [BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, UNKNOWN_WORD]
        missing = [word for word in needed if word not in self.words]
        if missing:
            raise ValueError(f"the words of a biLM must hold {', '.join(needed)}, but {', '.join(missing)} is missing")

    @property
    def max_characters_per_token(self) -> int:
        """Length of a token's row of character ids."""
        return MAX_CHARACTERS_PER_TOKEN

    @property
    def bilm_dim(self) -> int:
        """Both directions side by side: the size of a layer's output."""
        return 2 * self.projection_dim

    @property
    def num_representations(self) -> int:
        """Layers that a mix weighs: the token vectors and each LSTM layer."""
        return self.num_layers + 1

    @classmethod
    def from_dict(cls, options: Dict[str, Any]) -> "WordOptions":
        """The options that `to_dict` made."""
        return cls(**{**options, "words": tuple(options["words"])})

    def to_dict(self) -> Dict[str, Any]:
        """Nothing but what JSON knows, by the names of the parameters."""
        return {**dataclasses.asdict(self), "words": list(self.words)}


class WordTable(nn.Module):
    """
    Token vectors of words, looked up.

    # Parameters

    options : `WordOptions`
        Of two words that are equal in all characters that a row has room for, the first counts.
    """

    def __init__(self, options: WordOptions) -> None:
        super().__init__()
        # Uniform between -1 and 1, as bilm-tf has it.
        self.vectors = nn.Parameter(torch.empty(len(options.words), options.projection_dim).uniform_(-1.0, 1.0))
        self._ids: Dict[bytes, int] = {}
        for index, word in enumerate(options.words):
            self._ids.setdefault(_key(numpy.array(encode_token(word))), index)
        self._unknown_id = options.words.index(UNKNOWN_WORD)
        self._number_id: Optional[int] = None
        if options.number_word is not None:
            self._number_id = self._ids.get(_key(numpy.array(encode_token(options.number_word))), self._unknown_id)

    def forward(self, words: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """
        # Parameters

        words : `torch.Tensor`
            int64 `(num_words, 50)`, character ids.
        dtype : `Optional[torch.dtype]`, optional (default = `None`)
            As for `CharacterEncoder`; there are no products here.

        # Returns

        `torch.Tensor`
            `(num_words, projection_dim)`
        """
        ids = [self._id_of(row) for row in words.cpu().numpy()]
        return embedding(torch.tensor(ids, dtype=torch.int64, device=words.device), self.vectors)

    def _id_of(self, row: numpy.ndarray) -> int:
        index = self._ids.get(_key(row))
        if index is not None:
            return index
        if self._number_id is not None and NUMBER.fullmatch(_text(row)):
            return self._number_id
        return self._unknown_id


def _key(row: numpy.ndarray) -> bytes:
    return row.astype("int16").tobytes()


def _text(row: numpy.ndarray) -> str:
    """The word of a row of character ids that is not a boundary."""
    # Between the marks of its begin and end; each id is a byte plus one.
    (end,) = numpy.flatnonzero(row == END_WORD_ID)
    return bytes((row[1:end] - 1).tolist()).decode("utf-8", "replace")
