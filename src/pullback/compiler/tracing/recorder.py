"""Writing down kernel calls as instructions."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Callable

import numpy as np

from ... import backends, dtypes, modes
from ...autodiff.sites import user_site
from ...errors import TraceError
from ...operations import OPERATIONS
from ..host import HOST, abilities_of, host_dtype, is_on_host, memory_of, target_of
from ..program import Instruction, Mark, Value
from .blind import Blind
from .shapes import form_of, library_form_of
from .symbol import Symbol, kept

_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis)))


_INDEXED = frozenset(("getitem", "setitem", "place", "index_add", "overwritten", "read_last"))


class Recorder:
    """The instructions so far. `lift_array` says which value stands for a NumPy array met among the arguments."""

    def __init__(self, device: str = "numpy") -> None:
        self.device = device  # where the program will run
        self.library: Any = None  # whose kernels it names; None for the host's
        self._foreign: tuple[type, ...] = ()  # arrays and dtypes of a library's in whose memory the host works
        self.memory: Any = None  # whose arrays it works on, where it names the host's kernels
        self.is_on_host = is_on_host(device)  # whether these are in the host's memory
        self.abilities = abilities_of(device)  # those of its target
        if target_of(device) == "xla":
            self.library = backends.for_device(device)[0]
        else:
            self.memory = memory_of(device)
            if self.memory is not backends.NUMPY:
                self._foreign = *self.memory.array_types, type(self.memory.raw_dtype(dtypes.float32))
        self.aside: Callable[[], AbstractContextManager[None]] = nullcontext  # for what the library does for the trace
        self.instructions: list[Instruction] = []
        self.walk = 0  # the number of the walk that records; 0 outside of walks
        self.closed = False
        self.refusal: TraceError | None = None
        self.bounds: dict[tuple[Value, int, int], None] = {}  # indices, and the range they must lie in
        self.requirements: dict[Value, None] = {}  # arrays of bool that must be true everywhere
        self.arrays: dict[int, tuple[Value, Any]] = {}  # by identity of array or owner: the arrays met, kept alive

    @property
    def arrays_of(self) -> Any:
        """The backend whose arrays the program is given and gives; None for memory of the host's."""
        return self.library or (None if self.is_on_host else self.memory)

    def record(self, op: str, args: tuple[Any, ...], named: dict[str, Any] | None = None) -> Any:
        """The symbols for what kernel `op` makes of `args`, in the form in which the kernel returns them."""
        if named:
            args = positional(op, args, named)
        if self.closed:
            raise kept()
        if op in _INDEXED:
            args = (*args[:-1], _without_masks(args[-1]))
        values = tuple([self._argument(arg) for arg in args])
        for indices, size in indexed(op, values):
            self.bounds[indices, -size, size] = None
        site = user_site()
        try:
            if self.library is None:
                form = form_of(op, values)
            else:
                with self.aside():
                    form = library_form_of(self.library, op, values)
        except MemoryError as error:  # an example of what a kernel of NumPy's gives is as large as the result
            raise MemoryError(f"{site}: `{op}`, traced by pb.compile: {error}") from None
        except TraceError as error:
            raise self.refused(TraceError(f"{site}: {error}")) from None
        results: list[Value] = []
        made = self._symbols(form, site, results)
        mode = modes.current()
        mark = Mark(self.walk, None if mode is None else mode.checkpointing)
        self.instructions.append(Instruction(op, values, tuple(results), site, mark))
        return made

    def refused(self, error: TraceError) -> TraceError:
        """Note that the function asks for what cannot be traced: it may catch the error, and go on as it never does."""
        if self.refusal is None:
            self.refusal = error
        return error

    def _symbols(self, form: Any, site: str, results: list[Value]) -> Any:
        if form is None:
            return None
        if type(form) is list:
            return tuple([self._symbols(part, site, results) for part in form])
        value = Value(form[0], form[1], site)
        results.append(value)
        return Symbol(value, self)

    def _argument(self, arg: Any) -> Any:
        kind = type(arg)
        if kind is Symbol:
            if arg.recorder is not self:
                raise TraceError(
                    f"{user_site()}: an array of another trace is used here. It was made at {arg.value.site} while "
                    "pb.compile traced a function, and should be returned from there."
                )
            return arg.value
        if kind in _PLAIN:
            return arg
        if kind is tuple or kind is list:
            return tuple([self._argument(part) for part in arg])
        if kind is np.ndarray or kind is Blind or (self.library is not None and backends.of(arg) is self.library):
            return self.lift_array(arg)
        if isinstance(arg, np.generic):
            return self.lift_array(np.asarray(arg))
        if isinstance(arg, self._foreign):  # what a graph from outside has saved, which nobody writes to
            return self.lift_array(arg) if isinstance(arg, self.memory.array_types) else host_dtype(arg)
        return arg

    def refuse_array(self, arg: Any) -> None:
        """Refuse an array that nobody can guard: its library lets others give it other memory."""
        if self._foreign and isinstance(arg, self.memory.array_types):
            raise self.refused(
                TraceError(
                    f"{user_site()}: pb.compile found a {type(arg).__module__}.{type(arg).__name__} of shape "
                    f"{tuple(arg.shape)} inside the function, whose memory may change between calls. Make a tensor of "
                    "it outside (`pb.asarray(x)`), or use a function of Pullback's instead."
                )
            )

    def dtype_of(self, array: Any) -> Any:
        """The dtype that a program sees of an array from outside."""
        if self.library is None and type(array) is not np.ndarray:
            return host_dtype(array.dtype)
        dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
        if self.library is None or type(array) is not np.ndarray:
            return dtype
        return self.library.raw_dtype(dtypes.from_numpy(dtype))  # an array of NumPy's is moved: it may be made narrower

    def own_dtype(self, dtype: Any) -> Any:
        """The dtype that a program has for one of the arrays it works on."""
        return dtype if self.library is not None else host_dtype(dtype)

    def lift_array(self, array: Any, owner: Any = None) -> Value:
        """The value that stands for a NumPy array from outside, or for what `owner`, a tensor, has for its array."""
        if type(array) is Blind:
            array = array._real
        if self.is_on_host and type(array) is not np.ndarray:
            array = self.memory.host_array(array)
        key = id(array if owner is None else owner)
        found = self.arrays.get(key)
        if found is None:
            value = Value(tuple(array.shape), self.dtype_of(array), user_site())
            found = self.arrays[key] = (value, array)
        return found[0]


def native(array: Any) -> Any:
    """An array with the bytes of its elements in this machine's order, as compiled code reads them."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def indexed(op: str, args: tuple[Any, ...]) -> list[tuple[Value, int]]:
    """The integer arrays by which a kernel reads or writes parts of an array, with the lengths of their axes."""
    if op in ("take", "take_along_axis"):
        return [(args[1], args[0].shape[args[2]])]
    if op in ("take_transposed", "take_along_axis_transposed"):
        return [(args[1], args[2])]
    if op == "put_along_axis":
        return [(args[2], args[0].shape[args[3]])]
    if op not in _INDEXED:
        return []
    shape = args[1] if op == "place" else args[0].shape
    parts = args[-1] if type(args[-1]) is tuple else (args[-1],)
    named = sum(part is not None and part is not Ellipsis for part in parts)
    found, axis = [], 0
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - named
        elif part is not None:
            if type(part) is Value and axis < len(shape):
                found.append((part, shape[axis]))
            axis += 1
    return found


def _without_masks(index: Any) -> Any:
    """An index with the positions of what a boolean NumPy array selects in place of that array."""
    if isinstance(index, np.ndarray) and index.dtype == bool:
        index = (index,)
    if not isinstance(index, tuple) or not any(isinstance(p, np.ndarray) and p.dtype == bool for p in index):
        return index
    parts: list[Any] = []
    for part in index:
        parts += np.nonzero(part) if isinstance(part, np.ndarray) and part.dtype == bool else [part]
    return tuple(parts)


def positional(op: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments given by name, in the kernel's order."""
    names, defaults = _signature(op)
    filled = list(args)
    for name in names[len(args) :]:
        if name in named:
            filled.append(named[name])
        elif name in defaults:
            filled.append(defaults[name])
        else:
            break
    return tuple(filled)


@cache
def _signature(op: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    operation = OPERATIONS.get(op)
    if operation is not None:
        inputs = ("xs",) if operation.variadic else operation.inputs
        return inputs + operation.static, {**dict.fromkeys(operation.inputs), **operation.defaults}
    parameters = inspect.signature(getattr(HOST, op)).parameters.values()
    return tuple(p.name for p in parameters), {p.name: p.default for p in parameters if p.default is not p.empty}
