"""What a target must have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Protocol, Sequence

from .kernels import Schedule


class Executable(Protocol):
    """A schedule that can be run, with the memory that it needs: given back when nobody holds the executable."""

    #: The bytes allocated for what is neither input nor output nor constant.
    arena_bytes: int
    #: An estimate of a run's nanoseconds of work, on one thread.
    cost: float
    #: Who has it may run the program: its memory is for one run at a time.
    lock: Any

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run once, on the memory at these addresses."""

    @property
    def is_native(self) -> bool:
        """Whether a run is one native call, without Python."""


class Target(Protocol):
    """A device, and how programs are compiled for it."""

    name: str

    def missing(self) -> str | None:
        """What must be installed before anything can be compiled, with how; None if nothing is missing."""


@dataclass(frozen=True)
class Abilities:
    """What lowering must know of a target."""

    #: Whether it multiplies matrices of half precision as they are, with sums in float32.
    multiplies_half: bool = False
    #: Whether it adds a row to a product of matrices on the way.
    adds_bias: bool = False
    #: Whether it adds rows to those of an array that is there, and not only to zeros.
    adds_rows: bool = False
    #: Whether it writes rows over those of an array that is there.
    writes_rows: bool = True
    #: Whether its library has arrays that are gone through backwards.
    goes_backwards: bool = True
    #: Instructions that a library's kernels run as a whole, whatever lowering could make of them.
    whole: frozenset[str] = frozenset()
    #: Those of them whose results are in memory that the library gets for itself.
    makes_memory: frozenset[str] = frozenset()
    #: Dtypes in which it convolves and pools images fastest with their channels last in memory.
    channels_last: frozenset[str] = frozenset()
    #: Elements up to which loops of one size are joined, for launching each would cost more than what it does.
    small_loop: int = 0
    #: Whether passes over arrays cost more than arithmetic, so that statistics are made in one where they can be.
    reads_once: bool = False


class ScheduleTarget(Target, Protocol):
    """A target of native code, which reads and writes memory that it is given."""

    abilities: Abilities

    def compile(self, schedule: Schedule, host: Any) -> Executable:
        """Make a schedule ready to run, with its memory; `host` has the kernels for what has no native form."""


class FunctionTarget(Target, Protocol):
    """A target of a library whose arrays cannot be written, and which compiles functions of them."""

    def compile(self, function: Callable[..., Any], shardings: Any = None) -> Callable[..., Any]:
        """`function(given, donated)`, which gives two lists of arrays, as one program.

        The second list may be written over the arrays in `donated`, which are gone then. `shardings` says how the
        second list is spread over devices; None leaves that to the library.
        """
