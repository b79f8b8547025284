"""The native side of running a program: walking its table of calls, alone or with a pool of threads.

A program is a record that points to a table of calls; both are arrays of 64-bit words that Python fills
(see `executable.py`). Every thread of a shared run walks the same table: of a call with several parts, thread t does
parts t, t + threads, ...; a call of one part is thread 0's. A call that must not begin before what others do has ended
has a barrier before it. One thread alone does all parts of everything in order, with the same results to the last bit.

A call without a function is a loop: its arrays are a record for each thread, with a table of calls of its own and the
places in it that move from step to step. The threads go through the steps side by side, as through any other calls; a
loop in which nothing has several parts is thread 0's.

The pool is a block of words too. A run is announced by changing its word `announced`, which holds a counter and, in the
lowest byte, how many threads it is for: a worker whose number is not below that has nothing to do. The others join:
they add one to the word `joined`, which has the same counter, how many have joined in the lowest seven bits, and above
them a mark that nobody may join any more. Who runs the program waits for them only as long as it is worthwhile: a
worker may be asleep, or its processor may be another thread's for some milliseconds (threads of BLAS spin for a tenth
of a second after a product). Then it closes the run, and shares it with those who have come, or does it alone. Who has
joined is waited for. Workers wait by spinning a while, then by sleeping on a condition of the system's.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from typing import Any, Callable

from . import jit, pool_code, runtime_code
from .fixed_code import filled, linked

#: Words of a call: function, arrays, units, parts, units per part, whether a barrier comes first.
CALL_WORDS = 6
# Words of a program: calls, their number, patches, their number, scratch memory, its bytes per thread, threads,
# two functions of BLAS: to set and to get the number of its threads, or zeros; and how often to look for workers.
#: Words of a loop: calls, their number, steps, moves, their number; of a move: the address of a pointer, and the bytes
#: it moves by.
LOOP_WORDS, MOVE_WORDS = 5, 2
#: Words of a patch: the address of a pointer, the number of the base it is made from, and the bytes to add.
PATCH_WORDS = 3

#: Bytes of a pool, and where its parts are: each on a line of the cache of its own that is written by others.
POOL_BYTES = 704
BUSY, ANNOUNCED, ARRIVED, PHASE, SHARED, WORKERS, SLEEPERS, MUTEX, CONDITION = 0, 64, 128, 192, 256, 264, 320, 384, 512
JOINED = 640
#: The number of threads that tells workers to end.
STOP = 255

#: What `run` returns: all is done; or it is, but one thread did everything because there are too few workers.
DONE, TOO_FEW_WORKERS = 0, 1

#: How often one who waits looks before it lets other threads run between looks (about 50 microseconds: where processors
#: are scarce, the one waited for may need this very one; but who is let run may be a thread that spins, and keeps the
#: processor for milliseconds), and how often a worker looks before it sleeps (another 300 or so).
SPINS, WORKER_LOOKS = 2000, 2400
#: Looks that letting others run counts as, and nanoseconds that a look takes.
YIELD_LOOKS, LOOK_COST = 32, 25.0
#: The share of a run's work that waiting for workers may take.
PATIENCE = 0.25

#: What tells a processor that a thread only waits, and its argument.
_X86, _ARM = ("x86.sse2.pause", ""), ("aarch64.hint", "i32 1")
_PAUSES = {"x86_64": _X86, "amd64": _X86, "i386": _X86, "i686": _X86, "aarch64": _ARM, "arm64": _ARM}


@cache
def library() -> jit.Library:
    """The runtime's functions: `pullback_run`, and where there are threads, `pullback_work` and `pullback_pool`."""
    exports = ["pullback_run", "pullback_blas", *(["pullback_work", "pullback_pool"] if has_threads() else [])]
    return linked(text(), exports)


def text() -> str:
    """The runtime as text for LLVM."""
    intrinsic, argument = _PAUSES.get(platform.machine().lower(), ("", ""))
    declared = f"declare void @llvm.{intrinsic}({argument[:3]})" if intrinsic else ""
    names = {
        "BUSY": BUSY, "ANNOUNCED": ANNOUNCED, "ARRIVED": ARRIVED, "PHASE": PHASE, "SHARED": SHARED, "WORKERS": WORKERS,
        "SLEEPERS": SLEEPERS, "MUTEX": MUTEX, "CONDITION": CONDITION, "STOP": STOP, "TOO_FEW": TOO_FEW_WORKERS,
        "SPINS": SPINS, "WORKER_LOOKS": WORKER_LOOKS, "JOINED": JOINED, "YIELD": YIELD_LOOKS,
        "PAUSE": intrinsic and f"call void @llvm.{intrinsic}({argument})",
    }  # fmt: skip
    source = runtime_code.WALK + (pool_code.RUN_SHARED + pool_code.POOL if has_threads() else runtime_code.RUN_ALONE)
    return declared + filled(source, names)


def has_threads() -> bool:
    """Whether there is what threads need to wait for each other."""
    return os.name == "posix"


@cache
def run_function(release: bool) -> Callable[[int, int], int]:
    """`run(program, bases)`: one run; with `release`, other Python threads may run meanwhile."""
    kind: Any = ctypes.CFUNCTYPE if release else ctypes.PYFUNCTYPE
    return kind(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(library().addresses["pullback_run"])
