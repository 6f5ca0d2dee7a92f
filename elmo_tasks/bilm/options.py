"""`options.json` of a biLM: parsed, checked, written. Only this file knows the official spelling."""

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from elmo_tasks.common.files import written_whole

# The character table of a weight file has 261 rows (256 bytes and five marks). `options.json` counts one more where
# it describes a biLM in use, since id 0 is then padding; bilm-tf's training options count 261.
NUM_CHARACTERS_IN_FILE = 261
NUM_CHARACTERS = NUM_CHARACTERS_IN_FILE + 1

ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class BiLmOptions:
    """
    The shape of a biLM.

    # Parameters

    character_dim : `int`
        Size of a character's vector (16 in the published models).
    filters : `Tuple[Tuple[int, int], ...]`
        Width in characters and number of filters, for each convolution.
    activation : `str`
        Follows each convolution: "relu" or "tanh".
    num_highway_layers : `int`
        Highway layers over the concatenated filters.
    max_characters_per_token : `int`
        Length of a token's row of character ids (50).
    num_layers : `int`
        LSTM layers (2).
    cell_dim : `int`
        Size of the memory cell of one direction (4096).
    projection_dim : `int`
        Size of a token vector, and of the output of one direction (512).
    cell_clip : `Optional[float]`
        The memory cell is kept within +-`cell_clip`; `None`: no bound.
    projection_clip : `Optional[float]`
        The projected output is kept within +-`projection_clip`; `None`: no bound.

    # Raises

    ValueError
        With all that is wrong, where a value is impossible.

    # Source

    The sizes of <https://arxiv.org/abs/1802.05365>, the spelling of <https://github.com/allenai/bilm-tf>.
    """

    character_dim: int
    filters: Tuple[Tuple[int, int], ...]
    activation: str
    num_highway_layers: int
    max_characters_per_token: int
    num_layers: int
    cell_dim: int
    projection_dim: int
    cell_clip: Optional[float] = None
    projection_clip: Optional[float] = None

    def __post_init__(self) -> None:
        problems = []
        for name in ("character_dim", "num_layers", "cell_dim", "projection_dim"):
            if getattr(self, name) < 1:
                problems.append(f"`{name}` must be at least 1, but is {getattr(self, name)}")
        if self.num_highway_layers < 0:
            problems.append(f"`num_highway_layers` must not be negative, but is {self.num_highway_layers}")
        if self.activation not in ACTIVATIONS:
            problems.append(f"`activation` must be one of {ACTIVATIONS}, but is {self.activation!r}")
        if not self.filters or any(width < 1 or count < 1 for width, count in self.filters):
            problems.append(f"`filters` must be pairs of a width and a number, all at least 1, but is {self.filters}")
        # A row holds at least the marks of a word's begin and end and one character between them.
        shortest = max([3] + [width for width, _ in self.filters])
        if self.max_characters_per_token < shortest:
            problems.append(
                f"`max_characters_per_token` must be at least {shortest}, the widest filter or a word of one "
                f"character, but is {self.max_characters_per_token}"
            )
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            if clip is not None and clip <= 0:
                problems.append(f"`{name}` must be above 0, or None for no bound, but is {clip}")
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def num_filters(self) -> int:
        """All filters of all widths: the size of the highway layers."""
        return sum(count for _, count in self.filters)

    @property
    def bilm_dim(self) -> int:
        """Both directions side by side: the size of a layer's output."""
        return 2 * self.projection_dim

    @property
    def num_representations(self) -> int:
        """Layers that a mix weighs: the token vectors and each LSTM layer."""
        return self.num_layers + 1

    @classmethod
    def from_file(cls, path: str) -> "BiLmOptions":
        """
        # Parameters

        path : `str`
            An official `options.json`.

        # Raises

        ValueError
            As `from_dict`, or where the file is not JSON; the message names the file.
        """
        with open(path, encoding="utf-8") as options_file:
            try:
                options = json.load(options_file)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path} must be the options.json of a biLM, but is not JSON: {error}") from error
        try:
            return cls.from_dict(options)
        except ValueError as error:
            raise ValueError(f"{error} (in {path})") from error

    @classmethod
    def from_dict(cls, options: Dict[str, Any]) -> "BiLmOptions":
        """
        # Parameters

        options : `Dict[str, Any]`
            What `options.json` holds. Keys that only matter to bilm-tf's training are ignored.

        # Raises

        ValueError
            Where a key is missing or of the wrong type, or where the options describe a biLM of another kind: over
            words instead of characters, without residual connections, in one direction only.
        """
        if not isinstance(options, dict):
            raise ValueError(f"the options of a biLM must be a JSON object, but are {options!r}")
        if "char_cnn" not in options:
            raise ValueError(
                "`char_cnn` must be among the options, but is missing; biLMs over a word vocabulary are not supported"
            )
        if _get(options, "bidirectional", bool, True) is not True:
            raise ValueError("`bidirectional` must be true; biLMs of one direction are not supported")
        if _get(options, "lstm.use_skip_connections", bool, False) is not True:
            raise ValueError(
                "`lstm.use_skip_connections` must be true; biLMs without residual connections are not supported"
            )
        num_characters = _get(options, "char_cnn.n_characters", int)
        if num_characters not in (NUM_CHARACTERS_IN_FILE, NUM_CHARACTERS):
            raise ValueError(
                f"`char_cnn.n_characters` must be {NUM_CHARACTERS} (or {NUM_CHARACTERS_IN_FILE}, as in training), "
                f"but is {num_characters}; only UTF-8 bytes as characters are supported"
            )
        return cls(
            character_dim=_get(options, "char_cnn.embedding.dim", int),
            filters=_get_filters(options),
            activation=_get(options, "char_cnn.activation", str),
            num_highway_layers=_get(options, "char_cnn.n_highway", int, 0) or 0,
            max_characters_per_token=_get(options, "char_cnn.max_characters_per_token", int),
            num_layers=_get(options, "lstm.n_layers", int, 1),
            cell_dim=_get(options, "lstm.dim", int),
            projection_dim=_get(options, "lstm.projection_dim", int),
            # bilm-tf and AllenNLP both read 0 and null as "no bound".
            cell_clip=_get(options, "lstm.cell_clip", (int, float), None) or None,
            projection_clip=_get(options, "lstm.proj_clip", (int, float), None) or None,
        )

    def to_dict(self) -> Dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            The official spelling, as bilm-tf and AllenNLP read it; `from_dict` of it gives equal options.
        """
        return {
            "lstm": {
                "use_skip_connections": True,
                "projection_dim": self.projection_dim,
                "cell_clip": None if self.cell_clip is None else float(self.cell_clip),
                "proj_clip": None if self.projection_clip is None else float(self.projection_clip),
                "dim": self.cell_dim,
                "n_layers": self.num_layers,
            },
            "char_cnn": {
                "activation": self.activation,
                "filters": [[width, count] for width, count in self.filters],
                "n_highway": self.num_highway_layers,
                "embedding": {"dim": self.character_dim},
                "n_characters": NUM_CHARACTERS,
                "max_characters_per_token": self.max_characters_per_token,
            },
        }

    def to_file(self, path: str) -> None:
        """
        # Parameters

        path : `str`
            Where to write the official `options.json`.
        """
        with written_whole(path) as partial, open(partial, "w", encoding="utf-8") as options_file:
            json.dump(self.to_dict(), options_file, indent=2)
            options_file.write("\n")


_REQUIRED = object()


def _get(options: Dict[str, Any], dotted_key: str, kind: Any, default: Any = _REQUIRED) -> Any:
    value: Any = options
    for key in dotted_key.split("."):
        if not isinstance(value, dict) or key not in value:
            if default is _REQUIRED:
                raise ValueError(f"`{dotted_key}` must be among the options, but is missing")
            return default
        value = value[key]
    if value is None and default is not _REQUIRED:
        return default
    # JSON's true is an int to Python.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise ValueError(f"`{dotted_key}` must be of type {names}, but is {value!r}")
    return value


def _get_filters(options: Dict[str, Any]) -> Tuple[Tuple[int, int], ...]:
    filters: List[Any] = _get(options, "char_cnn.filters", list)
    for pair in filters:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
            raise ValueError(f"`char_cnn.filters` must hold pairs of a width and a number, but holds {pair!r}")
    return tuple((width, count) for width, count in filters)
