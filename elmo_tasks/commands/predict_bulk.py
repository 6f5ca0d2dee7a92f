"""
The `predict-bulk` command is `allennlp predict` for many rows, many files and many workers:

    allennlp predict-bulk model.tar.gz reviews/*.jsonl -s predictions --workers 8
    cat predictions/part-*.jsonl

It needs Dask.
"""

import argparse
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError, check_for_gpu
from allennlp.common.file_utils import cached_path
from allennlp.common.tqdm import Tqdm
from allennlp.models.archival import CONFIG_NAME, get_weights_path

from elmo_tasks.commands.bulk_input import BulkInput, Part
from elmo_tasks.commands.bulk_output import PARTS, bulk_output
from elmo_tasks.commands.output_paths import check_output_folder
from elmo_tasks.common.user_errors import told_to_go_on

DESCRIPTION = """\
Predict the rows of files, as `allennlp predict` does, in many processes, on this machine or on those of a Dask
cluster. Each row is predicted once, and the outputs are in the order of the rows: cat DIR/part-*.jsonl. Each part is
written when it is finished: whatever was interrupted, the same command goes on from there, as it does once a row that
failed is mended.
"""
# A multiple of usual batch sizes, so that batches are those of `allennlp predict`.
PART_SIZE = 4096
_MAX_ERRORS_SHOWN = 10


@Subcommand.register("predict-bulk")
class PredictBulkCommand(Subcommand):
    """
    Predicts the rows of files in many processes (`predict_bulk`).

    Registered as a `Subcommand` with name "predict-bulk".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """See `Subcommand`."""
        subparser = parser.add_parser(
            self.name, description=DESCRIPTION, help="Predict many rows in many processes, with Dask."
        )
        subparser.add_argument("archive", metavar="ARCHIVE", help="the trained model: model.tar.gz, or its folder")
        subparser.add_argument(
            "inputs", metavar="INPUT", nargs="+", help="JSON lines: a file, a folder of files, or a pattern of files"
        )
        subparser.add_argument(
            "-s",
            "--serialization-dir",
            metavar="DIR",
            required=True,
            help="folder of the outputs, part-000000.jsonl and so on",
        )
        where = subparser.add_mutually_exclusive_group()
        where.add_argument(
            "--workers", metavar="N", type=int, help="processes on this machine, of one thread; default: one a core"
        )
        where.add_argument(
            "--scheduler",
            metavar="ADDRESS",
            help="of a Dask cluster, such as tcp://10.0.0.1:8786; its workers need this package and the archive, under "
            "the same path or as a URL, but neither inputs nor DIR",
        )
        subparser.add_argument("--batch-size", metavar="B", type=int, default=64, help="rows of a batch")
        subparser.add_argument("--part-size", metavar="N", type=int, default=PART_SIZE, help="rows of a part")
        subparser.add_argument(
            "--use-dataset-reader", action="store_true", help="inputs are data files, as the reader of the model has"
        )
        subparser.add_argument("--predictor", metavar="NAME", help="a predictor other than that of the model")
        subparser.add_argument("--cuda-device", metavar="ID", type=int, default=-1, help="the GPU of each worker")
        subparser.add_argument(
            "-o", "--overrides", default="", help="json(net) of changes to the config, as for `allennlp predict`"
        )
        subparser.set_defaults(func=_predict_bulk_from_args)
        return subparser


def predict_bulk(
    archive: str,
    inputs: List[str],
    directory: str,
    num_workers: Optional[int] = None,
    scheduler: Optional[str] = None,
    batch_size: int = 64,
    part_size: int = PART_SIZE,
    use_dataset_reader: bool = False,
    predictor: Optional[str] = None,
    cuda_device: int = -1,
    overrides: str = "",
    include_package: Optional[List[str]] = None,
) -> None:
    """
    Predicts what is missing of all rows, and prints where the outputs are.

    # Parameters

    archive : `str`
        A `model.tar.gz` or its folder.
    inputs : `List[str]`
        See `BulkInput`.
    directory : `str`
        The folder of the outputs (`BulkOutput`).
    num_workers, scheduler : optional (default = `None`)
        See `predict_parts`.
    batch_size : `int`, optional (default = `64`)
        Rows of a batch.
    part_size : `int`, optional (default = `4096`)
        Rows of a part, which is what a worker gets, and what is lost when it dies.
    use_dataset_reader : `bool`, optional (default = `False`)
        Whether the inputs are data files of the reader in place of JSON lines.
    predictor : `str`, optional (default = `None`)
        The name of a predictor. `None`: the one of the model.
    cuda_device : `int`, optional (default = `-1`)
        The GPU that each worker computes on; -1: the CPU.
    overrides : `str`, optional (default = `""`)
        JSON or jsonnet, as for `allennlp predict`.
    include_package : `List[str]`, optional (default = `None`)
        Packages that workers import.

    # Raises

    `ConfigurationError`
        Before anything is predicted: Dask is missing, an argument, the archive or a line of the input does not serve.
        When all else is predicted: a row has failed; with its file and line.
    """
    if importlib.util.find_spec("distributed") is None:
        raise ConfigurationError(
            "`allennlp predict-bulk` must have Dask, but it is not installed: pip install 'distributed>=2023.5', or "
            "this package with its extra `bulk`"
        )
    # Only this command needs it.
    from elmo_tasks.commands.bulk_workers import PredictorSettings, load_predictor, predict_parts

    for name, value in (("--workers", num_workers), ("--batch-size", batch_size), ("--part-size", part_size)):
        if value is not None and value < 1:
            raise ConfigurationError(f"`{name}` must be at least 1, but is {value}")
    if scheduler is None:  # else the workers' machines count
        check_for_gpu(cuda_device)
    check_output_folder(directory)
    archive = os.path.abspath(archive) if os.path.exists(archive) else archive
    digest = _digest(archive)
    settings = PredictorSettings(archive, digest, predictor, overrides, cuda_device, tuple(include_package or ()))
    # It reads the rows, and shows early what is wrong with the archive.
    own_predictor = load_predictor(settings._replace(cuda_device=-1))
    _check_keeps_no_state(own_predictor, archive)
    bulk_input = BulkInput(own_predictor, inputs, use_dataset_reader)
    kept_settings: Dict[str, Any] = {
        "archive": digest,
        "inputs": [os.path.abspath(path) for path in inputs],
        "use_dataset_reader": use_dataset_reader,
        "predictor": predictor,
        "overrides": overrides,
        "batch_size": batch_size,
        "part_size": part_size,
    }
    errors: List[str] = []
    was_finished = True
    with bulk_output(Path(directory), kept_settings) as output:
        with Tqdm.tqdm(total=bulk_input.check(), desc="rows", unit="row") as progress:

            def missing() -> Iterator[Part]:
                for part in bulk_input.parts(part_size):
                    if output.has(part):
                        progress.update(len(part.places))
                    else:
                        yield part

            for part, outcome in predict_parts(missing(), settings, batch_size, num_workers, scheduler):
                was_finished = False
                if outcome.error:
                    errors.append(outcome.error)
                else:
                    output.write(part, outcome.outputs)
                    progress.update(len(part.places))
        output.finish(bulk_input.num_parts)
    if errors:
        shown = "\n".join(errors[:_MAX_ERRORS_SHOWN] + ["..."] * (len(errors) > _MAX_ERRORS_SHOWN))
        raise ConfigurationError(
            f"each row must be predicted, but {len(errors)} of {bulk_input.num_parts} parts have one that fails; the "
            f"other parts are in {directory}. Mend the rows, and repeat the command:\n{shown}"
        )
    already = "already " if was_finished else ""
    print(f"{bulk_input.num_rows:,} rows are {already}predicted: {os.path.join(directory, PARTS)}")


def _check_keeps_no_state(predictor: Any, archive: str) -> None:
    """With a state, a prediction depends on the rows before it, and so on which worker gets which rows."""
    for name, module in predictor._model.named_modules():
        if getattr(module, "stateful", False) or getattr(module, "is_stateful", False):
            raise ConfigurationError(
                f"a model for `predict-bulk` must keep no state between batches, but `{name}` of {archive} does; use "
                "`allennlp predict`, or the embedder `elmo`, which keeps none by default"
            )


def _digest(archive: str) -> str:
    """Of the archive, or of what its folder is used for."""
    path = Path(cached_path(archive))
    paths = [path]
    if path.is_dir():
        paths = [path / CONFIG_NAME, Path(get_weights_path(path)), *sorted(path.glob("vocabulary/*.txt"))]
    digest = hashlib.blake2b(digest_size=16)
    for file_path in paths:
        with open(file_path, "rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()


@told_to_go_on()
def _predict_bulk_from_args(args: argparse.Namespace) -> None:
    predict_bulk(
        args.archive,
        args.inputs,
        args.serialization_dir,
        num_workers=args.workers,
        scheduler=args.scheduler,
        batch_size=args.batch_size,
        part_size=args.part_size,
        use_dataset_reader=args.use_dataset_reader,
        predictor=args.predictor,
        cuda_device=args.cuda_device,
        overrides=args.overrides,
        include_package=args.include_package,
    )
