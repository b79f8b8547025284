"""Kernels work through large arrays piece by piece: with pieces of one element, small samples see that too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from pullback.autodiff import guard
from pullback.backends import numpy as kernels

_NAME = re.compile(r"_?([A-Z]+_)*(BLOCK|BYTES|ROWS|CHUNK)$|_BLOCK_BYTES$")


def sizes() -> list[tuple[Any, str]]:
    """Every constant that says how large a piece is."""
    for name in kernels._LATER:  # imported when they are used
        import_module(f"{kernels.__name__}.{name}")
    modules = [module for module in vars(kernels).values() if isinstance(module, ModuleType)]
    return [
        (module, name)
        for module in (*modules, guard)
        for name, value in vars(module).items()
        if isinstance(value, int) and _NAME.match(name)
    ]


@contextmanager
def smallest_blocks() -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name in sizes()]
    try:
        for module, name, _ in before:
            setattr(module, name, 1)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
