"""Fine-tuning language models: texts to batches, the run, and what is written of it."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from .batches import PackedBatches
    from .description import describe, fingerprint
    from .packing import TokenBatch
    from .records import read_records
    from .run import Run
    from .samples import Sample, SampleSet, make_samples
    from .settings import Settings
    from .texts import Texts
    from .tokenizer import Tokenizer

_MODULES = {  # loaded when first asked for: the command line looks at the settings alone
    "PackedBatches": "batches",
    "Run": "run",
    "Sample": "samples",
    "SampleSet": "samples",
    "Settings": "settings",
    "Texts": "texts",
    "TokenBatch": "packing",
    "Tokenizer": "tokenizer",
    "describe": "description",
    "fingerprint": "description",
    "make_samples": "samples",
    "read_records": "records",
}
__all__ = [
    "PackedBatches",
    "Run",
    "Sample",
    "SampleSet",
    "Settings",
    "Texts",
    "TokenBatch",
    "Tokenizer",
    "describe",
    "fingerprint",
    "make_samples",
    "read_records",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
