"""
What keeps a file that comes from someone else from running code, or from filling disk and memory.

Each function below is one protection, put in the place of what AllenNLP or torch does; its docstring says against
what. They may be applied in any order and any number of times. `elmo_tasks` applies them at import.

Out of reach: a config is a jsonnet program. It can read every file that its user can (`import`, `importstr`) and all
of the environment (`std.extVar`), can name any path, URL and installed class of the kinds that AllenNLP builds, and
importing the module of a class runs that module. Only the first of these is closed to the config of an archive, which
is plain JSON. Data in archives (`corpus.zip!member`) are unpacked by `cached_path` as they are, once their size was
looked at (`check_unpacked_size`).
"""

import contextlib
import inspect
import os
import pickle
import re
import shutil
import tempfile
import zipfile
from typing import Any, Callable, Iterator, List

import allennlp.models.archival as archival
import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError

from elmo_tasks.common import data_pickle
from elmo_tasks.common.archives import unpack
from elmo_tasks.common.replacement import replace_once

_ZIP_MAGIC = b"PK\x03\x04"


class UnsafeFileError(ConfigurationError, pickle.UnpicklingError):
    """A file asks for more than data. Whoever expects torch's own error, of the second type, gets it."""


def apply() -> None:
    """Applies every protection."""
    for protection in PROTECTIONS:
        protection()


def unpack_archives_as_plain_files() -> None:
    """
    `model.tar.gz`: members that are written outside the folder, links, devices, a few bytes that unpack to terabytes.

    Python before 3.14 extracts all of it. Here members are files and folders, their size is bounded (`unpack`), and the
    folder, which is gone after an error, has the archive's name, so that messages about a member tell whose it is.
    """

    def plain(_: Callable) -> Callable:
        @contextlib.contextmanager
        def extracted_archive(resolved_archive_file: Any, cleanup: bool = True) -> Iterator[str]:
            path = os.fspath(resolved_archive_file)
            folder = tempfile.mkdtemp(prefix=os.path.basename(path) + ".")
            keep = False
            try:
                unpack(path, folder)
                keep = not cleanup
                yield folder
            finally:
                if not keep:
                    shutil.rmtree(folder, ignore_errors=True)

        return extracted_archive

    replace_once(archival, "extracted_archive", plain)


def load_data_without_code() -> None:
    """
    `weights.th`, `training_state_….th`: a pickle can call any function while it is read.

    Since 2.6 `torch.load` refuses by default what is not on its list, and this makes it the default everywhere: 2.4 and
    2.5 have the list; older ones read with `data_pickle`. Whoever passes `weights_only=False` or a `pickle_module` gets
    what he asks for. The error is one sentence; torch's advises to switch the protection off. A file whose parts claim
    to be larger than the file is refused, as is TorchScript.
    """

    def data_only(load: Callable) -> Callable:
        is_old = not hasattr(torch.serialization, "add_safe_globals")
        signature = inspect.signature(load)
        has_to_be_told = not is_old and signature.parameters["weights_only"].default is False

        def load_data(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            if given.get("pickle_module") is not None or given.get("weights_only") is False:
                return load(*args, **options)
            name = _name_of(given["f"])
            _check_parts(given["f"], name)
            if is_old and "weights_only" not in given:
                options["pickle_module"] = data_pickle
            elif has_to_be_told:
                options["weights_only"] = True
            try:
                return load(*args, **options)
            except pickle.UnpicklingError as error:
                wanted = re.search(r"GLOBAL (\S+)", str(error))
                if wanted is None:
                    raise UnsafeFileError(
                        f"{name} must hold tensors as torch.save writes them, but cannot be read as such; is it "
                        "damaged? Copy or make it again"
                    ) from error
                raise UnsafeFileError(
                    f"{name} must hold nothing but tensors and plain values, but asks for `{wanted.group(1)}`, which "
                    "was not run; do not use the file, or, if it is your own, save it again without that object"
                ) from error

        return load_data

    replace_once(torch, "load", data_only)
    torch.serialization.load = torch.load


def _name_of(file: Any) -> str:
    return os.fspath(file) if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", "a file"))


def _check_parts(file: Any, name: str) -> None:
    """What torch saves is a ZIP archive that is not compressed, or no archive at all."""
    if not isinstance(file, (str, os.PathLike)):
        return
    with open(file, "rb") as stream:
        if stream.read(len(_ZIP_MAGIC)) != _ZIP_MAGIC:  # by which torch decides, too
            return
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    # Torch has a reader of its own: what is not understood here must not pass to it unseen. `zipfile` raises the second
    # for a kind of ZIP that it cannot read.
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise UnsafeFileError(
            f"{name} must hold tensors as torch.save writes them, but cannot be read as such ({error}); is it damaged? "
            "Copy or make it again"
        ) from error
    if sum(member.file_size for member in members) > os.path.getsize(file):
        raise UnsafeFileError(
            f"{name} must hold tensors as torch.save writes them, but its parts claim to be larger than the file; do "
            "not use it"
        )
    if any(os.path.basename(member.filename) == "constants.pkl" for member in members):
        raise UnsafeFileError(
            f"{name} must hold tensors and plain values, but is a TorchScript program; save the state_dict() of its "
            "module in its place"
        )


def construct_no_arbitrary_classes() -> None:
    """
    `"type": "subprocess.Popen"` in the config of an archive runs a command.

    AllenNLP takes a name with dots for the path of a class, imports its module, and calls it with the other entries.
    Here the class must be of the kind that the place in the config asks for, or a module of torch, which AllenNLP's
    `Activation` takes.
    """

    def of_its_kind(resolve: Callable) -> Callable:
        def resolve_class_name(cls: Any, name: str) -> Any:
            found, constructor = resolve(cls, name)
            is_by_path = name not in Registrable._registry[cls]
            if is_by_path and not (isinstance(found, type) and issubclass(found, (cls, torch.nn.Module))):
                raise ConfigurationError(
                    f"`type` must be a registered name of a `{cls.__name__}` or the path of a subclass, but is "
                    f"{name!r}; derive the class from `{cls.__name__}`"
                )
            return found, constructor

        return resolve_class_name

    replace_once(Registrable, "resolve_class_name", of_its_kind)


PROTECTIONS: List[Callable[[], None]] = [
    unpack_archives_as_plain_files,
    load_data_without_code,
    construct_no_arbitrary_classes,
]
