"""
Prediction with AllenNLP's embedder and with ours, and the memory it takes for one file and for one ten times as long:

    python tests/benchmarks/predict_benchmark.py [--data FILE] [--sentences 10000] [--stock-sentences 1000]

The same classifier over a biLM of a published size with random weights. `allennlp predict` runs as a process of its
own; the difference between two file sizes is free of its start.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.models import Model
from train_benchmark import ROOT, SIZES, write_bilm

import elmo_tasks  # noqa: F401 registers the parts of the config


def write_model(folder: str, embedder: dict, indexer: str) -> None:
    """Writes the folder of a run, as `allennlp train` leaves it."""
    config = {
        "dataset_reader": {"type": "mr", "token_indexers": {"elmo": {"type": indexer}}},
        "model": {
            "type": "elmo_sentence_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder}},
        },
    }
    os.makedirs(folder)
    Path(folder, "config.json").write_text(json.dumps(config))
    vocab = Vocabulary({"labels": {"0": 1, "1": 1}})
    vocab.save_to_files(os.path.join(folder, "vocabulary"))
    torch.manual_seed(0)
    model = Model.from_params(Params(config["model"]), vocab=vocab)
    torch.save(model.state_dict(), os.path.join(folder, "best.th"))


def write_sentences(path: str, data: str, num_sentences: int) -> None:
    """Writes JSON lines of the sentences of an MR file, from its start again where it is too short."""
    texts = [line.split("_!_")[0].strip() for line in Path(data).read_text().split("\n") if line.strip()]
    with open(path, "w") as sentences:
        for text in itertools.islice(itertools.cycle(texts), num_sentences):
            sentences.write(json.dumps({"sentence": text}) + "\n")


def predict(model: str, sentences: str, batch_size: int) -> dict:
    """Runs `allennlp predict`; gives the seconds it took and its largest memory in MB."""
    output = sentences + ".predicted"
    command = [sys.executable, "-m", "allennlp", "predict", model, sentences, "--output-file", output, "--silent"]
    command += ["--batch-size", str(batch_size), "--include-package", "elmo_tasks"]
    start = time.perf_counter()
    with open(output + ".log", "w+") as log:
        process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=model, stdout=log, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise RuntimeError(Path(log.name).read_text()[-5000:])
    return {"seconds": time.perf_counter() - start, "memory": usage.ru_maxrss / 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=str(ROOT / "fixtures" / "mr" / "rt_train.txt"), help="an MR file")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--stock-sentences", type=int, default=1_000, help="fewer for AllenNLP's embedder")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", choices=SIZES, default="original")
    args = parser.parse_args()
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        write_bilm(folder, args.size)
        files = {"options_file": f"{folder}/options.json", "weight_file": f"{folder}/weights.hdf5"}
        for name, embedder, indexer, num_sentences in (
            ("AllenNLP's embedder", {"type": "elmo_token_embedder", **files}, "elmo_characters", args.stock_sentences),
            ("ours", {"type": "elmo", **files, "cache": {}}, "elmo_character_arrays", args.sentences),
        ):
            model = os.path.join(folder, indexer)
            write_model(model, embedder, indexer)
            sizes = (num_sentences // 10, num_sentences)
            results = []
            for size in sizes:
                sentences = os.path.join(folder, f"{size}.jsonl")
                write_sentences(sentences, args.data, size)
                results.append(predict(model, sentences, args.batch_size))
                print(f"{name}, {size:,} sentences: {results[-1]['seconds']:.1f} s, {results[-1]['memory']:,.0f} MB")
            rates.append((sizes[1] - sizes[0]) / (results[1]["seconds"] - results[0]["seconds"]))
            print(f"{name}: {rates[-1]:.1f} sentences a second", flush=True)
    print(f"ours: {rates[1] / rates[0]:.1f} times as fast as AllenNLP's embedder")


if __name__ == "__main__":
    main()
