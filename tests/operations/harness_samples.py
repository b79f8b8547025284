"""All samples of all families, found by the names of their modules: samples_<family>.py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pullback.operations import OPERATIONS

from .sample import Sample


def _modules() -> dict[str, Any]:
    folder = Path(__file__).parent
    names = sorted(path.stem for path in folder.glob("samples_*.py"))
    return {name.removeprefix("samples_"): import_module(f"{__package__}.{name}") for name in names}


BY_FAMILY: dict[str, list[Sample]] = {family: list(module.SAMPLES) for family, module in _modules().items()}
SAMPLES: list[Sample] = [sample for samples in BY_FAMILY.values() for sample in samples]
for _sample in SAMPLES:
    for _argument in _sample.arguments:
        _argument.flags.writeable = False  # a check that changed one would spoil the others
FAMILY_OF: dict[str, str] = {sample.name: family for family, samples in BY_FAMILY.items() for sample in samples}


def by_operation() -> dict[str, list[Sample]]:
    """The samples of each operation, in their order."""
    found: dict[str, list[Sample]] = {}
    for sample in SAMPLES:
        found.setdefault(sample.operation, []).append(sample)
    return found


def is_complex(sample: Sample) -> bool:
    return any(np.iscomplexobj(argument) for argument in sample.arguments)


def is_elementwise(sample: Sample) -> bool:
    operation = OPERATIONS.get(sample.operation)
    return operation is not None and operation.elementwise
