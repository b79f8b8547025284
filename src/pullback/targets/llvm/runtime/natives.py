"""Kernel descriptions to native functions: from this process's memory, from the disk, or compiled.

A description says all about its function, so a function is found by the description's text, without writing any code
for LLVM; only what is found nowhere is written and compiled, a few kernels to a module. (By its text and not by
equality: 0.0 and -0.0, or 1 and True, are equal, but not the same number.)
"""

from __future__ import annotations

import hashlib
import json
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Callable, Iterable

import llvmlite.binding as llvm
from llvmlite import ir

from ...locking import lock, wait_for
from .. import emission
from ..code import Emitted
from . import disk_cache, jit
from .threads import default_threads

#: Kernels to a module. A module costs 2 ms beside its kernels; one that is half known must be compiled whole.
GROUP = 8

#: What the emitters say, the functions from elsewhere that the code calls by name, and the object code.
_Group = tuple[list[Emitted], list[str], bytes]


@dataclass(eq=False)
class Native:
    """A native function: its address, what its emitter said of it, and the code it is in, to keep it alive."""

    address: int
    emitted: Emitted
    library: jit.Library


# A number made a pointer: code with an address of this process in it, which is no use to another.
_ADDRESS = re.compile(r"inttoptr \(?i64 \d")

_known: weakref.WeakValueDictionary[str, Native] = weakref.WeakValueDictionary()
if hasattr(llvm.ffi.lib, "_lock"):
    wait_for(llvm.ffi.lib._lock)  # which is around every call of LLVM's, such as freeing code


def functions_for(kernels: Iterable[Any]) -> list[Native]:
    """The native function of each kernel."""
    texts = {}
    keys = []
    for kernel in kernels:
        key = described(kernel)
        texts[key] = kernel
        keys.append(key)
    with lock:
        natives = {key: native for key in texts if (native := _known.get(key)) is not None}
        missing = [(key, kernel) for key, kernel in texts.items() if key not in natives]
        made = _made(missing)
        natives.update(made)
        _known.update(made)
    return [natives[key] for key in keys]


def described(kernel: Any) -> str:
    """A kernel as text: two kernels of the same text are the same function."""
    kind = type(kernel)
    return f"{kind.__module__}.{kernel!r}"


def _made(kernels: list[tuple[str, Any]]) -> dict[str, Native]:
    """Functions for kernels of which this process has none: all are linked as one library."""
    if not kernels:
        return {}
    groups = [kernels[start : start + GROUP] for start in range(0, len(kernels), GROUP)]
    with ThreadPoolExecutor(min(len(groups), default_threads())) as compilers:  # while this thread writes the next one
        parts = [part() for part in [_group(group, compilers) for group in groups]]
    functions = [one for emitted, _, _ in parts for one in emitted]
    symbols = sorted({name for _, named, _ in parts for name in named})
    library = jit.Library(
        [code for _, _, code in parts],
        [one.name for one in functions],
        {name: emission.address_of(name) for name in symbols},
    )
    return {
        key: Native(library.addresses[one.name], one, library) for (key, _), one in zip(kernels, functions)
    }  # fmt: skip


def _group(kernels: list[tuple[str, Any]], compilers: ThreadPoolExecutor) -> Callable[[], _Group]:
    """Begin to make the functions of a group, and give what waits for them."""
    name = _digest(environment(), *(key for key, _ in kernels))
    stored = disk_cache.read(name)
    if stored is not None:
        unpacked = _unpacked(stored)
        return lambda: unpacked
    module = ir.Module("kernels")
    module.triple = llvm.get_process_triple()
    emitted = [emission.emit(module, f"k{_digest(key)[:24]}", kernel) for key, kernel in kernels]
    symbols = [symbol for symbol in module.globals if emission.provided(symbol)]
    text = str(module)
    compiled = compilers.submit(jit.compile_object, text)

    def finish() -> _Group:
        code = compiled.result()
        if not _ADDRESS.search(text):
            disk_cache.write(name, _packed(emitted, symbols, code))
        return emitted, symbols, code

    return finish


def _digest(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


@cache
def environment() -> str:
    """What a function depends on beside its kernel: the machine, LLVM, BLAS's form, and how we write code."""
    from ..products import blas

    found = blas.find()
    form = "none" if found is None else f"{found.bits} {found.fortran}"
    sources = hashlib.sha256()
    package = Path(__file__).parent.parent
    for path in [*sorted(package.rglob("*.py")), *sorted(package.parent.glob("*kernels.py"))]:
        sources.update(path.read_bytes())
    return "\n".join((jit.identity(), form, sources.hexdigest()))


# -- on disk: the length of a header, the header, the object code ---------------------------------


def _packed(emitted: list[Emitted], symbols: list[str], code: bytes) -> bytes:
    functions = [[one.name, one.units, one.cost, one.grain, one.scratch, one.partials] for one in emitted]
    header = json.dumps({"functions": functions, "symbols": symbols}).encode()
    return len(header).to_bytes(8, "little") + header + code


def _unpacked(content: bytes) -> _Group:
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    emitted = [
        Emitted(name, units, cost, grain, scratch, tuple(tuple(partial) for partial in partials))
        for name, units, cost, grain, scratch, partials in header["functions"]
    ]
    return emitted, header["symbols"], content[end:]
