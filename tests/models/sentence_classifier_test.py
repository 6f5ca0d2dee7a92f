import json
import math

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer, SingleIdTokenIndexer
from allennlp.models import BasicClassifier, Model, load_archive
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.modules.seq2vec_encoders import BagOfEmbeddingsEncoder, CnnEncoder, LstmSeq2VecEncoder

import elmo_tasks.dataset_readers  # noqa: F401  registers the reader
from elmo_tasks.models.pooling import MaxPooling
from elmo_tasks.models.sentence_classifier import SentenceClassifier

ELMO = {
    "type": "elmo_token_embedder",
    "options_file": "fixtures/bilm/options.json",
    "weight_file": "fixtures/bilm/weights.hdf5",
}


def lstm(input_size, hidden_size=5):
    return Seq2SeqEncoder.from_params(
        Params({"type": "lstm", "input_size": input_size, "hidden_size": hidden_size, "bidirectional": True})
    )


def rows(toy):
    return [
        toy.sentence("a film with bright moments", "yes"),
        toy.sentence("dull", "no"),
        toy.sentence("slow and no end and no end", "no"),
    ]


def test_equals_allennlps_classifier_with_the_same_parts(toy):
    vocab, embedder, seq2seq = toy.vocabulary({"no": 2, "yes": 1}), toy.embedder(), lstm(toy.embedding_dim)
    feedforward = FeedForward(10, 1, 4, torch.nn.ReLU())
    ours = SentenceClassifier(vocab, embedder, seq2seq, None, feedforward, positive_label="yes")
    stock = BasicClassifier(
        vocab, embedder, BagOfEmbeddingsEncoder(10, averaged=True), seq2seq, feedforward, namespace="words"
    )
    stock._classification_layer.load_state_dict(ours.scorer.linear.state_dict())
    batch = toy.tensors(ours, rows(toy))
    found, expected = ours(**batch), stock(**batch)
    torch.testing.assert_close(found["logits"], expected["logits"])
    torch.testing.assert_close(found["label_probabilities"], expected["probs"])
    torch.testing.assert_close(found["loss"], expected["loss"])
    assert ours.get_metrics()["accuracy"] == stock.get_metrics()["accuracy"]


POOLINGS = {
    "mean": lambda dim: None,
    "max": MaxPooling,
    "sum": BagOfEmbeddingsEncoder,
    "lstm": lambda dim: LstmSeq2VecEncoder(dim, 4, bidirectional=True),
}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("encoded", [False, True], ids=["embedded", "encoded"])
def test_neighbours_and_padding_change_no_score_and_empty_sentences_have_one(toy, pooling, encoded):
    seq2seq = lstm(toy.embedding_dim) if encoded else None
    dim = 10 if encoded else toy.embedding_dim
    model = SentenceClassifier(
        toy.vocabulary({"no": 1, "yes": 1}), toy.embedder(), seq2seq, POOLINGS[pooling](dim), dropout=0.5
    )
    sentences = [*rows(toy)[:2], toy.sentence("", "no"), rows(toy)[2]]
    together = toy.logits(model, sentences)
    alone = torch.cat([toy.logits(model, [sentence]) for sentence in sentences])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
    assert torch.equal(together[2], model.scorer.linear.bias)
    assert (together[0] - together[1]).abs().max() > 1e-3


def test_batch_of_empty_sentences_trains(toy):
    model = SentenceClassifier(toy.vocabulary({"no": 1, "yes": 1}), toy.embedder(), lstm(toy.embedding_dim))
    loss = model(**toy.tensors(model, [toy.sentence("", "no"), toy.sentence("", "yes")]))["loss"]
    loss.backward()
    assert loss.isfinite()
    assert model.scorer.linear.bias.grad.isfinite().all()


def test_cnn_takes_short_sentences_when_the_indexer_pads_them(toy):
    model = SentenceClassifier(
        toy.vocabulary({"no": 1, "yes": 1}),
        toy.embedder(),
        seq2vec_encoder=CnnEncoder(toy.embedding_dim, 3, (2, 3)),
    )
    sentences = [toy.sentence(text) for text in ("a film with no end", "dull", "")]
    for sentence in sentences:
        sentence["tokens"].token_indexers = {"words": SingleIdTokenIndexer("words", token_min_padding_length=3)}
    together = toy.logits(model, sentences)
    alone = torch.cat([toy.logits(model, [sentence]) for sentence in sentences])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def elmo_only(toy, sentences):
    """As on a plain ELMo config: character ids, no word vocabulary."""
    for sentence in sentences:
        sentence["tokens"].token_indexers = {"elmo": ELMoTokenCharactersIndexer()}
    return Vocabulary.from_instances(sentences)


def test_stock_elmo_alone_trains_and_shows_its_words(toy):
    sentences = rows(toy)
    params = {
        "type": "elmo_sentence_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": dict(ELMO)}},
        "dropout": 0.1,
        "positive_label": "yes",
        "class_weights": {"yes": 2, "no": 0.5},
    }
    model = Model.from_params(vocab=elmo_only(toy, sentences), params=Params(params))
    model(**toy.tensors(model, sentences))["loss"].backward()
    assert model.scorer.linear.weight.grad.abs().max() > 0
    assert model.get_metrics()["accuracy"] >= 0
    outputs = model.eval().forward_on_instances(sentences)
    assert [output["tokens"] for output in outputs] == [row["metadata"]["tokens"] for row in rows(toy)]


def test_elmo_beside_word_vectors(toy):
    sentences = rows(toy)
    for sentence in sentences:
        sentence["tokens"].token_indexers = {
            "elmo": ELMoTokenCharactersIndexer(),
            "words": SingleIdTokenIndexer("words"),
        }
    params = {
        "type": "elmo_sentence_classifier",
        "text_field_embedder": {
            "token_embedders": {
                "elmo": dict(ELMO),
                "words": {"type": "embedding", "embedding_dim": 8, "vocab_namespace": "words"},
            }
        },
    }
    model = Model.from_params(vocab=Vocabulary.from_instances(sentences), params=Params(params))
    assert model.scorer.linear.in_features == 2 * 32 + 8
    assert toy.logits(model, sentences).isfinite().all()


def test_stock_elmo_takes_empty_sentences_alone_and_among_others(toy):
    sentences = [toy.sentence("", "no"), toy.sentence("a film", "yes")]
    params = {
        "text_field_embedder": {"token_embedders": {"elmo": dict(ELMO)}},
        "type": "elmo_sentence_classifier",
    }
    model = Model.from_params(vocab=elmo_only(toy, sentences), params=Params(params))
    alone, together = toy.logits(model, sentences[:1]), toy.logits(model, sentences)
    assert torch.equal(alone[0], together[0])


def built(toy, **options):
    params = {
        "type": "elmo_sentence_classifier",
        "text_field_embedder": {
            "token_embedders": {"words": {"type": "embedding", "embedding_dim": 6, "vocab_namespace": "words"}}
        },
        **options,
    }
    return Model.from_params(vocab=toy.vocabulary({"1": 2, "0": 1}), params=Params(params))


def test_every_option_is_built_from_a_config(toy):
    model = built(
        toy,
        seq2seq_encoder={"type": "lstm", "input_size": 6, "hidden_size": 5},
        seq2vec_encoder={"type": "max_pooling", "embedding_dim": 5},
        feedforward={"input_dim": 5, "num_layers": 1, "hidden_dims": 4, "activations": "relu"},
        dropout=0.25,
        positive_label=1,
        class_weights={"0": 2, "1": 0.5},
        regularizer={"regexes": [["scorer", {"type": "l2", "alpha": 0.1}]]},
    )
    assert model.encoder.seq2seq_encoder.get_output_dim() == 5
    assert isinstance(model.pooling.seq2vec_encoder, MaxPooling)
    assert model.scorer.feedforward.get_output_dim() == 4
    assert model.scorer.dropout.p == 0.25
    assert model.class_weights().tolist() == [0.5, 2.0]
    assert set(model.get_metrics()) == {"accuracy", "precision", "recall", "f1", "positive_share"}
    assert model.get_regularization_penalty() > 0


def test_balanced_class_weights_are_built_from_a_config(toy):
    model = built(toy, class_weights="balanced")
    assert all(math.isnan(weight) for weight in model.class_weights.weights)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"positive_label": "2"}, "one of the labels '1', '0', but is '2'"),
        ({"class_weights": {"1": 1.0}}, r"exactly the labels \['1', '0'\], but names \['1'\]"),
        ({"class_weights": "inverse"}, "but is 'inverse'"),
        (
            {"feedforward": {"input_dim": 5, "num_layers": 1, "hidden_dims": 4, "activations": "relu"}},
            "feedforward",
        ),
    ],
)
def test_wrong_option_is_an_error_when_the_model_is_built(toy, options, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        built(toy, **options)


def test_archive_gives_the_scores_of_the_trained_model(tmp_path):
    texts = ["a warm film", "no end in sight", "funny and warm", "dull", "a small gift"]
    data = tmp_path / "rows.txt"
    data.write_text("".join(f"{text}_!_{label}\n" for text, label in zip(texts, "10101")))
    config = {
        "dataset_reader": {"type": "mr", "token_indexers": {"words": {"type": "single_id"}}},
        "train_data_path": str(data),
        "validation_data_path": str(data),
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"words": {"type": "embedding", "embedding_dim": 8}}},
            "positive_label": "1",
            "class_weights": "balanced",
        },
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 8, "optimizer": {"type": "adam", "lr": 0.2}, "validation_metric": "+f1"},
    }
    trained = train_model(Params(config), str(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["best_validation_f1"] == 1.0
    archive = load_archive(tmp_path / "run" / "model.tar.gz")
    # 5 rows, 2 labels: 5 / (2 * 3) and 5 / (2 * 2)
    assert archive.model.class_weights().tolist() == pytest.approx([5 / 6, 5 / 4])
    instances = [archive.dataset_reader.text_to_instance(text) for text in texts]
    for instance in instances:
        archive.dataset_reader.apply_token_indexers(instance)
    assert archive.model.forward_on_instances(instances) == trained.eval().forward_on_instances(instances)
