"""
Sentences per second of `allennlp elmo`, and of the loop that users write over AllenNLP's `Elmo` instead:

    python tests/benchmarks/elmo_benchmark.py --sentences reviews.txt --label-separator _!_

Both sides write all three layers of every sentence to an HDF5 file, out of the same files (random weights of a
published size). The loop takes batches in the order of the file; the command gets batches with as many places, padding
included, as those have on average. In turns, in one process; the first turn is thrown away, but for the comparison of
what was written. "Wall" is what a user waits; "CPU" counts the seconds of all threads, and moves less when other
programs run beside.
"""

import argparse
import contextlib
import io
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

import h5py
import numpy
import torch
from allennlp.modules.elmo import Elmo, batch_to_ids
from forward_benchmark import Turn, write_random_bilm
from train_benchmark import SIZES

from elmo_tasks.bilm import BiLmOptions
from elmo_tasks.commands.elmo import embed_file
from elmo_tasks.commands.sentence_file import SentenceFile
from elmo_tasks.modules import ElmoEmbedder

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sentences", default=str(ROOT / "fixtures/text/train.txt"), help="a text file, one tokenised sentence a line"
    )
    parser.add_argument("--label-separator", help="what follows the last one of these in a line is no text")
    parser.add_argument("--encoding", default="utf-8", help="of the text file")
    parser.add_argument("--num-sentences", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", choices=SIZES, default="original")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    sentences = read_sentences(arguments)
    batches = [sentences[i : i + arguments.batch_size] for i in range(0, len(sentences), arguments.batch_size)]
    num_places = sum(len(batch) * max(map(len, batch)) for batch in batches)
    num_tokens = sum(map(len, sentences))
    max_tokens = num_places // len(batches)
    print(
        f"{len(sentences)} sentences, {num_tokens} tokens, {num_places / num_tokens - 1:.0%} padding in batches of "
        f"{arguments.batch_size}, --max-tokens {max_tokens}, {arguments.threads} threads, torch {torch.__version__}"
    )

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        write_random_bilm(options_of(arguments.size), Path(folder))
        text_path = os.path.join(folder, "sentences.txt")
        Path(text_path).write_text("".join(" ".join(tokens) + "\n" for tokens in sentences), encoding="utf-8")
        sides: Dict[str, Callable[[str], None]] = {"allennlp": stock_side(folder, batches)}
        for precision in arguments.precisions:
            sides[precision] = our_side(folder, text_path, precision, max_tokens)
        turns: Dict[str, List[Turn]] = {name: [] for name in sides}
        for repetition in range(arguments.repetitions + 1):
            for name, side in sides.items():
                path = os.path.join(folder, f"{name}.hdf5")
                if os.path.exists(path):
                    os.remove(path)
                wall, cpu = time.perf_counter(), time.process_time()
                side(path)
                turns[name].append(Turn(time.perf_counter() - wall, time.process_time() - cpu))
            if repetition == 0:
                for name in arguments.precisions:
                    print(f"{name}: largest difference from allennlp {largest_difference(folder, name):.1e}")
    report({name: some[1:] for name, some in turns.items()}, len(sentences))


def options_of(size: str) -> BiLmOptions:
    cell_dim, projection_dim, num_highway_layers = SIZES[size]
    return BiLmOptions(
        character_dim=16,
        filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
        activation="relu",
        num_highway_layers=num_highway_layers,
        max_characters_per_token=50,
        num_layers=2,
        cell_dim=cell_dim,
        projection_dim=projection_dim,
        cell_clip=3.0,
        projection_clip=3.0,
    )


def read_sentences(arguments: argparse.Namespace) -> List[List[str]]:
    """The first ones that have tokens."""
    with open(arguments.sentences, encoding=arguments.encoding) as file:
        lines = [line.rstrip("\n") for line in file]
    if arguments.label_separator:
        lines = [line.rpartition(arguments.label_separator)[0] for line in lines]
    return [line.split() for line in lines if line.split()][: arguments.num_sentences]


def stock_side(folder: str, batches: List[List[List[str]]]) -> Callable[[str], None]:
    # One representation, as is usual; the layers are those that it would mix.
    elmo = Elmo(f"{folder}/options.json", f"{folder}/weights.hdf5", 1, dropout=0.0).eval()
    # So that both sides compute the same; it takes as long with the state.
    elmo._elmo_lstm._elmo_lstm.stateful = False

    def run(path: str) -> None:
        with h5py.File(path, "w") as file, torch.no_grad():
            for batch in batches:
                # (num_representations, batch_size, num_tokens, bilm_dim)
                layers = torch.stack(elmo._elmo_lstm(batch_to_ids(batch))["activations"])[:, :, 1:-1].numpy()
                for row, tokens in enumerate(batch):
                    file.create_dataset(str(len(file)), data=layers[:, row, : len(tokens)])

    return run


def our_side(folder: str, text_path: str, precision: str, max_tokens: int) -> Callable[[str], None]:
    embedder = ElmoEmbedder(pretrained=folder, precision=precision, max_tokens_per_forward=max_tokens)

    def run(path: str) -> None:
        with contextlib.redirect_stderr(io.StringIO()):  # the progress bar
            embed_file(embedder, SentenceFile(text_path), path, max_tokens=max_tokens)

    return run


def largest_difference(folder: str, name: str) -> float:
    with h5py.File(f"{folder}/allennlp.hdf5") as expected, h5py.File(f"{folder}/{name}.hdf5") as file:
        return max(float(numpy.abs(file[line][...] - array[...]).max()) for line, array in expected.items())


def report(turns: Dict[str, List[Turn]], num_sentences: int) -> None:
    print(f"{'':10} {'wall, median':>14} {'lowest to highest':>20} {'sentences/s':>12} {'CPU, median':>13}")
    medians = {}
    for name, side_turns in turns.items():
        wall = sorted(turn.wall_s for turn in side_turns)
        medians[name] = Turn(statistics.median(wall), statistics.median(turn.cpu_s for turn in side_turns))
        print(
            f"{name:10} {medians[name].wall_s:12.2f} s {wall[0]:8.2f} to {wall[-1]:6.2f} s "
            f"{num_sentences / medians[name].wall_s:12.1f} {medians[name].cpu_s:11.2f} s"
        )
    for name in list(turns)[1:]:
        wall_ratio, cpu_ratio = (of_allennlp / ours for of_allennlp, ours in zip(medians["allennlp"], medians[name]))
        print(
            f"{name}: {wall_ratio:.2f} times the sentences per second of allennlp (wall), {cpu_ratio:.2f} times (CPU)"
        )


if __name__ == "__main__":
    main()
