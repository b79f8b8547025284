"""Functions that many programs call: each is made when it is first asked for, and kept as long as the process runs.

Programs call them by names, which say all about them: a program's own code is little then and compiles quickly, and
may be kept on disk, as are these functions themselves.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import import_module
from typing import Any, Callable

from llvmlite import binding, ir

from .. import emission
from ..code import VOID
from ..runtime import disk_cache, jit

PREFIX = "pullback_product_"

#: Where functions are written, by the names of their writers.
_WRITERS = {
    "tile": "product_tiles",
    "dots": "product_tiles",
    "pack": "product_tiles",
    "pack_lines": "product_tiles",
    "spread": "product_tiles",
    "panels": "panels",
}


def begin(module: ir.Module, *kinds: Any) -> tuple[Any, Any]:
    """For a writer: the module's function, which takes arguments of these types, and the builder to write it with."""
    function = ir.Function(module, ir.FunctionType(VOID, kinds), module.name)
    function.attributes.add("nounwind")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def call(b: Any, arguments: tuple[Any, ...], writer: Callable[..., None], *details: str | int) -> None:
    """Write a call of the function that `writer(module, *details)` writes; details are words and numbers."""
    name = PREFIX + ".".join(
        (writer.__name__, *(detail if isinstance(detail, str) else str(int(detail)) for detail in details))
    )
    kind = ir.FunctionType(VOID, [argument.type for argument in arguments])
    b.call(emission.external(b.module, name, kind), arguments)


@cache
def address(name: str) -> int:
    """Where a function of that name is."""
    from ..runtime.natives import environment

    key = hashlib.sha256(f"{environment()}\n{name}".encode()).hexdigest()
    stored = disk_cache.read(key)
    if stored is None:
        module = _written(name)
        symbols = [symbol for symbol in module.globals if symbol != name and emission.provided(symbol)]
        stored = json.dumps(symbols).encode() + b"\n" + jit.compile_object(str(module))
        disk_cache.write(key, stored)
    header, _, code = stored.partition(b"\n")
    library = jit.Library([code], [name], {symbol: emission.address_of(symbol) for symbol in json.loads(header)})
    library.keep()
    _kept.append(library)
    return library.addresses[name]


_kept: list[jit.Library] = []


def _written(name: str) -> ir.Module:
    writer, *details = name.removeprefix(PREFIX).split(".")
    module = ir.Module(name)
    module.triple = binding.get_process_triple()
    function = getattr(import_module(f".{_WRITERS[writer]}", __package__), writer)
    function(module, *(int(detail) if detail.isdigit() else detail for detail in details))
    return module
