"""
What `allennlp elmo` and `allennlp predict` cost for ever larger files, with the bundled biLM:

    python tests/benchmarks/scale_benchmark.py [--sizes 1000 10000 100000] [--costs costs.json] [--plot scale.png]

The sentences are made of the words of the fixtures, as frequent as there, some 20 a sentence. Each command runs as a
process of its own, on one thread. Its start-up is the median of runs on one sentence, and is taken off before the time
is divided by the number of the other sentences; sizes up to 1,000 are run several times too, and the median counts.
CPU time moves less than the wall clock when other programs run beside. Memory is the largest that the process had.
`allennlp elmo` writes 1 kB for each word: 20 kB for a sentence of 20, so 2 GB for 100,000 of them.
A million takes each command about an hour. What is in the file of `--costs` already is not measured again, so that the
commands can be measured apart.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

ROOT = Path(__file__).parents[2]
COMMANDS = ("elmo", "predict")
# Of the logarithm of the length: a mean of 20 words, one sentence in a hundred longer than 50.
LENGTH_MU, LENGTH_SIGMA = 2.9, 0.45
LONGEST = 100


class Cost(NamedTuple):
    """Of one process, in seconds and bytes."""

    wall_s: float
    cpu_s: float
    memory: int
    disk: int


class Costs:
    """What was measured, by command and size; kept in the file `path`, if there is one."""

    def __init__(self, path: Optional[str]) -> None:
        self._path = path
        self._costs: Dict[str, Dict[str, List[float]]] = {}
        if path and os.path.exists(path):
            self._costs = json.loads(Path(path).read_text())

    def of(self, command: str) -> Dict[int, Cost]:
        return {int(size): Cost(*cost) for size, cost in self._costs.get(command, {}).items()}

    def add(self, command: str, size: int, cost: Cost) -> None:
        self._costs.setdefault(command, {})[str(size)] = list(cost)
        if self._path:
            Path(self._path).write_text(json.dumps(self._costs, indent=2) + "\n")


def write_sentences(path: Path, num_sentences: int, seed: int) -> None:
    """Writes sentences as JSON lines, which both commands read. A shorter file is the beginning of a longer one."""
    generator = random.Random(seed)
    words = read_words()
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(num_sentences):
            length = round(generator.lognormvariate(LENGTH_MU, LENGTH_SIGMA))
            # No quotes or backslashes are among the words, so that this is JSON.
            file.write(f'{{"sentence": "{" ".join(generator.choices(words, k=min(max(length, 1), LONGEST)))}"}}\n')


def read_words() -> List[str]:
    """The words of the fixtures, each as often as it stands there."""
    text = (ROOT / "fixtures/text/train.txt").read_text(encoding="utf-8").split()
    reviews = (ROOT / "fixtures/mr/rt_train.txt").read_text(encoding="utf-8").split("\n")
    text += [word for review in reviews for word in review.rpartition("_!_")[0].split()]
    return [word for word in text if '"' not in word and "\\" not in word]


def run(folder: Path, *arguments: object) -> Cost:
    """Runs `allennlp`; the output of `arguments`, if there is one, is the file `output.*` in the folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "allennlp", *map(str, arguments), "--include-package", "elmo_tasks"]
    start = time.perf_counter()
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise RuntimeError(Path(log.name).read_text()[-5000:])
    wall_s = time.perf_counter() - start
    outputs = list(folder.glob("output.*"))
    disk = sum(output.stat().st_size for output in outputs)
    for output in outputs:
        output.unlink()
    # Linux counts in kB, and a child begins with the memory of its parent: this process imports little.
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, disk)


def measure(command: str, size: int, folder: Path, arguments: argparse.Namespace) -> Cost:
    """The median costs of a command on so many sentences."""
    sentences = folder / "sentences.jsonl"
    write_sentences(sentences, size, arguments.seed)
    if command == "elmo":
        parameters = [
            sentences,
            folder / "output.hdf5",
            "--pretrained",
            "mini",
            "--layers",
            "average",
            "--dtype",
            "float16",
        ]
    else:
        parameters = [folder / "run/model.tar.gz", sentences, "--output-file", folder / "output.jsonl", "--silent"]
        parameters += ["--batch-size", arguments.batch_size]
    costs = [run(folder, command, *parameters) for _ in range(arguments.repetitions if size <= 1000 else 1)]
    medians = [statistics.median(values) for values in zip(*costs)]
    cost = Cost(medians[0], medians[1], int(medians[2]), int(medians[3]))
    times = f"{cost.wall_s:.1f} s, {cost.cpu_s:.1f} s of CPU, {cost.memory / 1e6:,.0f} MB"
    print(f"allennlp {command}, {size:,} sentences: {times}", flush=True)
    return cost


def report(command: str, start_up: Cost, costs: Dict[int, Cost]) -> Dict[int, Cost]:
    """Prints a table; gives the costs of one sentence, without start-up, and the memory of all."""
    print(f"\nallennlp {command}: start-up {start_up.wall_s:.1f} s, {start_up.memory / 1e6:,.0f} MB")
    print(f"{'sentences':>10} {'wall':>10} {'a sentence':>12} {'CPU of one':>12} {'memory':>10} {'output':>10}")
    of_one = {}
    for size, cost in costs.items():
        others = size - 1
        of_one[size] = Cost(
            (cost.wall_s - start_up.wall_s) / others, (cost.cpu_s - start_up.cpu_s) / others, cost.memory, cost.disk
        )
        print(
            f"{size:10,} {cost.wall_s:8.1f} s {of_one[size].wall_s * 1e3:9.3f} ms {of_one[size].cpu_s * 1e3:9.3f} ms "
            f"{cost.memory / 1e6:7,.0f} MB {cost.disk / 1e6:7,.1f} MB"
        )
    for name, times in (("wall", [c.wall_s for c in of_one.values()]), ("CPU", [c.cpu_s for c in of_one.values()])):
        middle = statistics.median(times)
        print(f"{name} time of a sentence: within {max(abs(t / middle - 1) for t in times):.0%} of the median")
    return of_one


def draw(path: str, results: Dict[str, Dict[int, Cost]]) -> None:
    """Time of a sentence and memory against size, for each command."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.8), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    styles = {"elmo": ("#0072B2", "o", "-"), "predict": ("#D55E00", "s", "--")}
    for command, costs in results.items():
        color, marker, line = styles[command]
        style = {"color": color, "marker": marker, "linestyle": line, "label": f"allennlp {command}"}
        time_axes.plot(list(costs), [cost.cpu_s * 1e3 for cost in costs.values()], **style)
        memory_axes.plot(list(costs), [cost.memory / 1e9 for cost in costs.values()], **style)
    for axes, label in ((time_axes, "CPU ms a sentence"), (memory_axes, "largest memory, GB")):
        axes.set_xscale("log")
        axes.set_xlabel("sentences")
        axes.set_ylabel(label)
        axes.set_ylim(0, 1.25 * axes.get_ylim()[1])
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    time_axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--commands", choices=COMMANDS, nargs="+", default=COMMANDS)
    parser.add_argument("--batch-size", type=int, default=64, help="of `allennlp predict`")
    parser.add_argument("--repetitions", type=int, default=3, help="of the start-up, and of sizes up to 1,000")
    parser.add_argument("--seed", type=int, default=0, help="of the sentences")
    parser.add_argument("--costs", metavar="FILE", help="keeps what was measured, .json")
    parser.add_argument("--plot", metavar="FILE", help="a picture of the table, .png")
    arguments = parser.parse_args()
    costs = Costs(arguments.costs)
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "predict" in arguments.commands:
            smoke = "import 'training_configs/overrides/smoke.libsonnet'"
            run(folder, "train", "training_configs/mr.jsonnet", "-s", folder / "run", "-o", smoke)
        for command in arguments.commands:
            for size in (1, *arguments.sizes):
                if size not in costs.of(command):
                    costs.add(command, size, measure(command, size, folder, arguments))
            start_up, *others = (costs.of(command)[size] for size in (1, *arguments.sizes))
            results[command] = report(command, start_up, dict(zip(arguments.sizes, others)))
    if arguments.plot:
        draw(arguments.plot, results)


if __name__ == "__main__":
    main()
