"""Memory that was freed stays with the process, for the next step to take.

A training step frees nearly all that it has made. The C library then gives the end of its heap back to the operating
system, and the next step pays for every page of it again: for arrays of some megabytes that is up to a seventh of the
time. So that much is kept, once there is something large to compute.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of `mallopt`, in glibc's malloc.h
_KEPT_BYTES = 512 << 20
_LARGEST_BYTES = 32 << 20  # of one array; glibc takes no more
_is_done = False


def keep_freed_memory() -> None:
    """Have glibc keep up to half a gibibyte of freed memory, unless the environment says what it is to do."""
    global _is_done
    if _is_done or sys.platform != "linux":
        return
    _is_done = True
    if "malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
