"""What a program consists of, for people: its kernels in a line each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterable, NamedTuple

from ...targets.custom_kernels import Running
from ...targets.kernels import Call, Host, Loop, Product
from ...targets.repeats import kernels_within
from ..iteration import every_instruction
from ..program import Program

_UNSAID = frozenset(("read", "number", "position", "convert"))  # steps that compute nothing
_LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch"}
_MOST = 6  # names of operations in a line
#: Sizes in descriptions of kernels, outermost first.
_SIZES = (
    "samples", "groups", "channels", "features", "batch", "heads", "outer", "shape", "rows", "places", "inner",
    "length", "keys", "width", "count",
)  # fmt: skip


class KernelUse(NamedTuple):
    """A kernel, how it runs ("native", "xla", "torch", "numpy"), how often in a call, and for which of your lines."""

    kernel: Any
    how: str
    times: int
    sites: tuple[str, ...] = ()

    def __repr__(self) -> str:
        times = f" x{self.times}" if self.times > 1 else ""
        sites = f"  # {', '.join(self.sites[:2])}{', ...' if len(self.sites) > 2 else ''}" if self.sites else ""
        return f"{_line(self.kernel)} ({self.how}){times}{sites}"


class Inventory(list[KernelUse]):
    """The kernels of a program in the order in which they first run. What runs by NumPy is named first of all."""

    def __repr__(self) -> str:
        slow = [use for use in self if use.how in _LIBRARIES]
        names = ", ".join(dict.fromkeys(_LIBRARIES[use.how] for use in slow))
        by_numpy = f"by {names}: {', '.join(dict.fromkeys(use.kernel.op for use in slow))}" if slow else "all native"
        if any(use.how == "xla" for use in self):
            by_numpy = "compiled by XLA" + (f", {by_numpy}" if slow else "")
        calls = sum(use.times for use in self)
        lines = [f"{len(self)} kernel{'s' * (len(self) != 1)}, {calls} call{'s' * (calls != 1)}; {by_numpy}"]
        return "\n  ".join([*lines, *map(repr, self)])


def inventory(calls: Iterable[Call], library: str = "numpy") -> Inventory:
    """The kernels of a schedule's calls; equal ones are counted. `library` runs what has no native form."""
    found: dict[str, tuple[Any, list[int], list[str]]] = {}
    for call, times in kernels_within(calls):
        _, counts, sites = found.setdefault(repr(call.kernel), (call.kernel, [], []))
        counts.append(times)
        sites.append(call.site)
    return Inventory(
        KernelUse(
            kernel,
            library if isinstance(kernel, Host) else "native",
            sum(counts),
            tuple(dict.fromkeys(site for site in sites if site)),
        )
        for kernel, counts, sites in found.values()
    )


@dataclass(frozen=True)
class Operation:
    """An instruction of a program whose kernels its device's library joins: its name and what it makes."""

    op: str
    shape: tuple[int, ...]


#: Instructions that run on the host wherever the program runs.
_BY_HOST = frozenset(("draw", "call_custom"))


def inventory_of(program: Program) -> Inventory:
    """The operations of a program that a library compiles; equal ones are counted."""
    found: dict[Operation, tuple[list[int], list[str]]] = {}
    for one, times in every_instruction(program):
        operation = Operation(one.op, one.result.shape if one.results else ())
        counts, sites = found.setdefault(operation, ([], []))
        counts.append(times)
        sites.append(one.site)
    return Inventory(
        KernelUse(
            kernel,
            "numpy" if kernel.op in _BY_HOST else "xla",
            sum(counts),
            tuple(dict.fromkeys(site for site in sites if site)),
        )
        for kernel, (counts, sites) in found.items()
    )


def _line(kernel: Any) -> str:
    if isinstance(kernel, Loop):
        names = dict.fromkeys(_step_name(step.op) for step in kernel.steps if step.op not in _UNSAID)
        said = [*names][:_MOST] + ["..."] * (len(names) > _MOST)
        return f"loop {_size((*kernel.outer, *kernel.inner))}: {', '.join(said) or 'copy'}"
    if isinstance(kernel, Product):
        batch = f"{_size(kernel.batch)} of " if kernel.batch else ""
        return f"matmul {batch}{kernel.m}x{kernel.k} by {kernel.k}x{kernel.n}"
    if isinstance(kernel, Host):
        shapes = dict.fromkeys(_size(shape) for _, shape, _ in (kernel.reads or kernel.writes))
        return f"{kernel.op} {', '.join(shapes)}"
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(kernel).__name__).lower()
    name = f"running {kernel.op}" if isinstance(kernel, Running) else getattr(kernel, "op", name)
    return f"{name} {_size(_axes(kernel))}"


def _step_name(op: str) -> str:
    """A reduction's name without what it goes along."""
    first, _, rest = op.partition("_")
    return rest if first in ("row", "column", "total") else op


def _axes(kernel: Any) -> tuple[int, ...]:
    """The sizes that a kernel's description has, outermost first."""
    sizes: list[int] = []
    for name in _SIZES:
        size = getattr(kernel, name, ())
        sizes += [size] if isinstance(size, int) else size
    return tuple(sizes)


def _size(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "1"
