import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import Tokenizer
from nltk.tokenize import NLTKWordTokenizer

from elmo_tasks.dataset_readers.tokenizers import AsciiWhitespaceTokenizer, TreebankTokenizer


def words(tokenizer, text):
    return [token.text for token in tokenizer.tokenize(text)]


def treebank(text):
    return words(TreebankTokenizer(), text)


@pytest.mark.parametrize("name", ["ascii_whitespace", "treebank"])
def test_tokenizers_can_be_named_in_a_config(name):
    assert Tokenizer.from_params(Params({"type": name})).tokenize("one two")[1].text == "two"


def test_only_ascii_blanks_separate_words():
    text = " it's \t good\x85bad\xa0film \x85 \u2028x\n"
    assert words(AsciiWhitespaceTokenizer(), text) == ["it's", "good\x85bad\xa0film", "\x85", "\u2028x"]


def test_tokens_know_where_they_stand():
    assert [(token.text, token.idx) for token in TreebankTokenizer().tokenize("I can't.")] == [
        ("I", 0), ("ca", 2), ("n't", 4), (".", 7),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We don't, can't and WON'T go.", "We do n't , ca n't and WO N'T go ."),
        ("Don\u2019t say it\u2019s Ann\u2019s.", "Do n\u2019t say it \u2019s Ann \u2019s ."),
        ("I'd say they're sure we've won.", "I 'd say they 're sure we 've won ."),
        ("She'll see; I'm right.", "She 'll see ; I 'm right ."),
        ("It cannot be O'Brien's, nor the boys' dog.", "It can not be O'Brien 's , nor the boys ' dog ."),
        ('"Stop," he said.', '" Stop , " he said .'),
        ("He said, “Stop.”", "He said , “ Stop . ”"),
        ("``Stop,'' he said.", "`` Stop , '' he said ."),
        ('He said "it works."', 'He said " it works . "'),
        ("Mr. Lee left the U.S. at 9:30 a.m. with $1,200.50.", "Mr. Lee left the U.S. at 9:30 a.m. with $ 1,200.50 ."),
        ("A well-known (and cheap) trick -- really?!", "A well-known ( and cheap ) trick -- really ? !"),
        ("Wait... 5% of R&D: e-mail me @home #1", "Wait ... 5 % of R & D : e-mail me @ home # 1"),
        ("naïve café—très «bon»", "naïve café — très « bon »"),
        ("one\xa0two\x85three", "one two three"),
        ("'tis rock'n'roll", "' tis rock'n'roll"),
        ("  \t ", ""),
    ],
)  # fmt: skip
def test_treebank_words(text, expected):
    assert treebank(text) == expected.split()


@pytest.mark.parametrize(
    "text",
    [
        "The company's shares rose 3.5% to $12.40 on Friday, the Dow Jones said.",
        "She asked, \"Isn't that the man who'd won?\" and nobody answered.",
        "Prices (which fell in May) won't recover before 2004; analysts weren't surprised.",
        "The U.N. envoy, Mr. Berg, didn't speak at 10:15 -- he'd been told not to...",
        "They're selling 1,000,000 shares of A&B Corp. at $3 each!",
        "The workers' union and its well-paid leaders can't agree on [any] terms.",
        "The 20-year-old's e-mail said: don't wait, I'll be late.",
    ],
)
def test_treebank_words_are_those_of_nltk_but_for_its_rewritten_quotes(text):
    expected = [word.replace("``", '"').replace("''", '"') for word in NLTKWordTokenizer().tokenize(text)]
    assert treebank(text) == expected


def test_no_character_is_lost_or_changed():
    text = (
        "“It's” \"n't\" n't 't ' '' ` `` ... .. . .a a. -- - --- ,5 5, :: {x} <y> [z] *q* a_b \u2018c\u2019 é€😀 \u200b"
    )
    assert "".join(treebank(text)) == "".join(text.split())


@pytest.mark.parametrize("tokenizer", [AsciiWhitespaceTokenizer(), TreebankTokenizer()])
def test_string_and_list_of_strings_are_not_confused(tokenizer):
    with pytest.raises(ConfigurationError, match="list of strings, but is the bare string 'good film'"):
        tokenizer.batch_tokenize("good film")
    with pytest.raises(ConfigurationError, match="must be a string, but is"):
        tokenizer.tokenize(["good", "film"])
    assert [len(tokens) for tokens in tokenizer.batch_tokenize(["good film", "bad"])] == [2, 1]
