"""An encoder with a way around it."""

from typing import Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2SeqEncoder


@Seq2SeqEncoder.register("bypass")
class BypassEncoder(Seq2SeqEncoder):
    """
    Reads the first features of each token, and leaves the last ones beside its output as they are: with two ELMo mixes
    side by side (`side_by_side`), one at the input of the encoder and another at its output.

    Registered as a `Seq2SeqEncoder` with name "bypass".

    # Parameters

    encoder : `Seq2SeqEncoder`
        Its `input_dim` says how many features it reads.
    bypass_dim : `int`
        How many features go around it.

    # Raises

    `ConfigurationError`
        If `bypass_dim` is below 1.

    # Source

    Peters et al. 2018, "Deep contextualized word representations", section 3.3: "ELMo at the output of the task RNN".
    """

    def __init__(self, encoder: Seq2SeqEncoder, bypass_dim: int) -> None:
        super().__init__()
        if bypass_dim < 1:
            raise ConfigurationError(f"`bypass_dim` must be at least 1, but is {bypass_dim}")
        self.encoder = encoder
        self._bypass_dim = bypass_dim

    def get_input_dim(self) -> int:
        """The size of a token vector: what the encoder reads, and what goes around it."""
        return self.encoder.get_input_dim() + self._bypass_dim

    def get_output_dim(self) -> int:
        """The size of an encoded token vector: the encoder's output, and what went around it."""
        return self.encoder.get_output_dim() + self._bypass_dim

    def is_bidirectional(self) -> bool:
        """Whether the encoder is."""
        return self.encoder.is_bidirectional()

    def forward(self, inputs: torch.Tensor, mask: Optional[torch.BoolTensor] = None) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            `(batch_size, num_tokens, input_dim)`
        mask : `torch.BoolTensor`, optional (default = `None`)
            `(batch_size, num_tokens)`, true at tokens.

        # Returns

        `torch.Tensor`
            `(batch_size, num_tokens, output_dim)`
        """
        read, around = inputs.split([self.encoder.get_input_dim(), self._bypass_dim], dim=-1)
        # Some encoders need their input in one piece.
        return torch.cat([self.encoder(read.contiguous(), mask), around], dim=-1)
