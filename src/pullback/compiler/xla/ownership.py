"""Whose an array is: what a program replaces may be donated to it, unless somebody else still sees it.

What is donated is gone. An array that a tensor alone holds is seen by nobody else: whoever shares an array of JAX's
holds it, or has taken its memory in a way of which JAX knows, and then donating it copies.
"""

from __future__ import annotations

import sys
from typing import Any

from ...autodiff.base import make
from ...backends.numpy.ownership import counts_are_exact

_MEASUREMENTS = 64  # more than the interpreter needs to settle on how it runs an instruction


def is_sole(tensor: Any) -> bool:
    """Whether nobody but this tensor holds its array."""
    return sys.getrefcount(tensor._raw) == _SOLE


def _count() -> int:
    """What a count gives when one tensor alone holds an array; -1, which none gives, where counts say nothing."""
    tensor = make(object(), None)
    alone = {sys.getrefcount(tensor._raw) for _ in range(_MEASUREMENTS)}
    return alone.pop() if counts_are_exact() and len(alone) == 1 else -1


_SOLE = _count()
