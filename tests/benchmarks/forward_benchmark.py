"""
How long the biLM takes for a batch of sentences: AllenNLP's `ElmoTokenEmbedder` against ours, in one process.

    python tests/benchmarks/forward_benchmark.py --sentences reviews.txt --label-separator _!_

Both sides read the same files (random weights of the official size) and the same batches, in turns; the first turn is
thrown away. The mix of layers is included on both sides. "Wall" is what a user waits; "CPU" counts the seconds of all
threads, and moves less when other programs run beside. `--device cuda` runs both sides on a GPU.
"""

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple

import torch
from allennlp.modules import ScalarMix
from allennlp.modules.token_embedders import ElmoTokenEmbedder

from elmo_tasks.bilm import BiLm, BiLmOptions, encode_sentences, load_weights, save_weights
from elmo_tasks.common.machine import describe_machine

OFFICIAL_SIZE = BiLmOptions(
    character_dim=16,
    filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
    activation="relu",
    num_highway_layers=2,
    max_characters_per_token=50,
    num_layers=2,
    cell_dim=4096,
    projection_dim=512,
    cell_clip=3.0,
    projection_clip=3.0,
)


class Turn(NamedTuple):
    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", help="a text file, one tokenised sentence a line; default: made up")
    parser.add_argument("--label-separator", help="what follows the last one of these in a line is no text")
    parser.add_argument("--encoding", default="latin-1", help="of the text file")
    parser.add_argument("--num-sentences", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--sort", action="store_true", help="batch sentences of like length, as a bucket sampler does")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--options", help="options.json of another size than the official one")
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"), help="cpu or cuda")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    batches = read_batches(arguments)
    num_tokens = sum(int((batch > 0).any(-1).sum()) for batch in batches)
    num_places = sum(batch.size(0) * batch.size(1) for batch in batches)
    machine = ", ".join(f"{what} {value}" for what, value in describe_machine().items())
    print(
        f"{sum(len(batch) for batch in batches)} sentences, {num_tokens} tokens, {num_places / num_tokens - 1:.0%} "
        f"padding, batches of {arguments.batch_size}; {machine}"
    )
    batches = [batch.to(arguments.device) for batch in batches]

    options = BiLmOptions.from_file(arguments.options) if arguments.options else OFFICIAL_SIZE
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        write_random_bilm(options, Path(folder))
        # The first turn: thrown away as to its time, and the place to compare results and to measure memory, since what
        # a side makes of its weights then, and keeps, counts.
        sides: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}
        reference: List[torch.Tensor] = []
        for name in ("allennlp", *arguments.precisions):
            sides[name] = load(name, Path(folder), arguments.device)
            vectors, kept, peak = run_with_memory(sides[name], batches, arguments.device)
            print(f"{name}: {peak:.0f} MiB beyond the weights at most, {kept:.0f} MiB kept")
            if not reference:
                reference = vectors
                print(f"{name}: standard deviation of its vectors {float(reference[0].std()):.2f}")
                continue
            differences = [(ours - expected).abs() for ours, expected in zip(vectors, reference)]
            largest = max(float(difference.max()) for difference in differences)
            mean = statistics.mean(float(difference.mean()) for difference in differences)
            print(f"{name}: largest difference from allennlp {largest:.1e}, mean {mean:.1e}")
        del reference, vectors, differences

        turns: Dict[str, List[Turn]] = {name: [] for name in sides}
        for _ in range(arguments.repetitions):
            for name, side in sides.items():
                wall, cpu = time.perf_counter(), time.process_time()
                for batch in batches:
                    side(batch)
                synchronize(arguments.device)
                turns[name].append(Turn(time.perf_counter() - wall, time.process_time() - cpu))
    report(turns, num_tokens)


def read_batches(arguments: argparse.Namespace) -> List[torch.Tensor]:
    """Character ids of each batch."""
    generator = random.Random(arguments.seed)
    if arguments.sentences is None:
        sentences = make_up_sentences(arguments.num_sentences, generator)
    else:
        with open(arguments.sentences, encoding=arguments.encoding) as file:
            lines = [line.rstrip("\n") for line in file]
        if arguments.label_separator:
            lines = [line.rpartition(arguments.label_separator)[0] for line in lines]
        sentences = [line.split() for line in lines if line.split()]
        sentences = generator.sample(sentences, min(arguments.num_sentences, len(sentences)))
    if arguments.sort:
        sentences.sort(key=len)
    starts = range(0, len(sentences), arguments.batch_size)
    return [encode_sentences(sentences[start : start + arguments.batch_size]) for start in starts]


def make_up_sentences(num_sentences: int, generator: random.Random) -> List[List[str]]:
    """About as long, and with about as many different words, as film reviews: 21 tokens on average, 54 at most."""
    letters = "etaoinshrdlcumwfgypbvk"
    words = ["".join(generator.choices(letters, k=1 + int(generator.gammavariate(3.0, 1.8)))) for _ in range(8000)]
    weights = [1.0 / (rank + 3) for rank in range(len(words))]
    lengths = [max(1, min(54, round(generator.gammavariate(5.0, 4.2)))) for _ in range(num_sentences)]
    return [generator.choices(words, weights, k=length) for length in lengths]


def write_random_bilm(options: BiLmOptions, folder: Path) -> None:
    bilm = BiLm(options)
    for layer in bilm.layers:
        # Initial weights give next to nothing in the upper layers; much larger ones would let rounding errors grow.
        for weight in (layer.input_kernel, layer.recurrent_kernel, layer.projection):
            weight.mul_(2.0)
    options.to_file(str(folder / "options.json"))
    save_weights(bilm, str(folder / "weights.hdf5"))


def load(name: str, folder: Path, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    """A side by its name: "allennlp", or a precision of ours."""
    return load_allennlp(folder, device) if name == "allennlp" else load_ours(folder, name, device)


def load_allennlp(folder: Path, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    embedder = ElmoTokenEmbedder(str(folder / "options.json"), str(folder / "weights.hdf5"), dropout=0.0).to(device)
    # So that both sides compute the same; it takes as long with the state.
    embedder._elmo._elmo_lstm._elmo_lstm.stateful = False

    def run(character_ids: torch.Tensor) -> torch.Tensor:
        embedder._elmo._elmo_lstm._elmo_lstm.reset_states()
        return embedder(character_ids)

    return run


def load_ours(folder: Path, precision: str, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    bilm = BiLm(BiLmOptions.from_file(str(folder / "options.json")), precision).requires_grad_(False)
    load_weights(bilm, str(folder / "weights.hdf5"))
    bilm.to(device)
    mix = ScalarMix(bilm.options.num_representations).to(device)

    def run(character_ids: torch.Tensor) -> torch.Tensor:
        output = bilm(character_ids)
        mask = (character_ids > 0).any(dim=-1)
        # AllenNLP has zeros in place of </S> in shorter sentences, too.
        return mix(output.activations, output.mask)[:, 1:-1] * mask.unsqueeze(-1)

    return run


def run_with_memory(
    side: Callable[[torch.Tensor], torch.Tensor], batches: List[torch.Tensor], device: torch.device
) -> Tuple[List[torch.Tensor], float, float]:
    """
    The vectors of each batch, and MiB of the GPU or of the process (Linux) beyond what was held before: what is held
    afterwards, and the highest. The vectors themselves count.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        vectors = [side(batch) for batch in batches]
        after, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        return vectors, (after - before) / 2**20, (peak - before) / 2**20
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_mib("VmRSS")
    vectors = [side(batch) for batch in batches]
    return vectors, memory_mib("VmRSS") - before, memory_mib("VmHWM") - before


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def memory_mib(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/self/status must tell {field}, but does not")


def report(turns: Dict[str, List[Turn]], num_tokens: int) -> None:
    print(f"{'':10} {'wall, median':>14} {'lowest to highest':>20} {'tokens/s':>10} {'CPU, median':>13}")
    medians = {}
    for name, side_turns in turns.items():
        wall = sorted(turn.wall_s for turn in side_turns)
        medians[name] = Turn(statistics.median(wall), statistics.median(turn.cpu_s for turn in side_turns))
        print(
            f"{name:10} {medians[name].wall_s:12.2f} s {wall[0]:8.2f} to {wall[-1]:6.2f} s "
            f"{num_tokens / medians[name].wall_s:10.0f} {medians[name].cpu_s:11.2f} s"
        )
    for name in list(turns)[1:]:
        wall_ratio, cpu_ratio = (of_allennlp / ours for of_allennlp, ours in zip(medians["allennlp"], medians[name]))
        print(f"{name} is {wall_ratio:.2f} times as fast as allennlp (wall), {cpu_ratio:.2f} times (CPU)")


if __name__ == "__main__":
    main()
