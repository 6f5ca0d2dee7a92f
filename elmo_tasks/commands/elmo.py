"""
The `elmo` command writes the vectors of every line of a text file to an HDF5 file, as the command of AllenNLP 0.9 did:

    allennlp elmo sentences.txt vectors.hdf5 --layers all --pretrained original
"""

import argparse
import json
from typing import Dict, Iterator, List, NamedTuple

import h5py
import numpy
import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.common.tqdm import Tqdm
from allennlp.models.archival import load_archive

from elmo_tasks.bilm import encode_sentences
from elmo_tasks.common.files import written_whole
from elmo_tasks.dataset_readers.tokenizers import AsciiWhitespaceTokenizer
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder
from elmo_tasks.modules.length_batches import length_batches

LAYERS = ("all", "top", "average", "mix")

# Lines are gathered up to so many batches, sorted by length within, and written in their own order.
_BATCHES_PER_WINDOW = 4


@Subcommand.register("elmo")
class ElmoCommand(Subcommand):
    """
    Writes ELMo vectors of a text file, one sentence a line, tokens separated by blanks.

    The HDF5 file has a dataset for each line, named by its number from "0": with `--layers all`
    `(num_representations, num_tokens, bilm_dim)`, else `(num_tokens, bilm_dim)`. A blank line has no tokens.
    "sentence_to_index" holds a JSON object from sentences to these names.

    Registered as a `Subcommand` with name "elmo".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        description = "Write the ELMo vectors of a text file to an HDF5 file."
        subparser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("input_file", help="text in UTF-8, one sentence a line, tokens separated by blanks")
        subparser.add_argument("output_file", help="the HDF5 file; it appears when it is complete")
        subparser.add_argument(
            "--layers",
            choices=LAYERS,
            default="all",
            help="all layers, the top one, their average, or the mix of the archive (default: all)",
        )
        subparser.add_argument("--pretrained", help="the biLM: a published or bundled name, or a folder")
        subparser.add_argument("--options-file", help="the biLM: its options file, with --weight-file")
        subparser.add_argument("--weight-file", help="the biLM: its weights, with --options-file")
        subparser.add_argument("--archive", help="the biLM and the mix of a trained model")
        subparser.add_argument("--dtype", choices=("float32", "float16"), default="float32", help="of the numbers")
        subparser.add_argument(
            "--precision", choices=("float32", "bfloat16"), default="float32", help="of the biLM's products"
        )
        subparser.add_argument("--max-tokens", type=int, default=4096, help="tokens of a batch, padding included")
        subparser.add_argument("--cuda-device", type=int, default=-1, help="a GPU, or -1 for the CPU")
        subparser.add_argument("--forget-sentences", action="store_true", help="leave out sentence_to_index")
        subparser.set_defaults(func=_run)
        return subparser


def embed_file(
    embedder: ElmoEmbedder,
    input_path: str,
    output_path: str,
    layers: str = "all",
    dtype: str = "float32",
    max_tokens: int = 4096,
    with_sentences: bool = True,
) -> None:
    """
    Writes the vectors of all lines. Memory holds a few batches of them, and the sentences where these are written.

    # Parameters

    embedder : `ElmoEmbedder`
        Stateless, on the device that it is to run on.
    input_path, output_path : `str`
        As for the command.
    layers : `str`, optional (default = `"all"`)
        "all", "top", "average" or "mix".
    dtype : `str`, optional (default = `"float32"`)
        Of the numbers in the file, "float32" or "float16".
    max_tokens : `int`, optional (default = `4096`)
        Tokens of a batch, padding included.
    with_sentences : `bool`, optional (default = `True`)
        Write "sentence_to_index". A sentence that comes twice stands for its last line.

    # Raises

    ConfigurationError
        Where the file cannot be read as UTF-8.
    """
    embedder.eval()
    sentence_to_index = {}
    with written_whole(output_path) as partial_path, h5py.File(partial_path, "w") as output:
        with Tqdm.tqdm(total=_count_lines(input_path), desc="lines") as progress:
            for window in _windows(_sentences(input_path), _BATCHES_PER_WINDOW * max_tokens):
                vectors = _vectors(embedder, [sentence.tokens for sentence in window], layers, max_tokens)
                for sentence, array in zip(window, vectors):
                    name = str(sentence.line)
                    output.create_dataset(name, data=array.astype(dtype))
                    if with_sentences:
                        sentence_to_index[" ".join(sentence.tokens)] = name
                progress.update(len(window))
        if with_sentences:
            index = output.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
            index[0] = json.dumps(sentence_to_index)


class _Sentence(NamedTuple):
    line: int
    tokens: List[str]


def _run(args: argparse.Namespace) -> None:
    check_for_gpu(args.cuda_device)
    embed_file(
        _embedder(args),
        args.input_file,
        args.output_file,
        args.layers,
        args.dtype,
        args.max_tokens,
        not args.forget_sentences,
    )


def _embedder(args: argparse.Namespace) -> ElmoEmbedder:
    named = [name for name in ("pretrained", "options_file", "archive") if getattr(args, name) is not None]
    if len(named) > 1:
        raise ConfigurationError(f"one of {named} must name the biLM, but all are given")
    if args.layers == "mix" and args.archive is None:
        raise ConfigurationError("`--layers mix` must have `--archive`: only a trained model has a mix of its own")
    if args.archive is None:
        embedder = ElmoEmbedder(
            pretrained=args.pretrained, options_file=args.options_file, weight_file=args.weight_file
        )
    else:
        model = load_archive(args.archive).model
        embedders = [module for module in model.modules() if isinstance(module, ElmoEmbedder)]
        if len(embedders) != 1 or embedders[0].is_stateful:
            raise ConfigurationError(f"{args.archive} must have one ELMo embedder, and a stateless one")
        embedder = embedders[0]
    embedder.bilm.precision = args.precision
    return embedder.to(torch.device("cpu" if args.cuda_device < 0 else args.cuda_device))


def _count_lines(path: str) -> int:
    try:
        return sum(1 for _ in _sentences(path))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} must be a text file in UTF-8, but is not: {error}") from error


def _sentences(path: str) -> Iterator[_Sentence]:
    tokenizer = AsciiWhitespaceTokenizer()
    # Lines of a file end where `str.splitlines` would see more ends, such as U+0085.
    with open(path, encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines):
            yield _Sentence(number, [token.ensure_text() for token in tokenizer.tokenize(line)])


def _windows(sentences: Iterator[_Sentence], max_tokens: int) -> Iterator[List[_Sentence]]:
    window: List[_Sentence] = []
    num_tokens = 0
    for sentence in sentences:
        window.append(sentence)
        num_tokens += len(sentence.tokens) + 1  # blank lines fill a window too
        if num_tokens >= max_tokens:
            yield window
            window, num_tokens = [], 0
    if window:
        yield window


def _vectors(embedder: ElmoEmbedder, sentences: List[List[str]], layers: str, max_tokens: int) -> List[numpy.ndarray]:
    lengths = [len(sentence) for sentence in sentences]
    vectors: Dict[int, numpy.ndarray] = {}
    device = next(embedder.parameters()).device
    for positions in length_batches(lengths, max_tokens):
        character_ids = encode_sentences([sentences[position] for position in positions]).to(device)
        with torch.no_grad():
            # (batch_size, num_tokens, bilm_dim), for all layers with one dimension in front
            batch = _choose(embedder, character_ids, layers).cpu().numpy()
        for row, position in enumerate(positions):
            vectors[position] = batch[..., row, : lengths[position], :]
    return [vectors[position] for position in range(len(sentences))]


def _choose(embedder: ElmoEmbedder, character_ids: torch.Tensor, layers: str) -> torch.Tensor:
    if layers == "mix":
        return embedder(character_ids)
    all_layers = embedder.layers(character_ids)
    if layers == "top":
        return all_layers[-1]
    if layers == "average":
        return all_layers.mean(dim=0)
    return all_layers
