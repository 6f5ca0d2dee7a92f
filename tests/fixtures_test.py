"""The data files of `fixtures/` are what `fixtures/README.md` says, and nothing held out is in training."""

import csv
import re
from pathlib import Path
from typing import Iterable, List, NamedTuple, Set, Tuple

import numpy
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

FIXTURES = Path(__file__).parents[1] / "fixtures"
MR_FILES = ("mr/rt_train.txt", "mr/rt_val.txt")
MRPC_FILES = ("mrpc/msr_paraphrase_train.txt", "mrpc/msr_paraphrase_test.txt")
NEWS_FILES = ("ag_news/train.csv", "ag_news/test.csv")
TEXT_FILES = ("text/train.txt", "text/heldout.txt")
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


class Pair(NamedTuple):
    quality: int
    id1: str
    id2: str
    sentence1: str
    sentence2: str


def read_lines(name: str, encoding: str = "utf-8") -> List[str]:
    """The lines of a file, cut at LF alone: `str.splitlines` would cut at U+0085 as well."""
    text = (FIXTURES / name).read_bytes().decode(encoding)
    assert text.endswith("\n")
    assert "\r" not in text
    return text[:-1].split("\n")


def read_snippets(name: str) -> List[Tuple[str, int]]:
    rows = [re.fullmatch(r"(\S.*\S) _!_([01])", line) for line in read_lines(name)]
    assert None not in rows
    return [(row.group(1), int(row.group(2))) for row in rows if row]


def read_pairs(name: str) -> List[Pair]:
    header, *lines = read_lines(name, "utf-8-sig")
    assert header == MRPC_HEADER
    return [Pair(int(quality), *rest) for quality, *rest in (line.split("\t") for line in lines)]


def read_news(name: str) -> List[Tuple[str, str]]:
    """Class and text of each row."""
    rows = list(csv.reader(read_lines(name), strict=True))
    return [(label, f"{title} {description}") for label, title, description in rows]


def tokens_of(sentence: str) -> List[str]:
    return re.findall(r"\w+|[^\w\s]", sentence.lower())


def runs_of_eight_tokens(sentences: Iterable[str]) -> Set[Tuple[str, ...]]:
    runs: Set[Tuple[str, ...]] = set()
    for sentence in sentences:
        tokens = tokens_of(sentence)
        runs.update(tuple(tokens[start : start + 8]) for start in range(len(tokens) - 7))
    return runs


def overlap_features(pair: Pair) -> List[float]:
    """Shares of common words and word pairs, difference in length, numbers that only one sentence has."""
    first, second = tokens_of(pair.sentence1), tokens_of(pair.sentence2)
    words1, words2 = set(first), set(second)
    bigrams1, bigrams2 = set(zip(first, first[1:])), set(zip(second, second[1:]))
    numbers1, numbers2 = ({word for word in words if word.isdigit()} for words in (words1, words2))
    return [
        len(words1 & words2) / len(words1 | words2),
        len(words1 & words2) / min(len(words1), len(words2)),
        len(bigrams1 & bigrams2) / len(bigrams1 | bigrams2),
        abs(len(first) - len(second)) / 10,
        len(numbers1 ^ numbers2),
    ]


@pytest.mark.parametrize(("name", "num_positive", "num_negative"), [(MR_FILES[0], 217, 217), (MR_FILES[1], 72, 72)])
def test_snippets_are_half_positive_and_half_negative(name: str, num_positive: int, num_negative: int) -> None:
    labels = [label for _, label in read_snippets(name)]
    assert labels.count(1) == num_positive
    assert labels.count(0) == num_negative


def test_snippets_are_lower_cased_and_tokenised() -> None:
    for name in MR_FILES:
        for text, _ in read_snippets(name):
            assert text == text.lower()
            assert text == " ".join(text.split())
            assert not re.search(r"\w[,.;:!?…]|[,;:!?…]\w", text), text


def test_classes_of_the_snippets_are_mixed_in_the_file() -> None:
    for name in MR_FILES:
        labels = [label for _, label in read_snippets(name)]
        longest_run = max(len(run.group()) for run in re.finditer(r"0+|1+", "".join(map(str, labels))))
        assert longest_run < 15


@pytest.mark.parametrize(("suffix", "label"), [("pos", 1), ("neg", 0)])
def test_polarity_files_hold_the_same_snippets_in_windows_1252(suffix: str, label: int) -> None:
    lines = read_lines(f"mr/rt-polarity.{suffix}", "cp1252")
    # Like the corpus: a blank before each line end.
    assert lines == [f"{text} " for name in MR_FILES for text, its_label in read_snippets(name) if its_label == label]


@pytest.mark.parametrize("suffix", ["pos", "neg"])
def test_polarity_files_mislead_a_reader_that_takes_them_for_latin_1(suffix: str) -> None:
    content = (FIXTURES / f"mr/rt-polarity.{suffix}").read_bytes()
    with pytest.raises(UnicodeDecodeError):
        content.decode("utf-8")
    # Byte 85 is an ellipsis; in Latin-1 it is U+0085, at which `splitlines` cuts.
    assert b"\x85" in content
    assert len(content.decode("latin-1").splitlines()) > content.count(b"\n")


@pytest.mark.parametrize(("name", "num_paraphrases", "num_others"), [(MRPC_FILES[0], 166, 85), (MRPC_FILES[1], 82, 42)])
def test_two_pairs_of_three_are_paraphrases(name: str, num_paraphrases: int, num_others: int) -> None:
    qualities = [pair.quality for pair in read_pairs(name)]
    assert qualities.count(1) == num_paraphrases
    assert qualities.count(0) == num_others
    assert len(qualities) == num_paraphrases + num_others


def test_pairs_have_the_byte_order_mark_and_ids_of_their_own() -> None:
    ids = []
    for name in MRPC_FILES:
        assert (FIXTURES / name).read_bytes().startswith(b"\xef\xbb\xbfQuality\t")
        ids += [identifier for pair in read_pairs(name) for identifier in (pair.id1, pair.id2)]
    assert all(identifier.isdigit() for identifier in ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", MRPC_FILES)
def test_quote_characters_of_the_pairs_cost_a_csv_reader_rows(name: str) -> None:
    with open(FIXTURES / name, encoding="utf-8-sig", newline="") as file:
        rows_with_quoting = list(csv.reader(file, delimiter="\t"))
    assert len(rows_with_quoting) - 1 < len(read_pairs(name))


@pytest.mark.parametrize(("name", "num_rows"), [(NEWS_FILES[0], 160), (NEWS_FILES[1], 40)])
def test_news_has_as_many_rows_of_each_class_all_quoted(name: str, num_rows: int) -> None:
    assert all(re.fullmatch(r'"[1-4]","([^"]|"")+","([^"]|"")+"', line) for line in read_lines(name))
    labels = [label for label, _ in read_news(name)]
    assert {label: labels.count(label) for label in labels} == dict.fromkeys("1234", num_rows)


def test_news_holds_what_the_files_of_the_corpus_hold() -> None:
    lines = read_lines(NEWS_FILES[0])
    assert any(re.search(r"\w\\\w", line) for line in lines)
    assert any("\\$" in line for line in lines)
    assert any('""' in line for line in lines)


@pytest.mark.parametrize(("name", "num_lines"), [(TEXT_FILES[0], 622), (TEXT_FILES[1], 100)])
def test_text_is_one_tokenised_sentence_a_line_and_lower_cased_in_part(name: str, num_lines: int) -> None:
    lines = read_lines(name)
    assert len(lines) == num_lines
    assert all(line and line == " ".join(line.split()) for line in lines)
    assert 0.25 < sum(line == line.lower() for line in lines) / num_lines < 0.35


def test_no_sentence_occurs_twice() -> None:
    snippets = [text for name in MR_FILES for text, _ in read_snippets(name)]
    pairs = [sentence for name in MRPC_FILES for pair in read_pairs(name) for sentence in pair[3:]]
    text = [line for name in TEXT_FILES for line in read_lines(name)]
    news = [text for name in NEWS_FILES for _, text in read_news(name)]
    for sentences in (snippets, pairs, text, news):
        assert len(set(sentences)) == len(sentences)


def test_held_out_parts_share_no_eight_tokens_in_a_row_with_training() -> None:
    snippets = [runs_of_eight_tokens(text for text, _ in read_snippets(name)) for name in MR_FILES]
    pairs = [runs_of_eight_tokens(text for pair in read_pairs(name) for text in pair[3:]) for name in MRPC_FILES]
    text = [runs_of_eight_tokens(read_lines(name)) for name in TEXT_FILES]
    news = [runs_of_eight_tokens(text for _, text in read_news(name)) for name in NEWS_FILES]
    for training, held_out in (snippets, pairs, text, news):
        assert not training & held_out


def test_sentiment_of_held_out_snippets_can_be_learnt_from_the_training_part() -> None:
    (texts, labels), (held_out_texts, held_out_labels) = (zip(*read_snippets(name)) for name in MR_FILES)
    classifier = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    classifier.fit(texts, labels)
    assert classifier.score(held_out_texts, held_out_labels) > 0.70


def test_topics_of_held_out_news_can_be_learnt_from_the_training_part() -> None:
    (labels, texts), (held_out_labels, held_out_texts) = (zip(*read_news(name)) for name in NEWS_FILES)
    classifier = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    classifier.fit(texts, labels)
    assert classifier.score(held_out_texts, held_out_labels) > 0.92


def test_word_overlap_tells_paraphrases_better_than_always_yes() -> None:
    train, test = (read_pairs(name) for name in MRPC_FILES)
    classifier = LogisticRegression(C=10)
    classifier.fit([overlap_features(pair) for pair in train], [pair.quality for pair in train])
    predicted = classifier.predict([overlap_features(pair) for pair in test])
    truth = numpy.array([pair.quality for pair in test])
    assert (predicted == truth).mean() > truth.mean() + 0.1
    assert f1_score(truth, predicted) > f1_score(truth, numpy.ones_like(truth)) + 0.05
