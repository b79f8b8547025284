"""Processors, by LLVM: for arrays of NumPy's, and PyTorch's in the same memory."""

from __future__ import annotations

import re
from typing import Any

from ..kernels import Schedule
from ..protocol import Abilities, Executable, Target

_OLDEST = 0, 45  # of llvmlite: the first one that needs no `initialize`


class LlvmTarget:
    """Native code for this machine's processor, on as many threads as it has."""

    name = "llvm"
    abilities = Abilities()

    def missing(self) -> str | None:
        try:
            import llvmlite
            import llvmlite.binding
        except ImportError as error:
            return f"llvmlite ({error}): `pip install 'pullback[compile]'`"
        if tuple(map(int, re.findall(r"\d+", llvmlite.__version__)[:2])) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            return (
                f"llvmlite {oldest} or newer, and found {llvmlite.__version__}: "
                "`pip install --upgrade 'pullback[compile]'`"
            )
        return None

    def compile(self, schedule: Schedule, host: Any) -> Executable:
        from .runtime.executable import build

        return build(schedule, host=host)


TARGET: Target = LlvmTarget()
