"""The lowest floor: what is not about ELMo, and what everything else may use."""
