import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from torch.nn.functional import cross_entropy, linear

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.dataset_readers.bilm_text import BiLmTextReader
from elmo_tasks.dataset_readers.bilm_text_loader import BiLmTextLoader
from elmo_tasks.dataset_readers.vocabulary import WordVocabulary

TEXT = "the film is good .\nA man in a boat\nWhy ?\nthe man is in the film .\n"
OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 6,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 10,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 4], [2, 5]],
        "n_highway": 1,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
WORDS = {"type": "words", "projection_dim": 6, "cell_dim": 10}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def vocabulary(text):
    return WordVocabulary.from_text(BiLmTextReader(), text)


def build(vocabulary, **overrides):
    torch.manual_seed(7)
    config = {
        "type": "bilm_language_model",
        "network": {"type": "characters", "options": OPTIONS},
        "softmax": {"type": "full"},
        **overrides,
    }
    model = Model.from_params(Params(config), vocab=vocabulary)
    # As drawn, all outputs are nearly equal: wrong ones would look right.
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.mul_(3)
    return model


def batches(vocabulary, path, batch_size=2, **options):
    loader = BiLmTextLoader(BiLmTextReader(**options), path, batch_size)
    loader.index_with(vocabulary)
    return list(loader)


def evaluate(model, some_batches):
    model.eval()
    with torch.no_grad():
        for batch in some_batches:
            model(**batch)
    return model.get_metrics(reset=True)


def test_losses_are_those_of_the_bilm_and_an_ordinary_softmax(vocabulary, text):
    model = build(vocabulary)
    metrics = evaluate(model, batches(vocabulary, text, mode="sentence"))

    sentences = [line.split() for line in TEXT.splitlines()]
    with torch.no_grad():
        top_layer = model.network.bilm(encode_sentences(sentences)).contextual[-1]
    forward, backward = [], []
    for sentence, outputs in zip(sentences, top_layer):
        ids = torch.tensor([vocabulary.get_token_index(word, "words") for word in ["<S>", *sentence, "</S>"]])
        softmax = model.softmaxes[0]
        # Out of the output at a token: forward the token behind it, backward the token before it.
        forward.append(
            cross_entropy(linear(outputs[: len(ids) - 1, :6], softmax.weight, softmax.bias), ids[1:], reduction="none")
        )
        backward.append(
            cross_entropy(linear(outputs[1 : len(ids), 6:], softmax.weight, softmax.bias), ids[:-1], reduction="none")
        )
    expected_forward, expected_backward = (torch.cat(losses).mean().exp().item() for losses in (forward, backward))
    assert metrics["forward_perplexity"] == pytest.approx(expected_forward, rel=1e-5)
    assert metrics["backward_perplexity"] == pytest.approx(expected_backward, rel=1e-5)
    assert metrics["perplexity"] == pytest.approx((expected_forward + expected_backward) / 2, rel=1e-5)
    assert abs(expected_forward - expected_backward) > 0.1


@pytest.mark.parametrize("mode", ["carry", "sentence"])
def test_a_uniform_model_has_the_perplexity_of_its_vocabulary(vocabulary, text, mode):
    model = build(vocabulary)
    for parameter in model.softmaxes.parameters():
        torch.nn.init.zeros_(parameter)
    num_words = vocabulary.get_vocab_size("words")
    metrics = evaluate(model, batches(vocabulary, text, mode=mode, unroll_steps=4))
    assert [metrics[f"{name}perplexity"] for name in ("forward_", "backward_", "")] == pytest.approx([num_words] * 3)


def test_the_perplexity_does_not_depend_on_the_batch_size(vocabulary, text):
    model = build(vocabulary)
    alone, together = (evaluate(model, batches(vocabulary, text, batch_size, mode="sentence")) for batch_size in (1, 4))
    assert alone == pytest.approx(together, rel=1e-5)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_no_direction_sees_its_target(vocabulary, tmp_path, direction):
    """Another word at one place changes the outputs that come after it, and not those that predict it."""
    model = build(vocabulary).eval()
    outputs = []
    for text in ("the film is good .", "the film in good ."):
        path = tmp_path / "one.txt"
        path.write_text(text + "\n")
        (batch,) = batches(vocabulary, str(path), 1)
        vectors = model.network.token_vectors(batch["character_ids"], batch["word_ids"])
        inputs = torch.stack([vectors[batch[f"{d}_inputs"][0]] for d in ("forward", "backward")])
        layers, _ = model.run_layers(inputs, (1, 6))
        outputs.append(layers[-1][0 if direction == "forward" else 1])
    # Both directions predict the middle word of five at their third step, and read it at the next one.
    changed = (outputs[0] - outputs[1]).abs().amax(dim=1) > 1e-6
    assert changed.tolist() == [False, False, False, True, True, True]


def test_a_carried_state_makes_short_batches_equal_one_long_batch(vocabulary, text):
    model = build(vocabulary)
    long, short, stateless = (
        evaluate(model, batches(vocabulary, text, 1, unroll_steps=steps, mode=mode))
        for steps, mode in ((100, "carry"), (3, "carry"), (3, "sentence"))
    )
    assert short == pytest.approx(long, rel=1e-5)
    assert abs(short["perplexity"] - stateless["perplexity"]) > 1e-3


def test_the_state_starts_anew_with_each_epoch_and_at_validation(vocabulary, text):
    model = build(vocabulary)
    text_batches = batches(vocabulary, text, unroll_steps=4)
    assert evaluate(model, text_batches) == evaluate(model, text_batches)


def test_a_batch_of_other_rows_cannot_continue(vocabulary, text):
    model = build(vocabulary).eval()
    model(**batches(vocabulary, text, 2, unroll_steps=3)[0])
    with pytest.raises(ConfigurationError, match="has 1 after 2"):
        model(**batches(vocabulary, text, 1, unroll_steps=3)[1])


def test_layer_activations_are_those_of_the_bilm(vocabulary):
    sentences = [["the", "film"], ["Why"], ["a", "boat", "in", "the", "man"]]
    model = build(vocabulary).eval()
    with torch.no_grad():
        layers = model.layer_activations(sentences)
        expected = model.network.bilm(encode_sentences(sentences)).activations
    assert len(layers) == 3
    for layer, expected_layer in zip(layers, expected):
        for row, sentence in enumerate(sentences):
            torch.testing.assert_close(layer[row, : len(sentence)], expected_layer[row, 1 : len(sentence) + 1])
            assert not layer[row, len(sentence) :].any()


def test_a_string_is_not_a_sentence(vocabulary):
    with pytest.raises(ConfigurationError, match="must be a list of words, but is the string 'the film'"):
        build(vocabulary).layer_activations(["the film"])


def test_three_layers_of_a_network_over_words(vocabulary):
    model = build(vocabulary, network={"type": "words", "projection_dim": 256, "cell_dim": 4}).eval()
    layers = model.layer_activations([["the", "film"], ["a", "man", "in"]])
    assert [tuple(layer.shape) for layer in layers] == [(2, 3, 512)] * 3
    the = model.network.table.weight[vocabulary.get_token_index("the", "words")]
    assert torch.equal(layers[0][0, 0], torch.cat([the, the]))


@pytest.mark.parametrize(
    ("softmax", "network", "share_softmax"),
    [
        ({"type": "sampled", "num_samples": 5}, {"type": "characters", "options": OPTIONS}, True),
        ({"type": "sampled", "num_samples": 5}, WORDS, False),
        ({"type": "adaptive", "div_value": 1.0}, {"type": "characters", "options": OPTIONS}, False),
        ({"type": "full"}, WORDS, True),
    ],
)
def test_each_kind_of_network_and_softmax_learns_by_heart(vocabulary, text, softmax, network, share_softmax):
    model = build(vocabulary, network=dict(network), softmax=dict(softmax), share_softmax=share_softmax, dropout=0.0)
    text_batches = batches(vocabulary, text, mode="sentence")
    before = evaluate(model, text_batches)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.04)
    model.train()
    for _ in range(25):
        for batch in text_batches:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
    training_metrics = model.get_metrics(reset=True)
    assert training_metrics["tokens_per_second"] > 0
    after = evaluate(model, text_batches)
    assert "tokens_per_second" not in after
    assert after["forward_perplexity"] < before["forward_perplexity"] / 3
    assert after["backward_perplexity"] < before["backward_perplexity"] / 3
    assert len(model.softmaxes) == (1 if share_softmax else 2)


def train_steps(model, some_batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for batch in some_batches:
        optimizer.zero_grad()
        model(**batch)["loss"].backward()
        optimizer.step()


def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(vocabulary, text):
    options = {"softmax": {"type": "sampled", "num_samples": 4}, "dropout": 0.3}
    text_batches = batches(vocabulary, text, 2, unroll_steps=3)
    whole, first_half, second_half = (build(vocabulary, **options) for _ in range(3))
    train_steps(whole, text_batches)
    train_steps(first_half, text_batches[:2])
    second_half.load_state_dict(first_half.state_dict())
    torch.rand(100)  # whatever else happens to the global random state
    train_steps(second_half, text_batches[2:])
    for expected, actual in zip(whole.parameters(), second_half.parameters()):
        assert torch.equal(expected, actual)


def test_dropout_is_drawn_anew_at_each_step_and_leaves_the_global_random_state_alone(vocabulary, text):
    model = build(vocabulary, dropout=0.5).train()
    batch = batches(vocabulary, text, mode="sentence")[0]
    state = torch.get_rng_state()
    losses = {model(**batch)["loss"].item() for _ in range(3)}
    assert len(losses) == 3
    assert torch.equal(torch.get_rng_state(), state)


def test_the_sampled_softmax_warns_of_a_vocabulary_that_is_not_by_frequency(tmp_path, caplog):
    rare = [f"aa{number:03d}" for number in range(60)]
    path = tmp_path / "text.txt"
    path.write_text("".join(f"the film {word} the film\n" for word in rare))
    reader = BiLmTextReader()
    by_frequency = WordVocabulary.from_text(reader, str(path))
    by_alphabet = WordVocabulary.from_words(["<S>", "</S>", "<UNK>", *sorted([*rare, "film", "the"])])
    for vocabulary in (by_frequency, by_alphabet):
        model = build(vocabulary, softmax={"type": "sampled", "num_samples": 10})
        model.prepare_for_training(lambda: reader.read(str(path)), None)
        if vocabulary is by_frequency:
            assert not caplog.records
    assert "must have a vocabulary by falling frequency" in caplog.text
    # Sampled softmaxes that train with all words need no order.
    caplog.clear()
    build(by_alphabet, softmax={"type": "sampled", "num_samples": 1000}).prepare_for_training(None, None)
    assert not caplog.records


def test_reduced_precision_changes_little_and_learns_as_well(vocabulary, text):
    text_batches = batches(vocabulary, text, mode="sentence")
    before, after = [], []
    for precision in ("float32", "bfloat16"):
        model = build(vocabulary, precision=precision, dropout=0.0)
        before.append(evaluate(model, text_batches)["perplexity"])
        for _ in range(5):
            train_steps(model, text_batches)
        model.get_metrics(reset=True)
        after.append(evaluate(model, text_batches)["perplexity"])
    assert 0 < abs(before[0] - before[1]) < 0.02 * before[0]
    assert abs(after[0] - after[1]) < 0.1 * after[0]
    assert after[1] < 0.8 * before[1]


def test_an_unknown_precision_is_an_error(vocabulary):
    with pytest.raises(ConfigurationError, match=r"`precision` must be one of .*bfloat16.*but is 'half'"):
        build(vocabulary, precision="half")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda options: options.pop("char_cnn"), "over a word vocabulary are not supported"),
        (lambda options: options["lstm"].update(use_skip_connections=False), "without residual connections"),
    ],
)
def test_what_is_no_elmo_is_an_error_before_training(vocabulary, change, message):
    options = {name: dict(part) for name, part in OPTIONS.items()}
    change(options)
    with pytest.raises(ConfigurationError, match=message):
        build(vocabulary, network={"type": "characters", "options": options})


@pytest.mark.parametrize("network", [{}, {"network": WORDS}], ids=["characters", "words"])
@pytest.mark.parametrize("softmax", [{"type": "full"}, {"type": "sampled", "num_samples": 4}], ids=lambda s: s["type"])
def test_mixed_precision_of_the_trainer_changes_nothing(vocabulary, text, network, softmax):
    gradients = []
    for enabled in (True, False):
        model = build(vocabulary, softmax=softmax, **network).train()
        (batch, *_) = batches(vocabulary, text, mode="sentence")
        # As in AllenNLP's trainer: forward inside, backward outside.
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = model(**batch)["loss"]
        loss.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert loss > 0
    for ours, theirs in zip(*gradients):
        assert torch.equal(ours, theirs)


def test_the_states_of_a_validation_are_of_no_checkpoint(vocabulary, text):
    model = build(vocabulary)
    (first, *_) = batches(vocabulary, text, unroll_steps=3)
    model.train()
    model(**first)
    assert model.get_extra_state()["states"] is not None
    evaluate(model, [first])
    assert model.get_extra_state()["states"] is None
