"""
The official hdf5 file of a biLM's weights, read and written through one table.

Our parameters hold the file's numbers as they are, some of them transposed. What TensorFlow does while it runs, our
layers do while they run: one is added to the forget gate's bias, and the highway's "carry" is the share of the
transformation. So a file that was read is written again bit for bit.
"""

import hashlib
import json
from typing import Dict, Iterator, List, Optional, Tuple, Union

import h5py
import numpy
import torch

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.network import BiLm
from elmo_tasks.bilm.word_table import WordTable
from elmo_tasks.common.files import written_whole

DTYPES = ("float32", "float16")


def weights_by_key(bilm: BiLm) -> Dict[str, List[torch.Tensor]]:
    """
    The table: each array of the file, in the file's order of dimensions, as views of our parameters. Where there are
    two, the array is one above the other.

    # Parameters

    bilm : `BiLm`

    # Returns

    `Dict[str, List[torch.Tensor]]`
        To write into a view is to write into the parameter; it wants `torch.no_grad`.
    """
    table = _encoder_weights_by_key(bilm.character_encoder)
    for direction in (0, 1):
        for index, layer in enumerate(bilm.layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{index}/LSTMCell"
            table[f"{cell}/W_0"] = [layer.input_kernel[direction].t(), layer.recurrent_kernel[direction].t()]
            table[f"{cell}/B"] = [layer.bias[direction]]
            table[f"{cell}/W_P_0"] = [layer.projection[direction].t()]
    return table


def _encoder_weights_by_key(encoder: Union[CharacterEncoder, WordTable]) -> Dict[str, List[torch.Tensor]]:
    if isinstance(encoder, WordTable):
        return {"embedding": [encoder.vectors]}
    # 261 rows: the row of zeros for padding, which AllenNLP adds when it loads, is no parameter of ours.
    table: Dict[str, List[torch.Tensor]] = {"char_embed": [encoder.characters]}
    for index, convolution in enumerate(encoder.convolutions):
        table[f"CNN/W_cnn_{index}"] = [convolution.weight.unsqueeze(0)]
        table[f"CNN/b_cnn_{index}"] = [convolution.bias]
    for index, highway in enumerate(encoder.highways):
        for name, linear in (("transform", highway.transform), ("carry", highway.carry)):
            table[f"CNN_high_{index}/W_{name}"] = [linear.weight.t()]
            table[f"CNN_high_{index}/b_{name}"] = [linear.bias]
    table["CNN_proj/W_proj"] = [encoder.projection.weight.t()]
    table["CNN_proj/b_proj"] = [encoder.projection.bias]
    return table


def load_weights(bilm: BiLm, path: str) -> None:
    """
    Reads an official weight file into a biLM. Nothing is changed where the file does not fit.

    # Parameters

    bilm : `BiLm`
    path : `str`
        An hdf5 file, its arrays in float32 or float16.

    # Raises

    ValueError
        With all arrays that are missing, unexpected, of a wrong shape or type, or not in the file itself (links).
    """
    table = weights_by_key(bilm)
    with _open(path) as file, torch.no_grad():
        problems = _problems(file, {key: _shape(views) for key, views in table.items()})
        if problems:
            raise ValueError(
                f"{path} does not hold the weights of this biLM; do options and weights belong together?\n"
                + "\n".join(f"- {problem}" for problem in problems)
            )
        for key, views in table.items():
            array = torch.from_numpy(file[key][...])
            for view, part in zip(views, array.split([len(view) for view in views])):
                view.copy_(part)


def save_weights(bilm: BiLm, path: str, dtype: str = "float32") -> None:
    """
    Writes the weights of a biLM as an official file, which bilm-tf and AllenNLP's `Elmo` read.

    # Parameters

    bilm : `BiLm`
    path : `str`
        Replaced in one go where it exists: no other process sees half a file.
    dtype : `str`, optional (default = `"float32"`)
        "float16" halves the file; AllenNLP reads it as well. The biases of the LSTMs stay float32 all the same:
        AllenNLP adds 1 to some of them in the type of the file, which would round them once more.

    # Raises

    ValueError
        Where the type is another, or a weight is too large for it.
    """
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be one of {DTYPES}, but is {dtype!r}")
    with written_whole(path) as partial, h5py.File(partial, "w") as file:
        for key, array in _arrays(bilm):
            with numpy.errstate(over="ignore"):
                stored = array.astype("float32" if key.endswith("/B") else dtype)
            if not numpy.isfinite(stored).all():
                largest = numpy.abs(array).max()
                raise ValueError(f"`{key}` must be finite in {dtype}, but its largest weight is {largest}")
            file[key] = stored


def weights_digest(bilm: BiLm) -> str:
    """
    # Parameters

    bilm : `BiLm`

    # Returns

    `str`
        A SHA-256 of options and weights, in hexadecimal: equal for equal biLMs in any process, wherever they come from.
    """
    digest = hashlib.sha256(json.dumps(bilm.options.to_dict(), sort_keys=True).encode("utf-8"))
    for key, array in _arrays(bilm):
        digest.update(f"{key} {array.shape}".encode())
        digest.update(array.astype("<f4").tobytes())
    return digest.hexdigest()


def _arrays(bilm: BiLm) -> Iterator[Tuple[str, numpy.ndarray]]:
    """The file's arrays, one after the other, so that there is never a second copy of all weights."""
    for key, views in weights_by_key(bilm).items():
        weights = torch.cat([view.detach() for view in views]).contiguous().cpu()
        # NumPy has no bfloat16.
        yield key, (weights.float() if weights.dtype == torch.bfloat16 else weights).numpy()


def _shape(views: List[torch.Tensor]) -> Tuple[int, ...]:
    return (sum(len(view) for view in views), *views[0].shape[1:])


def _open(path: str) -> h5py.File:
    try:
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(
            f"{path} must be an hdf5 file, but cannot be read as one ({error}); is it complete?"
        ) from error


def _problems(file: h5py.File, shapes: Dict[str, Tuple[int, ...]]) -> List[str]:
    """All that is wrong with a file, found without reading an array or following a link."""
    problems = []
    found = dict(_objects(file, "", list(shapes)))
    for key, found_object in found.items():
        if found_object is None:
            problems.append(f"`{key}` must be in the file itself, but is a link to elsewhere")
        elif key not in shapes:
            problems.append(f"`{key}` is unexpected")
        elif not isinstance(found_object, h5py.Dataset):
            problems.append(f"`{key}` must be an array, but is a group")
        elif found_object.shape != shapes[key]:
            problems.append(f"`{key}` must have shape {shapes[key]}, but is {found_object.shape}")
        elif found_object.dtype not in DTYPES:
            problems.append(f"`{key}` must be one of {DTYPES}, but is {found_object.dtype}")
        elif found_object.is_virtual or found_object.external is not None:
            problems.append(f"`{key}` must be in the file itself, but its numbers are in another")
        elif any(piece > size for piece, size in zip(found_object.chunks or (), found_object.shape)):
            # One piece is unpacked whole, whatever is read of it.
            problems.append(
                f"`{key}` must be stored in pieces no larger than itself, but they are {found_object.chunks}"
            )
    return problems + [f"`{key}` is missing" for key in shapes if key not in found]


def _objects(
    group: h5py.Group, prefix: str, expected: List[str]
) -> Iterator[Tuple[str, Optional[Union[h5py.Dataset, h5py.Group]]]]:
    """What is in a file; `None`: a link. Groups in which nothing is expected are not opened."""
    for name in group:
        key = prefix + name
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            yield key, None
        elif isinstance(group[name], h5py.Group) and any(other.startswith(f"{key}/") for other in expected):
            yield from _objects(group[name], f"{key}/", expected)
        else:
            yield key, group[name]
