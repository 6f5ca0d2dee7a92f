import logging
from collections import Counter

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.data.tokenizers import Token

from elmo_tasks.dataset_readers import bilm_text_loader
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.bilm_text_loader import BiLmTextLoader
from elmo_tasks.dataset_readers.vocabulary import WordVocabulary


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b c\nd e\nf g h\n")
    return str(path)


def load(path, batch_size, **options):
    reader = BiLmTextReader(**options)
    loader = BiLmTextLoader(reader, path, batch_size)
    loader.index_with(WordVocabulary.from_text(reader, path))
    return loader


def spell(loader, batch, direction):
    """Inputs and targets of each row, as words."""
    vocabulary = loader._vocab.get_index_to_token_vocabulary("words")
    inputs, targets = [], []
    for row in range(len(batch["mask"])):
        mask = batch["mask"][row]
        places = batch[f"{direction}_inputs"][row][mask]
        inputs.append([vocabulary[int(index)] for index in batch["word_ids"][places]])
        targets.append([vocabulary[int(index)] for index in batch[f"{direction}_targets"][row][mask]])
    return inputs, targets


def test_three_sentences_three_steps_two_streams(text, monkeypatch):
    loader = load(text, 2, unroll_steps=3)
    first, second, third = loader
    assert spell(loader, first, "forward") == (
        [["<S>", "a", "b"], ["<S>", "f", "g"]],
        [["a", "b", "c"], ["f", "g", "h"]],
    )
    assert spell(loader, second, "forward") == ([["c", "<S>", "d"], ["h"]], [["</S>", "d", "e"], ["</S>"]])
    assert spell(loader, third, "forward") == ([["e"], []], [["</S>"], []])
    assert spell(loader, first, "backward") == (
        [["</S>", "c", "b"], ["</S>", "h", "g"]],
        [["c", "b", "a"], ["h", "g", "f"]],
    )
    assert spell(loader, second, "backward") == ([["a", "</S>", "e"], ["f"]], [["<S>", "e", "d"], ["<S>"]])
    assert spell(loader, third, "backward") == ([["d"], []], [["<S>"], []])
    assert [batch["continues"] for batch in (first, second, third)] == [False, True, True]


def test_whole_sentences_of_similar_length(text):
    loader = load(text, 1, mode="sentence", unroll_steps=8)
    batches = sorted(loader, key=lambda batch: -batch["mask"].sum())
    assert spell(loader, batches[0], "forward")[0] == [["<S>", "a", "b", "c"], ["<S>", "f", "g", "h"]]
    assert spell(loader, batches[0], "backward")[1] == [["c", "b", "a", "<S>"], ["h", "g", "f", "<S>"]]
    assert spell(loader, batches[1], "forward") == ([["<S>", "d", "e"]], [["d", "e", "</S>"]])
    assert not any(batch["continues"] for batch in batches)


def test_character_ids_are_the_official_ones(text):
    loader = load(text, 2, unroll_steps=3)
    batch = next(iter(loader))
    words = [Token(loader._vocab.get_token_from_index(int(index), "words")) for index in batch["word_ids"]]
    official = ELMoTokenCharactersIndexer().tokens_to_indices(words, Vocabulary())["elmo_tokens"]
    assert batch["character_ids"].tolist() == official


def test_unknown_words_keep_their_characters_and_are_predicted_as_unknown(tmp_path):
    (tmp_path / "train.txt").write_text("a b\n")
    (tmp_path / "test.txt").write_text("a xy b\n")
    loader = load(str(tmp_path / "train.txt"), 1)
    test_loader = BiLmTextLoader(BiLmTextReader(), str(tmp_path / "test.txt"), 1)
    test_loader.index_with(loader._vocab)
    (batch,) = test_loader
    assert spell(test_loader, batch, "forward")[1] == [["a", "<UNK>", "b", "</S>"]]
    assert torch.tensor([ord("x") + 1, ord("y") + 1]).tolist() in batch["character_ids"][:, 1:3].tolist()


def test_all_scripts_are_bytes_below_262(tmp_path):
    (tmp_path / "text.txt").write_text("Мир и 文字 в 😀 !\n", encoding="utf-8")
    (batch,) = load(str(tmp_path / "text.txt"), 1)
    assert batch["character_ids"].max() == 261
    # The blanks between words are no characters: the least byte is "!".
    assert batch["character_ids"].min() == ord("!") + 1


@pytest.mark.parametrize("mode", ["carry", "sentence"])
def test_the_logged_plan_of_1200_sentences_is_what_is_run(tmp_path, caplog, mode):
    (tmp_path / "text.txt").write_text("".join(f"w{n % 7} " * (n % 11 + 1) + "\n" for n in range(1200)))
    loader = load(str(tmp_path / "text.txt"), 16, mode=mode, unroll_steps=10)
    with caplog.at_level(logging.INFO):
        num_batches = len(loader)
    batches = list(loader)
    num_predictions = sum(int(batch["mask"].sum()) for batch in batches)
    # 109 full rounds of 1 to 11 words and one word: 109 * 66 + 1, and one boundary each
    assert num_predictions == 109 * 66 + 1 + 1200
    assert "1200 sentences, 7195 words, 8395 predictions" in caplog.text
    assert len(batches) == num_batches
    assert f"an epoch is {num_batches} batches ({mode}, 16 x 10, processes: 1)" in caplog.text
    if mode == "carry":
        # 8395 predictions in 16 streams of 10 steps are 52.5 batches, had all streams the same length.
        assert 53 <= num_batches <= 58


@pytest.mark.parametrize("mode", ["carry", "sentence"])
def test_two_processes_share_each_batch_of_one(tmp_path, monkeypatch, mode):
    (tmp_path / "text.txt").write_text("".join(f"a{n} b{n} c{n}\n"[: 3 + n % 9] + "\n" for n in range(11)))

    def targets_of(rank, num_processes, batch_size):
        monkeypatch.setattr(bilm_text_loader, "_process", lambda: (rank, num_processes))
        loader = load(str(tmp_path / "text.txt"), batch_size, mode=mode, unroll_steps=4)
        batches = list(loader)
        assert len(batches) == len(loader)
        return [Counter(word for row in spell(loader, batch, "forward")[1] for word in row) for batch in batches]

    together = targets_of(0, 1, 4)
    first, second = targets_of(0, 2, 2), targets_of(1, 2, 2)
    assert len(first) == len(second)
    assert sum(first + second, Counter()) == sum(together, Counter())
    if mode == "carry":
        assert [a + b for a, b in zip(first, second)] == together


def test_each_epoch_orders_whole_sentences_anew_and_repeatably(tmp_path):
    (tmp_path / "text.txt").write_text("".join("w " * (n % 40 + 1) + "\n" for n in range(200)))

    def orders():
        loader = load(str(tmp_path / "text.txt"), 2, mode="sentence", unroll_steps=30)
        return [[tuple(batch["mask"].shape) for batch in loader] for _ in range(2)]

    first, second = orders()
    assert first != second
    assert Counter(first) == Counter(second)
    assert orders() == [first, second]


def test_a_reader_of_another_kind_is_an_error(text):
    with pytest.raises(ConfigurationError, match="must have a reader `bilm_text`, but has DatasetReader; wrap"):
        BiLmTextLoader(DatasetReader(), text)


def test_a_vocabulary_of_another_kind_is_an_error(text):
    with pytest.raises(ConfigurationError, match="must have a namespace 'words' with <UNK>"):
        BiLmTextLoader(BiLmTextReader(), text).index_with(Vocabulary())
