"""A program on a GPU, called with tensors: what is copied to fixed places first, and what is given back."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from ...backends.torch_memory import torch_dtype
from ...targets.cuda.target import TARGET
from ..drawing_first import DrawnFirst
from ..lowering.lower import lower
from ..passes import optimize
from ..program import Program, Value
from .evaluation import evaluate
from .halting import Flags, halting

_ALIGNMENT = 16


class CudaExecutable:
    """`run(inputs)` gives the outputs of a program, and the inputs that it updates, which it has written to.

    A graph reads and writes fixed places. Inputs that calls find in the same tensors again and again (`bound`) are
    read and written there; others are copied to places of the program's own, those of NumPy's all at once.
    """

    def __init__(
        self, program: Program, library: Any, device: str, bound: list[bool], is_guarded: bool = False
    ) -> None:
        with torch.inference_mode(False):  # what is made here is written to by all calls, whatever the mode then is
            self._make(program, library, device, bound, is_guarded)

    def _make(self, program: Program, library: Any, device: str, bound: list[bool], is_guarded: bool) -> None:
        self.lock = threading.RLock()  # who has it may run the program
        self._library, self._device = library, torch.device(device.removeprefix("torch:"))
        self._traced = program
        self._halted: Any = None  # whether a run has failed, on the device
        self._flags: Any = None
        if is_guarded:
            program, halted = halting(program)
            self._halted, self._flags = self._empty(halted).zero_(), Flags(self._device)
            bound = [*bound, True]
        self._drawn = DrawnFirst(program)
        is_bound = [*bound, *[False] * len(self._drawn.values)]
        drawn = set(self._drawn.values)
        given = Program(
            [*program.inputs, *self._drawn.values],
            [one for one in program.instructions if not drawn.issuperset(one.results) or not one.results],
            program.outputs,
            program.updates,
            program.constants,
        )
        self.program = optimize(given)
        schedule = lower(self.program, TARGET.abilities)
        self.calls = schedule.calls
        self._executable = TARGET.compile(schedule, library, self._device)
        self.arena_bytes = self._executable.arena_bytes
        self._updated = [given.inputs.index(target) for target, _ in self._traced.updates]
        numbers = [number for number, value in enumerate(given.inputs) if value not in given.constants]
        self._bound = [number for number in numbers if is_bound[number]]
        self._copied = [number for number in numbers if not is_bound[number]]
        self._values = given.inputs
        self._unused = [torch.empty(1, device=self._device)] * len(schedule.inputs)
        self._places: dict[int, Any] = {}  # of inputs that are copied, by their numbers
        self._outputs = [self._empty(value) for value in program.outputs]
        self._upload = _Upload(self._device)

    def run(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Run once, on tensors and NumPy's arrays in the order of the program's inputs.

        Of a guarded program the last output is a `Flag`, which comes when the device has got that far.
        """
        if self._halted is not None:
            inputs = [*inputs, self._halted]
        if self._drawn:
            inputs = [*inputs, *self._drawn.draw(inputs)]
        with self.lock, torch.inference_mode(False), self._executable.taking_turns():
            places = list(self._unused)
            arrays: list[tuple[int, np.ndarray]] = []
            for number in self._bound:
                array = inputs[number]
                places[number] = array if _is_plain(array) else self._place(number).copy_(array)
            for number in self._copied:
                array = inputs[number]
                if isinstance(array, np.ndarray):
                    arrays.append((number, array))
                else:
                    places[number] = self._place(number).copy_(array)
            self._upload.to(places, arrays, self._values)
            self._executable.run(places, self._outputs)
            if self._flags is None:
                outputs = [place.clone() for place in self._outputs]
            else:
                *places_of_outputs, flag = self._outputs
                outputs = [*[place.clone() for place in places_of_outputs], self._flags.send(flag)]
            for number in self._updated:
                if places[number] is not inputs[number]:
                    inputs[number] = places[number].clone()
        return outputs, [inputs[number] for number in self._updated]

    def reset(self) -> None:
        """Let runs change something again after one has failed."""
        if self._halted is not None:
            with torch.inference_mode(False), self._executable.taking_turns():
                self._halted.zero_()

    def interpret(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """The same operation by operation, without compiling, and without writing over anything."""
        return evaluate(self._traced, inputs, self._library.xp, self._device)

    def _place(self, number: int) -> Any:
        if number not in self._places:
            self._places[number] = self._empty(self._values[number])
        return self._places[number]

    def _empty(self, value: Value) -> Any:
        return torch.empty(value.shape, dtype=torch_dtype(value.dtype), device=self._device)


def _is_plain(array: Any) -> bool:
    """Whether the elements of a tensor lie in memory as they are, in order."""
    return bool(array.is_contiguous()) and not array.is_conj() and not array.is_neg()


class _Upload:
    """Numbers of an optimizer, places in random streams and arrays of NumPy's, sent to the GPU in one copy."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._staged = np.empty(0, np.uint8)
        self._sent: Any = None
        self._forms: Any = None
        self._views: list[Any] = []  # of what is staged, and where it goes
        self._places: list[Any] = []

    def to(self, places: list[Any], arrays: list[tuple[int, np.ndarray]], values: list[Value]) -> None:
        """Put tensors with the contents of arrays among `places`."""
        if not arrays:
            return
        forms = [(number, values[number].shape, values[number].dtype) for number, _ in arrays]
        if forms != self._forms:
            self._lay_out(forms)
        for (_, array), staged in zip(arrays, self._views):
            staged[...] = array
        self._sent.copy_(torch.from_numpy(self._staged), non_blocking=True)  # it has been read when this returns
        for (number, _), place in zip(arrays, self._places):
            places[number] = place

    def _lay_out(self, forms: list[tuple[int, tuple[int, ...], Any]]) -> None:
        starts, end = [], 0
        for _, shape, dtype in forms:
            starts.append(end)
            end += -(-int(np.prod(shape)) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        self._staged = np.zeros(max(end, 1), np.uint8)
        self._sent = torch.empty(max(end, 1), dtype=torch.uint8, device=self._device)
        self._views, self._places, self._forms = [], [], forms
        for start, (_, shape, dtype) in zip(starts, forms):
            stop = start + int(np.prod(shape)) * dtype.itemsize
            self._views.append(self._staged[start:stop].view(dtype).reshape(shape))
            self._places.append(self._sent[start:stop].view(torch_dtype(dtype)).reshape(shape))
