"""Tokenizers that need no download."""

import re
from typing import List, Pattern

from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import Token, Tokenizer

from elmo_tasks.common.excerpts import excerpt


class PatternTokenizer(Tokenizer):
    """Takes all matches of a regular expression as tokens and drops what lies between. Case is kept."""

    pattern: Pattern[str]

    def tokenize(self, text: str) -> List[Token]:
        """
        # Returns

        `List[Token]`
            The tokens with their offsets in `text`.

        # Raises

        `ConfigurationError`
            If `text` is not a string.
        """
        if not isinstance(text, str):
            raise ConfigurationError(f"the text to tokenize must be a string, but is {excerpt(text)}")
        return [Token(match.group(), idx=match.start()) for match in self.pattern.finditer(text)]

    def batch_tokenize(self, texts: List[str]) -> List[List[Token]]:
        """
        # Raises

        `ConfigurationError`
            If `texts` is a string: each of its characters would become a text.
        """
        if isinstance(texts, str):
            raise ConfigurationError(f"`texts` must be a list of strings, but is the bare string {excerpt(texts)}")
        return super().batch_tokenize(texts)


@Tokenizer.register("ascii_whitespace")
class AsciiWhitespaceTokenizer(PatternTokenizer):
    """
    Splits at the blanks of ASCII. AllenNLP's `whitespace` also splits at U+0085 and U+00A0, which are text in
    MR.

    Registered as a `Tokenizer` with name "ascii_whitespace".
    """

    pattern = re.compile(r"\S+", re.ASCII)


@Tokenizer.register("treebank")
class TreebankTokenizer(PatternTokenizer):
    """
    Words in the manner of the Penn Treebank, for text that is one sentence: `don't` is `do n't`, `Ann's` is
    `Ann 's`; quotes, brackets and the final full stop are tokens of their own, other full stops stay (`Mr.`,
    `U.S.`, `3.50`). All characters are kept as they are: quotes are not rewritten, nothing is escaped,
    typographic apostrophes work like straight ones.

    Registered as a `Tokenizer` with name "treebank".
    """

    pattern = re.compile(
        r"""
          can(?=not\b)
        | n['’]t\b
        | ['’](?:s|m|d|re|ve|ll)\b
        | \.{2,} | -{2,} | '{2} | `{2}
        | (?:                                              # a word, character by character:
              (?!(?<=[^\W_])n['’]t\b)                      # it ends before its n't
              (?:
                  [^\s.,:'’"“”‘„«»`;@\#$%&?!*()\[\]{}<>‒–—―…-]
                | \.(?!\.|[\])}>"'»”’\s]*\Z)               # full stop that is not the last one of the text
                | (?<=\S)[,:](?=\d)                        # 1,000 and 9:30
                | -(?!-)
                | (?<=\w)['’](?!(?:s|m|d|re|ve|ll)\b)(?=\w)   # O'Neil
              )
          )+
        | \S
        """,  # noqa: RUF001
        re.VERBOSE | re.IGNORECASE,
    )
