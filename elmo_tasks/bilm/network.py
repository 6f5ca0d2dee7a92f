"""
The bidirectional language model: character ids in, every layer out.

Read this file first: a token's characters give its vector (`CharacterEncoder`), and each LSTM layer (`ClippedLstm`)
reads the layer below, forwards and backwards. All else here brings sentences into the order in which the layers read.
"""

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

import torch
from torch import nn

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.character_ids import add_boundaries, distinct_words
from elmo_tasks.bilm.lstm import ClippedLstm, LstmState
from elmo_tasks.bilm.options import NUM_CHARACTERS, BiLmOptions
from elmo_tasks.bilm.products import wants_gradient, without_autocast
from elmo_tasks.bilm.word_table import WordOptions, WordTable

# The type of the factors of products; `None`: that of the parameters.
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}

# The layers run over so many tokens at a time, the longest sentences first: memory stays bounded, whatever the batch.
TOKENS_PER_RUN = 8192


class BiLmOutput(NamedTuple):
    """
    What a biLM says of a batch of sentences. "With boundaries": `<S>` and `</S>` count as tokens.

    # Parameters

    token_vectors : `torch.Tensor`
        `(batch_size, num_tokens_with_boundaries, projection_dim)`, zeros at padding: what the characters alone say.
    contextual : `List[torch.Tensor]`
        For each LSTM layer `(batch_size, num_tokens_with_boundaries, bilm_dim)`, zeros at padding: the forward
        direction's output first, then the backward direction's.
    mask : `torch.Tensor`
        bool `(batch_size, num_tokens_with_boundaries)`, false at padding.
    state : `LstmState`
        Of all layers after this batch.
    """

    token_vectors: torch.Tensor
    contextual: List[torch.Tensor]
    mask: torch.Tensor
    state: LstmState

    @property
    def activations(self) -> List[torch.Tensor]:
        """
        The `num_representations` layers that a mix weighs, `(batch_size, num_tokens_with_boundaries, bilm_dim)` each:
        the token vectors twice side by side, then the LSTM layers.
        """
        return [torch.cat([self.token_vectors, self.token_vectors], dim=-1), *self.contextual]


class BiLm(nn.Module):
    """
    The biLM of ELMo.

    Each sentence is read for itself, from a state of zeros: what is in the batch beside it does not matter, nor what
    came before. To go on where an earlier batch stopped, hand in its state.

    # Parameters

    options : `Union[BiLmOptions, WordOptions]`
        Those of an ELMo, or of a biLM that looks its token vectors up.
    precision : `str`, optional (default = `"float32"`)
        "bfloat16" rounds the factors and results of all large products; memory cells stay float32, the type of all
        that is returned. About twice as fast on a processor with bfloat16 instructions. Only where no gradient is
        wanted.

    # Raises

    ValueError
        Where the precision is unknown.

    # Source

    <https://arxiv.org/abs/1802.05365>. Weights of the published models: `elmo_tasks.bilm.weights`.
    """

    def __init__(self, options: Union[BiLmOptions, WordOptions], precision: str = "float32") -> None:
        super().__init__()
        if precision not in PRECISIONS:
            raise ValueError(f"`precision` must be one of {sorted(PRECISIONS)}, but is {precision!r}")
        self.options = options
        self.precision = precision
        self.character_encoder: Union[CharacterEncoder, WordTable] = (
            WordTable(options) if isinstance(options, WordOptions) else CharacterEncoder(options)
        )
        layers = [
            ClippedLstm(
                options.projection_dim,
                options.cell_dim,
                options.projection_dim,
                options.cell_clip,
                options.projection_clip,
            )
            for _ in range(options.num_layers)
        ]
        # The casts here and in the encoder tell mypy what a module list holds.
        self.layers = cast(Sequence[ClippedLstm], nn.ModuleList(layers))

    def forward(self, character_ids: torch.Tensor, state: Optional[LstmState] = None) -> BiLmOutput:
        """
        # Parameters

        character_ids : `torch.Tensor`
            Integers `(batch_size, num_tokens, max_characters_per_token)` without boundaries, 0 = padding.
        state : `Optional[LstmState]`, optional (default = `None`)
            An earlier output's state, `hidden` `(num_layers, 2, any_batch_size, projection_dim)` and `memory`
            `(num_layers, 2, any_batch_size, cell_dim)`: row by row, the sentences go on from it. Where it has fewer
            rows than the batch, the others start from zeros; where it has more, the rest is handed on as it is.
            Detach it, unless gradients are to reach into the earlier batch.

        # Returns

        `BiLmOutput`

        # Raises

        ValueError
            Where the ids are of the wrong shape or range, where a token follows padding, or where a gradient is wanted
            in reduced precision.
        """
        character_ids = self._check(character_ids)
        with without_autocast(character_ids.device):
            # (batch_size, num_tokens_with_boundaries, max_characters_per_token), (batch_size,)
            character_ids, lengths = add_boundaries(character_ids)
            batch_size, num_tokens, _ = character_ids.shape
            # (batch_size, num_tokens_with_boundaries)
            mask = torch.arange(num_tokens, device=lengths.device) < lengths.unsqueeze(1)

            words, word_of_token = distinct_words(character_ids[mask])
            # (num_words, projection_dim)
            word_vectors = self.character_encoder(words, PRECISIONS[self.precision])
            # (batch_size, num_tokens_with_boundaries, projection_dim)
            token_vectors = word_vectors.new_zeros(batch_size, num_tokens, self.options.projection_dim)
            token_vectors[mask] = word_vectors[word_of_token]
            # (batch_size, num_tokens_with_boundaries)
            word_indices = torch.zeros_like(mask, dtype=torch.int64)
            word_indices[mask] = word_of_token

            old_state = self._state_for(batch_size, state)
            new_state = LstmState(old_state.hidden.clone(), old_state.memory.clone())
            # For each layer (batch_size * num_tokens_with_boundaries, 2, projection_dim)
            contextual = [
                word_vectors.new_zeros(batch_size * num_tokens, 2, self.options.projection_dim) for _ in self.layers
            ]
            for run in _runs(lengths, num_tokens):
                used_words, rows = word_indices.flatten()[run.positions].unique(return_inverse=True)
                inputs = word_vectors[used_words].expand(2, -1, -1)
                outputs, run_state = self._run_layers(
                    inputs, rows, run.batch_sizes, old_state.select_rows(run.sentences)
                )
                for layer, layer_outputs in zip(contextual, outputs):
                    for direction in range(2):
                        layer[run.positions[direction], direction] = layer_outputs[direction]
                new_state.hidden[..., run.sentences, :] = run_state.hidden
                new_state.memory[..., run.sentences, :] = run_state.memory

        return BiLmOutput(
            token_vectors,
            [layer.view(batch_size, num_tokens, self.options.bilm_dim) for layer in contextual],
            mask,
            new_state,
        )

    def _run_layers(
        self, inputs: torch.Tensor, rows: torch.Tensor, batch_sizes: Sequence[int], state: LstmState
    ) -> Tuple[List[torch.Tensor], LstmState]:
        """
        # Parameters

        inputs, rows, batch_sizes :
            As for `ClippedLstm`.
        state : `LstmState`
            Of all layers and `batch_sizes[0]` sentences.

        # Returns

        `Tuple[List[torch.Tensor], LstmState]`
            For each layer its packed outputs, `(2, num_tokens, projection_dim)`, and the state of all layers.
        """
        dtype = PRECISIONS[self.precision]
        outputs: List[torch.Tensor] = []
        states: List[LstmState] = []
        for index, layer in enumerate(self.layers):
            layer_state = LstmState(state.hidden[index], state.memory[index])
            if index == 0:
                layer_outputs, layer_state = layer(inputs, batch_sizes, layer_state, rows, dtype)
            else:
                layer_outputs, layer_state = layer(outputs[-1], batch_sizes, layer_state, dtype=dtype)
                # Residual connections begin at the second layer.
                layer_outputs = layer_outputs + outputs[-1]
            outputs.append(layer_outputs)
            states.append(layer_state)
        return outputs, LstmState(*(torch.stack(tensors) for tensors in zip(*states)))

    def _check(self, character_ids: torch.Tensor) -> torch.Tensor:
        max_characters = self.options.max_characters_per_token
        if character_ids.dim() == 2 and character_ids.size(1) == 0:
            # So a batch of nothing but empty sentences is padded where no token tells the number of characters.
            character_ids = character_ids.new_zeros(len(character_ids), 0, max_characters)
        if character_ids.is_floating_point():
            raise ValueError(f"`character_ids` must be integers, but are {character_ids.dtype}")
        if character_ids.dim() != 3 or character_ids.size(2) != max_characters:
            raise ValueError(
                f"`character_ids` must have shape (batch_size, num_tokens, {max_characters}), "
                f"but has {tuple(character_ids.shape)}"
            )
        if character_ids.numel() > 0:
            lowest, highest = int(character_ids.min()), int(character_ids.max())
            if lowest < 0 or highest >= NUM_CHARACTERS:
                raise ValueError(
                    f"`character_ids` must be between 0 and {NUM_CHARACTERS - 1}, but are between {lowest} and "
                    f"{highest}; they are bytes of UTF-8, not code points"
                )
        if self.precision != "float32" and wants_gradient(*self.parameters()):
            raise ValueError(
                f"`precision` must be float32 to train the biLM, but is {self.precision}; "
                "freeze the biLM (requires_grad false) or leave the precision out"
            )
        return character_ids.long()

    def _state_for(self, batch_size: int, state: Optional[LstmState]) -> LstmState:
        """A state of at least so many rows; those that are missing are zeros."""
        initial_states = [layer.initial_state(batch_size) for layer in self.layers]
        initial = LstmState(*(torch.stack(tensors) for tensors in zip(*initial_states)))
        if state is None:
            return initial
        for name, given, expected in zip(state._fields, state, initial):
            if given.dim() != 4 or given.shape[:2] != expected.shape[:2] or given.size(3) != expected.size(3):
                raise ValueError(
                    f"`state.{name}` must have shape {(*expected.shape[:2], 'any', expected.size(3))}, "
                    f"but has {tuple(given.shape)}; is it of another biLM?"
                )
        missing = slice(state.hidden.size(2), None)
        return LstmState(*(torch.cat([g, i[:, :, missing]], dim=2) for g, i in zip(state, initial)))


class _Run(NamedTuple):
    """Sentences that are run together, packed."""

    # int64 (num_sentences,), rows of the batch, the longest sentence first.
    sentences: torch.Tensor
    batch_sizes: List[int]
    # int64 (2, num_tokens): where each packed token of either direction is in the flattened batch.
    positions: torch.Tensor


def _runs(lengths: torch.Tensor, num_tokens: int) -> Iterator[_Run]:
    """
    # Parameters

    lengths : `torch.Tensor`
        int64 `(batch_size,)`
    num_tokens : `int`
        Tokens in a row of the padded batch.
    """
    device = lengths.device
    # All on the processor, which needs the numbers of sentences at each step: to read one from a GPU is to wait for it.
    lengths, order = lengths.cpu().sort(descending=True, stable=True)
    start = 0
    while start < len(lengths):
        stop, num_running_tokens = start + 1, int(lengths[start])
        while stop < len(lengths) and num_running_tokens + int(lengths[stop]) <= TOKENS_PER_RUN:
            num_running_tokens += int(lengths[stop])
            stop += 1
        run = _pack(order[start:stop], lengths[start:stop], num_tokens)
        yield run._replace(sentences=run.sentences.to(device), positions=run.positions.to(device))
        start = stop


def _pack(sentences: torch.Tensor, lengths: torch.Tensor, num_tokens: int) -> _Run:
    # (length of the longest, num_sentences)
    is_running = torch.arange(int(lengths[0]), device=lengths.device).unsqueeze(1) < lengths
    # (num_tokens_of_the_run,), step by step
    step, row = is_running.nonzero(as_tuple=True)
    first = sentences[row] * num_tokens
    positions = torch.stack([first + step, first + lengths[row] - 1 - step])
    return _Run(sentences, is_running.sum(dim=1).tolist(), positions)
