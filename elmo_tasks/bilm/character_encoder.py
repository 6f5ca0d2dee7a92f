"""
The first layer of the biLM: from the characters of a word, whatever stands around it, to its token vector.

Convolutions of several widths over the characters, each reduced to its maximum over the word; highway layers; a
projection.
"""

from typing import List, Optional, Sequence, cast

import torch
from torch import nn
from torch.nn.functional import embedding_bag

from elmo_tasks.bilm.character_ids import PADDING_CHARACTER_ID
from elmo_tasks.bilm.options import NUM_CHARACTERS, NUM_CHARACTERS_IN_FILE, BiLmOptions
from elmo_tasks.bilm.products import FrozenCache, Linear, without_autocast

# Words are convolved so many at a time, to stay within a processor's cache or to keep a GPU busy, and go through the
# highway layers so many at a time, to bound the memory.
WORDS_PER_CONVOLUTION = 64
WORDS_PER_CONVOLUTION_ON_GPU = 1024
WORDS_PER_HIGHWAY = 4096


class CharacterEncoder(nn.Module):
    """
    Token vectors of words.

    # Parameters

    options : `BiLmOptions`

    # Source

    Section 3 of <https://arxiv.org/abs/1802.05365>; the initial values are bilm-tf's.
    """

    def __init__(self, options: BiLmOptions) -> None:
        super().__init__()
        # A row for each character id from 1; id 0, padding, is a vector of zeros.
        self.characters = nn.Parameter(torch.empty(NUM_CHARACTERS_IN_FILE, options.character_dim))
        convolutions = [
            CharacterConvolution(options.character_dim, width, count, options.activation)
            for width, count in options.filters
        ]
        highways = [Highway(options.num_filters) for _ in range(options.num_highway_layers)]
        self.convolutions = cast(Sequence[CharacterConvolution], nn.ModuleList(convolutions))
        self.highways = cast(Sequence[Highway], nn.ModuleList(highways))
        self.projection = Linear(options.num_filters, options.projection_dim)
        self._tables: FrozenCache[List[torch.Tensor]] = FrozenCache()
        nn.init.uniform_(self.characters, -1.0, 1.0)
        nn.init.normal_(self.projection.weight, std=options.num_filters**-0.5)
        nn.init.zeros_(self.projection.bias)

    def forward(self, words: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """
        # Parameters

        words : `torch.Tensor`
            int64 `(num_words, max_characters_per_token)`, character ids. A word that is there twice costs twice.
        dtype : `Optional[torch.dtype]`, optional (default = that of the parameters)
            Of the highways' and the projection's products, where no gradient is wanted.

        # Returns

        `torch.Tensor`
            `(num_words, projection_dim)`
        """
        tables = self._tables.get(
            [self.characters, *(convolution.weight for convolution in self.convolutions)],
            self.characters.dtype,
            self._make_tables,
        )
        if len(words) == 0:
            return self.projection.weight.new_zeros(0, self.projection.out_features)
        # Sorted by length, words that are convolved together are about equally long.
        # (num_words,)
        lengths, order = word_lengths(words).sort()
        words, longest = words[order], lengths.tolist()
        words_per_convolution = WORDS_PER_CONVOLUTION if words.device.type == "cpu" else WORDS_PER_CONVOLUTION_ON_GPU
        vectors = []
        for group in _parts(range(len(words)), WORDS_PER_HIGHWAY):
            # (len(group), num_filters)
            features = torch.cat(
                [
                    self._convolve(words[part.start : part.stop], longest[part[-1]], tables)
                    for part in _parts(group, words_per_convolution)
                ]
            )
            for highway in self.highways:
                features = highway(features, dtype)
            vectors.append(self.projection(features, dtype))
        return torch.cat(vectors)[order.argsort()]

    def _make_tables(self) -> List[torch.Tensor]:
        # They are kept, and must not be those of a moment of half precision.
        with without_autocast(self.characters.device):
            return [convolution.table(self.characters) for convolution in self.convolutions]

    def _convolve(self, words: torch.Tensor, longest: int, tables: List[torch.Tensor]) -> torch.Tensor:
        return torch.cat(
            [convolution(words, longest, table) for convolution, table in zip(self.convolutions, tables)], dim=1
        )


class CharacterConvolution(nn.Module):
    """
    Filters of one width, each reduced to its maximum over the word.

    A convolution over characters out of 262 is, for each window, a sum of as many rows as the window is wide: of a
    table that holds what each character contributes at each place in a window. Looking them up takes a fourth of the
    time of torch's convolution.

    # Parameters

    character_dim, width, count : `int`
    activation : `str`
        "relu" or "tanh".
    """

    def __init__(self, character_dim: int, width: int, count: int, activation: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, character_dim, count))
        self.bias = nn.Parameter(torch.zeros(count))
        self._activation = {"relu": torch.relu, "tanh": torch.tanh}[activation]
        if activation == "relu":
            nn.init.uniform_(self.weight, -0.05, 0.05)
        else:
            nn.init.normal_(self.weight, std=(width * character_dim) ** -0.5)

    def table(self, characters: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        characters : `torch.Tensor`
            `(261, character_dim)`, the vectors of the character ids from 1.

        # Returns

        `torch.Tensor`
            `(width * 262, count)`: what each character id contributes at the window's first place, at its second, …
        """
        # (width, 261, count)
        contributions = torch.matmul(characters, self.weight)
        # Padding, id 0, contributes nothing.
        return nn.functional.pad(contributions, (0, 0, 1, 0)).flatten(0, 1)

    def forward(self, words: torch.Tensor, longest: int, table: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        words : `torch.Tensor`
            int64 `(num_words, max_characters_per_token)`
        longest : `int`
            Behind this place no word has a character. Windows wholly behind it are equal: one stands for all.
        table : `torch.Tensor`
            Of this convolution.

        # Returns

        `torch.Tensor`
            `(num_words, count)`
        """
        width, _, count = self.weight.shape
        # (num_words, num_windows, width)
        windows = words[:, : longest + width].unfold(1, width, 1)
        places = NUM_CHARACTERS * torch.arange(width, device=words.device)
        sums = embedding_bag((windows + places).flatten(0, 1), table, mode="sum")
        # (num_words, count)
        maxima = sums.view(len(words), -1, count).amax(dim=1)
        return self._activation(maxima + self.bias)


class Highway(nn.Module):
    """
    Carries its input on, or replaces it by a non-linear transformation, to a degree that a gate decides.

    # Parameters

    dim : `int`

    # Source

    <https://arxiv.org/abs/1505.00387>, as bilm-tf has it: the gate, which the file calls "carry", is the share of the
    *transformation*, and begins small.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = Linear(dim, dim)
        self.carry = Linear(dim, dim)
        for linear, bias in ((self.transform, 0.0), (self.carry, -2.0)):
            nn.init.normal_(linear.weight, std=dim**-0.5)
            nn.init.constant_(linear.bias, bias)

    def forward(self, inputs: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            `(num_words, dim)`
        dtype : `Optional[torch.dtype]`, optional (default = that of the parameters)
            Of the products, where no gradient is wanted.

        # Returns

        `torch.Tensor`
            `(num_words, dim)`
        """
        gate = torch.sigmoid(self.carry(inputs, dtype))
        return torch.lerp(inputs, torch.relu(self.transform(inputs, dtype)), gate)


def _parts(numbers: range, size: int) -> List[range]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def word_lengths(words: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    words : `torch.Tensor`
        int64 `(num_words, max_characters_per_token)`

    # Returns

    `torch.Tensor`
        int64 `(num_words,)`: places up to the last one that is not padding, with the marks of begin and end.
    """
    places = torch.arange(1, words.size(1) + 1, device=words.device)
    return ((words != PADDING_CHARACTER_ID) * places).amax(dim=1)
