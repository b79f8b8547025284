"""Symbols: arrays of known shape and dtype without values, which write down what is done with them."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from ...errors import TraceError
from ..program import Value
from .sites import user_site

_CHOICE = "a choice (`if`, `while`, `and`, `bool`)"
_POSITION = "an index or a range"
_ADVICE = {
    _CHOICE: (
        "Choose between values with `pb.where` or `pb.cond`, repeat with `pb.scan` or `pb.while_loop`; "
        "what should be a plain number while tracing, pass as a Python number."
    ),
    _POSITION: (
        "Index with the tensor itself (`x[i]`, `pb.take`), repeat with `pb.scan` or `pb.while_loop`; "
        "what should be a plain number while tracing, pass as a Python number."
    ),
}
_ADVICE_FOR_VALUES = (
    "Compute with functions of Pullback or NumPy, which take tensors, and choose with `pb.where` or `pb.cond`; "
    "to see the values, return the tensor and look at it outside."
)


#: Seconds that another thread waits for a trace to end before it gives up.
PATIENCE = 60.0


class LentError(TraceError):
    """A tensor was used by another thread than the one that traces, while it had a symbol in place of its array."""

    def __init__(self, recorder: Any, site: str) -> None:
        super().__init__(
            f"{site}: this tensor is used by a function that pb.compile traces in another thread just now."
        )
        self.recorder = recorder

    def settled(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same tensors, once they have their arrays again."""
        if not self.recorder.done.wait(PATIENCE):
            raise self
        for x in inputs:
            raw = getattr(x, "_data", None)
            if type(raw) is Symbol:  # one that was cloned from a tensor while that was lent
                array = raw.lent_array()
                if array is None:
                    raise self
                x._data = array
        return inputs


class Symbol:
    """A value of the program that is being written, as a raw array of the trace backend."""

    __slots__ = ("value", "recorder", "lent", "__weakref__")

    __array_ufunc__ = None  # NumPy's arrays leave operators to the symbol beside them

    def __init__(self, value: Value, recorder: Any) -> None:
        self.value = value
        self.recorder = recorder
        self.lent: Any = None  # a reference to the array in whose place a tensor from outside has this

    def lend_for(self, array: Any) -> Symbol:
        """Stand in for `array` while the trace runs."""
        self.lent = weakref.ref(array)
        return self

    def pass_on(self, written: Any) -> None:
        """Have what is written over this stand in for the same array: no other thread must see that either."""
        if type(written) is Symbol and written.lent is None:
            written.lent = self.lent

    def lent_array(self) -> Any:
        """The array that this stands in for, if it does and if it is still there."""
        return None if self.lent is None else self.lent()

    @property
    def is_foreign(self) -> bool:
        """Whether it stands in for an array, and who asks is another thread than the one that traces."""
        return self.lent is not None and self.recorder.thread != threading.get_ident()

    def elsewhere(self) -> LentError:
        """What to raise, or to wait with, where another thread met this."""
        return LentError(self.recorder, user_site())

    def _values(self, what: str) -> np.ndarray:
        """The array, for a thread that met this only because another one is tracing; for everybody else an error."""
        if self.is_foreign and self.recorder.done.wait(PATIENCE):
            array = self.lent_array()
            if array is not None:
                return array
        raise self._refuse(what)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def nbytes(self) -> int:
        return self.value.nbytes

    def __repr__(self) -> str:
        return f"Symbol({self.value!r})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    # -- what would need values --------------------------------------------------------------------

    def _refuse(self, what: str) -> TraceError:
        if self.recorder.closed:
            return kept()
        site = self.value.site
        made = f" It {'is' if site.startswith('argument') else 'was made at'} {site}." if site else ""
        return self.recorder.refused(
            TraceError(
                f"{user_site()}: {what} needs the values of an array of shape {self.shape}, which has none while the "
                f"function is traced by pb.compile.{made} {_ADVICE.get(what, _ADVICE_FOR_VALUES)}"
            )
        )

    def __bool__(self) -> bool:
        return bool(self._values(_CHOICE))

    def __float__(self) -> float:
        return float(self._values("`float`"))

    def __int__(self) -> int:
        return int(self._values("`int`"))

    def __complex__(self) -> complex:
        return complex(self._values("`complex`"))

    def __index__(self) -> int:
        return self._values(_POSITION).__index__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._values("turning a tensor into a NumPy array"), dtype, copy=copy)

    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Any:
        return self.recorder.record("getitem", (self, index))

    def item(self) -> Any:
        return self._values("a number (`item`, a format like `{x:.3f}`)").item()

    def tolist(self) -> Any:
        return self._values("`tolist`").tolist()


def kept() -> TraceError:
    """What to say of an array that outlived its trace."""
    return TraceError(
        f"{user_site()}: this array was made while a function was traced by pb.compile, and has no values outside "
        "of it. Return it from the function instead of keeping it in a list or an attribute."
    )


def _binary(op: str) -> Any:
    def method(self: Symbol, other: Any) -> Any:
        return self.recorder.record(op, (self, other))

    return method


def _reflected(op: str) -> Any:
    def method(self: Symbol, other: Any) -> Any:
        return self.recorder.record(op, (other, self))

    return method


for _name, _op in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _binary(_op))
    setattr(Symbol, f"__r{_name}__", _reflected(_op))
for _name, _op in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _binary(_op))
for _name, _op in {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}.items():
    setattr(Symbol, f"__{_name}__", lambda self, _op=_op: self.recorder.record(_op, (self,)))
