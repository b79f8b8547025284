"""Which kernels compute the operations that are computed as a whole."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Protocol, Sequence

from ... import custom_kernels as described
from .cross_entropy import CrossEntropyKernel
from .extreme import ExtremeKernel
from .gather import GatherAlongKernel, GatherKernel
from .philox import PhiloxKernel
from .running import RunningKernel
from .scan import ScanKernel
from .scan_gradient import ScanGradientKernel
from .scatter import ScatterAlongKernel, ScatterKernel


class Kernel(Protocol):
    """Kernels made from a description. `scratch` is the memory (dtype, elements) that a launch needs for itself."""

    scratch: list[tuple[str, int]]

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on tensors that begin where the description's arrays do, and on memory of the kernel's own."""


KERNELS: dict[type, Callable[[Any], Kernel]] = {
    described.Gather: GatherKernel,
    described.GatherAlong: GatherAlongKernel,
    described.Scatter: ScatterKernel,
    described.ScatterAlong: ScatterAlongKernel,
    described.Philox: PhiloxKernel,
    described.Running: RunningKernel,
    described.Extreme: ExtremeKernel,
    described.CrossEntropy: CrossEntropyKernel,
    described.Scan: ScanKernel,
    described.ScanGradient: ScanGradientKernel,
}


@lru_cache(maxsize=4096)
def kernel_for(description: Any) -> Kernel:
    """The kernels of a description."""
    return KERNELS[type(description)](description)
