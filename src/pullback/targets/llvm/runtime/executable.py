"""A schedule made ready to run: functions compiled, memory allocated once, and a native table of calls to walk.

Most programs are one native span: a run is one native call. Calls of NumPy's kernels cut a program into spans, with
Python between them.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Callable, Sequence

import numpy as np

from ... import custom_kernels
from ...kernels import Call, Host, Location, Loop, Product, Schedule
from ...repeats import expanded, is_native, kernels_within
from . import dispatch as runtime, host_calls, threads as pool
from .sharing import Shared, SharedLoop, every_call, shared
from .table import Table

#: Nanoseconds of work from which on a run lets other Python threads run: giving the lock up and taking it costs too.
RELEASE_COST = 20_000.0


@dataclass
class _Span:
    """Native calls without Python between them: the address of their program, and the arrays that hold it."""

    program: int
    calls: list[Shared | SharedLoop]
    words: tuple[np.ndarray, ...]


class Executable:
    """A schedule that can be run. Its memory is its own, so one run at a time: `run` waits for its turn.

    `arena_bytes` are the bytes allocated for what is neither input nor output nor constant; `threads` is how many
    threads a run uses.
    """

    def __init__(self, schedule: Schedule, threads: int, host: Any = None) -> None:
        self._inputs = len(schedule.inputs)
        self._bases = (ctypes.c_int64 * max(self._inputs + len(schedule.outputs), 1))()
        self._bases_pointer = ctypes.addressof(self._bases)
        self._constants = {
            buffer: np.ascontiguousarray(array).reshape(-1).view(np.uint8) for buffer, array in schedule.constants
        }
        self.lock = threading.RLock()  # who has it may run the program
        offset = -(-schedule.arena_bytes // 64) * 64
        pieces = _pieces(schedule.calls)
        spans, needed = shared([piece for piece in pieces if isinstance(piece, list)], threads, offset)
        native = [one for span in spans for one in every_call(span)]
        scratch = max([one.native.emitted.scratch for one in native], default=0)
        self.cost: float = sum([one.cost for span in spans for one in span])
        self._most_threads = threads
        self.threads: int = min(threads, max([one.parts for one in native], default=1))
        self._scratch_stride = -(-scratch // 64) * 64
        self._scratch_offset = offset + -(-needed // 64) * 64
        self.arena_bytes: int = self._scratch_offset + self._scratch_stride * self.threads
        self._arena = _allocated(self.arena_bytes, schedule)
        self._blas = _blas_functions(schedule.calls)
        self._pieces = pieces
        self._spans: list[Any] = [
            host_calls.prepare(piece, host, self._memory) if isinstance(piece, Call) else self._span(spans.pop(0))
            for piece in pieces
        ]
        self._endangered = self._written_early()
        # With threads always: a worker that is just starting needs Python's lock to come to where it can work.
        self.keeps_lock = self.threads == 1 and self.cost <= RELEASE_COST
        self._run_span = runtime.run_function(not self.keeps_lock)
        #: `run_native(bases)` runs the program once, given the address of an array of the 64-bit addresses of inputs,
        #: then of outputs. It does not wait for its turn: see `run`. What it returns is `runtime.TOO_FEW_WORKERS` if
        #: the threads it wants were not there, as in a child made by fork; then call `start_threads`.
        self.run_native: Callable[[int], int]
        if len(self._spans) == 1 and isinstance(self._spans[0], _Span):
            self.run_native = partial(self._run_span, self._spans[0].program)
        else:
            self.run_native = self._run_spans
        self.start_threads()
        pool.reset_after_fork(self)

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run once, on the memory at these addresses."""
        with self.lock:
            self._bases[:] = [*inputs, *outputs] or [0]
            status = self.run_native(self._bases_pointer)
        if status:
            self.start_threads()

    @property
    def is_native(self) -> bool:
        """Whether a run is one native call."""
        return len(self._spans) == 1 and isinstance(self._spans[0], _Span)

    @property
    def native_program(self) -> tuple[int, int]:
        """The addresses of a native program's record and of the function that runs it: `run(record, bases)`."""
        return self._spans[0].program, runtime.library().addresses["pullback_run"]

    def start_threads(self) -> None:
        """Have the threads that runs of this program share."""
        pool.start(self.threads)

    def reset_after_fork(self) -> None:
        self.lock = threading.RLock()  # a run of another thread, which is not there in the child, may have it

    def measure(self, inputs: Sequence[int], outputs: Sequence[int]) -> list[tuple[Call, int, float]]:
        """Run once, call by call on one thread: each call with its parts and the nanoseconds that it took."""
        measured = []
        with self.lock:
            self._bases[:] = [*inputs, *outputs] or [0]
            for piece, span in zip(self._pieces, self._spans):
                if not isinstance(span, _Span):
                    begin = perf_counter()
                    span(self._bases)
                    measured.append((piece, 1, (perf_counter() - begin) * 1e9))
                    continue
                one = span.words[-1].copy()
                first, one[1], one[6] = int(one[0]), 1, 1
                for position, call in enumerate(span.calls):
                    one[0] = first + position * runtime.CALL_WORDS * 8
                    begin = perf_counter()
                    self._run_span(one.ctypes.data, self._bases_pointer)
                    measured.append((call.call, call.parts, (perf_counter() - begin) * 1e9))
        return measured

    def _run_spans(self, bases_pointer: int) -> int:
        """Run with Python between native spans. A kernel of NumPy's may raise: then the inputs are as they were."""
        status = runtime.DONE
        bases = (ctypes.c_int64 * len(self._bases)).from_address(bases_pointer)
        saved: list[tuple[int, bytes]] = []
        is_ending = False
        try:
            for number, span in enumerate(self._spans):
                saved += [(bases[i], ctypes.string_at(bases[i], nbytes)) for i, nbytes in self._endangered[number]]
                if isinstance(span, _Span):
                    is_ending = number == len(self._spans) - 1  # it cannot fail: an interrupt comes when it is done
                    status |= self._run_span(span.program, bases_pointer)
                else:
                    span(bases)
        except BaseException as error:
            if not is_ending:
                for address, content in saved:
                    ctypes.memmove(address, content, len(content))
                error.changed_nothing = True  # type: ignore[attr-defined]
            raise
        return status

    def _written_early(self) -> list[list[tuple[int, int]]]:
        """For each piece, the inputs (number, bytes) it is the first to write, while something after it may fail."""
        found: list[list[tuple[int, int]]] = [[] for _ in self._pieces]
        seen: set[int] = set()
        last = max([number for number, piece in enumerate(self._pieces) if isinstance(piece, Call)], default=-1)
        for number, piece in enumerate(self._pieces[: last + 1]):
            for call in [piece] if isinstance(piece, Call) else piece:
                for buffer in [location.buffer for location in call.writes]:
                    if buffer.kind == "input" and buffer.index not in seen:
                        seen.add(buffer.index)
                        found[number].append((buffer.index, buffer.nbytes))
        return found

    # -- building ----------------------------------------------------------------------------

    def _memory(self, location: Location) -> np.ndarray | int:
        """A buffer's bytes, or for one that is given with each run, the number of its address among the bases."""
        buffer = location.buffer
        if buffer.kind == "temporary":
            if buffer.offset < 0:
                raise ValueError("a temporary buffer has no place in the arena: its schedule's memory is not planned")
            return self._arena[buffer.offset : buffer.offset + buffer.nbytes]
        if buffer.kind == "constant":
            return self._constants[buffer]
        return buffer.index + (self._inputs if buffer.kind == "output" else 0)

    def _span(self, calls: list[Shared | SharedLoop]) -> _Span:
        table = Table(calls, self._memory, self.threads)
        patience = sum([one.cost for one in calls]) * runtime.PATIENCE / runtime.LOOK_COST
        program = np.array(
            [
                table.address, len(calls), table.patches.ctypes.data, len(table.patches),
                self._arena.ctypes.data + self._scratch_offset, self._scratch_stride,
                min(self._most_threads, max([1, *(one.parts for one in calls)])), *self._blas, int(patience),
            ],
            np.int64,
        )  # fmt: skip
        return _Span(program.ctypes.data, calls, (*table.words, table.patches, program))


def build(schedule: Schedule, threads: int | None = None, host: Any = None) -> Executable:
    """Make a schedule ready to run on at most that many threads; by default on all processors the process may use.

    `host` is the namespace of the kernels for its host calls, if it has any.
    """
    if threads is None:
        threads = pool.default_threads()
    if not 1 <= threads <= pool.LIMIT:
        raise ValueError(f"a program runs on 1 to {pool.LIMIT} threads, not {threads}.")
    return Executable(schedule, threads if runtime.has_threads() else 1, host)


def _allocated(nbytes: int, schedule: Schedule) -> np.ndarray:
    """The arena. If there is no such memory, say what it is for."""
    try:
        return pool.aligned(max(nbytes, 1))
    except MemoryError:
        written = [(location.buffer.nbytes, call.site) for call in schedule.calls for location in call.writes]
        largest, site = max(written, key=lambda one: one[0])
        raise MemoryError(
            f"{site + ': ' if site else ''}pb.compile cannot get the {nbytes:,} bytes of memory that the program needs "
            f"beside its inputs and outputs; the largest array in it, made at that line, has {largest:,} bytes."
        ) from None


def _pieces(calls: list[Call]) -> list[Any]:
    """Host calls, and lists of the native calls between them. Loops with host calls in them are taken step by step."""
    pieces: list[Any] = []
    for call in [one for whole in calls for one in ([whole] if is_native(whole) else expanded([whole]))]:
        if isinstance(call.kernel, Host):
            pieces.append(call)
        elif pieces and isinstance(pieces[-1], list):
            pieces[-1].append(call)
        else:
            pieces.append([call])
    return pieces


def _blas_functions(calls: list[Call]) -> tuple[int, int]:
    """How to keep BLAS from starting threads of its own, if a call may use it."""
    return pool.blas_functions() if any(_may_use_blas(call.kernel) for call, _ in kernels_within(calls)) else (0, 0)


def _may_use_blas(kernel: Any) -> bool:
    """Few products do. Where nothing does, BLAS's locks are none of our business, which matters to forked children."""
    if isinstance(kernel, Product):
        from ..products.emit_product import uses_blas

        return uses_blas(kernel)
    return not isinstance(kernel, (Loop, Host)) and type(kernel).__module__ != custom_kernels.__name__
