"""The biLM as a part of a language model: token vectors, then LSTM layers in both directions."""

from abc import ABC, abstractmethod
from typing import Any, Dict, Optional, Sequence, cast

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm.lstm import ClippedLstm
from elmo_tasks.bilm.network import BiLm
from elmo_tasks.bilm.options import BiLmOptions
from elmo_tasks.bilm.word_table import WordOptions


class BiLmNetwork(Registrable, torch.nn.Module, ABC):
    """What a language model needs of a biLM."""

    default_implementation = "characters"

    @property
    @abstractmethod
    def projection_dim(self) -> int:
        """Size of a token vector and of the output of one direction."""

    @property
    @abstractmethod
    def lstm_layers(self) -> Sequence[ClippedLstm]:
        """From the lowest up, each from `projection_dim` to `projection_dim` in both directions."""

    @abstractmethod
    def token_vectors(self, character_ids: torch.Tensor, word_ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        character_ids : `torch.Tensor`
            int64 `(num_words, 50)`.
        word_ids : `torch.Tensor`
            int64 `(num_words,)`, the same words as places in the vocabulary.

        # Returns

        `torch.Tensor`
            float `(num_words, projection_dim)`, context-free.
        """

    @abstractmethod
    def to_bilm(self, words: Sequence[str], number_word: Optional[str]) -> BiLm:
        """
        # Parameters

        words : `Sequence[str]`
            Of the vocabulary, by their ids.
        number_word : `Optional[str]`
            What stands for each number in the text that it was trained on.

        # Returns

        `BiLm`
            The same layers, which take character ids.
        """


@BiLmNetwork.register("characters")
class CharacterNetwork(BiLmNetwork):
    """
    The biLM of ELMo: token vectors out of the characters of a word.

    Registered as a `BiLmNetwork` with name "characters" (the default).

    # Parameters

    num_words : `int`
        Size of the vocabulary; the language model supplies it. Plays no part here.
    options : `Dict[str, Any]`
        In the spelling of an official `options.json`.
    train_token_vectors : `bool`, optional (default = `True`)
        Whether the language model trains the character encoder. (The trainer's `no_grad` comes too late for
        distributed training, which then waits for gradients.)

    # Raises

    ConfigurationError
        Where the options describe something else than ELMo, or are impossible.
    """

    def __init__(self, num_words: int, options: Dict[str, Any], train_token_vectors: bool = True) -> None:
        super().__init__()
        try:
            self.bilm = BiLm(BiLmOptions.from_dict(options))
        except ValueError as error:
            raise ConfigurationError(f"the options of a biLM must be those of an ELMo: {error}") from error
        self.bilm.character_encoder.requires_grad_(train_token_vectors)

    @property
    def projection_dim(self) -> int:
        return self.bilm.options.projection_dim

    @property
    def lstm_layers(self) -> Sequence[ClippedLstm]:
        return self.bilm.layers

    def token_vectors(self, character_ids: torch.Tensor, word_ids: torch.Tensor) -> torch.Tensor:
        vectors: torch.Tensor = self.bilm.character_encoder(character_ids)
        return vectors

    def to_bilm(self, words: Sequence[str], number_word: Optional[str]) -> BiLm:
        return self.bilm


@BiLmNetwork.register("words")
class WordNetwork(BiLmNetwork):
    """
    Token vectors out of a table with a row for each word of the vocabulary. Cannot be exported: ELMo is over
    characters.

    Registered as a `BiLmNetwork` with name "words".

    # Parameters

    num_words : `int`
        Size of the vocabulary; the language model supplies it.
    projection_dim : `int`
        Size of a token vector and of the output of one direction.
    cell_dim : `int`
        Size of the memory cell of one direction.
    num_layers : `int`, optional (default = `2`)
    cell_clip, projection_clip : `Optional[float]`, optional (default = `3.0`)
        Bounds of memory cells and outputs; `None`: no bound.
    """

    def __init__(
        self,
        num_words: int,
        projection_dim: int,
        cell_dim: int,
        num_layers: int = 2,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
    ) -> None:
        super().__init__()
        # Uniform between -1 and 1, as bilm-tf has it.
        self.table = torch.nn.Embedding(num_words, projection_dim)
        torch.nn.init.uniform_(self.table.weight, -1.0, 1.0)
        self.layers = torch.nn.ModuleList(
            ClippedLstm(projection_dim, cell_dim, projection_dim, cell_clip, projection_clip) for _ in range(num_layers)
        )

    @property
    def projection_dim(self) -> int:
        return self.table.embedding_dim

    @property
    def lstm_layers(self) -> Sequence[ClippedLstm]:
        return cast(Sequence[ClippedLstm], self.layers)

    def token_vectors(self, character_ids: torch.Tensor, word_ids: torch.Tensor) -> torch.Tensor:
        return self.table(word_ids)

    def to_bilm(self, words: Sequence[str], number_word: Optional[str]) -> BiLm:
        layer = self.lstm_layers[0]
        _, projection_dim, cell_dim = layer.projection.shape
        options = WordOptions(
            tuple(words),
            number_word,
            num_layers=len(self.layers),
            cell_dim=cell_dim,
            projection_dim=projection_dim,
            cell_clip=layer.cell_clip,
            projection_clip=layer.projection_clip,
        )
        bilm = BiLm(options)
        of_layers = {f"layers.{name}": value for name, value in self.layers.state_dict().items()}
        bilm.load_state_dict({"character_encoder.vectors": self.table.weight, **of_layers})
        return bilm
