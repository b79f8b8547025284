"""A schedule on a GPU: memory planned, kernels made, and all launches captured into CUDA graphs that are replayed.

The first run launches one kernel after the other, which compiles them. The second captures the same launches, and from
then on a run is one launch of each graph. What cannot be captured runs between two graphs, by the library's kernels.
On other devices than a GPU (Triton's interpreter works on the processor's memory) all runs are like the first one.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Iterator, Sequence

import torch

from ..kernels import Buffer, Call, Host, Loop, Product, Schedule
from ..repeats import expanded
from . import library_calls, products
from .array_dtypes import array_dtypes
from .compiling import compile_all
from .grouping import Numbered, grouped
from .kernels.small_product import SmallProductKernel, suits
from .kernels.table import kernel_for
from .launch import Launch
from .loops.kernel import kernel_for as loop_kernel
from .loops.many import Together
from .memory import Memory, scratch_bytes

_capturing = threading.Lock()  # PyTorch captures one thing at a time
_EVENTS = 64  # more than there are runs that somebody waits for


class Executable:
    """A schedule that can be run on tensors, which stay where they are from run to run, or are captured again."""

    def __init__(self, schedule: Schedule, device: Any, library: Any) -> None:
        self.lock = threading.RLock()  # who has it may run the program
        self._library = library
        # Of a loop all steps, one after the other: their kernels are the same.
        self._pieces = _pieces(list(expanded(schedule.calls)))
        launches = [group for piece in self._pieces for group in piece.launches]
        alone = {group[0][1].kernel for group in launches if len(group) == 1}
        self._kernels = {one: made for one in alone if (made := _kernel_for(one, device)) is not None}
        self._together = {
            group[0][0]: Together([call.kernel for _, call in group], device) for group in launches if len(group) > 1
        }
        scratch = max([scratch_bytes(kernel.scratch) for kernel in self._kernels.values()], default=0)
        self.memory = Memory(schedule, scratch, device, library)
        self.arena_bytes = self.memory.arena_bytes
        self._dying = _dying([numbered for group in launches for numbered in group])
        self._endangered = _written_early(self._pieces)
        self._runs_of_pieces: list[Callable[[], None]] | None = None  # what a run calls, once it has been captured
        self._places: Any = None  # where inputs and outputs were when the graphs were captured
        self._number: int = (device.index or 0) if device.type == "cuda" else -1
        self._is_compiled = False
        self._stream: Any = None  # of the last run
        self._events: list[Any] = []  # which come when runs end: of the last ones, used again and again
        self._turns = 0

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run once, on the memory of these tensors, which are contiguous. See `taking_turns`."""
        places = (*[tensor.data_ptr() for tensor in (*inputs, *outputs)], _settings())
        with self.lock, torch.no_grad():
            if self.memory.device.type != "cuda":
                self._launch_all(inputs, outputs)
                return
            if torch.cuda.current_device() == self._number:
                self._run(inputs, outputs, places)
            else:
                with torch.cuda.device(self._number):
                    self._run(inputs, outputs, places)

    def is_ready(self) -> bool:
        """Whether `replay` can be called: all is captured, as PyTorch's settings have it now."""
        if self._runs_of_pieces is None or torch.cuda.current_device() != self._number:
            return False
        return len(self._runs_of_pieces) == 1 and self._places[-1] == _settings()

    def replay(self) -> None:
        """Run again on the same memory as the last run."""
        assert self._runs_of_pieces is not None
        self._runs_of_pieces[0]()

    @contextmanager
    def taking_turns(self) -> Iterator[Any]:
        """For a run, and for what is copied to the places it reads and from those it writes: one at a time.

        The arena and these places are shared by all runs. One on another stream waits until the last one has ended.
        Gives an event that comes when all is done that was launched inside (None on the processor).
        """
        with self.lock:
            if self._number < 0:
                yield None
                return
            last, raw = self._turns, torch._C._cuda_getCurrentRawStream(self._number)
            stream = torch.cuda.current_stream(self._number)
            if len(self._events) < _EVENTS:
                self._events.append(torch.cuda.Event())
            if last and raw != self._stream:
                stream.wait_event(self._events[(last - 1) % _EVENTS])
            self._stream = raw
            event = self._events[last % _EVENTS]
            self._turns += 1
            try:
                yield event
            finally:
                event.record(stream)

    def _run(self, inputs: Sequence[Any], outputs: Sequence[Any], places: tuple[Any, ...]) -> None:
        if places != self._places:  # first run them one by one: kernels may have to be compiled
            if self._runs_of_pieces is not None:
                torch.cuda.synchronize()  # before graphs are given up, with the memory that is theirs
            self._runs_of_pieces, self._places = None, places
            self._launch_all(inputs, outputs)
            return
        if self._runs_of_pieces is None:
            self._runs_of_pieces = self._captured(inputs, outputs)
        if len(self._runs_of_pieces) == 1:
            self._runs_of_pieces[0]()
        else:
            self._one_by_one(inputs, self._runs_of_pieces)

    # -- launching ---------------------------------------------------------------------------------

    def _launch_all(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """One kernel after the other. One of the library's may raise: then the inputs are as they were."""
        self.memory.given = {"input": inputs, "output": outputs}
        try:
            if not self._is_compiled and self._number >= 0:
                compile_all(self._launches(), self._number)
                self._is_compiled = True
            self._one_by_one(inputs, [partial(self._launch, piece) for piece in self._pieces])
        finally:
            self.memory.free()

    def _launch(self, piece: _Piece, later: list[Callable[[], None]] | None = None) -> None:
        """Launch the calls of a piece; if they are captured, what has to be done before a run goes to `later`."""
        for group in piece.launches:
            if len(group) > 1:
                arrays = [self._arrays(call) for _, call in group]
                fill = self._together[group[0][0]].launch(arrays, later is not None)
                if later is not None:
                    later.append(fill)
            else:
                self._launch_one(group[0][1])
            for number, _ in group:
                for buffer in self._dying[number]:
                    self.memory.unbind(buffer)

    def _launch_one(self, call: Call) -> None:
        made = self._kernels.get(call.kernel)
        if isinstance(call.kernel, Host):
            library_calls.run(call, self._library, self.memory)
        elif made is None or (isinstance(call.kernel, Product) and not _has_full_precision()):
            products.run(call, self.memory)
        else:
            made.launch(self._arrays(call), self.memory.scratch(made.scratch))

    def _launches(self) -> list[Launch]:
        """The launches of loops and small products, one of each kind."""
        found: list[Launch] = []
        seen: set[Any] = set()
        for group in [group for piece in self._pieces for group in piece.launches]:
            kernel = group[0][1].kernel
            if len(group) > 1:
                found += self._together[group[0][0]].launches([self._arrays(call) for _, call in group])
            elif isinstance(kernel, (Loop, Product)) and kernel in self._kernels and kernel not in seen:
                seen.add(kernel)
                made = self._kernels[kernel]
                found += made.launches(self._arrays(group[0][1]), self.memory.scratch(made.scratch))
        return found

    def _arrays(self, call: Call) -> list[Any]:
        """What a call reads and writes."""
        places = zip((*call.reads, *call.writes), array_dtypes(call.kernel))
        return [self.memory.at(*place) for place in places]

    def _captured(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Callable[[], None]]:
        """The launches of each piece, captured; nothing of them runs."""
        self.memory.given = {"input": inputs, "output": outputs}
        runs: list[Any] = []
        later: list[Callable[[], None]] = []
        pool = None
        # A stream of its own: cuBLAS has memory for each stream, which graphs that run side by side must not share.
        options: dict[str, Any] = {"stream": torch.cuda.Stream(self._number), "capture_error_mode": "thread_local"}
        try:
            for piece in self._pieces:
                if not piece.is_captured:
                    runs.append(library_calls.prepared(piece.calls[0][1], self._library, self.memory))
                    continue
                graph = torch.cuda.CUDAGraph()
                with _capturing, torch.cuda.graph(graph, pool=pool, **options):
                    self._launch(piece, later)
                pool = graph.pool()
                runs.append(graph.replay)
        finally:
            self.memory.free()
        for fill in later:
            fill()
        return runs

    def _one_by_one(self, inputs: Sequence[Any], runs: Sequence[Callable[[], None]]) -> None:
        saved: list[tuple[Any, Any]] = []
        try:
            for run, numbers in zip(runs, self._endangered):
                saved += [(inputs[i], inputs[i].clone()) for i in numbers]
                run()
        except BaseException as error:
            for tensor, before in saved:
                tensor.copy_(before)
            error.changed_nothing = True  # type: ignore[attr-defined]
            raise


def _kernel_for(description: Any, device: Any) -> Any:
    """The kernels of a description, None where a library runs it."""
    if isinstance(description, Product):
        return SmallProductKernel(description, device) if suits(description) else None
    if isinstance(description, Host):
        return None
    return loop_kernel(description) if isinstance(description, Loop) else kernel_for(description)


def _has_full_precision() -> bool:
    """Whether float32 is multiplied as such."""
    precision: str = torch.get_float32_matmul_precision()
    return precision == "highest"


def _settings() -> tuple[Any, ...]:
    """What of PyTorch's settings decides which kernels are launched."""
    return torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()


class _Piece:
    """Calls, with their numbers, that are captured together, or one that is not captured.

    `launches` are those that are launched as one.
    """

    def __init__(self, is_captured: bool) -> None:
        self.is_captured = is_captured
        self.calls: list[Numbered] = []
        self.launches: list[list[Numbered]] = []


def _pieces(calls: list[Call]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for number, call in enumerate(calls):
        captured = not isinstance(call.kernel, Host) or library_calls.can_be_captured(call.kernel)
        if not pieces or not captured or not pieces[-1].is_captured:
            pieces.append(_Piece(captured))
        pieces[-1].calls.append((number, call))
    for piece in pieces:
        piece.launches = grouped(piece.calls)
    return pieces


def _written_early(pieces: list[_Piece]) -> list[list[int]]:
    """For each piece, the numbers of the inputs that it is the first to write, while something after it may fail."""
    found: list[list[int]] = [[] for _ in pieces]
    seen: set[int] = set()
    last = max([number for number, piece in enumerate(pieces) if not piece.is_captured], default=-1)
    for number, piece in enumerate(pieces[: last + 1]):
        for _, call in piece.calls:
            for buffer in [location.buffer for location in call.writes]:
                if buffer.kind == "input" and buffer.index not in seen:
                    seen.add(buffer.index)
                    found[number].append(buffer.index)
    return found


def _dying(launched: list[Numbered]) -> list[list[Buffer]]:
    """For each call, what libraries made that nobody needs from then on, in the order in which they are launched."""
    last: dict[Buffer, int] = {}
    for number, call in launched:
        for location in (*call.reads, *call.writes):
            if location.buffer.kind == "library":
                last[location.buffer] = number
    found: list[list[Buffer]] = [[] for _ in launched]
    for buffer, number in last.items():
        found[number].append(buffer)
    return found
