"""ELMo for text classification: an AllenNLP plugin."""

__version__ = "0.1.0"
