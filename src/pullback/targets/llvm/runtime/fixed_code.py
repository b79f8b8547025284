"""Code whose text is the same in every process: compiled by the first one, read from the disk by the others.

It is written as LLVM's text with names in <> for numbers, and with `%x = load TYPE from PLACE` for two instructions: a
`getelementptr` with PLACE's operands, and the load from there.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Mapping

from . import disk_cache, jit

_LOAD = re.compile(r"^ *(%\S+) = load (\w+) from (.*)$", re.MULTILINE)


def filled(source: str, names: Mapping[str, Any]) -> str:
    """LLVM's own text."""
    for name, value in names.items():
        source = source.replace(f"<{name}>", str(value))
    return _LOAD.sub(r"  \1.place = getelementptr \3\n  \1 = load \2, ptr \1.place", source)


def linked(source: str, exports: list[str]) -> jit.Library:
    """The functions `exports` of a module given as LLVM's text, for as long as the process runs."""
    key = hashlib.sha256(f"{jit.identity()}\n{source}".encode()).hexdigest()
    code = disk_cache.read(key)
    if code is None:
        code = jit.compile_object(source)
        disk_cache.write(key, code)
    library = jit.Library([code], exports, {})
    library.keep()
    return library
