from copy import deepcopy

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.models import Model

from elmo_tasks.models.pair_classifier import PairClassifier

BILM = "fixtures/bilm"
A, B, C = "a film with bright moments", "slow and dull", "no end"
ALIGNMENT = {"projection": {"input_dim": 24, "num_layers": 1, "hidden_dims": 7, "activations": "relu"}}
VARIANTS = {
    "pooled": {},
    "encoded": {"seq2seq_encoder": {"type": "lstm", "input_size": 6, "hidden_size": 3}},
    "aligned": {"alignment": ALIGNMENT},
    "all": {
        "seq2seq_encoder": {"type": "lstm", "input_size": 6, "hidden_size": 3, "bidirectional": True},
        "alignment": {
            **ALIGNMENT,
            "matrix_attention": {
                "type": "linear",
                "tensor_1_dim": 6,
                "tensor_2_dim": 6,
                "combination": "x,y,x*y",
            },
            "encoder": {"type": "lstm", "input_size": 7, "hidden_size": 5},
        },
        "seq2vec_encoder": {"type": "max_pooling", "embedding_dim": 5},
        "feedforward": {"input_dim": 20, "num_layers": 1, "hidden_dims": 9, "activations": "tanh"},
        "dropout": 0.4,
    },
}


def built(toy, **options):
    params = {
        "type": "elmo_pair_classifier",
        "text_field_embedder": {
            "token_embedders": {"words": {"type": "embedding", "embedding_dim": 6, "vocab_namespace": "words"}}
        },
        **options,
    }
    model = Model.from_params(vocab=toy.vocabulary({"1": 2, "0": 1}), params=Params(deepcopy(params)))
    # As large as what an embedder gives: what should change a score then shows.
    model.encoder.text_field_embedder.token_embedder_words.weight.data.normal_()
    return model


def test_features_are_both_vectors_their_distance_and_their_product(toy):
    model = PairClassifier(toy.vocabulary({"1": 2, "0": 1}), toy.embedder())
    batch = toy.tensors(model, [toy.pair(A, B)])
    u = model.encoder.text_field_embedder(batch["sentence1"])[0].mean(dim=0)
    v = model.encoder.text_field_embedder(batch["sentence2"])[0].mean(dim=0)
    features = torch.cat([u, v, (u - v).abs(), u * v])
    torch.testing.assert_close(model(**batch)["logits"][0], model.scorer.linear(features))


@pytest.mark.parametrize("variant", VARIANTS)
def test_symmetric_model_scores_both_orders_alike(toy, variant):
    pairs = [(A, B), (B, C), (C, ""), (A, A)]
    there, back = [toy.pair(a, b) for a, b in pairs], [toy.pair(b, a) for a, b in pairs]
    model = built(toy, symmetric=True, **VARIANTS[variant])
    torch.testing.assert_close(toy.logits(model, there), toy.logits(model, back), rtol=0, atol=1e-6)
    model.symmetric = False
    assert (toy.logits(model, there) - toy.logits(model, back))[:2].abs().max() > 1e-4


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("symmetric", [False, True], ids=["ordered", "symmetric"])
def test_neighbours_and_padding_change_no_score(toy, variant, symmetric):
    model = built(toy, symmetric=symmetric, **VARIANTS[variant])
    pairs = [toy.pair(A, B), toy.pair(C, A), toy.pair("", B), toy.pair(B, ""), toy.pair("", "")]
    together = toy.logits(model, pairs)
    alone = torch.cat([toy.logits(model, [pair]) for pair in pairs])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
    assert together.isfinite().all()
    # An empty sentence is none of the others; on which side it stands counts where order does.
    assert len({tuple(row) for row in together.round(decimals=4).tolist()}) == len(pairs) - symmetric


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_parameter_learns(toy, variant):
    model = built(toy, class_weights={"0": 2.0, "1": 1.0}, **VARIANTS[variant])
    model(**toy.tensors(model, [toy.pair(A, B, "1"), toy.pair(C, A, "0")]))["loss"].backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


def test_first_sentence_leaves_no_trace_in_the_second(toy):
    model = built(toy, **VARIANTS["encoded"]).eval()
    encoded = []
    model.encoder.register_forward_hook(lambda module, inputs, output: encoded.append(output[0]))
    for first in (A, C):
        model(**toy.tensors(model, [toy.pair(first, B)]))
    assert torch.equal(encoded[1], encoded[3])
    assert not torch.equal(encoded[0].mean(dim=1), encoded[2].mean(dim=1))


def with_elmo(toy, pairs, **options):
    """A symmetric model over our embedder, and the tensors of the pairs, one batch for each."""
    for pair in pairs:
        for name in ("sentence1", "sentence2"):
            pair[name].token_indexers = {"elmo": ELMoTokenCharactersIndexer()}
    params = {
        "type": "elmo_pair_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo", "pretrained": BILM, **options}}},
        "symmetric": True,
    }
    model = Model.from_params(vocab=toy.vocabulary({"1": 2, "0": 1}), params=Params(params)).eval()
    return model, [toy.tensors(model, [pair]) for pair in pairs]


@pytest.mark.parametrize("stateful", [False, True])
def test_elmo_reads_the_second_sentence_as_if_there_were_no_first_unless_it_is_stateful(toy, stateful):
    model, batches = with_elmo(toy, [toy.pair(A, B), toy.pair(C, B), toy.pair(B, A)], stateful=stateful)
    embedded = []
    model.encoder.register_forward_hook(lambda module, inputs, output: embedded.append(output[0]))
    scores = [model(**batch)["logits"] for batch in batches]
    assert torch.equal(embedded[1], embedded[3]) == (not stateful)
    assert ((scores[0] - scores[2]).abs().max() < 1e-6) == (not stateful)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_masks_and_scores_are_finite_and_close_to_float32_under_autocast(toy, dtype):
    model = built(toy, **VARIANTS["all"]).eval()
    batch = toy.tensors(model, [toy.pair(A, B), toy.pair("", C), toy.pair(C, "")])
    expected = model(**batch)["logits"]
    with torch.autocast("cpu", dtype=dtype):
        scores = model(**batch)["logits"]
    assert scores.isfinite().all()
    torch.testing.assert_close(scores.float(), expected, rtol=2e-2, atol=2e-2)


def test_stock_elmo_alone_trains_and_shows_its_words(toy):
    pairs = [toy.pair(A, B, "1"), toy.pair(B, C, "0"), toy.pair(A, C, "1")]
    for pair in pairs:
        for name in ("sentence1", "sentence2"):
            pair[name].token_indexers = {"elmo": ELMoTokenCharactersIndexer()}
    elmo = {
        "type": "elmo_token_embedder",
        "options_file": "fixtures/bilm/options.json",
        "weight_file": "fixtures/bilm/weights.hdf5",
    }
    params = {
        "type": "elmo_pair_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": elmo}},
        "symmetric": True,
        "positive_label": "1",
    }
    model = Model.from_params(vocab=Vocabulary.from_instances(pairs), params=Params(params))
    model(**toy.tensors(model, pairs))["loss"].backward()
    assert model.scorer.linear.weight.grad.abs().max() > 0
    output = model.eval().forward_on_instance(pairs[0])
    assert output["sentence1_tokens"] == A.split()
    assert output["sentence2_tokens"] == B.split()


def test_sizes_that_do_not_match_are_an_error(toy):
    projection = {"input_dim": 23, "num_layers": 1, "hidden_dims": 7, "activations": "relu"}
    with pytest.raises(ConfigurationError, match="input of the alignment's projection"):
        built(toy, alignment={"projection": projection})


@pytest.mark.parametrize("num_positive", [3, 2], ids=["60 to 40", "40 to 60"])
def test_f1_is_that_of_the_named_label_whichever_is_more_frequent(toy, num_positive):
    # The vocabulary gives index 0 to the more frequent label.
    labels = ["1"] * num_positive + ["0"] * (5 - num_positive)
    pairs = [toy.pair(A, B, label) for label in labels]
    model = PairClassifier(Vocabulary.from_instances(pairs), toy.embedder(), positive_label="1")
    assert model.vocab.get_token_index("1", "labels") == (0 if num_positive == 3 else 1)
    # All get the same prediction, and the bias makes it "1".
    model.scorer.linear.weight.data.zero_()
    model.scorer.linear.bias.data = torch.tensor([float(name == "1") for name in model.label_names])
    model(**toy.tensors(model, pairs))
    share = num_positive / 5
    assert model.get_metrics() == {
        "accuracy": share,
        "precision": share,
        "recall": 1.0,
        "f1": pytest.approx(2 * share / (share + 1)),
        "positive_share": 1.0,
    }
    assert model.forward_on_instance(pairs[0])["label_probabilities"]["1"] > 0.5
