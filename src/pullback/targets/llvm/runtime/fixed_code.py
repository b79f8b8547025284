"""Code whose text is the same in every process: compiled by the first one, read from the disk by the others."""

from __future__ import annotations

import hashlib

from . import disk_cache, jit


def linked(source: str, exports: list[str]) -> jit.Library:
    """The functions `exports` of a module given as text, for as long as the process runs."""
    key = hashlib.sha256(f"{jit.identity()}\n{source}".encode()).hexdigest()
    code = disk_cache.read(key)
    if code is None:
        code = jit.compile_object(source)
        disk_cache.write(key, code)
    library = jit.Library([code], exports, {})
    library.keep()
    return library
