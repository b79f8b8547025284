"""Tracing: running a function once on symbols, and finding out what it read, wrote and left behind.

Tensors that the function finds outside of it become inputs the moment they are touched: their raw array is replaced by
a symbol for the time of the trace. At the end they get their arrays back, and what the function wrote to them becomes
an update of the program. So a trace that fails has changed nothing.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

import numpy as np

from ... import backends, modes
from ...autodiff.graph import GradCell, Leaf, next_sequence_number
from ...errors import DeviceError, TraceError
from ...optim.arithmetic import arithmetic_of
from ...random import Generator, at_state, default_generator
from ...tensor.core import Tensor, make
from ..program import Program, Value
from . import drawing  # noqa: F401  (adds a kernel)
from .recorder import Recorder
from .sites import user_site
from .state import AttributeWatch, Draws, GroupWatch, Numbers, OptimizerWatch
from .symbol import Symbol

_ndarray = np.ndarray
TRACE: Any = backends.for_device("trace")[0]


class Held:
    """A tensor from outside that the function touched, and what it was before."""

    __slots__ = ("tensor", "raw", "node", "value")

    def __init__(self, tensor: Tensor, value: Value) -> None:
        self.tensor = tensor
        self.raw = tensor._data
        self.node = tensor._node
        self.value = value


class Trace:
    """What is known while a function runs on symbols."""

    def __init__(self) -> None:
        self.began = next_sequence_number()  # nodes with smaller numbers are from outside
        self.default_generator = default_generator()
        self.recorder = Recorder()
        self.held: dict[int, Held] = {}  # tensors from outside, by identity
        self.cells: dict[int, tuple[GradCell, Any]] = {}  # gradient cells that change, with what was in them
        self.numbers: list[Numbers] = []  # an optimizer's numbers, which change from step to step
        self.draws: dict[int, Draws] = {}  # generators that were drawn from, by identity
        self.finished_draws: list[Draws] = []  # of generators that were seeded anew
        self.slots: list[Any] = []  # of parameters that an optimizer updated, once for each update
        self.modules: dict[int, tuple[Any, bool]] = {}  # modules that were called, with their mode
        self.groups: list[GroupWatch] = []
        self.attributes: list[AttributeWatch] = []
        self.optimizers: dict[int, OptimizerWatch] = {}  # by identity
        self.nodes: dict[int, tuple[Tensor, Any]] = {}  # tensors whose need of a gradient was looked at
        self.checks: list[Value] = []  # what the numerics guard wants to see finite

    # -- tensors from outside ----------------------------------------------------------------------

    def lift(self, tensor: Any) -> None:
        """Make a tensor from outside an input of the program."""
        if type(tensor) is not Tensor:
            return
        raw = tensor._data
        if type(raw) is Symbol:
            if raw.recorder is not self.recorder and raw.recorder.closed:
                self.recorder._argument(raw)  # says whose it is
            return
        if type(raw) is not _ndarray:
            raise DeviceError(
                f"{user_site()}: pb.compile compiles for NumPy's arrays so far, and found a tensor on "
                f"{tensor.device!r}. Move it with `.to_device('numpy')`, or call the function without pb.compile."
            )
        value = self.recorder.lift_array(raw)
        self.held[id(tensor)] = Held(tensor, value)
        tensor._data = Symbol(value, self.recorder).lend_for(raw)
        tensor._origin = None

    def lift_all(self, inputs: Iterable[Any]) -> None:
        for x in inputs:
            if type(x) is Tensor and type(x._data) is not Symbol:
                self.lift(x)

    def original(self, tensor: Tensor) -> Any:
        """The raw array that a tensor had before the trace."""
        held = self.held.get(id(tensor))
        return tensor._data if held is None else held.raw

    def note_cell(self, cell: GradCell) -> None:
        """Remember what was in a gradient cell before the function changes it."""
        if id(cell) not in self.cells:
            self.cells[id(cell)] = (cell, cell.value)

    def note_attribute(self, thing: Any, name: str) -> None:
        """Remember an attribute that is a plain number: the program is right only while it stays."""
        self.attributes.append(AttributeWatch(thing, name))

    def note_optimizer(self, optimizer: Any) -> OptimizerWatch:
        """Remember that an optimizer's parameters were gone through: which have a gradient, and which do not."""
        watch = self.optimizers.get(id(optimizer))
        if watch is None:
            watch = self.optimizers[id(optimizer)] = OptimizerWatch(optimizer)
            for slots in optimizer._slots:
                for slot in slots:
                    if isinstance(slot.parameter, Tensor) and id(slot.parameter) not in self.held:
                        self.nodes[id(slot.parameter)] = (slot.parameter, slot.parameter._node)
        return watch

    def note_module(self, module: Any) -> None:
        """Remember that a module was called: the program is right only while its mode stays."""
        self.modules[id(module)] = (module, module.training)

    def check(self, raws: Iterable[Any]) -> None:
        """Have the numerics guard look at these arrays when the program has run."""
        for raw in raws:
            if type(raw) is Symbol and raw.dtype.kind in "fc":
                self.checks.append(raw.value)

    # -- randomness --------------------------------------------------------------------------------

    def _unless_default(self, generator: Generator) -> Generator | None:
        """None for the generator that the function finds as the default: each call uses the one it finds."""
        return None if generator is self.default_generator else generator

    def _state_of(self, generator: Generator) -> Draws:
        draws = self.draws.get(id(generator))
        if draws is None:
            draws = self.draws[id(generator)] = Draws(self._unless_default(generator), self.recorder)
        return draws

    def seed(self, generator: Generator, key: int) -> bool:
        """A generator starts anew inside the function, as it then does at every call. Whether that is all."""
        before = self.draws.get(id(generator))
        if before is not None:
            self.finished_draws.append(before)
        self.draws[id(generator)] = Draws(self._unless_default(generator), self.recorder, key)
        return hasattr(generator, "_key")  # one that is being made needs a state all the same

    def next_key(self, generator: Generator, count: int) -> tuple[Any, Any]:
        """What `Generator.next_key` gives, as symbols: every call of the program goes on where the last one ended."""
        return self._state_of(generator).reserve(count)

    def draw(self, generator: Generator, method: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        """Numbers of a distribution: drawn by NumPy's code when the program runs."""
        start = {"key": 0, "offset": 0}
        with modes.changed(tracing=None):
            ahead = at_state(start)  # type: ignore[arg-type]
            example = method(ahead, *args, **named)  # says how many words are taken, and refuses bad arguments
        key, offset = self.next_key(generator, ahead.state["offset"])
        options = (tuple(args), tuple(named.items()))
        return make(self.recorder.record("draw", (key, offset, method.__name__, options, example.dtype)), None)

    # -- optimizers --------------------------------------------------------------------------------

    def step(self, optimizer: Any, work: list[tuple[dict[str, Any], list[tuple[Any, Any]]]]) -> None:
        """An optimizer's step on symbols. Its numbers (rate, bias correction) are inputs, computed at each call."""
        xp = arithmetic_of(TRACE)
        shared: dict[Any, Numbers] = {}
        optimizer_watch = self.note_optimizer(optimizer)
        for group, found in work:
            watch = GroupWatch(optimizer, group)
            self.groups.append(watch)
            for slot, gradient in found:
                parameter = slot.parameter
                if not isinstance(parameter, Tensor):
                    raise TraceError(f"{user_site()}: pb.compile cannot follow an optimizer of plain NumPy arrays.")
                raw = self.original(parameter)
                with modes.changed(tracing=None):
                    slot.settle(optimizer, group, raw)
                self.lift(parameter)
                ahead = 1 + sum(other is slot for other in self.slots)
                key = (id(group), slot.step + ahead, slot.working.str)
                numbers = shared.get(key)
                if numbers is None:
                    numbers = shared[key] = Numbers(optimizer, group, slot, ahead, self.recorder)
                    self.numbers.append(numbers)
                numbers.slots.append(slot)
                optimizer_watch.buffers.append((slot, slot.buffers))
                for buffer in slot.buffers:
                    self.lift(buffer)
                self._advance(xp, optimizer, watch.options, slot, gradient, numbers.symbols)
                self.slots.append(slot)

    def _advance(self, xp: Any, optimizer: Any, group: Any, slot: Any, gradient: Any, constants: Any) -> None:
        w = slot.parameter._data
        buffers = [buffer._data for buffer in slot.buffers]
        spare = (None,) * optimizer.scratch
        if slot.halved:
            wide, gradient = xp.convert(w, slot.working, None), xp.convert(gradient, slot.working, None)
            new, *new_buffers = optimizer.update(xp, group, constants, wide, gradient, buffers, spare, None)
            new = xp.convert(new, slot.dtype, None)
        else:
            new, *new_buffers = optimizer.update(xp, group, constants, w, gradient, buffers, spare, None)
        for tensor, fresh in zip((slot.parameter, *slot.buffers), (new, *new_buffers)):
            tensor._data.pass_on(fresh)
            tensor._data = fresh

    # -- the end -----------------------------------------------------------------------------------

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call `function` under this trace."""
        with modes.changed(tracing=self, checkpointing=None, tapes=()):
            return function(*args, **kwargs)

    def restore(self) -> None:
        """Give every tensor and cell back what it had."""
        try:
            self._give_back()
        except BaseException:  # Ctrl-C in the middle of it: a tensor must not be left with a symbol
            self._give_back()
            raise
        finally:
            self.recorder.done.set()

    def _give_back(self) -> None:
        self.recorder.closed = True
        for held in self.held.values():
            held.tensor._data = held.raw
            held.tensor._node = held.node
        for cell, before in self.cells.values():
            cell.value = before

    def finish(self, arguments: list[Value], outputs: list[Value]) -> Program:
        """The program, with these arguments first among its inputs; what was written to tensors are its updates."""
        updates: dict[Value, Value] = {}
        for held in self.held.values():
            raw = held.tensor._data
            if held.tensor._node is not held.node and not isinstance(held.tensor._node, Leaf):
                raise TraceError(
                    f"a tensor of shape {held.tensor.shape} from outside the function has become the result of traced "
                    "operations that need a gradient. Write to it inside `with pb.no_grad():`."
                )
            if type(raw) is Symbol and raw.value is not held.value:
                if raw.shape != held.value.shape or raw.dtype != held.value.dtype:
                    raise TraceError(
                        f"a tensor from outside the function had shape {held.value.shape}, {held.value.dtype} and was "
                        f"left with {raw.shape}, {raw.dtype}. Return a new tensor instead."
                    )
                updates[held.value] = raw.value
        inputs = [*arguments, *(value for value, _ in self.recorder.arrays.values())]
        return Program(inputs, self.recorder.instructions, outputs, list(updates.items()))
