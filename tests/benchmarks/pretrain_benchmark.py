"""
Tokens that a language model trains on in a second: the same network out of AllenNLP's parts against ours, in one run.

    python tests/benchmarks/pretrain_benchmark.py --text news.txt

AllenNLP's side is the `bidirectional-language-model` of allennlp-models, its contextualizer a stock `ElmoLstm`. Both
sides have the same sizes, train with Adam on the same batches of whole sentences, in turns, from words to changed
weights; the first turn is thrown away. "Wall" is what a user waits; "CPU" counts the seconds of all threads, and moves
less when other programs run beside. A token is a prediction of one direction.
"""

import argparse
import contextlib
import io
import statistics
import time
from typing import Any, Callable, Dict, List, NamedTuple

import torch
from allennlp.common import Lazy
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.batch import Batch
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer, SingleIdTokenIndexer
from allennlp.models import Model
from allennlp.modules.elmo_lstm import ElmoLstm
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from allennlp.modules.seq2vec_encoders import CnnHighwayEncoder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import Embedding, EmptyEmbedder, TokenCharactersEncoder
from allennlp.nn.util import move_to_device

from elmo_tasks.bilm import BiLmOptions
from elmo_tasks.dataset_readers import BiLmTextLoader, BiLmTextReader, WordVocabulary
from elmo_tasks.dataset_readers.bilm_text_batches import Row
from elmo_tasks.dataset_readers.bilm_text_loader import _TensorMaker
from elmo_tasks.models import BiLmLanguageModel
from elmo_tasks.modules import CharacterNetwork, SampledSoftmax

FILTERS = {
    "mini": ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256)),
    "small": ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
}
CELL_AND_PROJECTION = {"mini": (512, 256), "small": (1024, 128)}
LEARNING_RATE = 1e-3

Rows = List[Row]


class Turn(NamedTuple):
    """One pass over all batches."""

    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default="fixtures/text/train.txt", help="one tokenised sentence a line")
    parser.add_argument("--size", choices=sorted(FILTERS), default="mini")
    parser.add_argument("--batch-size", type=int, default=128, help="a batch has 20 times as many predictions")
    parser.add_argument("--num-batches", type=int, default=4)
    parser.add_argument("--num-samples", type=int, default=1024, help="of the softmax")
    parser.add_argument("--max-words", type=int, default=25000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sides", nargs="+", default=["allennlp", "float32", "bfloat16"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    options = options_of(arguments.size)
    batches = read_batches(arguments)
    num_tokens = sum(piece.stop - piece.start for rows in batches for row in rows for piece in row)
    vocabulary = WordVocabulary.from_text(BiLmTextReader(), arguments.text, arguments.max_words)
    print(
        f"{arguments.size}: {num_tokens} tokens in {len(batches)} batches, {vocabulary.get_vocab_size('words')} words, "
        f"{arguments.num_samples} samples, {arguments.threads} threads, {device}, torch {torch.__version__}"
    )
    sides: Dict[str, Callable[[Rows], None]] = {}
    for name in arguments.sides:
        torch.manual_seed(arguments.seed)
        if name == "allennlp":
            sides[name] = allennlp_side(options, vocabulary, arguments, device)
        else:
            sides[name] = our_side(options, vocabulary, name, arguments, device)
    turns: Dict[str, List[Turn]] = {name: [] for name in sides}
    for _ in range(arguments.repetitions + 1):
        for name, train in sides.items():
            turns[name].append(timed(train, batches, device))

    speeds = {name: [num_tokens / turn.wall_s for turn in some[1:]] for name, some in turns.items()}
    cpu_speeds = {name: [num_tokens / turn.cpu_s for turn in some[1:]] for name, some in turns.items()}
    print(f"{'':10}{'tokens/s wall':>16}{'least':>8}{'most':>8}{'tokens/s CPU':>16}{'ratio wall':>12}{'ratio CPU':>12}")
    first = arguments.sides[0]
    for name in sides:
        wall, cpu = statistics.median(speeds[name]), statistics.median(cpu_speeds[name])
        wall_ratio = wall / statistics.median(speeds[first])
        cpu_ratio = cpu / statistics.median(cpu_speeds[first])
        print(
            f"{name:10}{wall:16.0f}{min(speeds[name]):8.0f}{max(speeds[name]):8.0f}{cpu:16.0f}{wall_ratio:12.2f}"
            f"{cpu_ratio:12.2f}"
        )


def options_of(size: str) -> BiLmOptions:
    cell_dim, projection_dim = CELL_AND_PROJECTION[size]
    return BiLmOptions(
        character_dim=16,
        filters=FILTERS[size],
        activation="relu",
        num_highway_layers=1,
        max_characters_per_token=50,
        num_layers=2,
        cell_dim=cell_dim,
        projection_dim=projection_dim,
        cell_clip=3.0,
        projection_clip=3.0,
    )


def read_batches(arguments: argparse.Namespace) -> List[Rows]:
    """The rows of the first batches that our loader makes of the text: one whole sentence each."""
    loader = BiLmTextLoader(BiLmTextReader(mode="sentence"), arguments.text, arguments.batch_size)
    return [rows for rows, _ in zip(loader._batches(epoch=0), range(arguments.num_batches))]


def our_side(
    options: BiLmOptions,
    vocabulary: Vocabulary,
    precision: str,
    arguments: argparse.Namespace,
    device: torch.device,
) -> Callable[[Rows], None]:
    model = BiLmLanguageModel(
        vocabulary,
        Lazy(CharacterNetwork, constructor_extras={"options": options.to_dict()}),
        Lazy(SampledSoftmax, constructor_extras={"num_samples": arguments.num_samples}),
        dropout=0.0,
        precision=precision,
    )
    make_tensors = _TensorMaker(vocabulary)
    return trainer_of(model, lambda rows: {**make_tensors(rows), "carries": False, "continues": False}, device)


def allennlp_side(
    options: BiLmOptions, words: Vocabulary, arguments: argparse.Namespace, device: torch.device
) -> Callable[[Rows], None]:
    with contextlib.redirect_stderr(io.StringIO()):  # allennlp-models looks for data of NLTK
        from allennlp_models.lm.models import BidirectionalLanguageModel

    vocabulary = Vocabulary()
    for word in words.get_token_to_index_vocabulary("words"):
        vocabulary.add_token_to_namespace(word)
    encoder = CnnHighwayEncoder(
        options.character_dim,
        options.filters,
        options.num_highway_layers,
        options.projection_dim,
        activation=options.activation,
        do_layer_norm=False,
    )
    characters = TokenCharactersEncoder(Embedding(options.character_dim, num_embeddings=262), encoder)
    model = BidirectionalLanguageModel(
        vocabulary,
        BasicTextFieldEmbedder({"characters": characters, "tokens": EmptyEmbedder()}),
        StockContextualizer(options),
        num_samples=arguments.num_samples,
    )
    indexers = {"characters": ELMoTokenCharactersIndexer(), "tokens": SingleIdTokenIndexer()}

    def make_tensors(rows: Rows) -> Dict[str, Any]:
        sentences = (["<S>", *row[0].sentence, "</S>"] for row in rows)
        batch = Batch([Instance({"source": TextField([Token(w) for w in words], indexers)}) for words in sentences])
        batch.index_instances(vocabulary)
        return batch.as_tensor_dict()

    return trainer_of(model, make_tensors, device)


class StockContextualizer(Seq2SeqEncoder):
    """AllenNLP's `ElmoLstm`, its last layer only, as a language model wants it."""

    def __init__(self, options: BiLmOptions) -> None:
        super().__init__()
        self.output_dim = options.bilm_dim
        self.lstm = ElmoLstm(
            options.projection_dim,
            options.projection_dim,
            options.cell_dim,
            options.num_layers,
            requires_grad=True,
            memory_cell_clip_value=options.cell_clip,
            state_projection_clip_value=options.projection_clip,
        )

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.lstm.reset_states()
        return self.lstm(inputs, mask)[-1]

    def is_bidirectional(self) -> bool:
        return True

    def get_output_dim(self) -> int:
        return self.output_dim


def trainer_of(
    model: Model, make_tensors: Callable[[Rows], Dict[str, Any]], device: torch.device
) -> Callable[[Rows], None]:
    """One step, from rows to changed weights."""
    model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

    def train(rows: Rows) -> None:
        batch = move_to_device(make_tensors(rows), device)
        optimizer.zero_grad()
        model(**batch)["loss"].backward()
        optimizer.step()

    return train


def timed(train: Callable[[Rows], None], batches: List[Rows], device: torch.device) -> Turn:
    start = time.perf_counter(), time.process_time()
    for rows in batches:
        train(rows)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return Turn(time.perf_counter() - start[0], time.process_time() - start[1])


if __name__ == "__main__":
    main()
