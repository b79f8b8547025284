"""A schedule on a GPU: memory planned, kernels made, and all launches captured into CUDA graphs that are replayed.

The first run launches one kernel after the other, which compiles them. The second captures the same launches, and from
then on a run is one launch of each graph. What cannot be captured runs between two graphs, by the library's kernels.
On other devices than a GPU (Triton's interpreter works on the processor's memory) all runs are like the first one.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Callable, Sequence

import torch

from ..kernels import Buffer, Call, Host, Loop, Product, Schedule
from . import library_calls, products
from .array_dtypes import array_dtypes
from .kernels.table import kernel_for
from .loops.kernel import kernel_for as loop_kernel
from .memory import Memory, scratch_bytes


class Executable:
    """A schedule that can be run on tensors, which stay where they are from run to run, or are captured again."""

    def __init__(self, schedule: Schedule, device: Any, library: Any) -> None:
        self.lock = threading.RLock()  # who has it may run the program
        self._library = library
        described = {call.kernel for call in schedule.calls if not isinstance(call.kernel, (Product, Host))}
        self._kernels = {one: loop_kernel(one) if isinstance(one, Loop) else kernel_for(one) for one in described}
        scratch = max([scratch_bytes(kernel.scratch) for kernel in self._kernels.values()], default=0)
        self.memory = Memory(schedule, scratch, device, library)
        self.arena_bytes = self.memory.arena_bytes
        self._dying = _dying(schedule.calls)
        self._pieces = _pieces(schedule.calls)
        self._endangered = _written_early(self._pieces)
        self._runs_of_pieces: list[Callable[[], None]] | None = None  # what a run calls, once it has been captured
        self._places: Any = None  # where inputs and outputs were when the graphs were captured
        self._runs = 0
        self._number: int = (device.index or 0) if device.type == "cuda" else -1
        self._stream: Any = None  # of the last run
        self._done: Any = None

    @property
    def is_captured(self) -> bool:
        """Whether a run launches graphs."""
        return self._runs_of_pieces is not None

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run once, on the memory of these tensors, which are contiguous."""
        places = tuple([tensor.data_ptr() for tensor in (*inputs, *outputs)])
        with self.lock, torch.no_grad():
            if self.memory.device.type != "cuda":
                self._launch_all(inputs, outputs)
                return
            if torch.cuda.current_device() == self._number:
                self._run(inputs, outputs, places)
            else:
                with torch.cuda.device(self._number):
                    self._run(inputs, outputs, places)

    def _run(self, inputs: Sequence[Any], outputs: Sequence[Any], places: tuple[int, ...]) -> None:
        self._wait_for_last_run()
        if self._runs and (self._runs_of_pieces is None or places != self._places):
            self._capture(inputs, outputs, places)
        if self._runs_of_pieces is None:
            self._launch_all(inputs, outputs)
        elif len(self._runs_of_pieces) == 1:
            self._runs_of_pieces[0]()
        else:
            self._one_by_one(inputs, self._runs_of_pieces)
        self._runs += 1
        self._done.record()

    def _wait_for_last_run(self) -> None:
        """The arena is for one run at a time: what another stream does must have ended."""
        stream = torch._C._cuda_getCurrentRawStream(self._number)
        if self._done is None:
            self._done = torch.cuda.Event()
        elif stream != self._stream:
            torch.cuda.current_stream().wait_event(self._done)
        self._stream = stream

    # -- launching ---------------------------------------------------------------------------------

    def _launch_all(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """One kernel after the other. One of the library's may raise: then the inputs are as they were."""
        self.memory.given = {"input": inputs, "output": outputs}
        try:
            self._one_by_one(inputs, [partial(self._launch, piece) for piece in self._pieces])
        finally:
            self.memory.free()

    def _launch(self, piece: _Piece) -> None:
        for number, call in piece.calls:
            kernel = call.kernel
            if isinstance(kernel, Product):
                products.run(call, self.memory)
            elif isinstance(kernel, Host):
                library_calls.run(call, self._library, self.memory)
            else:
                made = self._kernels[kernel]
                places = zip((*call.reads, *call.writes), array_dtypes(kernel))
                made.launch([self.memory.at(*place) for place in places], self.memory.scratch(made.scratch))
            for buffer in self._dying[number]:
                self.memory.unbind(buffer)

    def _capture(self, inputs: Sequence[Any], outputs: Sequence[Any], places: Any) -> None:
        """Capture the launches of each piece; nothing of them runs."""
        self._runs_of_pieces = None
        self.memory.given = {"input": inputs, "output": outputs}
        runs: list[Any] = []
        pool = None
        try:
            for piece in self._pieces:
                if not piece.is_captured:
                    runs.append(library_calls.prepared(piece.calls[0][1], self._library, self.memory))
                    continue
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                    self._launch(piece)
                pool = graph.pool()
                runs.append(graph.replay)
        finally:
            self.memory.free()
        self._runs_of_pieces, self._places = runs, places

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


class _Piece:
    """Calls, with their numbers, that are captured together, or one that is not captured."""

    def __init__(self, is_captured: bool) -> None:
        self.is_captured = is_captured
        self.calls: list[tuple[int, Call]] = []


def _pieces(calls: list[Call]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for number, call in enumerate(calls):
        captured = not isinstance(call.kernel, Host) or library_calls.can_be_captured(call.kernel)
        if not pieces or not captured or not pieces[-1].is_captured:
            pieces.append(_Piece(captured))
        pieces[-1].calls.append((number, call))
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


def _dying(calls: list[Call]) -> list[list[Buffer]]:
    """For each call, what libraries made that nobody needs from then on."""
    last: dict[Buffer, int] = {}
    for number, call in enumerate(calls):
        for location in (*call.reads, *call.writes):
            if location.buffer.kind == "library":
                last[location.buffer] = number
    found: list[list[Buffer]] = [[] for _ in calls]
    for buffer, number in last.items():
        found[number].append(buffer)
    return found
