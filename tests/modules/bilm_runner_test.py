import logging
import random

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Token
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer

from elmo_tasks.bilm import BiLm, BiLmOptions, load_weights, weights_digest
from elmo_tasks.modules import ActivationCache, ElmoEmbedder
from elmo_tasks.modules.bilm_runner import BiLmRunner
from elmo_tasks.modules.length_batches import length_batches


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_batches_beyond_the_token_budget_are_cut_and_change_nothing(files, sentences, to_ids, count_calls):
    expected = ElmoEmbedder(**files).eval()(to_ids(sentences))
    embedder = ElmoEmbedder(**files, max_tokens_per_forward=8).eval()
    shapes = count_calls(embedder)
    close(embedder(to_ids(sentences)), expected)
    assert shapes == [(1, 8, 50), (1, 8, 50), (1, 5, 50), (2, 2, 50)]


def test_digest_follows_the_weights_and_is_not_worked_out_again_without_need(files, monkeypatch):
    bilm = BiLm(BiLmOptions.from_file(files["options_file"]))
    load_weights(bilm, files["weight_file"])
    runner = BiLmRunner(bilm, None, 100)
    before = runner.digest()
    assert before == weights_digest(bilm)
    monkeypatch.setattr("elmo_tasks.modules.bilm_runner.weights_digest", lambda bilm: "another")
    assert runner.digest() == before
    with torch.no_grad():
        bilm.layers[0].bias[0, 0] += 1.0
    assert runner.digest() == "another"


def test_digest_is_of_weights_of_any_kind(files):
    with torch.inference_mode():
        bilm = BiLm(BiLmOptions.from_file(files["options_file"]))
        load_weights(bilm, files["weight_file"])
    runner = BiLmRunner(bilm, None, 100)
    assert runner.digest() == runner.digest() == weights_digest(bilm)
    in_float32 = BiLm(bilm.options)
    in_float32.load_state_dict({name: value.bfloat16() for name, value in bilm.state_dict().items()})
    assert weights_digest(in_float32.bfloat16()) == weights_digest(in_float32.float())


def many_instances(num_sentences=40, indexers=None):
    generator = random.Random(5)
    words = ["film", "plot", "a", "the", "never", "always", "dull", "bright", "."]
    indexers = indexers or {"characters": ELMoTokenCharactersIndexer()}
    texts = [[generator.choice(words) for _ in range(generator.randrange(1, 12))] for _ in range(num_sentences)]
    return [Instance({"text": TextField([Token(word) for word in text], indexers)}) for text in texts]


def test_filling_runs_the_expected_number_of_batches_and_training_none(files, to_ids, count_calls):
    instances = many_instances()
    texts = {tuple(token.text for token in instance["text"]) for instance in instances}
    embedder = ElmoEmbedder(**files, cache=ActivationCache(), max_tokens_per_forward=30).eval()
    shapes = count_calls(embedder)
    embedder.prepare_for_training(lambda: iter(instances[:20]), lambda: iter(instances))
    assert len(shapes) == len(length_batches([len(text) for text in texts], 30))
    assert sum(batch_size for batch_size, _, _ in shapes) == len(texts)
    assert all(batch_size * num_tokens <= 30 for batch_size, num_tokens, _ in shapes)
    character_ids = to_ids([list(text) for text in texts])
    filled = embedder(character_ids)
    embedder.prepare_for_training(lambda: iter(instances), lambda: iter(instances))
    assert len(shapes) == len(length_batches([len(text) for text in texts], 30))
    close(filled, ElmoEmbedder(**files).eval()(character_ids))


def test_filling_finds_texts_in_lists_and_under_any_name(files, count_calls):
    indexers = {"any_name": ELMoTokenCharactersIndexer()}
    first = TextField([Token("one"), Token("two")], indexers)
    second = TextField([Token("three")], indexers)
    instance = Instance({"title": first, "paragraphs": ListField([second, first])})
    embedder = ElmoEmbedder(**files, cache=ActivationCache())
    shapes = count_calls(embedder)
    embedder.prepare_for_training(lambda: iter([]), lambda: iter([instance]))
    assert sum(batch_size for batch_size, _, _ in shapes) == 2


def test_filling_leaves_the_random_states_alone(files):
    states = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    embedder = ElmoEmbedder(**files, cache=ActivationCache())
    torch.set_rng_state(torch.tensor(states[2], dtype=torch.uint8))
    embedder.prepare_for_training(lambda: iter([]), lambda: iter(many_instances()))
    assert states == (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


def test_filling_says_first_what_it_will_take(files, caplog):
    caplog.set_level(logging.INFO)
    embedder = ElmoEmbedder(**files, cache=ActivationCache(max_memory_bytes=5_000_000))
    said_before = []
    embedder.bilm.register_forward_pre_hook(lambda *_: said_before.append(caplog.messages[0]))
    indexers = {"characters": ELMoTokenCharactersIndexer()}
    texts = [TextField([Token(f"w{number}"), *[Token("a")] * 9], indexers) for number in range(200)]
    embedder.prepare_for_training(lambda: iter([]), lambda: iter([Instance({"text": text}) for text in texts]))
    # 2000 tokens of 32 + 2 * 64 values of 4 bytes are 1.28 MB.
    assert set(said_before) == {
        "The biLM runs on 200 sentences with 2,000 tokens, 1 MB for the activation cache (5 MB free in memory)."
    }


def test_filling_stops_where_there_is_no_room_left(files, count_calls):
    num_values = 32 + 2 * 64
    cache = ActivationCache(max_memory_bytes=30 * num_values * 4)
    embedder = ElmoEmbedder(**files, cache=cache)
    shapes = count_calls(embedder)
    instances = many_instances(40)
    embedder.prepare_for_training(lambda: iter([]), lambda: iter(instances))
    assert 0 < sum(batch_size for batch_size, _, _ in shapes) < 15


def test_without_a_cache_nothing_is_prepared(files):
    def unwanted():
        raise AssertionError("the data must not be read")

    ElmoEmbedder(**files).prepare_for_training(unwanted, unwanted)
    with pytest.raises(ConfigurationError, match="there must be a cache"):
        ElmoEmbedder(**files)._runner.fill_cache([])
