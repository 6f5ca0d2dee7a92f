"""
Training time with AllenNLP's embedder and with ours, first run and second:

    python tests/benchmarks/train_benchmark.py [--data FILE] [--sentences 1000] [--epochs 5]

The same config each time, a mean-pooled linear classifier with a trained mix over a frozen biLM of a published size
with random weights; only the embedder (and, in ours, the indexer, of equal tensors) differs. `allennlp train` runs as a
process of its own: with its start, reading, and the writing of checkpoints and the archive, which for the last run
leave out the biLM's weights.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch

from elmo_tasks.bilm import BiLm, BiLmOptions, save_weights

ROOT = Path(__file__).parents[2]

# Cell, projection, highway layers.
SIZES = {"original": (4096, 512, 2), "medium": (2048, 256, 1), "small": (1024, 128, 1)}


def write_bilm(folder: str, size: str) -> None:
    """Writes a biLM of a published size with random weights."""
    cell_dim, projection_dim, num_highway_layers = SIZES[size]
    options = BiLmOptions(
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
    torch.manual_seed(0)
    options.to_file(os.path.join(folder, "options.json"))
    save_weights(BiLm(options), os.path.join(folder, "weights.hdf5"))


def embedders(folder: str, cache: str) -> dict:
    """The runs: name, token embedder, token indexer."""
    files = {"options_file": f"{folder}/options.json", "weight_file": f"{folder}/weights.hdf5"}
    ours = {"type": "elmo", **files, "cache": {"directory": cache}}
    return {
        "AllenNLP's embedder": ({"type": "elmo_token_embedder", **files}, "elmo_characters"),
        "ours, first run": (ours, "elmo_character_arrays"),
        "ours, second run": (ours, "elmo_character_arrays"),
        "ours, second run, weights left out": ({**ours, "save_bilm_weights": False}, "elmo_character_arrays"),
    }


def train(embedder: dict, indexer: str, args: argparse.Namespace, folder: str) -> dict:
    """Runs `allennlp train`; gives its metrics and the seconds that the process took."""
    run = os.path.join(folder, "run")
    shutil.rmtree(run, ignore_errors=True)
    config = {
        "dataset_reader": {
            "type": "mr",
            "max_instances": args.sentences,
            "token_indexers": {"elmo": {"type": indexer}},
        },
        "train_data_path": args.data,
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder}},
        },
        "data_loader": {"batch_sampler": {"type": "bucket", "batch_size": 32, "sorting_keys": ["tokens"]}},
        "trainer": {"num_epochs": args.epochs, "optimizer": {"type": "adam", "lr": 1e-3}},
    }
    config_path = os.path.join(folder, "config.json")
    with open(config_path, "w") as config_file:
        json.dump(config, config_file)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "allennlp", "train", config_path, "-s", run, "--include-package", "elmo_tasks"]
    start = time.perf_counter()
    done = subprocess.run(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-5000:])
    metrics = json.loads(Path(run, "metrics.json").read_text())
    hours, minutes, rest = metrics["training_duration"].split(":")
    duration = timedelta(hours=int(hours), minutes=int(minutes), seconds=float(rest))
    peaks = {name: value for name, value in metrics.items() if name.startswith("peak_gpu")}
    return {"process": seconds, "training": duration.total_seconds(), "loss": metrics["training_loss"], "gpu": peaks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=str(ROOT / "fixtures" / "mr" / "rt_train.txt"), help="an MR file")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--size", choices=SIZES, default="original")
    args = parser.parse_args()
    args.data = os.path.abspath(args.data)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        write_bilm(folder, args.size)
        for name, (embedder, indexer) in embedders(folder, os.path.join(folder, "cache")).items():
            results[name] = train(embedder, indexer, args, folder)
            print(
                f"{name}: {results[name]['process']:.1f} s in all, {results[name]['training']:.1f} s of training, "
                f"last loss {results[name]['loss']:.5f}",
                *(f"{what} {value:.0f}" for what, value in results[name]["gpu"].items()),
                flush=True,
            )
    stock, *ours = results
    for name in ours:
        ratios = [
            f"{results[stock][what] / results[name][what]:.1f} times ({what})" for what in ("process", "training")
        ]
        print(f"{name}: {', '.join(ratios)} as fast as {stock}")


if __name__ == "__main__":
    main()
