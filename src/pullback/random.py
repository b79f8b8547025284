"""Counter-based random numbers: the same on every backend, eager, compiled and recomputed.

Every number is a function of a key, an offset into the key's stream of 32-bit words and its own index, and of nothing
else. It is made from the words by exactly rounded arithmetic alone (addition, multiplication, division, square root),
so that no backend's own logarithm or cosine has a say in it.
"""

from __future__ import annotations

import os
from _thread import allocate_lock as Lock  # `threading` would take half a millisecond to import
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypedDict

import numpy as np

from . import backends, dtypes, modes
from .autodiff import base
from .autodiff.base import make, values_of
from .autodiff.creation import asarray, default_dtype
from .backends.numpy.random import (
    high_part,
    joined,
    minus_log,
    normal_pairs,
    philox_uint32,
    unit_of_two_words,
)  # fmt: skip
from .errors import DtypeError, ShapeError

if TYPE_CHECKING:
    from .tensors.tensor import Tensor

__all__ = [
    "Generator", "State", "bernoulli", "choice", "default_generator", "exponential", "get_state", "integers",
    "next_key", "normal", "permutation", "seed", "set_state", "split", "uniform", "using",
]  # fmt: skip

_KEYS = 1 << 64
_SPLITTING = 1  # the domain of the streams that keys for `split` are taken from
_CHUNK = 1 << 13  # numbers made at once: their intermediate arrays stay in the cache
_UNIFORM_BITS = {"bfloat16": 8, "float16": 11, "float32": 24}  # as many as the mantissa holds

Shape = int | tuple[int, ...] | list[int]

_moving = Lock()  # held for the moment in which a generator moves on


def _in_child() -> None:
    global _moving
    _moving = Lock()  # a thread that had the other one is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class State(TypedDict):
    """Where a generator is: enough to go on from there, and made of integers, so that JSON can hold it."""

    key: int
    offset: int


def _drawn_again(method: Any) -> Any:
    """Let a checkpointing strategy draw the method's numbers again instead of keeping them."""

    @wraps(method)
    def draw(self: Generator, *args: Any, **named: Any) -> Tensor:
        mode = modes.current()
        if mode is not None and mode.mapping is not None:
            return mode.mapping.draw(self, method, args, named)
        if mode is not None and mode.tracing is not None:
            return mode.tracing.draw(self, method, args, named)
        if mode is None or not mode.recording or mode.checkpointing is None:
            return method(self, *args, **named)
        from .autodiff.checkpointing.drawing import drawn

        return drawn(mode.checkpointing, self, method, args, named)

    return draw


def _drawn_by_programs(method: Any) -> Any:
    """Let a compiled program draw the method's numbers anew in every call."""

    @wraps(method)
    def draw(self: Generator, *args: Any) -> Tensor:
        mapping = modes.mapping()
        if mapping is not None:
            return mapping.draw(self, method, args, {})
        trace = modes.tracing()
        return method(self, *args) if trace is None else trace.draw(self, method, args, {})

    return draw


class Generator:
    """A stream of random numbers. Equal seeds give equal numbers, on every device.

    >>> import pullback as pb
    >>> generator = pb.random.Generator(7)
    >>> state = generator.state
    >>> first = generator.uniform((3,))
    >>> generator.state = state
    >>> bool((generator.uniform((3,)) == first).all())
    True
    """

    __slots__ = ("_key", "_offset")

    def __init__(self, seed: int | None = None) -> None:
        self.seed(seed)

    def seed(self, seed: int | None = None) -> None:
        """Start anew from `seed`, an integer below 2**64; without one, from the operating system's entropy."""
        key = int.from_bytes(os.urandom(8), "little") if seed is None else _integer("seed", seed, 0, _KEYS)
        trace = modes.tracing()
        if trace is not None and trace.seed(self, key):
            return
        with _moving:
            self._key, self._offset = key, 0

    @property
    def state(self) -> State:
        """The key and the offset, as a dictionary of integers; assign it to go back to this point."""
        modes.refuse_in_trace(
            "Generator.state is where a generator is, which changes with every call. Read it outside."
        )
        with _moving:
            return {"key": self._key, "offset": self._offset}

    @state.setter
    def state(self, state: State) -> None:
        key = _integer("state['key']", state["key"], 0, _KEYS)
        offset = _integer("state['offset']", state["offset"], 0, 4 * _KEYS)
        trace = modes.tracing()
        if trace is not None and trace.seed(self, key, offset):
            return
        with _moving:
            self._key, self._offset = key, offset

    def next_key(self, count: int) -> tuple[int, int]:
        """Reserve the next `count` 32-bit words: (key, offset) to pass to a kernel. No other caller gets them.

        The offset is a multiple of four. Threads may call this at the same time.
        """
        count = _integer("count", count, 0, _KEYS)
        mapping = modes.mapping()
        if mapping is not None:
            count = mapping.drawn_at_once(count)
        trace = modes.tracing()
        if trace is not None:
            return trace.next_key(self, -(-count // 4) * 4)
        with _moving:
            key, offset = self._key, self._offset
            self._offset = offset + -(-count // 4) * 4
        return key, offset

    def _moved(self, before: State, after: State) -> bool:
        """Go on at `after` if this generator still is at `before`, where another thread may have moved it on."""
        with _moving:
            if (self._key, self._offset) != (before["key"], before["offset"]):
                return False
            self._key, self._offset = after["key"], after["offset"]
            return True

    def split(self, count: int = 2) -> list[Generator]:
        """New generators whose numbers have nothing to do with each other's nor with this one's.

        >>> import pullback as pb
        >>> left, right = pb.random.Generator(0).split()
        >>> bool((left.uniform((4,)) == right.uniform((4,))).any())
        False
        """
        count = _integer("count", count, 0, _KEYS)
        words = philox_uint32(*self.next_key(4 * count), 4 * count, _SPLITTING)
        return [Generator(int(word[0]) | int(word[1]) << 32) for word in words.reshape(-1, 4)]

    def __repr__(self) -> str:
        return f"Generator(key={self._key}, offset={self._offset})"

    def __reduce__(self) -> Any:
        return at_state, (self.state,)

    # -- distributions -----------------------------------------------------------------------------

    @_drawn_again
    def uniform(
        self, shape: Shape = (), low: float = 0.0, high: float = 1.0, *, dtype: Any = None, device: str | None = None
    ) -> Tensor:
        """Numbers from `low` (included) to `high` (not included), equally likely.

        >>> import pullback as pb
        >>> pb.random.Generator(1).uniform((2, 2), low=-1, high=1).shape
        (2, 2)
        """
        shape, chosen = _shape(shape), _real_dtype("uniform", dtype)
        low, high = _number("uniform", "low", low), _number("uniform", "high", high)
        if not (low <= high and np.isfinite(high - low)):
            raise ValueError(f"uniform: low={low} and high={high} must be finite and low at most high.")
        if chosen.name == "float64":
            unit = self._made(shape, 2, unit_of_two_words)
        else:
            shift, scale = 32 - _UNIFORM_BITS[chosen.name], 2.0 ** -_UNIFORM_BITS[chosen.name]
            unit = self._made(shape, 1, lambda words: (words[0] >> np.uint32(shift)) * scale)
        if low == 0.0 and high == 1.0:
            return _tensor(unit, chosen, device)
        values = (low + (high - low) * unit).astype(dtypes.numpy_dtype(chosen))
        if low < high:  # rounding must not reach the end that is not included
            end = np.asarray(high, values.dtype)
            values = np.minimum(values, np.nextafter(end, np.asarray(low, values.dtype)) if end >= high else end)
        return _tensor(values, chosen, device)

    @_drawn_again
    def normal(
        self, shape: Shape = (), mean: float = 0.0, std: float = 1.0, *, dtype: Any = None, device: str | None = None
    ) -> Tensor:
        """Numbers of the normal distribution.

        >>> import pullback as pb
        >>> x = pb.random.Generator(1).normal((10000,), mean=3.0, std=0.5, dtype=pb.float64)
        >>> abs(float(x.mean()) - 3.0) < 0.02
        True
        """
        shape, chosen = _shape(shape), _real_dtype("normal", dtype)
        mean, std = _number("normal", "mean", mean), _number("normal", "std", std)
        if not std >= 0:
            raise ValueError(f"normal: std={std} must not be negative.")
        if chosen.name == "float64":
            values = self._made(shape, 2, lambda words: normal_pairs(unit_of_two_words(words)), whole=2)
        else:
            values = self._made(shape, 1, lambda words: normal_pairs(words[0] * 2.0**-32), whole=2)
        if mean != 0.0 or std != 1.0:
            values = mean + std * values
        return _tensor(values, chosen, device)

    @_drawn_again
    def exponential(
        self, shape: Shape = (), scale: float = 1.0, *, dtype: Any = None, device: str | None = None
    ) -> Tensor:
        """Numbers from 0 on with density exp(-x / scale) / scale.

        >>> import pullback as pb
        >>> bool((pb.random.Generator(1).exponential((100,)) >= 0).all())
        True
        """
        shape, chosen = _shape(shape), _real_dtype("exponential", dtype)
        scale = _number("exponential", "scale", scale)
        if not scale >= 0:
            raise ValueError(f"exponential: scale={scale} must not be negative.")
        return _tensor(self._made(shape, 2, minus_log) * scale, chosen, device)

    @_drawn_again
    def bernoulli(self, p: Any = 0.5, shape: Shape | None = None, *, device: str | None = None) -> Tensor:
        """True with probability `p`, a number or an array of numbers (then `shape` is its shape unless given).

        >>> import pullback as pb
        >>> bool(pb.random.Generator(1).bernoulli(1.0, (5,)).all())
        True
        """
        if isinstance(p, base.Tensor):
            device = p.device if device is None else device
            p = values_of(p)
        chances = np.asarray(p, np.float64)
        if not np.all((chances >= 0) & (chances <= 1)):
            raise ValueError("bernoulli: every p must lie between 0 and 1.")
        shape = chances.shape if shape is None else _shape(shape)
        try:
            chances = np.broadcast_to(chances, shape)
        except ValueError:
            raise ShapeError(f"bernoulli: p has shape {chances.shape}, which does not fit shape {shape}.") from None
        unit = self._made(shape, 1, lambda words: words[0] * 2.0**-32)
        return _tensor(unit < chances, dtypes.bool_, device)

    @_drawn_again
    def integers(
        self, low: int, high: int | None = None, shape: Shape = (), *, dtype: Any = None, device: str | None = None
    ) -> Tensor:
        """Integers from `low` (included) to `high` (not included); with one bound, from 0 to it. int64 unless said.

        >>> import pullback as pb
        >>> dice = pb.random.Generator(1).integers(1, 7, (100,))
        >>> int(dice.min()), int(dice.max())
        (1, 6)
        """
        chosen = dtypes.int64 if dtype is None else dtypes.get(dtype)
        if chosen.kind not in ("int", "uint"):
            raise DtypeError(f"integers: dtype must be an integer one, got {chosen.name}.")
        info = np.iinfo(dtypes.numpy_dtype(chosen))
        if high is None:
            low, high = 0, low
        low = _integer("low", low, int(info.min), int(info.max) + 1)
        high = _integer("high", high, low + 1, int(info.max) + 2)
        return _tensor(self._below(high - low, _shape(shape)) + np.uint64(low % _KEYS), chosen, device)

    def permutation(self, x: Any, axis: int = 0, *, device: str | None = None) -> Tensor:
        """The integers below `x` in random order; of an array, its entries along `axis` in random order.

        >>> import pullback as pb
        >>> sorted(pb.random.Generator(1).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if isinstance(x, (int, np.integer)):
            length = _integer("permutation: x", x, 0, 1 << 62)
            return self._places(length, length, False, device)
        x = asarray(x, device=device)
        if not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"permutation: axis {axis} is out of bounds for shape {x.shape}.")
        return x.take(self._places(x.shape[axis], x.shape[axis], False, x.device), axis=axis)

    def choice(self, x: Any, shape: Shape = (), *, replace: bool = True, axis: int = 0) -> Tensor:
        """Entries of `x` along `axis` (or integers below `x`), each equally likely; without `replace` none twice.

        >>> import pullback as pb
        >>> len(set(pb.random.Generator(1).choice(10, (10,), replace=False).tolist()))
        10
        """
        shape = _shape(shape)
        source = None if isinstance(x, (int, np.integer)) else asarray(x)
        length = int(x) if source is None else source.shape[axis]
        count = _size(shape)
        if replace:
            _integer("choice: number of entries", length, 1, _KEYS)
        elif count > length:
            raise ShapeError(f"choice: cannot take {count} of {length} entries without replacement.")
        places = self._places(length, count, replace, None if source is None else source.device)
        if source is None:
            return places.reshape(shape)
        axis %= source.ndim
        taken = source.take(places, axis=axis)
        return taken.reshape(source.shape[:axis] + shape + source.shape[axis + 1 :])

    @_drawn_by_programs
    def _places(self, length: int, count: int, replace: bool, device: str | None) -> Tensor:
        """`count` integers below `length`, each equally likely; without `replace` none twice."""
        picked = self._below(length, (count,)) if replace else self._order(length)[:count]
        return _tensor(picked, dtypes.int64, device)

    # -- from words to numbers ---------------------------------------------------------------------

    def _made(self, shape: tuple[int, ...], words: int, convert: Any, whole: int = 1) -> Any:
        """`convert` applied to rows of 32-bit words, `words` per number; it makes `whole` numbers at a time."""
        size = _size(shape)
        length = -(-size // whole) * whole
        key, offset = self.next_key(length * words)
        values = None
        for start in range(0, length, _CHUNK):
            count = min(_CHUNK, length - start)
            raw = philox_uint32(key, offset + start * words, count * words)
            part = convert(raw.reshape(count, words).T)
            if count == length:
                values = part
            else:
                if values is None:  # all of it at once: where there is not enough, nothing is computed in vain
                    values = np.empty(length, part.dtype)
                values[start : start + count] = part
        if values is None:
            values = convert(np.empty((words, 0), np.uint32))
        return values[:size].reshape(shape)

    def _below(self, bound: int, shape: tuple[int, ...]) -> Any:
        """uint64 numbers below `bound`; the probabilities are equal up to 2**-32 or better."""
        if bound == _KEYS:
            return self._made(shape, 2, joined)
        if bound <= 1 << 32:
            return self._made(shape, 2, lambda words: high_part(words, (bound,)))
        return self._made(shape, 4, lambda words: high_part(words, (bound & 0xFFFFFFFF, bound >> 32)))

    def _order(self, length: int) -> Any:
        """A random order of `length` things: that of random 64-bit numbers."""
        return np.argsort(self._made((length,), 2, joined), kind="stable")


def at_state(state: State) -> Generator:
    """A generator that goes on from `state`."""
    generator = Generator(0)
    generator.state = state
    return generator


# -- arguments and results -----------------------------------------------------------------------


def _integer(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise DtypeError(f"{name} must be an integer, got {type(value).__name__}: {value!r:.60}") from None
    if not low <= number < high:
        raise ValueError(f"{name} is {number}; it must be at least {low} and below {high}.")
    return number


_ORDERS = {"uniform": "(shape, low, high)", "normal": "(shape, mean, std)", "exponential": "(shape, scale)"}


def _number(name: str, label: str, value: Any) -> float:
    try:
        return float(value)
    except TypeError:
        raise DtypeError(
            f"{name}: {label} must be a number, got {type(value).__name__}: {value!r:.60}. "
            f"The arguments are {_ORDERS[name]}; for many of them multiply and add yourself."
        ) from None


def _shape(shape: Any) -> tuple[int, ...]:
    if hasattr(shape, "__index__"):
        shape = (shape,)
    try:
        sizes = tuple(n.__index__() for n in shape)
    except (AttributeError, TypeError):
        raise ShapeError(f"shape must be an integer or a tuple of integers, got {shape!r:.60}") from None
    if any(n < 0 for n in sizes):
        raise ShapeError(f"shape must not have negative sizes, got {sizes}.")
    return sizes


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _real_dtype(name: str, dtype: Any) -> dtypes.DType:
    chosen = default_dtype() if dtype is None else dtypes.get(dtype)
    if chosen.kind != "float":
        raise DtypeError(f"{name}: dtype must be a real floating-point one, got {chosen.name}.")
    return chosen


def _tensor(values: Any, dtype: dtypes.DType, device: str | None) -> Tensor:
    raw = np.asarray(values).astype(dtypes.numpy_dtype(dtype), copy=False)
    return make(backends.transfer(raw, backends.for_device(device)[1]), None)


# -- the default generator -----------------------------------------------------------------------

_process_generator = Generator()
_context_generator: ContextVar[Generator | None] = ContextVar("pullback_generator", default=None)


def default_generator() -> Generator:
    """The generator that the functions of this module use: the innermost `using`, else the process's."""
    return _context_generator.get() or _process_generator


@contextmanager
def using(generator: Generator | int) -> Iterator[Generator]:
    """Use `generator` (or a new one with this seed) inside the block, in this thread or task alone.

    >>> import pullback as pb
    >>> with pb.random.using(3):
    ...     a = pb.random.normal((2,))
    >>> with pb.random.using(3):
    ...     b = pb.random.normal((2,))
    >>> bool((a == b).all())
    True
    """
    chosen = generator if isinstance(generator, Generator) else Generator(generator)
    token = _context_generator.set(chosen)
    try:
        yield chosen
    finally:
        _context_generator.reset(token)


def seed(seed: int | None = None) -> None:
    """Start the default generator anew.

    >>> import pullback as pb
    >>> pb.random.seed(0)
    >>> pb.random.get_state()
    {'key': 0, 'offset': 0}
    """
    default_generator().seed(seed)


def get_state() -> State:
    """The default generator's state."""
    return default_generator().state


def set_state(state: State) -> None:
    """Go back to a state of the default generator."""
    default_generator().state = state


def _on_default(name: str) -> Any:
    method = getattr(Generator, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        return method(default_generator(), *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    summary = method.__doc__.partition("\n")[0]
    function.__doc__ = f"{summary}\n\n    `Generator.{name}` of the default generator."
    function.__wrapped__ = getattr(_process_generator, name)  # type: ignore[attr-defined]
    return function


next_key: Callable[[int], tuple[int, int]] = _on_default("next_key")
split: Callable[..., list[Generator]] = _on_default("split")
uniform: Callable[..., Tensor] = _on_default("uniform")
normal: Callable[..., Tensor] = _on_default("normal")
exponential: Callable[..., Tensor] = _on_default("exponential")
bernoulli: Callable[..., Tensor] = _on_default("bernoulli")
integers: Callable[..., Tensor] = _on_default("integers")
permutation: Callable[..., Tensor] = _on_default("permutation")
choice: Callable[..., Tensor] = _on_default("choice")
