import copy
import json
import logging
from pathlib import Path

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.models import load_archive
from allennlp.modules import TokenEmbedder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import ElmoTokenEmbedder
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.common.protocols import PreparesForTraining, ReportsMetrics
from elmo_tasks.modules import ActivationCache, ElmoEmbedder, SingleLayerMix, elmo_embedder
from elmo_tasks.modules.disk_tier import DiskTier


def embedder_of(config):
    return TokenEmbedder.from_params(Params({"type": "elmo", **config}))


def trainable(embedder):
    return [name for name, parameter in embedder.named_parameters() if parameter.requires_grad]


def in_training(embedder):
    """As a training run leaves it for validation: filling its cache."""
    embedder.prepare_for_training(lambda: iter([]), lambda: iter([]))
    return embedder.eval()


def close(found, expected, atol=1e-6):
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


# What it is


def test_config_of_allennlps_embedder_runs_with_only_the_type_changed(files):
    config = {
        **files,
        "do_layer_norm": False,
        "dropout": 0.25,
        "requires_grad": False,
        "projection_dim": 5,
        "vocab_to_cache": ["film", "heart"],
        "scalar_mix_parameters": [-9e10, 1, -9e10],
    }
    stock = TokenEmbedder.from_params(Params({"type": "elmo_token_embedder", **copy.deepcopy(config)}))
    ours = embedder_of(config)
    assert isinstance(ours, ElmoTokenEmbedder)
    assert ours.get_output_dim() == stock.get_output_dim() == 5
    assert sorted(trainable(ours)) == sorted(trainable(stock)) == ["_projection.bias", "_projection.weight"]


def test_arguments_stand_in_the_order_of_allennlps_embedder():
    def arguments(embedder_class):
        return list(embedder_class.__init__.__annotations__)[:-1]

    stock = arguments(ElmoTokenEmbedder)
    assert arguments(ElmoEmbedder)[: len(stock)] == stock


def test_it_keeps_the_protocols_of_training_runs_and_models(files):
    embedder = ElmoEmbedder(**files)
    assert isinstance(embedder, PreparesForTraining)
    assert isinstance(embedder, ReportsMetrics)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, ["scalar_mix.gamma", *(f"scalar_mix.scalar_parameters.{layer}" for layer in range(3))]),
        ({"mix": {"type": "scalar", "trainable": False}}, []),
        ({"scalar_mix_parameters": [1, 2, 3]}, []),
        ({"mix": "single_layer"}, []),
    ],
)
def test_frozen_bilm_leaves_only_the_mix_to_train(files, config, names):
    assert sorted(trainable(embedder_of({**files, **config}))) == names


def test_fine_tuning_trains_everything(files):
    embedder = ElmoEmbedder(**files, requires_grad=True)
    assert trainable(embedder) == [name for name, _ in embedder.named_parameters()]
    assert any(name.startswith("bilm.") for name in trainable(embedder))


def test_mix_option_builds_the_registered_mix_with_the_sizes_of_the_bilm(files):
    embedder = embedder_of({**files, "mix": {"type": "single_layer", "layer": 1}})
    assert isinstance(embedder.scalar_mix, SingleLayerMix)
    assert embedder.scalar_mix.num_representations == 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cache": {}, "requires_grad": True}, "`cache` must not be given with `requires_grad`"),
        ({"cache": {}, "stateful": True}, "`cache` must not be given with `stateful`"),
        ({"stateful": True, "precision": "bfloat16"}, "`precision` must be float32 with `stateful`"),
        ({"stateful": True, "requires_grad": True}, "`requires_grad` must be false with `stateful`"),
        ({"requires_grad": True, "precision": "bfloat16"}, "`precision` must be float32 with `requires_grad`"),
        ({"warm_up_sentences": ["a b"]}, "`stateful` must be true with `warm_up_sentences`"),
        ({"stateful": True, "warm_up_sentences": "a b"}, "must be a list of sentences, but is the string 'a b'"),
        ({"requires_grad": True, "save_bilm_weights": False}, "`save_bilm_weights` must be true"),
        ({"mix": "scalar", "do_layer_norm": True}, "`mix` must say all"),
        ({"mix": "scalar", "scalar_mix_parameters": [1, 2, 3]}, "`mix` must say all"),
        ({"scalar_mix_parameters": [1, 2]}, "length 3"),
        ({"precision": "float64"}, "one of .'bfloat16', 'float32'., but is 'float64'"),
        ({"max_tokens_per_forward": 0}, "`max_tokens_per_forward` must be above 0, but is 0"),
        ({"pretrained": "mini"}, "must name the biLM, but all are given"),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(files, config, message):
    with pytest.raises(ConfigurationError, match=message):
        embedder_of({**files, **config})


# Vectors


def test_sentence_has_the_same_vectors_in_any_order_and_batch_size(files, sentences, to_ids):
    embedder = ElmoEmbedder(**files).eval()
    together = embedder(to_ids(sentences))
    for row, sentence in enumerate(sentences):
        if sentence:
            close(embedder(to_ids([sentence]))[0], together[row, : len(sentence)])
    order = [4, 2, 0, 5, 1, 3]
    close(embedder(to_ids([sentences[row] for row in order])), together[order])
    assert torch.equal(embedder(to_ids(sentences)), together)
    assert torch.equal(together[0], together[5])


def test_padding_is_zero_and_a_token_named_pad_is_a_word(files, to_ids):
    embedder = ElmoEmbedder(**files).eval()
    character_ids = to_ids([["a"], ["a", "b", "c"], ["<PAD>"]])
    is_token = [[True, False, False], [True, True, True], [True, False, False]]
    assert get_text_field_mask({"elmo": {"elmo_tokens": character_ids}}).tolist() == is_token
    assert (embedder(character_ids) != 0).any(dim=-1).tolist() == is_token


def test_only_empty_sentences_give_only_zeros(files, to_ids):
    for config in ({}, {"cache": {}}, {"stateful": True}):
        embedder = embedder_of({**files, **config}).eval()
        assert embedder(to_ids([[], []])).shape == (2, 0, 64)
        vectors = embedder(torch.zeros(2, 3, 50, dtype=torch.int64))
        assert torch.equal(vectors, torch.zeros(2, 3, 64))


def test_empty_sentence_beside_others_gets_zero_vectors(files, sentences, to_ids):
    vectors = ElmoEmbedder(**files).eval()(to_ids(sentences))
    assert torch.equal(vectors[2], torch.zeros(8, 64))


def test_token_after_padding_is_refused(files, to_ids):
    character_ids = to_ids([["a", "b", "c"]])
    character_ids[0, 1] = 0
    for config in ({}, {"cache": {}}):
        with pytest.raises(ConfigurationError, match="one follows a row of zeros"):
            embedder_of({**files, **config})(character_ids)


@pytest.mark.parametrize("config", [{}, {"projection_dim": 64}, {"cache": {}}])
def test_lists_of_sentences_keep_their_shape(files, sentences, to_ids, config):
    embedder = embedder_of({**files, **config}).eval()
    character_ids = to_ids(sentences)
    lists = character_ids.view(2, 3, 8, 50)
    close(embedder(lists), embedder(character_ids).view(2, 3, 8, 64))
    close(embedder.layers(lists), embedder.layers(character_ids).view(3, 2, 3, 8, 64))


def test_text_field_embedder_hands_on_lists_of_texts(files, sentences):
    vocab = Vocabulary()
    indexers = {"elmo": ELMoTokenCharactersIndexer()}
    texts = ListField([TextField([Token(word) for word in words], indexers) for words in sentences])
    texts.index(vocab)
    tensors = texts.as_tensor(texts.get_padding_lengths())
    batch = {"elmo": {"elmo_tokens": tensors["elmo"]["elmo_tokens"].unsqueeze(0)}}
    embedder = BasicTextFieldEmbedder({"elmo": ElmoEmbedder(**files)}).eval()
    assert embedder(batch, num_wrapping_dims=1).shape == (1, 6, 8, 64)


def test_three_raw_layers_differ_and_the_lowest_has_equal_halves(files, sentences, to_ids):
    embedder = ElmoEmbedder(**files).eval()
    character_ids = to_ids(sentences)
    layers = embedder.layers(character_ids)
    assert layers.shape == (3, 6, 8, 64)
    assert torch.equal(layers[0, ..., :32], layers[0, ..., 32:])
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert (layers[one, 0] - layers[other, 0]).abs().max() > 0.01
    close(layers.mean(dim=0), embedder(character_ids))
    assert torch.equal(layers[:, 2], torch.zeros(3, 8, 64))


def test_vocab_to_cache_changes_no_vector(files, sentences, to_ids):
    expected = ElmoEmbedder(**files).eval()(to_ids(sentences))
    # "A" would be the padding, and "unseen" words the unknown one, in AllenNLP's embedder.
    embedder = ElmoEmbedder(**files, vocab_to_cache=["A", "quiet", "film"]).eval()
    assert torch.equal(embedder(to_ids(sentences)), expected)
    word_ids = torch.zeros(6, 8, dtype=torch.int64)
    assert torch.equal(embedder(to_ids(sentences), word_ids), expected)


def test_dropout_follows_the_mix_and_ends_in_evaluation(files, sentences, to_ids):
    embedder = ElmoEmbedder(**files, dropout=0.5)
    character_ids = to_ids(sentences)
    clean = embedder.eval()(character_ids)
    torch.manual_seed(3)
    dropped = embedder.train()(character_ids)
    is_kept = dropped != 0
    close(dropped[is_kept], 2 * clean[is_kept])
    share = is_kept[0].float().mean().item()
    assert 0.4 < share < 0.6


def test_projection_follows_the_dropout(files, sentences, to_ids):
    embedder = ElmoEmbedder(**files, projection_dim=5).eval()
    character_ids = to_ids(sentences)
    mixed = embedder.layers(character_ids).mean(dim=0)
    close(embedder(character_ids), embedder._projection(mixed))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_projection_takes_the_vectors_of_an_embedder_in_another_type(files, sentences, to_ids, dtype):
    embedder = ElmoEmbedder(**files, projection_dim=5, cache=ActivationCache()).eval()
    expected = embedder(to_ids(sentences))
    close(embedder.to(dtype)(to_ids(sentences)).float(), expected, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("config", [{}, {"cache": {}}, {"do_layer_norm": True}, {"stateful": True}])
def test_autocast_changes_nothing_and_float32_works_after_it(files, sentences, to_ids, dtype, config):
    character_ids = to_ids(sentences)
    expected = embedder_of({**files, **config}).eval()(character_ids)
    embedder = embedder_of({**files, **config}).eval()
    with torch.autocast("cpu", dtype=dtype):
        under_autocast = embedder(character_ids)
    assert under_autocast.dtype == torch.float32
    close(under_autocast, expected, atol=1e-6)
    afterwards = embedder(character_ids)
    assert afterwards.dtype == torch.float32
    assert torch.isfinite(afterwards).all()


def test_bfloat16_precision_stays_near_float32(files, sentences, to_ids):
    expected = ElmoEmbedder(**files).eval()(to_ids(sentences))
    vectors = ElmoEmbedder(**files, precision="bfloat16").eval()(to_ids(sentences))
    assert vectors.dtype == torch.float32
    error = (vectors - expected).abs()
    assert 0 < error.mean() < 0.01
    assert error.max() < 0.2


# The mix


def test_metrics_tell_the_mix_and_the_statefulness(files):
    expected = {f"scalar_mix_layer_{layer}_weight": pytest.approx(1 / 3) for layer in range(3)}
    assert ElmoEmbedder(**files).get_metrics() == {**expected, "scalar_mix_gamma": 1.0, "elmo_stateful": 0.0}
    assert ElmoEmbedder(**files, stateful=True).get_metrics()["elmo_stateful"] == 1.0


@pytest.mark.parametrize("config", [{}, {"cache": {}}])
def test_mix_moves_and_a_frozen_bilm_does_not(files, sentences, to_ids, config):
    embedder = embedder_of({**files, **config})
    before = {name: parameter.clone() for name, parameter in embedder.named_parameters()}
    optimizer = torch.optim.SGD(embedder.parameters(), lr=1.0)
    embedder(to_ids(sentences)).sin().sum().backward()
    optimizer.step()
    for name, parameter in embedder.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("bilm."), name


def test_frozen_bilm_keeps_no_history(files, sentences, to_ids):
    embedder = ElmoEmbedder(**files)
    assert not embedder.layers(to_ids(sentences)).requires_grad
    assert embedder(to_ids(sentences)).requires_grad


# The cache


def steps(embedder, batches, num_epochs=3):
    """The losses of a small regression on the vectors."""
    torch.manual_seed(1)
    head = torch.nn.Linear(embedder.get_output_dim(), 1)
    optimizer = torch.optim.Adam([*embedder.parameters(), *head.parameters()], lr=0.01)
    losses = []
    for _ in range(num_epochs):
        for batch in batches:
            loss = (head(embedder(batch)).sum(dim=1) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_cached_training_runs_the_bilm_once_per_sentence_with_the_same_losses(files, sentences, to_ids, count_calls):
    batches = [to_ids(sentences[:3]), to_ids(sentences[3:])]
    expected = steps(ElmoEmbedder(**files), batches)
    embedder = ElmoEmbedder(**files, cache=ActivationCache())
    shapes = count_calls(embedder)
    assert steps(embedder, batches) == pytest.approx(expected, abs=1e-5)
    # Of six sentences one is empty, and one is there twice.
    assert sum(batch_size for batch_size, _, _ in shapes) == 4
    assert embedder.scalar_mix.gamma.item() != 1.0


@pytest.mark.parametrize("config", [{"dtype": "float32"}, {"dtype": "float16"}, {"max_memory_bytes": 3000}])
def test_vectors_are_the_same_cold_and_warm(files, sentences, to_ids, config, tmp_path, count_calls):
    config = {**files, "cache": {"directory": str(tmp_path), **config}}
    embedder = in_training(embedder_of(copy.deepcopy(config)))
    character_ids = to_ids(sentences)
    cold = embedder(character_ids)
    assert torch.equal(embedder(character_ids), cold)
    assert torch.equal(embedder(to_ids(sentences[::-1])), cold.flip(0))
    another = embedder_of(copy.deepcopy(config)).eval()
    shapes = count_calls(another)
    assert torch.equal(another(character_ids), cold)
    assert shapes == []
    close(
        cold,
        ElmoEmbedder(**files).eval()(character_ids),
        atol=1e-2 if config["cache"].get("dtype") == "float16" else 1e-6,
    )


def test_prediction_reads_the_cache_and_adds_nothing(files, sentences, to_ids, tmp_path, count_calls):
    character_ids = to_ids(sentences)
    in_training(ElmoEmbedder(**files, cache=ActivationCache(str(tmp_path))))(to_ids(sentences[:2]))
    # Less than the disk has free, which other processes change.
    cache = ActivationCache(str(tmp_path), max_disk_bytes=10**8)
    embedder = ElmoEmbedder(**files, cache=cache).eval()
    shapes = count_calls(embedder)
    room = cache.num_free_bytes, cache.describe_room()
    for _ in range(2):
        close(embedder(character_ids), ElmoEmbedder(**files).eval()(character_ids))
    assert (cache.num_free_bytes, cache.describe_room()) == room
    # What is on disk, and there twice, is not computed: one of four lines is.
    assert [batch_size for batch_size, _, _ in shapes] == [2, 2]


def test_cache_that_is_full_stops_caching_and_not_the_run(files, sentences, to_ids, tmp_path, caplog):
    expected = ElmoEmbedder(**files).eval()(to_ids(sentences))
    cache = ActivationCache(str(tmp_path), max_memory_bytes=0, max_disk_bytes=2_000)
    embedder = in_training(ElmoEmbedder(**files, cache=cache))
    for _ in range(3):
        close(embedder(to_ids(sentences)), expected)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_directory_that_cannot_be_made_stops_no_run(files, sentences, to_ids, tmp_path, caplog, count_calls):
    (tmp_path / "file").touch()
    embedder = in_training(ElmoEmbedder(**files, cache=ActivationCache(str(tmp_path / "file"))))
    shapes = count_calls(embedder)
    for _ in range(2):
        close(embedder(to_ids(sentences)), ElmoEmbedder(**files).eval()(to_ids(sentences)))
    assert len(shapes) == 1  # memory still works
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_lower_cased_sentences_are_entries_of_their_own(files, sentences, to_ids, tmp_path):
    lowered = [[word.lower() for word in words] for words in sentences]
    expected = ElmoEmbedder(**files).eval()(to_ids(lowered))
    embedder = in_training(ElmoEmbedder(**files, cache=ActivationCache(str(tmp_path))))
    embedder(to_ids(sentences))
    close(embedder(to_ids(lowered)), expected)


def test_other_weights_and_another_precision_have_entries_of_their_own(files, sentences, to_ids, tmp_path):
    character_ids = to_ids(sentences)
    plain = in_training(ElmoEmbedder(**files, cache=ActivationCache(str(tmp_path))))
    plain(character_ids)
    other = in_training(ElmoEmbedder(**files, cache=ActivationCache(str(tmp_path))))
    with torch.no_grad():
        next(other.bilm.layers.parameters()).mul_(1.5)
    uncached = ElmoEmbedder(**files).eval()
    uncached.load_state_dict(other.state_dict())
    close(other(character_ids), uncached(character_ids))
    rough = in_training(ElmoEmbedder(**files, precision="bfloat16", cache=ActivationCache(str(tmp_path))))
    close(rough(character_ids), ElmoEmbedder(**files, precision="bfloat16").eval()(character_ids))
    assert (rough(character_ids) - plain(character_ids)).abs().max() > 1e-4


def test_weights_from_a_state_dict_leave_no_stale_entries(files, sentences, to_ids):
    character_ids = to_ids(sentences)
    embedder = in_training(ElmoEmbedder(**files, cache=ActivationCache()))
    before = embedder(character_ids)
    state = {name: value.clone() for name, value in embedder.state_dict().items()}
    state["bilm.layers.1.bias"] += 0.5
    embedder.load_state_dict(state)
    uncached = ElmoEmbedder(**files).eval()
    uncached.load_state_dict(state)
    close(embedder(character_ids), uncached(character_ids))
    assert (embedder(character_ids) - before).abs().max() > 1e-3


def test_bilm_thawed_after_construction_is_refused_with_a_cache(files, sentences, to_ids):
    embedder = ElmoEmbedder(**files, cache=ActivationCache())
    embedder.bilm.requires_grad_(True)
    with pytest.raises(ConfigurationError, match="must be frozen while there is a cache"):
        embedder(to_ids(sentences))


# Inline options


def test_options_in_the_config_with_their_weights_are_a_bilm(files, sentences, to_ids):
    with open(files["options_file"]) as options_file:
        options = json.load(options_file)
    embedder = embedder_of({"options": options, "pretrained_file": files["weight_file"]}).eval()
    assert torch.equal(embedder(to_ids(sentences)), ElmoEmbedder(**files).eval()(to_ids(sentences)))


def test_copies_work_apart_from_each_other(files, sentences, to_ids):
    embedder = in_training(ElmoEmbedder(**files, cache=ActivationCache()))
    expected = embedder(to_ids(sentences))
    twin = copy.deepcopy(embedder)
    with torch.no_grad():
        twin.bilm.layers[0].bias.add_(1.0)
    assert torch.equal(embedder(to_ids(sentences)), expected)
    assert (twin(to_ids(sentences)) - expected).abs().max() > 1e-3


def test_mix_can_be_given_in_code(files):
    mix = Lazy(SingleLayerMix, params=Params({"layer": 0}))
    assert ElmoEmbedder(**files, mix=mix).get_metrics()["scalar_mix_layer_0_weight"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"mix": {"type": "scalar"}},
            r"`mix` must be a `Lazy\[LayerMix\]` in Python, but is {'type': 'scalar'}; .*from_params",
        ),
        ({"mix": "scalar"}, "`mix` must be .* but is 'scalar'"),
        (
            {"cache": {"directory": "cache"}},
            "`cache` must be an `ActivationCache` in Python, but is {'directory': 'cache'}",
        ),
        ({"cache": "cache"}, "`cache` must be .* but is 'cache'"),
    ],
)
def test_configs_given_to_the_constructor_are_refused_with_the_way_to_give_them(files, arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        ElmoEmbedder(**files, **arguments)


def test_from_params_takes_what_a_config_holds(files):
    embedder = ElmoEmbedder.from_params(Params({**files, "mix": {"type": "single_layer"}, "cache": {}}))
    assert isinstance(embedder.scalar_mix, SingleLayerMix)
    assert isinstance(embedder.cache, ActivationCache)


def test_tokens_instead_of_ids_are_refused(files):
    with pytest.raises(ConfigurationError, match=r"must be a tensor .* but is \[\['a', 'film'\]\]; .*batch_to_ids"):
        ElmoEmbedder(**files)([["a", "film"]])


def test_paths_may_be_objects_also_where_they_are_recorded(bilm_folder, sentences, to_ids):
    folder = Path(bilm_folder)
    by_folder = ElmoEmbedder(pretrained=folder)
    by_files = ElmoEmbedder(options_file=folder / "options.json", weight_file=folder / "weights.hdf5")
    expected = ElmoEmbedder(pretrained=str(folder))
    for embedder in (by_folder, by_files):
        embedder.load_state_dict(embedder.state_dict())
        assert torch.equal(embedder.eval()(to_ids(sentences)), expected.eval()(to_ids(sentences)))


# The choice of states


def test_other_choice_of_states_than_in_training_warns(train, bilm_folder):
    messages = []
    # Of our own: a training run replaces the handlers of the root logger, and with them pytest's.
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    elmo_embedder.logger.addHandler(handler)
    key = "model.text_field_embedder.token_embedders.elmo.stateful"
    for trained in (False, True):
        run = train({"pretrained": str(bilm_folder), "stateful": trained})
        assert json.loads((run / "metrics.json").read_text())["validation_elmo_stateful"] == float(trained)
        for now in (False, True):
            messages.clear()
            load_archive(str(run / "model.tar.gz"), overrides={key: now})
            assert ["`stateful`" in message for message in messages] == [True] * (trained != now)
    elmo_embedder.logger.removeHandler(handler)


# Training runs


def test_training_with_the_cache_gives_the_losses_of_training_without(train, bilm_folder, tmp_path):
    def losses(run):
        metrics = [json.loads((run / f"metrics_epoch_{epoch}.json").read_text()) for epoch in range(3)]
        return [epoch[name] for epoch in metrics for name in ("training_loss", "validation_loss")]

    plain = losses(train({"pretrained": str(bilm_folder)}, num_epochs=3))
    cache = {"directory": str(tmp_path / "cache")}
    cold = losses(train({"pretrained": str(bilm_folder), "cache": dict(cache)}, num_epochs=3))
    warm = losses(train({"pretrained": str(bilm_folder), "cache": dict(cache)}, num_epochs=3))
    assert cold == pytest.approx(plain, abs=1e-5)
    assert warm == pytest.approx(plain, abs=1e-5)
    assert plain[0] != plain[-2]


def test_other_settings_of_the_reader_get_entries_of_their_own(train, bilm_folder, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{word} Film_!_{row % 2}\n" for row, word in enumerate(["Odd", "warm", "SLOW", "quiet"])))

    def metrics_and_entries(cache, **reader):
        embedder = {"pretrained": str(bilm_folder), "cache": {"directory": str(tmp_path / cache)}}
        run = train(embedder, data=(rows, rows), **reader)
        loss = json.loads((run / "metrics.json").read_text())["training_loss"]
        return loss, len(DiskTier(str(tmp_path / cache), 10**9))

    cased, num_cased = metrics_and_entries("cache")
    lowered, num_all = metrics_and_entries("cache", lowercase_elmo=True)
    alone, num_lowered = metrics_and_entries("other", lowercase_elmo=True)
    assert (num_cased, num_all, num_lowered) == (4, 8, 4)
    assert lowered == alone != cased


def test_metrics_of_each_epoch_carry_the_mix(train, bilm_folder):
    run = train({"pretrained": str(bilm_folder)}, num_epochs=2)
    last = json.loads((run / "metrics_epoch_1.json").read_text())
    weights = [last[f"training_scalar_mix_layer_{layer}_weight"] for layer in range(3)]
    assert sum(weights) == pytest.approx(1.0)
    assert weights != pytest.approx([1 / 3] * 3, abs=1e-4)
    assert last["training_scalar_mix_gamma"] != 1.0
