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
from ..passes.rematerialization import rematerialized, saved_bytes
from ..program import Program, Value
from .evaluation import evaluate
from .halting import Flags, halting
from .preparation import FLOPS_PER_BYTE, prepared

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
        self._state: list[Any] = []  # whether a run has failed, and how many were fine, on the device
        self._flags: Any = None
        if is_guarded:
            program, state = halting(program)
            self._state, self._flags = [self._empty(value).zero_() for value in state], Flags(self._device)
            bound = [*bound, *[True] * len(state)]
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
        optimized = prepared(given)
        self.program = rematerialized(optimized, flops_per_byte=FLOPS_PER_BYTE)
        self.saved_bytes = saved_bytes(self.program, optimized)
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
        if self._flags is not None:
            self._outputs[-1] = self._flags.place
        self._upload = _Upload(self._device)
        self._kinds: list[bool] | None = None  # of what was copied in the last run, whether it was NumPy's; None if
        # the next one must look at everything

    def run(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Run once, on tensors and NumPy's arrays in the order of the program's inputs.

        Of a guarded program the last output is a `Flag`, which comes when the device has got that far.
        """
        inputs = [*inputs, *self._state]
        if self._drawn:
            inputs += self._drawn.draw(inputs)
        with self.lock, torch.inference_mode(False), self._executable.taking_turns() as turn:
            self._kinds = None
            places = list(self._unused)
            is_plain = True
            for number in self._bound:
                array = inputs[number]
                if _is_plain(array):
                    places[number] = array
                else:
                    is_plain = False
                    places[number] = self._place(number).copy_(array)
            self._fill(places, inputs)
            self._executable.run(places, self._outputs)
            for number in self._updated:
                if places[number] is not inputs[number]:
                    inputs[number] = places[number].clone()
            if is_plain:
                self._kinds = [type(inputs[number]) is np.ndarray for number in self._copied]
            return self._given_back(turn), [inputs[number] for number in self._updated]

    def can_repeat(self, inputs: list[Any]) -> bool:
        """Whether `repeat` can run on these, if the tensors that are bound are as they were in the last run."""
        kinds = self._kinds
        if kinds is None or self._drawn or not self._executable.is_ready():
            return False
        return [type(inputs[number]) is np.ndarray for number in self._copied] == kinds

    def repeat(self, inputs: list[Any]) -> list[Any]:
        """Run again on the bound tensors of the last run, which are not looked at; gives the outputs."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self.repeat(inputs)
        with self.lock, self._executable.taking_turns() as turn:
            self._fill(None, inputs)
            self._executable.replay()
            return self._given_back(turn)

    def _fill(self, places: list[Any] | None, inputs: list[Any]) -> None:
        """Copy what is not bound to places of the program's own, and put those among `places`."""
        arrays: list[tuple[int, np.ndarray]] = []
        for number in self._copied:
            array = inputs[number]
            if isinstance(array, np.ndarray):
                arrays.append((number, array))
            else:
                place = self._place(number).copy_(array)
                if places is not None:
                    places[number] = place
        self._upload.to(places, arrays, self._values)

    def _given_back(self, turn: Any) -> list[Any]:
        """What the caller gets of a run: copies, since the next one writes to the same places."""
        if self._flags is None:
            return [place.clone() for place in self._outputs]
        return [*[place.clone() for place in self._outputs[:-1]], self._flags.launched(turn)]

    def reset(self) -> None:
        """Let runs change something again after one has failed; all have ended."""
        if self._flags is not None:
            with torch.inference_mode(False), self._executable.taking_turns():
                self._state[0].zero_()
                self._flags.reset()

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
        self._staged, self._sent_last = np.empty(0, np.uint8), b""
        self._sent: Any = None
        self._forms: Any = None
        self._views: list[Any] = []  # of what is staged, and where it goes
        self._places: list[Any] = []

    def to(self, places: list[Any] | None, arrays: list[tuple[int, np.ndarray]], values: list[Value]) -> None:
        """Put tensors with the contents of arrays among `places`, if there are any."""
        if not arrays:
            return
        forms = [(number, values[number].shape, values[number].dtype) for number, _ in arrays]
        if is_new := forms != self._forms:
            self._lay_out(forms)
        for (_, array), staged in zip(arrays, self._views):
            staged[...] = array
        if is_new or self._staged.tobytes() != self._sent_last:
            self._sent.copy_(torch.from_numpy(self._staged), non_blocking=True)  # it has been read when this returns
            self._sent_last = self._staged.tobytes()
        if places is not None:
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
