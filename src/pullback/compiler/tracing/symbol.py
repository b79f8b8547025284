"""Symbols: arrays of known shape and dtype without values, which write down what is done with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import modes
from ...autodiff.sites import user_site
from ...errors import TraceError
from ..program import Value

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


class Symbol:
    """A value of the program that is being written, as a raw array of the trace backend."""

    __slots__ = ("value", "recorder", "__weakref__")

    __array_ufunc__ = None  # NumPy's arrays leave operators to the symbol beside them

    def __init__(self, value: Value, recorder: Any) -> None:
        self.value = value
        self.recorder = recorder

    def _values(self, what: str) -> np.ndarray:
        """The values, if the array is from outside and the trace is running here; else an error."""
        trace = modes.tracing()
        if trace is None or trace.recorder is not self.recorder:
            raise self.refusal(what)
        return trace.read_values(self, what)

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

    def refusal(self, what: str) -> TraceError:
        """The error for who wants values for `what`; the trace knows that it was raised."""
        return kept() if self.recorder.closed else self.recorder.refused(self.error(what))

    def error(self, what: str) -> TraceError:
        """What is wrong about wanting values for `what`."""
        site = self.value.site
        made = f" It {'is' if site.startswith('argument') else 'was made at'} {site}." if site else ""
        return TraceError(
            f"{user_site()}: {what} needs the values of an array of shape {self.shape}, which has none while the "
            f"function is traced by pb.compile.{made} {_ADVICE.get(what, _ADVICE_FOR_VALUES)}"
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
