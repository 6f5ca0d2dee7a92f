"""Whatever stands in a file or in a request: what the format says, or one error that names the place."""

import csv
import gzip
import io
import json
import lzma
import math
import re
from pathlib import Path

import h5py
import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Token, Vocabulary
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.models import Model
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm.character_ids import encode_token
from elmo_tasks.commands.elmo import embed_file
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.dataset_readers import BiLmTextReader, ElmoCharacterArraysIndexer, WordVocabulary
from elmo_tasks.dataset_readers.bilm_text_loader import BiLmTextLoader
from elmo_tasks.modules import ElmoEmbedder
from elmo_tasks.predictors import PairPredictor, SentencePredictor
from elmo_tasks.predictors.text_generator import TextGenerator

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BILM = str(ROOT / "fixtures/bilm")
INPUTS_PER_TRIAL = 10
BLANK = ["<blank>"]

# What has broken readers before: ends of lines that are none, marks that do not show, halves of characters, and what
# has a meaning in one format or another.
ODD_CHARACTERS = (
    "\0\t\n\r\f\v\x1a\x1c\x1d\x1e\x1f\x7f\x81\x85\xa0\xad\u0301\u200b\u200d\u200e\u202e\u2028\u2029\u3000\ufeff\ufffd"
    "\ud83d\udc00\ud800\U0001f468\U0001f3fd\U000e0001\"'`\\,;:/{}[]<>#_!|=%$&()*+-.?@^~09"
)
SURROGATES = {"exclude_categories": ["Cs"]}


def texts(without="", surrogates=True, **sizes):
    """Texts of odd characters, plain ones, and any others."""
    odd = [character for character in ODD_CHARACTERS if surrogates or not "\ud800" <= character <= "\udfff"]
    characters = st.one_of(
        st.sampled_from(odd), st.sampled_from("ab é"), st.characters(**({} if surrogates else SURROGATES))
    )
    if surrogates:
        characters = st.one_of(characters, st.integers(0xD800, 0xDFFF).map(chr))
    return st.text(characters.filter(lambda character: character not in without), **sizes)


HUGE_TEXTS = ["a" * 100_000, " ".join(["b,"] * 50_000), "\u0301" * 50_000, "\0" * 1000, "." * 20_000 + ")" * 20_000]
# For what reads token by token.
LONG_TEXTS = ["a" * 2000, "\0" * 1000, ".)" * 1000]

JSON_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from([10**30, -0.0, 1e308]), texts(max_size=8)
    ),
    lambda values: st.one_of(st.lists(values, max_size=3), st.dictionaries(texts(max_size=4), values, max_size=3)),
    max_leaves=6,
)
# Each is one line that `json.dumps` would not write.
ODD_JSON = [
    "[" * 100_000,
    "[" * 900 + "]" * 900,
    '{"sentence": ' * 5000,
    "1" * 5000,
    '{"a": 1} {"a": 2}',
    '{"sentence": NaN}',
    '{"sentence": "a", "sentence": ["b"]}',
    '{"sentence": "\\ud800"',
    "'a'",
    "nul",
    "-",
    "\ufeff",
]


def each(inputs, trials, check, examples=(), share=1.0):
    """Runs `check` on `share` of the inputs that a test tries, and on all examples."""

    @settings(
        max_examples=max(1, int(INPUTS_PER_TRIAL * trials * share)),
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def run(value):
        check(value)

    for value in examples:
        run = example(value)(run)
    run()


def attempt(function, refusals=ConfigurationError):
    """What it gives, or `None`; and what it says where it refuses, or `None`. No other error is caught."""
    try:
        return function(), None
    except refusals as error:
        return None, str(error)


def instances_or_error(read, path, num_lines):
    """The instances; `None` if there is an error, which must name the file, and a line that it has."""
    instances, refusal = attempt(lambda: list(read()))
    if refusal is not None:
        check_message(refusal, path, num_lines)
    return instances


def check_message(message, path, num_lines):
    assert len(message) < 1000
    what = r"((?:the label|the ids of a pair|`\w+`) )?must (?:be|have|hold|not|name) "
    found = re.match(rf"{re.escape(str(path))}(?:, line (\d+))?:? {what}", message)
    assert found, message
    line = found.group(1)
    assert line is None or 1 <= int(line) <= num_lines, message


def lines_of(data):
    """The lines of a file of bytes, each with its number from 1: at these three marks and nowhere else."""
    lines = re.split(rb"\r\n|\r|\n", data)
    return list(enumerate(lines if lines[-1] else lines[:-1], start=1))


def is_blank(text):
    return not text.strip(" \t\n\r\f\v" if isinstance(text, str) else b" \t\n\r\f\v")


def words(text):
    return re.findall(r"[^ \t\n\r\f\v]+", text)


def without_blanks(text):
    return "".join(text.split())


# --- files of a labelled data set

READERS = {
    "mr.txt": "mr", "mr.tsv": "mr", "mr.jsonl": "mr", "mr.pos": "mr", "mrpc.txt": "mrpc", "mrpc.jsonl": "mrpc",
    "news.csv": "ag_news", "news.jsonl": "ag_news",
}  # fmt: skip
HEADERS = {"mr.tsv": b"label\tsentence\n", "mrpc.txt": b"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"}
PIECES = st.one_of(
    st.binary(max_size=8),
    texts(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [
            *(b"\n", b"\r\n", b"\t", b'"', b"}", b"\xef\xbb\xbf", b"\xff\xfe", b"PK\x03\x04", b"<html>"),
            *(b"_!_1\n", b"a_!_", b"1\tx\ty\n", b"1\t1\t2\ta\tb\n", b'"1","a","b"\n', b"1,a,b\n"),
            *(b'{"sentence": "a", "label": 1}\n', b'{"sentence1": "a", "sentence2": "b"}\n', b'{"title": "a"'),
            b'{"title": "a", "description": "b", "class": 3}\n',
        ]
    ),
)


@pytest.fixture(params=READERS)
def labelled_file(request, tmp_path):
    """A reader, a file that it is to read, and the line with which such a file begins."""
    reader = DatasetReader.from_params(Params({"type": READERS[request.param]}))
    return reader, tmp_path / request.param, HEADERS.get(request.param, b"")


@pytest.mark.parametrize("keep_every_row", [False, True])
def test_any_bytes_are_rows_none_of_which_is_lost_or_an_error_with_its_line(labelled_file, keep_every_row, trials):
    reader, path, header = labelled_file
    reader.keep_every_row = keep_every_row

    def check(pieces):
        data = header + b"".join(pieces)
        path.write_bytes(data)
        lines = lines_of(data)
        instances = instances_or_error(lambda: reader.read(str(path)), path, len(lines))
        rows = [number for number, line in lines[1 if header else 0 :] if keep_every_row or not is_blank(line)]
        if instances is not None:
            assert [instance["metadata"]["line"] for instance in instances] == rows
            assert all(field.tokens for field in texts_of(instances))
            assert len({"label" in instance.fields for instance in instances}) == 1

    each(st.lists(PIECES, max_size=12), trials, check, share=0.5)


def texts_of(instances):
    return [
        field for instance in instances for name, field in instance.fields.items() if name not in ("label", "metadata")
    ]


LABELS = {"mr": ["0", "1"], "mrpc": ["0", "1"], "ag_news": ["1", "2", "3", "4"]}


def written(name, rows):
    """Rows as a program would write them, that knows the format."""
    stream = io.StringIO(newline="")
    for number, (first, second, label) in enumerate(rows):
        if name == "mr.txt":
            stream.write(f"{first}_!_{label}\n")
        elif name == "mr.pos":
            stream.write(f"{first}\n")
        elif name == "mr.tsv":
            stream.write(f"{label}\t{first}\n")
        elif name == "mrpc.txt":
            stream.write(f"{label}\t{number}\t{number}x\t{first}\t{second}\n")
        elif name == "news.csv":
            csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow([label, first, second])
        else:
            keys = {"mr": ["sentence"], "mrpc": ["sentence1", "sentence2"], "news": ["title", "description"]}
            row = dict(zip(keys[name.partition(".")[0]], (first, second)))
            stream.write(json.dumps({**row, "class" if name.startswith("news") else "label": label}) + "\n")
    return stream.getvalue().encode("cp1252" if name == "mr.pos" else "utf-8")


def test_any_texts_come_back_from_each_format_word_for_word(labelled_file, trials):
    reader, path, header = labelled_file
    in_json = path.suffix == ".jsonl"
    alphabet = {"without": "" if in_json else "\n\r\t", "surrogates": in_json}
    text = texts(**alphabet)
    if path.suffix == ".pos":  # all that Windows-1252 has
        text = st.text(st.characters(codec="cp1252", exclude_characters="\n\r"))
    labels = st.sampled_from(LABELS[READERS[path.name]])
    huge = [[(text, text, "1")] for text in HUGE_TEXTS if path.suffix != ".pos" or text.isascii()]

    def check(rows):
        data = header + written(path.name, rows)
        path.write_bytes(data)
        if re.match(rb"\s*<(!doctype|html|\?xml)|PK\x03\x04|BZh", data, re.I):
            return  # refused for another reason
        has_pair = path.name.startswith("mrpc")
        is_news = path.name.startswith("news")
        kept = [
            (number, first, second, "1" if path.suffix == ".pos" else label)
            for number, (first, second, label) in enumerate(rows, start=2 if header else 1)
            if not (path.suffix == ".pos" and is_blank(first))
        ]
        if any(is_blank(first + second) if is_news else is_blank(first) or (has_pair and is_blank(second))
               for _, first, second, _ in kept):  # fmt: skip
            with pytest.raises(ConfigurationError, match=r"line \d+: `sentence\d?` must not be blank"):
                list(reader.read(str(path)))
            return
        instances = instances_or_error(lambda: reader.read(str(path)), path, len(rows) + 1)
        if not kept:
            assert instances is None
            return
        names = reader._label_names
        assert [instance["label"].label for instance in instances] == [names(label) for *_, label in kept]
        for instance, (number, first, second, _) in zip(instances, kept):
            assert instance["metadata"]["line"] == number
            if is_news:
                expected = [(f"{first} {second}".replace("\\", " "), "tokens")]
            elif has_pair:
                expected = [(first, "sentence1"), (second, "sentence2")]
            else:
                expected = [(first, "tokens")]
            for text, field in expected:
                found = [token.text for token in instance[field].tokens]
                if path.name.startswith("mr."):
                    assert found == [visible(word) for word in words(text)]
                else:
                    # Where words end is the tokenizer's affair; that no character is lost is not.
                    assert "".join(found) == without_blanks(visible(text)) or found == BLANK
                    assert (found == BLANK) <= (not without_blanks(text) or text == "<blank>")

    each(st.lists(st.tuples(text, text, labels), max_size=4), trials, check, huge, share=0.5)


def visible(text):
    """A half of a character, unless JSON joins it to its other half, reads as the mark for what cannot be read."""
    return re.sub("[\ud800-\udfff]", "\ufffd", json.loads(json.dumps(text)))


@pytest.mark.parametrize("name", ["mr.jsonl", "mrpc.jsonl", "news.jsonl"])
@pytest.mark.parametrize("keep_every_row", [False, True])
def test_any_json_is_a_row_or_an_error(name, keep_every_row, tmp_path, trials):
    reader = DatasetReader.from_params(Params({"type": READERS[name]}))
    reader.keep_every_row = keep_every_row
    path = tmp_path / name
    keys = ["sentence", "sentence1", "sentence2", "label", "class", "title", "description", "id1", "id2"]
    values = st.one_of(JSON_VALUES, st.sampled_from(["a", "b c", 1, "1"]))
    objects = st.dictionaries(st.sampled_from(keys), values, max_size=9)
    lines = st.one_of(objects.map(json.dumps), JSON_VALUES.map(json.dumps), st.sampled_from(ODD_JSON))
    deep = "[" * 700 + "]" * 700
    examples = [
        [f'{{"sentence": {deep}}}'],
        [f'{{"sentence": "a", "label": {deep}}}'],
        [f'{{"title": {deep}, "x": 1}}'],
    ]
    examples += [[f'{{"sentence1": "a", "sentence2": "b", "id1": {deep}, "id2": 1}}']]
    examples += [[json.dumps({f"{number} {'k' * 1000}": number for number in range(1000)})]]

    def check(rows):
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        instances = instances_or_error(lambda: reader.read(str(path)), path, len(rows))
        if instances is not None:
            assert [instance["metadata"]["line"] for instance in instances] == list(range(1, len(rows) + 1))
            # Ids can be written and read again.
            assert all(isinstance(instance["metadata"]["id"], str) for instance in instances)

    each(st.lists(lines, max_size=4), trials, check, examples)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252", "utf-7", "ascii", "shift_jis", "punycode"])
def test_any_bytes_in_any_encoding_are_rows_or_an_error_with_the_line(encoding, tmp_path, trials):
    reader = DatasetReader.from_params(Params({"type": "mr", "encoding": encoding}))
    reader.keep_every_row = True
    path = tmp_path / "rows.txt"

    def check(data):
        path.write_bytes(data)
        instances = instances_or_error(lambda: reader.read(str(path)), path, len(data) + 1)
        if instances is not None:
            text = data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")
            assert len(instances) == text.count("\n") + (not text.endswith("\n"))

    each(
        st.one_of(st.binary(), texts(surrogates=False).map(lambda text: text.encode(encoding, "ignore"))),
        trials,
        check,
        share=0.5,
    )


# --- text for a language model, and the sentences of `allennlp elmo`


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_any_bytes_are_sentences_of_a_language_model_or_an_error_with_the_line(unit, tmp_path, trials):
    reader = BiLmTextReader(unit=unit, unroll_steps=5)
    path = tmp_path / "text.txt"

    def check(pieces):
        data = b"".join(pieces)
        path.write_bytes(data)
        lines = [line.decode("utf-8", "replace") for _, line in lines_of(data.replace(b"\xef\xbb\xbf", b"", 1)
                 if data.startswith(b"\xef\xbb\xbf") else data)]  # fmt: skip
        sentences, refusal = attempt(lambda: list(reader.sentences(str(path))))
        if refusal is not None:
            assert re.match(rf"{re.escape(str(path))}, line \d+: must ", refusal), refusal
            return
        assert sentences == [
            words for words in (line.split() if unit == "words" else list(line) for line in lines) if words
        ]
        if not sentences:
            return
        vocabulary = WordVocabulary.from_text(reader, str(path))
        vocabulary.save_to_files(str(tmp_path / "vocabulary"))
        again = Vocabulary.from_files(str(tmp_path / "vocabulary"))
        assert again.get_index_to_token_vocabulary("words") == vocabulary.get_index_to_token_vocabulary("words")
        loader = BiLmTextLoader(reader, str(path), batch_size=2)
        loader.index_with(vocabulary)
        # A word and the end of the sentence after it, each in both directions.
        assert sum(int(batch["mask"].sum()) for batch in loader) == sum(len(words) + 1 for words in sentences)

    pieces = st.one_of(
        st.binary(max_size=3),
        texts(surrogates=False, max_size=12).map(str.encode),
        st.sampled_from([b"\n", b" ", b"\r\n", b"<S>", b"</S>", b"\xef\xbb\xbf"]),
    )
    huge = HUGE_TEXTS if unit == "words" else LONG_TEXTS
    each(st.lists(pieces, max_size=10), trials, check, [[text.encode() + b"\n"] for text in huge])


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_damaged_compressed_text_is_an_error_that_names_it(suffix, compress, tmp_path, trials):
    path = tmp_path / f"text.txt{suffix}"
    whole = compress(b"a b\nc d\n" * 200)
    changes = st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255), st.booleans())

    def check(change):
        place, byte, is_cut = change
        path.write_bytes(whole[:place] if is_cut else whole[:place] + bytes([byte]) + whole[place + 1 :])
        sentences, refusal = attempt(lambda: list(BiLmTextReader().sentences(str(path))))
        if refusal is not None:
            assert re.match(rf"{re.escape(str(path))}(, line \d+: must be UTF-8| must be whole)", refusal), refusal
        else:
            # Not all bytes of a header mean something.
            assert sentences == ([["a", "b"], ["c", "d"]] * 200 if len(path.read_bytes()) else [])

    each(changes, trials, check)


@pytest.mark.parametrize("name", ["text.txt", "text.jsonl"])
def test_any_bytes_are_sentences_to_embed_or_an_error_with_the_line(name, tmp_path, trials):
    path = tmp_path / name
    objects = st.dictionaries(
        st.sampled_from(["tokens", "sentence"]), st.one_of(JSON_VALUES, texts(), st.lists(texts(max_size=4)))
    )
    lines = st.one_of(objects.map(json.dumps), JSON_VALUES.map(json.dumps), st.sampled_from(ODD_JSON)).map(str.encode)
    pieces = st.one_of(PIECES, lines.map(lambda line: line + b"\n") if name == "text.jsonl" else PIECES)

    def check(pieces):
        data = b"".join(pieces)
        path.write_bytes(data)
        lines = lines_of(data[3:] if data.startswith(b"\xef\xbb\xbf") else data)
        sentences, refusal = attempt(lambda: list(SentenceFile(str(path))))
        if refusal is not None:
            check_message(refusal, path, len(lines))
            return
        assert [sentence.name for sentence in sentences] == [str(number - 1) for number, _ in lines]
        for sentence, (_, line) in zip(sentences, lines):
            if name == "text.txt":
                assert sentence.tokens == words(line.decode())
            elif is_blank(line):
                assert sentence.tokens == []
            else:
                row = json.loads(line)
                assert sentence.tokens == (row["tokens"] if "tokens" in row else words(row["sentence"]))

    examples = (
        [[text.encode()] for text in HUGE_TEXTS] if name == "text.txt" else [[line.encode()] for line in ODD_JSON]
    )
    each(st.lists(pieces, max_size=8), trials, check, examples)


# --- words to numbers


def ids_of(word):
    """The bytes of UTF-8 between two marks, each plus one: the first 48 of them."""
    if word in ("<S>", "</S>"):
        inner = [257 if word == "<S>" else 258]
    else:
        inner = [byte + 1 for byte in word.encode("utf-8", "ignore")[:48]]
    row = [259, *inner, 260]
    return row + [261] * (50 - len(row))


def test_any_words_have_the_official_ids(trials):
    indexers = [ElmoCharacterArraysIndexer(), ELMoTokenCharactersIndexer()]

    def check(sentence):
        expected = [ids_of(word) for word in sentence]
        assert [encode_token(word) for word in sentence] == expected
        for indexer in indexers:
            indices = indexer.tokens_to_indices([Token(word) for word in sentence], Vocabulary())
            (padded,) = indexer.as_padded_tensor_dict(indices, {"elmo_tokens": len(sentence) + 1}).values()
            assert padded.tolist() == [*expected, [0] * 50]

    each(st.lists(st.one_of(texts(), st.sampled_from(["<S>", "</S>", "<UNK>", ""]))), trials, check, [HUGE_TEXTS])


@pytest.fixture(scope="module")
def embedder():
    return ElmoEmbedder(pretrained=BILM).eval()


def test_any_numbers_are_embedded_or_refused(embedder, trials):
    sizes = st.lists(st.sampled_from([0, 1, 2, 3, 50]), max_size=4)
    characters = st.sampled_from([0, 1, 261, 262, 300, -1, 2**15 - 1])
    dtypes = st.sampled_from([torch.int64, torch.int64, torch.int32, torch.float32, torch.bool])

    def check(drawn):
        shape, values, dtype = drawn
        count = math.prod(shape)
        ids = torch.tensor((values * (count // len(values) + 1))[:count]).reshape(shape).to(dtype)
        vectors, refusal = attempt(lambda: embedder(ids), (ConfigurationError, ValueError))
        if refusal is not None:
            assert " must " in refusal
            return
        assert vectors.shape == (*shape[:-1], 64) or shape[-1] == 0
        assert bool(vectors.isfinite().all())
        assert all(0 <= value <= 261 for value in ids.flatten().tolist())
        if shape[-1] > 0:
            assert not vectors[(ids == 0).all(dim=-1)].any()

    each(st.tuples(sizes, st.lists(characters, min_size=1, max_size=5), dtypes), trials, check)


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_any_sentences_have_a_finite_vector_for_each_token(suffix, embedder, tmp_path, trials):
    sentences_path, output_path = tmp_path / "text.jsonl", tmp_path / f"vectors{suffix}"

    def check(sentences):
        sentences_path.write_text("".join(json.dumps({"tokens": tokens}) + "\n" for tokens in sentences))
        # JSON joins two halves of a character.
        sentences = json.loads(json.dumps(sentences))
        output_path.unlink(missing_ok=True)
        embed_file(embedder, SentenceFile(str(sentences_path)), str(output_path), layers="top")
        with h5py.File(output_path, "r") if suffix == ".hdf5" else numpy.load(output_path) as vectors:
            for number, tokens in enumerate(sentences):
                assert vectors[str(number)].shape == (len(tokens), 64)
                assert numpy.isfinite(vectors[str(number)][()]).all()
            index = json.loads(vectors["sentence_to_index"][0])
        assert index == {" ".join(tokens): str(number) for number, tokens in enumerate(sentences)}

    sentences = st.lists(st.lists(texts(max_size=6), max_size=4), min_size=1, max_size=4)
    each(sentences, trials, check, [[["a" * 100_000], []], [["x", "y"] * 500]], share=0.2)


# --- requests


@pytest.fixture(scope="module", params=["mr", "mrpc"])
def predictor(request):
    """The shipped classifier, untrained, over the tiny biLM."""
    config = Params.from_file(str(ROOT / f"training_configs/{request.param}.jsonnet"), ext_vars=knobs()).as_dict()
    config["model"]["text_field_embedder"]["token_embedders"]["elmo"]["pretrained"] = BILM
    reader = DatasetReader.from_params(Params(config["dataset_reader"]))
    vocabulary = Vocabulary()
    vocabulary.add_tokens_to_namespace(["0", "1"] if request.param == "mrpc" else ["negative", "positive"], "labels")
    torch.manual_seed(0)
    model = Model.from_params(Params(config["model"]), vocab=vocabulary)
    return (PairPredictor if request.param == "mrpc" else SentencePredictor)(model, reader)


def knobs():
    from elmo_tasks.common.environment import KNOBS

    return {knob.name: knob.default for knob in KNOBS}


def test_any_request_has_an_answer_or_an_error_with_its_line(predictor, trials):
    keys = [*predictor.text_keys, "id", "label"]
    values = st.one_of(texts(), texts(), JSON_VALUES)
    objects = st.dictionaries(st.sampled_from(keys), values)
    full = st.tuples(*[texts()] * len(predictor.text_keys)).map(lambda each: dict(zip(predictor.text_keys, each)))
    lines = st.one_of(
        full.map(json.dumps), objects.map(json.dumps), JSON_VALUES.map(json.dumps), st.sampled_from(ODD_JSON)
    )
    request = dict.fromkeys(predictor.text_keys, "a")
    deep = "[" * 700 + "]" * 700
    examples = [[json.dumps({**request, key: "\0"}).replace('"\\u0000"', deep)] for key in keys]
    examples += [[json.dumps(dict.fromkeys(predictor.text_keys, text))] for text in LONG_TEXTS]

    def check(rows):
        predictor._num_lines = 0
        inputs = []
        for number, row in enumerate(rows, start=1):
            line, refusal = attempt(lambda row=row: predictor.load_line(f"{row}\n"))
            if refusal is None:
                inputs.append(line)
            else:
                assert len(refusal) < 1000
                assert f"line {number} of the input" in refusal
                assert " must " in refusal
        if not inputs:
            return
        outputs = predictor.predict_batch_json(inputs)
        assert len(outputs) == len(inputs)
        for line, output in zip(inputs, outputs):
            assert json.loads(predictor.dump_line(output)) == output
            assert sum(output["label_probabilities"].values()) == pytest.approx(1)
            for key in predictor.text_keys:
                tokens = output["tokens" if key == "sentence" else f"{key}_tokens"]
                text = visible(line[key])
                text = "".join(words(text)) if key == "sentence" else without_blanks(text)
                assert "".join(tokens) == text or (not text and tokens == BLANK)

    each(st.lists(lines, max_size=4), trials, check, examples)


@pytest.fixture(scope="module", params=["words", "characters"])
def generator(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("the film is good\nwhy not\n")
    reader = BiLmTextReader(unit=request.param)
    config = {"type": "bilm_language_model", "network": {"type": "words", "projection_dim": 4, "cell_dim": 6}}
    torch.manual_seed(0)
    return TextGenerator(
        Model.from_params(
            Params({**config, "softmax": {"type": "full"}}), vocab=WordVocabulary.from_text(reader, str(path))
        ),
        reader,
    )


def test_any_prompt_is_continued_or_refused(generator, trials):
    numbers = st.one_of(
        st.integers(0, 3), st.sampled_from([10**30, -1, 1e-320, 1e-10, 1e308, float("nan"), float("inf"), True])
    )
    objects = st.fixed_dictionaries(
        {"length": st.one_of(st.integers(0, 3), st.sampled_from([-1, 2.0, None]))},
        optional={
            "prompt": st.one_of(texts(), st.sampled_from(["the film", "<S> </S>"]), JSON_VALUES),
            "temperature": st.one_of(numbers, JSON_VALUES),
            "seed": st.one_of(numbers, JSON_VALUES),
        },
    )
    lines = st.one_of(
        objects.map(json.dumps), objects.map(json.dumps), JSON_VALUES.map(json.dumps), st.sampled_from(ODD_JSON)
    )

    def check(line):
        outputs, refusal = attempt(lambda: generator.predict_batch_json([generator.load_line(line)]))
        if refusal is not None:
            assert len(refusal) < 1000
            assert re.search(r"line \d+ of the input", refusal)
            assert " must " in refusal
            return
        (output,) = outputs
        assert json.loads(generator.dump_line(output)) == output
        assert output["log_likelihood"] <= 0

    each(lines, trials, check, ['{"length": 1, "prompt": "%s"}' % ("a " * 500)])
