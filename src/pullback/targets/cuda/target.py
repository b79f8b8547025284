"""The target of PyTorch's GPUs: generated Triton kernels, cuBLAS, cuDNN, and one CUDA graph over one arena."""

from __future__ import annotations

import importlib.util
from typing import Any

from ..kernels import Schedule
from ..llvm.target import TARGET as PROCESSOR
from ..protocol import Abilities
from .operations import LOSSES, MAKES_MEMORY


class CudaTarget:
    """Programs on tensors of PyTorch's on a GPU, which are updated where they are."""

    name = "cuda"
    abilities = Abilities(
        multiplies_half=True,
        adds_bias=True,
        adds_rows=True,
        writes_rows=False,
        goes_backwards=False,
        whole=MAKES_MEMORY | LOSSES,
        makes_memory=MAKES_MEMORY,
        channels_last=frozenset(("float16", "bfloat16", "float32")),
        small_loop=1 << 17,
        reads_once=True,
    )  # fmt: skip

    def missing(self) -> str | None:
        for library in ("torch", "triton"):
            if importlib.util.find_spec(library) is None:
                return f"{library}: `pip install {library}`"
        return PROCESSOR.missing()  # which looks at guards

    def compile(self, schedule: Schedule, library: Any, device: Any) -> Any:
        """Make a schedule ready to run on a device of PyTorch's; `library` is its backend."""
        from .executable import Executable

        return Executable(schedule, device, library)


TARGET = CudaTarget()
