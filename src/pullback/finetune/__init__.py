"""Fine-tuning language models: texts to batches, the run, and what is written of it."""

from .batches import PackedBatches
from .description import describe, fingerprint
from .packing import TokenBatch
from .records import read_records
from .samples import Sample, SampleSet, make_samples
from .tokenizer import Tokenizer

__all__ = [
    "PackedBatches",
    "Sample",
    "SampleSet",
    "TokenBatch",
    "Tokenizer",
    "describe",
    "fingerprint",
    "make_samples",
    "read_records",
]
