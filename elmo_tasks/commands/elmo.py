"""
The `elmo` command writes the vectors of every line of a file, as the command of AllenNLP 0.9 did:

    allennlp elmo sentences.txt vectors.hdf5 --layers all --pretrained original
"""

import argparse
import hashlib
import itertools
import json
import logging
from typing import Dict, List

import numpy
import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.common.tqdm import Tqdm
from allennlp.models.archival import load_archive

from elmo_tasks.bilm import resolve, weights_digest
from elmo_tasks.commands.partial_output import check_output, partial_output
from elmo_tasks.commands.sentence_batches import batches, windows
from elmo_tasks.commands.sentence_file import INPUT_FORMATS, Sentence, SentenceFile
from elmo_tasks.commands.vector_file import ArrayType
from elmo_tasks.common.user_errors import told_to_go_on
from elmo_tasks.modules.bilm_source import DEFAULT_NAME
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder

logger = logging.getLogger(__name__)

LAYERS = ("all", "top", "average", "mix")


@Subcommand.register("elmo")
class ElmoCommand(Subcommand):
    """
    Writes ELMo vectors of a file of tokenised sentences, one a line.

    The file has an array for each line, named by its number from "0": with `--layers all` `(num_representations,
    num_tokens, bilm_dim)`, else `(num_tokens, bilm_dim)`. A blank line has no tokens. "sentence_to_index" holds a
    JSON object from sentences to these names; it alone is held in memory, once, while the file is laid out.

    Registered as a `Subcommand` with name "elmo".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        description = (
            "Write the ELMo vectors of a file, an array for each line. Repeating an interrupted command continues it."
        )
        subparser = parser.add_parser(self.name, description=description, help="Write the ELMo vectors of a file.")
        subparser.add_argument(
            "input_file",
            help='in UTF-8, one sentence a line, tokens separated by blanks; or JSON lines, {"sentence": "a b"} or '
            '{"tokens": ["a", "b"]}',
        )
        subparser.add_argument("output_file", help=".hdf5, .h5 or .npz; it appears when it is complete")
        subparser.add_argument(
            "--layers",
            choices=LAYERS,
            default="all",
            help="all layers, the top one, their average, or the mix of the archive",
        )
        subparser.add_argument(
            "--pretrained", help="the biLM: a published or bundled name, or a folder (default: original)"
        )
        subparser.add_argument("--options-file", help="the biLM: its options file, with --weight-file")
        subparser.add_argument("--weight-file", help="the biLM: its weights, with --options-file")
        subparser.add_argument("--archive", help="the biLM and the mix of a trained model")
        subparser.add_argument(
            "--input-format", choices=INPUT_FORMATS, help="default: json-lines for .json and .jsonl, else text"
        )
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
    sentences: SentenceFile,
    output_path: str,
    layers: str = "all",
    dtype: str = "float32",
    max_tokens: int = 4096,
    with_sentences: bool = True,
) -> None:
    """
    Writes the vectors of all lines, or those that an interrupted call has left. Memory holds a few batches of them, and
    the sentences while the file is laid out with them.

    # Parameters

    embedder : `ElmoEmbedder`
        Stateless, on the device that it is to run on.
    sentences : `SentenceFile`
    output_path : `str`
        The suffix says what kind of file: `.hdf5`, `.h5` or `.npz`.
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
        Where the file is there already, cannot be written, or was begun with other settings.
    """
    embedder.eval()
    options = embedder.bilm.options
    array_type = ArrayType(
        before=(options.num_representations,) if layers == "all" else (),
        after=(embedder.output_dim if layers == "mix" else options.bilm_dim,),
        dtype=dtype,
    )
    settings = {"layers": layers, "precision": embedder.bilm.precision, **_digests(embedder, layers)}
    with partial_output(output_path, sentences, array_type, settings, with_sentences) as output:
        remaining = itertools.islice(sentences, output.num_arrays, None)
        with Tqdm.tqdm(total=sentences.num_lines, initial=output.num_arrays, desc="lines") as progress:
            for window in windows(remaining, max_tokens):
                output.write(window, _vectors(embedder, window, layers, dtype, max_tokens))
                progress.update(len(window))


@told_to_go_on()
def _run(args: argparse.Namespace) -> None:
    # What can be told before a biLM is loaded.
    check_for_gpu(args.cuda_device)
    _check_arguments(args)
    check_output(args.output_file)
    sentences = SentenceFile(args.input_file, args.input_format)
    embed_file(
        _embedder(args),
        sentences,
        args.output_file,
        args.layers,
        args.dtype,
        args.max_tokens,
        not args.forget_sentences,
    )


def _check_arguments(args: argparse.Namespace) -> None:
    named = [name for name in ("pretrained", "options_file", "archive") if getattr(args, name) is not None]
    if len(named) > 1:
        raise ConfigurationError(f"one of {named} must name the biLM, but all are given")
    if args.layers == "mix" and args.archive is None:
        raise ConfigurationError("`--layers mix` must have `--archive`: only a trained model has a mix of its own")
    if args.max_tokens < 1:
        raise ConfigurationError(f"`--max-tokens` must be at least 1, but is {args.max_tokens}")


def _embedder(args: argparse.Namespace) -> ElmoEmbedder:
    if args.archive is None:
        if args.pretrained is None and args.options_file is None:
            logger.info(
                "The biLM is the published %r, %s, and is downloaded if it was not before; `--pretrained mini` needs "
                "no network.",
                DEFAULT_NAME,
                resolve(DEFAULT_NAME).weight_file,
            )
        embedder = ElmoEmbedder(
            pretrained=args.pretrained,
            options_file=args.options_file,
            weight_file=args.weight_file,
            max_tokens_per_forward=args.max_tokens,
        )
    else:
        model = load_archive(args.archive).model
        embedders = [module for module in model.modules() if isinstance(module, ElmoEmbedder)]
        if len(embedders) != 1 or embedders[0].is_stateful:
            raise ConfigurationError(f"{args.archive} must have one ELMo embedder, and a stateless one")
        embedder = embedders[0]
    embedder.bilm.precision = args.precision
    return embedder.to(torch.device("cpu" if args.cuda_device < 0 else args.cuda_device))


def _digests(embedder: ElmoEmbedder, layers: str) -> Dict[str, str]:
    """Of all that the vectors of a layer, or of the mix, are made with."""
    digests = {"biLM": weights_digest(embedder.bilm)}
    if layers == "mix":
        choices = {name: value for name, value in vars(embedder.scalar_mix).items() if isinstance(value, int)}
        digest = hashlib.sha256(json.dumps(choices, sort_keys=True).encode())
        for name, value in embedder.state_dict().items():
            if not name.startswith("bilm"):
                digest.update(name.encode() + value.cpu().numpy().tobytes())
        digests["mix"] = digest.hexdigest()
    return digests


def _vectors(
    embedder: ElmoEmbedder, window: List[Sentence], layers: str, dtype: str, max_tokens: int
) -> List[numpy.ndarray]:
    vectors: Dict[int, numpy.ndarray] = {}
    for positions, character_ids in batches(window, max_tokens, next(embedder.parameters()).device):
        with torch.no_grad():
            # (batch_size, num_tokens, bilm_dim), for all layers with one dimension in front
            batch = _choose(embedder, character_ids, layers).to(getattr(torch, dtype)).cpu().numpy()
        for row, position in enumerate(positions):
            vectors[position] = batch[..., row, : len(window[position].tokens), :]
    return [vectors[position] for position in range(len(window))]


def _choose(embedder: ElmoEmbedder, character_ids: torch.Tensor, layers: str) -> torch.Tensor:
    if layers == "mix":
        return embedder(character_ids)
    all_layers = embedder.layers(character_ids)
    if layers == "top":
        return all_layers[-1]
    if layers == "average":
        return all_layers.mean(dim=0)
    return all_layers
