"""Tracing: running a function once on symbols, and finding out what it read, wrote and left behind.

Tensors that the function finds outside of it become inputs the moment they are touched. They are not changed: the trace
has a stand-in for each, with a symbol for its array, which operations take in its place and which is written in its
place; it has its own contents of gradient cells in the same way. At the end what was written becomes updates of the
program. So a trace leaves no mark, whether it succeeds or fails, and other threads do not notice it.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager, nullcontext
from types import NoneType
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from ... import backends, dtypes, modes
from ...autodiff import guard
from ...autodiff.base import make
from ...autodiff.batching.stack import Stack
from ...autodiff.graph import GradCell, Leaf, next_sequence_number
from ...autodiff.sites import user_site
from ...errors import DeviceError, TraceError
from ...random import Generator, at_state, default_generator
from ...tensors.tensor import Tensor
from ...tensors.writing import separate
from ..deferral import signals_later
from ..program import Program, Value, values_in
from . import drawing  # noqa: F401  (adds a kernel)
from .backend import TRACE
from .given_arrays import GivenArrays
from .recorder import Recorder
from .rolling import UnrollError, roll
from .state import Draws, Numbers, Options, SplitOff
from .symbol import Symbol

_ndarray = np.ndarray


#: Bytes of the largest tensor or array from outside whose values may decide what is traced.
MOST_BYTES_READ = 4096


class OtherDeviceError(BaseException):
    """A function was traced for the host, and its tensors are on `device`; None where another library traces them."""

    def __init__(self, device: str | None) -> None:
        super().__init__(f"the function's tensors are on {device!r}")
        self.device = device
        self.site = user_site()


class Held:
    """A tensor from outside that the function touched, what it was before, and what stands for it in the trace."""

    __slots__ = ("tensor", "array", "node", "value", "stand_in", "is_used")

    def __init__(self, tensor: Tensor, array: Any, recorder: Recorder) -> None:
        self.tensor = tensor
        self.array = array
        self.node = tensor._node
        self.value = recorder.lift_array(array, tensor)  # its own: another holder of the array may be written
        self.stand_in = make(Symbol(self.value, recorder), self.node)
        self.is_used = False  # whether the function looked at it, not only wrote to a variable that it is a clone of
        cell = getattr(tensor, "_cell", None)
        if cell is not None:
            self.stand_in._cell = cell

    @property
    def is_written(self) -> bool:
        """Whether the function has given it other values."""
        raw = self.stand_in._raw
        return type(raw) is not Symbol or raw.value is not self.value


class HeldCell:
    """A gradient cell that the function looked at, what was in it before, and what is in it for the trace."""

    __slots__ = ("cell", "before", "_value")

    def __init__(self, cell: GradCell) -> None:
        self.cell = cell
        self.before = self._value = cell._value


class Trace:
    """What is known while a function runs on symbols."""

    backend = TRACE

    def __init__(self, device: str = "numpy", is_open: bool = False, rolls: bool = True) -> None:
        """`device` is where the program is to run; if it `is_open`, until a tensor from outside is found elsewhere.

        With `rolls` long loops are one instruction each; an `UnrollError` says that they cannot be.
        """
        self.is_open = is_open
        self.rolls = rolls
        self.began = next_sequence_number()  # nodes with smaller numbers are from outside
        self.default_generator = default_generator()
        self.recorder = Recorder(device)
        self.held: dict[int, Held] = {}  # tensors from outside, by identity
        self.cells: dict[int, HeldCell] = {}  # gradient cells, by identity
        self.values_read: list[tuple[Any, bytes]] = []  # tensors and arrays from outside, with the values that decided
        self.numbers: list[Numbers] = []  # an optimizer's numbers, which change from step to step
        self.draws: dict[int, Draws] = {}  # generators that were drawn from, by identity
        self.split_off: dict[int, SplitOff] = {}
        self.finished_draws: list[Draws] = []  # of generators that were seeded anew
        self.slots: list[Any] = []  # of parameters that an optimizer updated, once for each update
        self.options: list[Options] = []  # of groups that were updated
        self.attributes: list[tuple[Any, str, Any]] = []  # numbers of the library's own: (whose, its name, what it was)
        self.optimizers: dict[int, tuple[Any, list[Any]]] = {}  # by identity: with slots and buffers that were updated
        self.unreadable: set[Value] = set()  # numbers that are inputs: their memory has no values while tracing
        self.nodes: dict[int, tuple[Tensor, Any]] = {}  # tensors whose need of a gradient was looked at
        self.written: set[int] = set()  # tensors from outside that were given other values, by identity, in the end
        self.arguments: set[Any] = set()  # variables that stand for arguments which operations outside have made
        self.choices: dict[Any, Symbol] = {}  # nodes of `cond` and `while_loop`: what decides which input counts
        self.may_not_run = False  # whether values decide if there is a first step of a loop
        self.checks: list[Value] = []  # what the numerics guard wants to see finite
        self.steps: list[Any] = []  # of loops that are being traced, the outermost first
        self.outside: list[list[Any]] = []  # and the instructions outside of each
        self.inner: set[Value] = set()  # of the bodies of loops: outside of them these are nothing
        self.contents: dict[Value, Any] = {}  # of arrays that steps of loops made, which were traced once more
        self.worlds: list[Any] = []  # of loops and their gradients
        self._clones: dict[Leaf, list[Any]] = {}  # `Leaf.clones` of variables from outside
        self._constants: set[Value] = set()  # arrays that the function made without reading any
        self._given = GivenArrays()
        self._decisive: dict[Value, TraceError] = {}  # what to say if values that decided are written
        self._settled: dict[int, tuple[Any, ...]] = {}  # by a slot's identity: its optimizer, it, what it will be
        self._walks = 0  # how many there were

    # -- tensors and arrays from outside -----------------------------------------------------------

    def resolve(self, tensor: Any) -> Any:
        """What stands for a tensor: its stand-in if it is from outside, else itself."""
        if type(tensor) is not Tensor:
            return tensor
        raw = tensor._raw
        if type(raw) is Symbol:
            if raw.recorder is not self.recorder:
                self.recorder._argument(raw)  # says whose it is
            return tensor
        if type(raw) is Stack:
            return tensor  # the tensors below it are looked at where they are used
        held = self._hold(tensor, raw)
        held.is_used = True
        return held.stand_in

    def resolve_all(self, inputs: Iterable[Any]) -> tuple[Any, ...]:
        return tuple([self.resolve(x) if type(x) is Tensor and type(x._raw) is not Symbol else x for x in inputs])

    def _hold(self, tensor: Tensor, raw: Any) -> Held:
        held = self.held.get(id(tensor))
        if held is None:
            if type(raw) is not _ndarray or self.recorder.device != "numpy":
                self._check_device(tensor, raw)
            self.is_open = False
            held = self.held[id(tensor)] = Held(tensor, raw, self.recorder)
        return held

    def _check_device(self, tensor: Tensor, raw: Any) -> None:
        """Refuse a tensor that is not where the program runs; a first one that is elsewhere says where it should."""
        backend: Any = backends.of(raw)
        device, own = tensor.device, self.recorder.device
        if not backend.is_concrete(raw):
            raise OtherDeviceError(None)
        if device == own:
            return
        if self.is_open:
            raise OtherDeviceError(device)
        raise DeviceError(
            f"{user_site()}: pb.compile runs a function on one device, here {own!r}, and found a tensor on {device!r}. "
            f"Move it with `.to_device({own!r})`."
        )

    @property
    def widest_float(self) -> Any:
        """The dtype of the most exact numbers that the program's device has."""
        return dtypes.float64 if self.recorder.library is None else self.recorder.library.widest_float()

    def lift(self, array: Any) -> Any:
        """The symbol for a NumPy array from outside, which calls will find where it is."""
        return Symbol(self.recorder.lift_array(array), self.recorder)

    def lift_given(self, array: Any) -> Any:
        """As `lift`, for an array that the function itself may have written to since it was lifted."""
        return self.lift(self._given.current(array) if type(array) is _ndarray else array)

    def constant(self, raw: Any) -> Any:
        """The symbol for a raw array that the function has made of plain Python values."""
        recorder = self.recorder
        if type(raw) is not _ndarray:
            backend: Any = backends.of(raw)
            if recorder.memory is not None and backend is recorder.memory and backend.device_of(raw) == recorder.device:
                raw = np.array(backend.to_numpy(raw))
            elif recorder.library is None or backend is not recorder.library:
                return raw
        symbol = self.lift(raw)
        self._constants.add(symbol.value)
        return symbol

    def clones_of(self, leaf: Leaf) -> list[Any]:
        """References to the clones of a variable, as far as this trace is concerned."""
        if leaf.seq > self.began:
            return leaf._clones
        if leaf not in self._clones:
            alive = [clone for reference in leaf._clones if (clone := reference()) is not None and clone._node is leaf]
            self._clones[leaf] = [weakref.ref(self._hold(clone, clone._raw).stand_in) for clone in alive]
        return self._clones[leaf]

    def cell(self, cell: GradCell) -> HeldCell:
        """A gradient cell as it is in this trace."""
        held = self.cells.get(id(cell))
        if held is None:
            held = self.cells[id(cell)] = HeldCell(cell)
        return held

    # -- values ------------------------------------------------------------------------------------

    def find_values(self, thing: Any) -> Any:
        """A copy of the values of something small from outside (a tensor, its symbol, an array), or None.

        They are noted: with other values the function would be traced again.
        """
        symbol = self.resolve(thing)._raw if isinstance(thing, Tensor) else thing
        array: Any = symbol
        holder = symbol
        if type(symbol) is Symbol:
            array = dict(self.recorder.arrays.values()).get(symbol.value)
            if symbol.value in self._constants:
                return np.array(array)
            holder = next((held.tensor for held in self.held.values() if held.value is symbol.value), array)
            if symbol.value in self.unreadable:
                return None
        if array is None or array.nbytes > MOST_BYTES_READ:
            return None
        if type(array) is not _ndarray:
            backend: Any = backends.of(array)
            array = array if backend is None else backend.to_numpy(array)
        self.values_read.append((holder, array.tobytes()))
        return np.array(array)

    def read_values(self, thing: Any, why: str) -> Any:
        """As `find_values`; an error that says `why` values are needed where there are none."""
        symbol = self.resolve(thing)._raw if isinstance(thing, Tensor) else thing
        if type(symbol) is not Symbol:
            symbol = self.lift(symbol)
        values = self.find_values(symbol)
        if values is None:
            raise symbol.refusal(why)
        if symbol.value not in self._decisive:
            self._decisive[symbol.value] = symbol.error(why)
        return values

    # -- what belongs to the program without being an array ----------------------------------------

    def note_attribute(self, thing: Any, name: str) -> None:
        """Remember an attribute that is a plain number: the program is right only while it stays."""
        self.attributes.append((thing, name, getattr(thing, name)))

    def note_optimizer(self, optimizer: Any) -> list[Any]:
        """Remember that an optimizer's parameters were gone through: which have a gradient, and which do not."""
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = optimizer, []
            for slots in optimizer._slots:
                for slot in slots:
                    if isinstance(slot.parameter, Tensor) and id(slot.parameter) not in self.held:
                        self.nodes[id(slot.parameter)] = (slot.parameter, slot.parameter._node)
        return self.optimizers[id(optimizer)][1]

    def check(self, raws: Iterable[Any]) -> None:
        """Have the numerics guard look at these arrays when the program has run."""
        for raw in raws:
            if type(raw) is Symbol and raw.dtype.kind in "fcV":  # V: bfloat16
                self.checks.append(raw.value)

    # -- randomness --------------------------------------------------------------------------------

    def _unless_default(self, generator: Generator) -> Generator | None:
        """None for the generator that the function finds as the default: each call uses the one it finds."""
        return None if generator is self.default_generator else generator

    def _state_of(self, generator: Generator) -> Draws:
        draws = self.draws.get(id(generator))
        if draws is None:
            inside = self.recorder.instructions
            if self.outside:  # where a stream begins is read once, outside of all loops
                self.recorder.instructions = self.outside[0]
            draws = self.draws[id(generator)] = Draws(self._unless_default(generator), self.recorder)
            self.recorder.instructions = inside
        return draws

    def split(self, generator: Generator, count: int) -> list[Generator]:
        """Generators that are split off another one: their keys are drawn when the program runs."""
        halves = self.recorder.library is not None
        keys = self.draw(generator, Generator._split_keys, (count, halves), {})._raw
        made = []
        for number in range(count):
            with modes.changed(tracing=None):
                child = Generator(0)
            self.split_off[id(child)] = SplitOff(child, self.recorder, self.recorder.record("getitem", (keys, number)))
            made.append(child)
        return made

    def seed(self, generator: Generator, key: int, offset: int = 0) -> bool:
        """A generator starts anew inside the function, as it then does at every call. Whether that is all."""
        self.split_off.pop(id(generator), None)
        before = self.draws.get(id(generator))
        if before is not None:
            self.finished_draws.append(before)
        self.draws[id(generator)] = Draws(self._unless_default(generator), self.recorder, (key, offset))
        return hasattr(generator, "_key")  # one that is being made needs a state all the same

    def next_key(self, generator: Generator, count: int) -> tuple[Any, Any]:
        """What `Generator.next_key` gives, as symbols: every call of the program goes on where the last one ended."""
        if id(generator) in self.split_off:
            if self.steps:
                raise UnrollError
            return self.split_off[id(generator)].reserve(count)
        draws = self._state_of(generator)
        key, offset = draws.reserve(count)
        if self.steps and self.recorder.library is not None:
            raise UnrollError  # which has a place in halves, and moves it by numbers alone
        for step in self.steps:
            offset = offset + Symbol(step.place_of(draws), self.recorder)
        return key, offset

    def draw(self, generator: Generator, method: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        """Numbers of a distribution: drawn by NumPy's code when the program runs."""
        if self.steps:
            raise UnrollError  # they may have to be drawn before all else runs
        args = tuple([self._drawn_with(x) for x in args])
        named = {name: self._drawn_with(x) for name, x in named.items()}
        with modes.changed(tracing=None):
            ahead = at_state({"key": 0, "offset": 0})
            example = method(ahead, *args, **named)  # says how many words are taken, and refuses bad arguments
            taken = ahead.state["offset"]
        key, offset = self.next_key(generator, taken)
        options = (args, tuple(named.items()))
        return make(self.recorder.record("draw", (key, offset, method.__name__, options, example.dtype)), None)

    def _drawn_with(self, x: Any) -> Any:
        """A tensor of chances, which a program finds when it draws; one that the function changed has no values."""
        stand_in = self.resolve(x)
        held = self.held.get(id(x))
        return x if held is None or not held.is_written else stand_in

    # -- loops -------------------------------------------------------------------------------------

    def roll(self, *loop: Any) -> tuple[list[Tensor], list[Tensor]]:
        """A long loop as one instruction: see `rolling.roll`."""
        return roll(self, *loop)

    def refuse_inner(self, program: Program) -> None:
        """Have loops unrolled if something outside of them uses what is different at every step."""
        used = values_in((*[one.args for one in program.instructions], *program.wanted(), *self.checks))
        if not self.inner.isdisjoint(used):
            raise UnrollError

    # -- optimizers --------------------------------------------------------------------------------

    def step(self, optimizer: Any, work: list[tuple[dict[str, Any], list[tuple[Any, Any]]]], xp: Any) -> None:
        """An optimizer's step on symbols, computed with `xp`. Its numbers (rate, bias correction) are inputs."""
        if not self.checks and guard.mode()[0] != "off":  # where gradients are made here, they are looked at already
            self.check([gradient for _, found in work for _, gradient in found])
        shared: dict[Any, Numbers] = {}
        updated = self.note_optimizer(optimizer)
        for group, found in work:
            options = Options(optimizer, group)
            self.options.append(options)
            for slot, gradient in found:
                settled = self._settle(optimizer, group, slot)
                ahead = 1 + sum(other is slot for other in self.slots)
                working = self.recorder.own_dtype(settled.working)
                key = (id(group), slot.step + ahead, working.str)
                numbers = shared.get(key)
                if numbers is None:
                    numbers = shared[key] = Numbers(optimizer, group, slot, working, ahead, self.recorder)
                    self.numbers.append(numbers)
                numbers.slots.append(slot)
                updated.append((slot, settled.buffers))
                self._advance(xp, optimizer, options, settled, gradient, numbers.symbols)
                self.slots.append(slot)

    def _settle(self, optimizer: Any, group: dict[str, Any], slot: Any) -> Any:
        """A slot as it will be once it has buffers; it gets them when the trace has ended."""
        if not isinstance(slot.parameter, Tensor):
            raise TraceError(f"{user_site()}: pb.compile cannot follow an optimizer of plain NumPy arrays.")
        self.resolve(slot.parameter)
        held = self.held.get(id(slot.parameter))
        *_, latest = self._settled.get(id(slot), (slot,))
        with modes.changed(tracing=None):
            settled = latest.settled(optimizer, group, slot.raw if held is None else held.array)
        if settled is not slot:
            self._settled[id(slot)] = optimizer, slot, slot.buffers, settled
        return settled

    def settle(self) -> None:
        """After the trace: give the slots the buffers that were made for them."""
        with signals_later():
            for optimizer, slot, before, settled in self._settled.values():
                if slot.buffers is before:  # else another thread has made a step meanwhile
                    slot.take_over(settled, optimizer)

    def _advance(self, xp: Any, optimizer: Any, group: Any, slot: Any, gradient: Any, constants: Any) -> None:
        parameter, *buffers = self.resolve_all((slot.parameter, *slot.buffers))
        slot.refuse_result(parameter)
        w = parameter._raw
        old = [buffer._raw for buffer in buffers]
        spare = (None,) * optimizer.scratch
        if slot.halved:
            working = self.recorder.own_dtype(slot.working)
            wide, gradient = xp.convert(w, working, None), xp.convert(gradient, working, None)
            new, *new_buffers = optimizer.update(xp, group, constants, wide, gradient, old, spare, None)
            new = xp.convert(new, w.dtype, None)
        else:
            new, *new_buffers = optimizer.update(xp, group, constants, w, gradient, old, spare, None)
        separate(parameter)
        parameter._raw = new
        for buffer, fresh in zip(buffers, new_buffers):
            buffer._raw = fresh

    # -- the end -----------------------------------------------------------------------------------

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call `function` under this trace."""
        mode = modes.current()
        try:
            with modes.changed(tracing=self, tapes=()):
                return function(*args, **kwargs)
        except BaseException:
            modes.restore(mode)  # Ctrl-C may have come while the trace was being entered or left
            raise

    @property
    def is_walking(self) -> bool:
        """Whether what is recorded belongs to a walk over a graph."""
        return self.recorder.walk > 0

    @contextmanager
    def walking(self) -> Iterator[None]:
        """Inside, what is recorded belongs to one walk: what it takes from before was kept for it."""
        self._walks += 1
        self.recorder.walk = self._walks
        try:
            yield
        finally:
            self.recorder.walk = 0

    def finish(self, arguments: list[Value], outputs: list[Value]) -> Program:
        """The program, with these arguments first among its inputs; what was written to tensors are its updates."""
        for key in [key for key, held in self.held.items() if not held.is_used]:
            del self.held[key], self.recorder.arrays[key]
        self._given.settle(self.recorder.arrays)
        updates: dict[Value, Value] = {}
        for held in self.held.values():
            tensor, raw = held.stand_in, held.stand_in._raw
            if type(tensor) is not Tensor or (
                tensor._node is not held.node and not isinstance(tensor._node, (Leaf, NoneType))
            ):
                raise TraceError(
                    f"a tensor of shape {held.tensor.shape} from outside the function has become the result of traced "
                    "operations that need a gradient. Write to it inside `with pb.no_grad():`."
                )
            if tensor.requires_grad is not (held.node is not None):
                raise TraceError(
                    f"the function leaves a tensor of shape {held.tensor.shape} from outside with another "
                    "`requires_grad` than it had, which a program cannot do. Set it before the call."
                )
            if held.is_written:
                if raw.shape != held.value.shape or raw.dtype != held.value.dtype:
                    raise TraceError(
                        f"a tensor from outside the function had shape {held.value.shape}, {held.value.dtype} and was "
                        f"left with {raw.shape}, {raw.dtype}. Return a new tensor instead."
                    )
                if held.value in self._decisive:
                    raise self._decisive[held.value]
                updates[held.value] = raw.value
        inputs = [*arguments, *(value for value, _ in self.recorder.arrays.values())]
        return Program(inputs, self.recorder.instructions, outputs, list(updates.items()))

    def close(self) -> None:
        """No more can be traced: who uses a symbol from here on has kept it."""
        self.recorder.closed = True
        self.recorder.aside = nullcontext
        for world in self.worlds:
            world.leaves.clear()
