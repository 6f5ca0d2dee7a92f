import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.sentence_file import SentenceFile


@pytest.fixture
def write(tmp_path):
    def write(content, name="sentences.txt"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path / name)

    return write


def tokens(file):
    return [sentence.tokens for sentence in file]


def test_text_is_split_at_blanks_of_ascii_alone(write):
    file = SentenceFile(write("\ufeffa  b\tc\r\n\n one\u0085token and\u00a0another\nlast"))
    assert tokens(file) == [["a", "b", "c"], [], ["one\u0085token", "and\u00a0another"], ["last"]]
    assert [sentence.name for sentence in file] == ["0", "1", "2", "3"]
    assert (file.num_lines, file.num_tokens) == (4, 6)


def test_json_lines_hold_tokens_or_a_sentence(write):
    content = '{"tokens": ["New York", "is"], "sentence": "no"}\n{"sentence": "a b", "label": 1}\n\n{"tokens": []}\n'
    assert tokens(SentenceFile(write(content, "a.jsonl"))) == [["New York", "is"], ["a", "b"], [], []]
    assert tokens(SentenceFile(write(content, "a.JSON"))) == [["New York", "is"], ["a", "b"], [], []]
    assert tokens(SentenceFile(write(content, "a.txt"), "json-lines"))[0] == ["New York", "is"]
    assert tokens(SentenceFile(write("{} {}\n", "b.jsonl"), "text")) == [["{}", "{}"]]


def test_digest_is_that_of_the_tokens_in_their_lines(write):
    one = SentenceFile(write("a b\nc\n", "a.txt"))
    same = SentenceFile(write('{"tokens": ["a", "b"]}\n{"sentence": "c"}', "a.jsonl"))
    other = SentenceFile(write("a\nb c\n", "b.txt"))
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{broken", "line 2: must be one JSON object with `tokens` or `sentence`, but is '{broken"),
        (b'["a", "b"]', "line 2: must be one JSON object"),
        (b'{"text": "a b"}', "line 2: must be one JSON object with `tokens` or `sentence`, but has `text`"),
        (b'{"tokens": "a b"}', "line 2: must hold a list of texts in `tokens`, but holds 'a b'"),
        (b'{"tokens": ["a", 3]}', r"line 2: must hold a list of texts in `tokens`, but holds \['a', 3\]"),
        (b'{"sentence": ["a"]}', r"line 2: must hold a text in `sentence`, but holds \['a'\]"),
        (b'{"sentence": "caf\xe9"}', "line 2: must be UTF-8, but byte e9 is not"),
    ],
)
def test_a_bad_line_is_told_at_once(write, line, message):
    with pytest.raises(ConfigurationError, match=rf"sentences\.jsonl, {message}"):
        SentenceFile(write(b'{"sentence": "a"}\n' + line + b"\n", "sentences.jsonl"))


def test_a_folder_is_told_from_a_missing_file(tmp_path):
    with pytest.raises(ConfigurationError, match=f"{tmp_path} must be a file of sentences, but is a folder"):
        SentenceFile(str(tmp_path))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no\.txt must be a file of sentences, but there is no such file"):
        SentenceFile(str(tmp_path / "no.txt"))
