"""Small parts for the tests of the models: a vocabulary, word vectors without state, instances."""

from typing import Dict, List, Optional

import pytest
import torch
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.batch import Batch
from allennlp.data.fields import LabelField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.models import Model
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import Embedding

WORDS = ["a", "dull", "slow", "film", "with", "bright", "moments", "and", "no", "end"]
EMBEDDING_DIM = 6


def text_field(words: List[str]) -> TextField:
    return TextField([Token(word) for word in words], {"words": SingleIdTokenIndexer("words")})


class Toy:
    """Builds everything from plain strings, with the same weights every time."""

    embedding_dim = EMBEDDING_DIM

    def vocabulary(self, labels: Dict[str, int]) -> Vocabulary:
        """Labels with their counts: the vocabulary orders them by count."""
        return Vocabulary({"words": dict.fromkeys(WORDS, 1), "labels": labels})

    def embedder(self) -> BasicTextFieldEmbedder:
        generator = torch.Generator().manual_seed(7)
        weight = torch.randn(len(WORDS) + 2, EMBEDDING_DIM, generator=generator)
        return BasicTextFieldEmbedder({"words": Embedding(EMBEDDING_DIM, num_embeddings=len(weight), weight=weight)})

    def sentence(self, text: str, label: Optional[str] = None) -> Instance:
        metadata = {"id": f"id of {text}", "tokens": text.split()}
        fields = {"tokens": text_field(text.split()), "metadata": MetadataField(metadata)}
        if label is not None:
            fields["label"] = LabelField(label)
        return Instance(fields)

    def pair(self, text1: str, text2: str, label: Optional[str] = None) -> Instance:
        metadata = {"id": "7", "sentence1_tokens": text1.split(), "sentence2_tokens": text2.split()}
        fields = {
            "sentence1": text_field(text1.split()),
            "sentence2": text_field(text2.split()),
            "metadata": MetadataField(metadata),
        }
        if label is not None:
            fields["label"] = LabelField(label)
        return Instance(fields)

    def tensors(self, model: Model, instances: List[Instance]) -> dict:
        batch = Batch(instances)
        batch.index_instances(model.vocab)
        return batch.as_tensor_dict()

    def logits(self, model: Model, instances: List[Instance]) -> torch.Tensor:
        model.eval()
        with torch.no_grad():
            return model(**self.tensors(model, instances))["logits"]


@pytest.fixture
def toy() -> Toy:
    torch.manual_seed(13)
    return Toy()
