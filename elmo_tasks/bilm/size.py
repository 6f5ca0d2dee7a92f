"""Whether a file can hold the biLM that options describe, asked before there is memory for one."""

import os
from typing import Union

from elmo_tasks.bilm.options import NUM_CHARACTERS_IN_FILE, BiLmOptions
from elmo_tasks.bilm.word_table import WordOptions

# A weight takes 2 bytes at least, and compression makes a file of trained weights little smaller; ten times smaller it
# may still be.
MIN_BYTES_PER_PARAMETER = 0.2


def num_parameters(options: Union[BiLmOptions, WordOptions]) -> int:
    """
    # Returns

    `int`
        The numbers in a `BiLm` with these options.
    """
    # Both directions; gates and their biases, then the projection.
    kernel = 2 * options.projection_dim * 4 * options.cell_dim
    layer = 2 * (kernel + 4 * options.cell_dim + options.cell_dim * options.projection_dim)
    return _num_parameters_below(options) + options.num_layers * layer


def _num_parameters_below(options: Union[BiLmOptions, WordOptions]) -> int:
    """Those of the token vectors."""
    if isinstance(options, WordOptions):
        return len(options.words) * options.projection_dim
    table = NUM_CHARACTERS_IN_FILE * options.character_dim
    convolutions = sum(count * (width * options.character_dim + 1) for width, count in options.filters)
    # Each a transformation and its share.
    highways = options.num_highway_layers * 2 * options.num_filters * (options.num_filters + 1)
    projection = options.projection_dim * (options.num_filters + 1)
    return table + convolutions + highways + projection


def check_size(options: Union[BiLmOptions, WordOptions], path: str) -> None:
    """
    # Parameters

    options : `Union[BiLmOptions, WordOptions]`
    path : `str`
        The file that the weights are to come from.

    # Raises

    ValueError
        Where the file is far too small for them, whatever its arrays claim: before memory is taken.
    """
    num_bytes = os.path.getsize(path)
    if num_bytes < MIN_BYTES_PER_PARAMETER * num_parameters(options):
        raise ValueError(
            f"{path} must hold the {num_parameters(options):,} weights of this biLM, but has {num_bytes:,} bytes; do "
            "options and weights belong together?"
        )
