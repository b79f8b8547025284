"""Which module writes the code of which kernel, and the addresses of functions that code calls by name."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any, Callable

from llvmlite import ir

from .code import Emitted

Emitter = Callable[[ir.Module, str, Any], Emitted]

#: Modules of this package, imported when needed, by the kernels whose code they write in `emit`.
_MODULES = {
    "Loop": "loops.emit_loop",
    "Product": "products.emit_product",
    "Scan": "kernels.scan",
    "ScanGradient": "kernels.scan",
    "Gather": "kernels.gather",
    "Scatter": "kernels.gather",
    "Overwrite": "kernels.gather",
    "GatherAlong": "kernels.gather",
    "ScatterAlong": "kernels.gather",
    "Attention": "kernels.attention",
    "AttentionGradient": "kernels.attention_gradient",
    "DirectConvolution": "kernels.convolution",
    "DirectConvolutionGradient": "kernels.convolution_gradient",
    "Running": "kernels.running",
    "Extreme": "kernels.running",
    "Philox": "kernels.philox",
}
_DESCRIPTIONS = f"{__package__.rpartition('.')[0]}."

#: Modules whose function `address` knows where the functions are whose names begin so, however many there are.
_FAMILIES = {"pullback_product_": "products.product_library"}

_symbols: dict[str, Callable[[], int]] = {}


def emit(module: ir.Module, name: str, kernel: Any) -> Emitted:
    """Write a kernel's function into a module."""
    kind: Any = type(kernel)
    return emitter_of(kind)(module, name, kernel)


@cache
def emitter_of(kind: Any) -> Emitter:
    """What writes kernels of a class: by the table, or else beside the class."""
    if kind.__module__.startswith(_DESCRIPTIONS) and kind.__name__ in _MODULES:
        return import_module(f".{_MODULES[kind.__name__]}", __package__).emit
    emitter = getattr(sys.modules[kind.__module__], "emit", None)
    if emitter is None:
        raise TypeError(f"there is no native code for {kind.__name__}: {kind.__module__} has no function `emit`.")
    return emitter


def provide(name: str, address: Callable[[], int]) -> None:
    """Say where the function is that code calls by `name`: asked when code is linked.

    That may be in a process that only loads the code: modules say this when imported, not when they write code.
    """
    _symbols[name] = address


def external(module: ir.Module, name: str, kind: ir.FunctionType) -> ir.Function:
    """The function that was provided under `name`, to be called by code; code with an address in it cannot be kept."""
    if not provided(name):
        raise LookupError(f"nobody said where the function {name!r} is.")
    function = module.globals.get(name)
    return ir.Function(module, kind, name) if function is None else function


def provided(name: str) -> bool:
    """Whether `name` is one of those functions."""
    return name in _symbols or name.startswith(tuple(_FAMILIES))


def address_of(name: str) -> int:
    """Where that function is."""
    for start, module in _FAMILIES.items():
        if name.startswith(start):
            return import_module(f".{module}", __package__).address(name)
    return _symbols[name]()
