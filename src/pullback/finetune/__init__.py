"""Fine-tuning language models: texts to batches, the run, and what is written of it."""

from .records import read_records
from .tokenizer import Tokenizer

__all__ = ["Tokenizer", "read_records"]
