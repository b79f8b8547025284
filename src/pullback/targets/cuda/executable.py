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
from . import library_calls, products
from .array_dtypes import array_dtypes
from .kernels.table import kernel_for
from .loops.kernel import kernel_for as loop_kernel
from .memory import Memory, scratch_bytes

_capturing = threading.Lock()  # PyTorch captures one thing at a time


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
        self._number: int = (device.index or 0) if device.type == "cuda" else -1
        self._stream: Any = None  # of the last run
        self._done: Any = None

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run once, on the memory of these tensors, which are contiguous. See `taking_turns`."""
        places = (*[tensor.data_ptr() for tensor in (*inputs, *outputs)], *_settings())
        with self.lock, torch.no_grad():
            if self.memory.device.type != "cuda":
                self._launch_all(inputs, outputs)
                return
            if torch.cuda.current_device() == self._number:
                self._run(inputs, outputs, places)
            else:
                with torch.cuda.device(self._number):
                    self._run(inputs, outputs, places)

    @contextmanager
    def taking_turns(self) -> Iterator[None]:
        """For a run, and for what is copied to the places it reads and from those it writes: one at a time.

        The arena and these places are shared by all runs. One on another stream waits until the last one has ended.
        """
        with self.lock:
            if self._number < 0:
                yield
                return
            stream = torch._C._cuda_getCurrentRawStream(self._number)
            if self._done is None:
                self._done = torch.cuda.Event()
            elif stream != self._stream:
                torch.cuda.current_stream(self._number).wait_event(self._done)
            self._stream = stream
            try:
                yield
            finally:
                self._done.record(torch.cuda.current_stream(self._number))

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

    def _captured(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Callable[[], None]]:
        """The launches of each piece, captured; nothing of them runs."""
        self.memory.given = {"input": inputs, "output": outputs}
        runs: list[Any] = []
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
                    self._launch(piece)
                pool = graph.pool()
                runs.append(graph.replay)
        finally:
            self.memory.free()
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


def _settings() -> tuple[Any, ...]:
    """What of PyTorch's settings decides which kernels are launched."""
    return torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()


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
