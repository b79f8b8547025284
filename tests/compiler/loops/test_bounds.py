"""Nothing is read or written beyond an array's last element: arrays end where memory that may not be touched begins."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pullback.targets.kernels import Access, Loop, Step, Write

from ...backends.installed import require
from .evaluation import Compiled, dtype_of

PAGE = mmap.PAGESIZE


def at_the_edge(size: int, dtype: str) -> np.ndarray:
    """An array whose last byte is the last of a page, behind which is one that may not be touched."""
    nbytes = size * dtype_of(dtype).itemsize
    room = -(-nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, room + PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(start + room, PAGE, 0) == 0
    return np.frombuffer(memory, np.uint8, nbytes, room - nbytes).view(dtype_of(dtype))


def loops(dtype: str) -> list[tuple[Loop, list[int]]]:
    """Loops with every kind of vector at an edge, and the sizes of their arrays."""
    read, second = Step("read", (), dtype, 0), Step("read", (), dtype, 1)

    def access(*strides: int) -> Access:
        return Access(dtype, strides)

    copied = [
        (Loop((), (n,), (access(1),), (read,), (Write(0, access(1)),)), [n, n]) for n in (1, 3, 16, 17, 70)
    ]  # fmt: skip
    across = [
        (Loop((m,), (n,), (access(1, m),), (read,), (Write(0, access(n, 1)),)), [m * n] * 2)
        for m, n in ((16, 17), (19, 16), (33, 40))
    ]
    maximum = (read, second, Step("add", (0, 1), dtype), Step("row_max", (2,), dtype))
    reads, written = (access(1, 21), access(1, 0)), (Write(3, access(1, 0)),)
    by_rows = [(Loop((21,), (30,), reads, maximum, written), [630, 21, 21])]
    reads = (access(30, 1), access(1, 0))
    along = [(Loop((21,), (30,), reads, maximum, written), [630, 21, 21])]
    sums = (read, Step("column_sum", (0,), dtype))
    columns = [
        (Loop((70,), (n,), (access(n, 1),), sums, (Write(1, access(0, 1)),)), [70 * n, n]) for n in (5, 300, 17)
    ]  # fmt: skip
    turned = [(Loop((), (37,), (access(1),), (read,), (Write(0, access(3)),)), [37, 109])]
    return [*copied, *across, *by_rows, *along, *columns, *turned]


def main(dtype: str) -> None:
    for loop, sizes in loops(dtype):
        compiled = Compiled(loop)
        compiled([at_the_edge(size, dtype) for size in sizes])
    print("all within bounds")


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by a function of Linux")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16"])
def test_nothing_beyond_an_array_is_touched(dtype: str) -> None:
    require("numpy", dtype)
    code = f"from {__name__} import main; main({dtype!r})"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "all within bounds"), done.stderr
