"""What lowering makes of a program: calls of kernels on parts of buffers.

A kernel here is a description, complete and hashable: two calls with equal descriptions share one native function.
Arrays are given by the position of their first element; how to move in them is in the description, as strides in
elements. What a description means:

`Loop`      for each index of `outer` (a row), for each index of `inner` (an element of the row): run `steps`.
`Product`   a batch of matrix products.
`Host`      one of NumPy's kernels, called from Python: for what has no native form.
`Repeat`    a schedule, run once for each step of a loop (see `repeats.py`).
Those of whole operations (attention, scans, gathering, ...) are in `custom_kernels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Access:
    """How a loop moves in an array: elements to go for one step along each axis of `outer`, then of `inner`."""

    dtype: str  # NumPy's name: "float32", "bool", ...
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One scalar computation. `operands` are the numbers of earlier steps.

    `op` is "read" (`index` is the number of the access in `reads`), "number" (`number` is its value), "position"
    (`index` is the axis, counted over outer + inner: the index of this element along it, an int64), "convert"
    (to `dtype`), a scalar operation under the name of its elementwise kernel ("add", "where", "tanh", ...), or a
    reduction of its one operand:
      row_sum row_prod row_max row_min row_any row_all      over the inner axes: a number for each row
      column_sum                                            over the outer axes: only to be written
      total_sum total_prod total_max total_min total_any total_all    over all axes: only to be written
    `dtype` is that of the result. Steps whose operands belong to rows alone belong to rows; others to elements.
    Maxima and minima are NaN if any element is.
    """

    op: str
    operands: tuple[int, ...]
    dtype: str
    index: int = 0
    number: Any = None


@dataclass(frozen=True)
class Write:
    """Where a step's result goes: every element's, a row's (inner strides are 0), or a reduction's (see `Step`)."""

    step: int
    access: Access


@dataclass(frozen=True)
class Loop:
    """Elementwise computation over `outer` x `inner`, with reductions along rows, columns or everything.

    Its arrays are those of `reads`, then those of `writes`. An array that is written may be the very same memory as
    one that is read with the same strides and dtype (each element is read before it is written); else arrays that are
    written overlap nothing.
    """

    outer: tuple[int, ...]
    inner: tuple[int, ...]
    reads: tuple[Access, ...]
    steps: tuple[Step, ...]
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Product:
    """out[b, i, j] = sum over p of x[b, i, p] * y[b, p, j]; with `accumulate` added to what is in `out`.

    `batch` are the sizes of the batch's axes; strides are for those, then for the two axes of the matrix. `wide` is the
    dtype of `out` where it is not that of x and y: of products that are added up. Its arrays are x, y, out; with `bias`
    x, y, a row of n neighbours that is added to each row, out.
    """

    dtype: str
    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    x: tuple[int, ...]
    y: tuple[int, ...]
    out: tuple[int, ...]
    accumulate: bool = False
    bias: bool = False
    wide: str = ""


@dataclass(frozen=True)
class Host:
    """NumPy's kernel `op`, called with `args`, in which `Hole(i)` stands for the i-th array it reads.

    Its arrays are those it reads, then those it writes, all given as (dtype, shape, strides in elements).
    """

    op: str
    args: Any
    reads: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    writes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class Hole:
    """The place of an array among a host call's arguments."""

    index: int


class Buffer:
    """Memory of a number of bytes: an input's, an output's, a constant's, or of the program's own.

    `kind` is "input", "output", "constant", "temporary", or "library" for what a library's kernel makes in memory of
    its own; `index` counts inputs, outputs and constants.
    """

    __slots__ = ("kind", "index", "nbytes", "offset")

    def __init__(self, kind: str, index: int, nbytes: int) -> None:
        self.kind = kind
        self.index = index
        self.nbytes = nbytes
        self.offset = -1  # of a temporary, in the arena; set by memory planning


@dataclass(frozen=True)
class Location:
    """An array's first element: a buffer, and how many bytes into it."""

    buffer: Buffer
    offset: int = 0


@dataclass
class Call:
    """A kernel on arrays: the locations of what it reads, then of what it writes, in the kernel's order."""

    kernel: Any
    reads: list[Location]
    writes: list[Location]
    site: str = ""


@dataclass
class Schedule:
    """Calls in the order in which they run, and the bytes of the arena that the temporaries share."""

    calls: list[Call]
    inputs: list[Buffer]
    outputs: list[Buffer]
    constants: list[tuple[Buffer, Any]]
    arena_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Repeat:
    """A schedule, run `steps` times on arrays that move: a loop of the program.

    Its arrays are given by a call, and are numbered over what that reads, then writes. `inputs` and `outputs` are the
    numbers of those that are the schedule's; its arena is in array `arena`. After every step each array moves by its
    stride, in bytes. Before the first one, pairs of arrays in `first` are copied, by a kernel each.
    """

    steps: int
    schedule: Schedule
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena: int
    strides: tuple[int, ...]
    first: tuple[tuple[Any, int, int], ...]
