"""
The official character ids: a token is the bytes of its UTF-8 text between two marks, each id plus one, 0 = padding.

The same ids as AllenNLP's `ELMoTokenCharactersIndexer` and bilm-tf's `UnicodeCharsVocabulary` (plus one) give.
"""

from typing import List, Sequence, Tuple

import torch

MAX_CHARACTERS_PER_TOKEN = 50

# Ids below 256 are bytes. All ids here are the official ones plus one, as a model sees them.
BEGIN_SENTENCE_ID = 257
END_SENTENCE_ID = 258
BEGIN_WORD_ID = 259
END_WORD_ID = 260
# Fills the rest of a token's row. Not the padding of a sentence: that is a row of zeros.
PADDING_CHARACTER_ID = 261

_MULTIPLIER = 6364136223846793005

BEGIN_SENTENCE_TOKEN = "<S>"
END_SENTENCE_TOKEN = "</S>"


def encode_token(token: str, max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN) -> List[int]:
    """
    # Parameters

    token : `str`
        Any text. What does not fit is cut off. "<S>" and "</S>" are the boundaries of a sentence, not words.
    max_characters_per_token : `int`, optional (default = `50`)

    # Returns

    `List[int]`
        `max_characters_per_token` ids between 1 and 261.
    """
    if token == BEGIN_SENTENCE_TOKEN:
        characters = [BEGIN_SENTENCE_ID]
    elif token == END_SENTENCE_TOKEN:
        characters = [END_SENTENCE_ID]
    else:
        encoded = token.encode("utf-8", "ignore")[: max_characters_per_token - 2]
        characters = [byte + 1 for byte in encoded]
    row = [BEGIN_WORD_ID, *characters, END_WORD_ID]
    return row + [PADDING_CHARACTER_ID] * (max_characters_per_token - len(row))


def encode_sentences(
    sentences: Sequence[Sequence[str]], max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN
) -> torch.Tensor:
    """
    # Parameters

    sentences : `Sequence[Sequence[str]]`
        A list of tokens for each sentence, without boundaries. An empty list is an empty sentence.
    max_characters_per_token : `int`, optional (default = `50`)

    # Returns

    `torch.Tensor`
        int64 `(batch_size, num_tokens, max_characters_per_token)`, shorter sentences padded with rows of zeros.

    # Raises

    ValueError
        Where a sentence is a string: each of its characters would become a token.
    """
    for sentence in sentences:
        if isinstance(sentence, str):
            raise ValueError(f"a sentence must be a list of tokens, but is the string {sentence!r}; split it first")
    num_tokens = max((len(sentence) for sentence in sentences), default=0)
    # (batch_size, num_tokens, max_characters_per_token)
    character_ids = torch.zeros(len(sentences), num_tokens, max_characters_per_token, dtype=torch.int64)
    for row, sentence in enumerate(sentences):
        if sentence:
            character_ids[row, : len(sentence)] = torch.tensor(
                [encode_token(token, max_characters_per_token) for token in sentence]
            )
    return character_ids


def add_boundaries(character_ids: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    Puts each sentence between the rows of "<S>" and "</S>". An empty sentence becomes these two rows.

    # Parameters

    character_ids : `torch.Tensor`
        int64 `(batch_size, num_tokens, max_characters_per_token)`, rows of zeros after the last token of a sentence.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        int64 `(batch_size, num_tokens_with_boundaries, max_characters_per_token)`, and the number of tokens with
        boundaries of each sentence, int64 `(batch_size,)`, always at least 2.

    # Raises

    ValueError
        Where a token follows a row of zeros: the end of that sentence would be a guess.
    """
    batch_size, num_tokens, max_characters_per_token = character_ids.shape
    # (batch_size, num_tokens)
    mask = (character_ids > 0).any(dim=-1)
    # (batch_size,)
    lengths = mask.sum(dim=1)
    # (num_tokens,)
    positions = torch.arange(num_tokens, device=character_ids.device)
    # (batch_size,)
    has_gap = (mask & (positions >= lengths.unsqueeze(1))).any(dim=1)
    if bool(has_gap.any()):
        raise ValueError(
            "`character_ids` must hold all tokens of a sentence before its padding, but row "
            f"{int(has_gap.nonzero()[0])} has a token after a row of zeros"
        )
    with_boundaries = character_ids.new_zeros(batch_size, num_tokens + 2, max_characters_per_token)
    with_boundaries[:, 1:-1] = character_ids
    with_boundaries[:, 0] = _row_of(BEGIN_SENTENCE_TOKEN, character_ids)
    with_boundaries[torch.arange(batch_size, device=lengths.device), lengths + 1] = _row_of(
        END_SENTENCE_TOKEN, character_ids
    )
    return with_boundaries, lengths + 2


def distinct_words(tokens: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    # Parameters

    tokens : `torch.Tensor`
        int64 `(num_tokens, max_characters_per_token)`

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        The different tokens, int64 `(num_words, max_characters_per_token)`, in any order, and which of them each token
        is, int64 `(num_tokens,)`.
    """
    # One number for each token is sorted several times faster than the rows themselves. The multipliers are the powers
    # of an odd number modulo 2**64, which two different rows hardly ever bring to the same sum; if so, rows are sorted.
    multipliers = tokens.new_full((tokens.size(1),), _MULTIPLIER).cumprod(dim=0)
    numbers, word_of_token = (tokens * multipliers).sum(dim=1).unique(return_inverse=True)
    some_token_of_word = torch.empty_like(numbers)
    some_token_of_word[word_of_token] = torch.arange(len(tokens), device=tokens.device)
    words = tokens[some_token_of_word]
    if not torch.equal(words[word_of_token], tokens):
        words, word_of_token = tokens.unique(dim=0, return_inverse=True)
    return words, word_of_token


def _row_of(token: str, like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(encode_token(token, like.size(-1)), dtype=like.dtype, device=like.device)
