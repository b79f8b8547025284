"""Symbols: arrays of known shape and dtype without values, which write down what is done with them."""

from __future__ import annotations

from typing import Any

from ...errors import TraceError
from ..program import Value
from .sites import user_site

_ADVICE = (
    "Choose between values with `pb.where` or `pb.cond`, repeat with `pb.scan` or `pb.while_loop`; "
    "what should be a plain number while tracing, pass as a Python number."
)


class Symbol:
    """A value of the program that is being written, as a raw array of the trace backend."""

    __slots__ = ("value", "recorder", "__weakref__")

    __array_ufunc__ = None  # NumPy's arrays leave operators to the symbol beside them

    def __init__(self, value: Value, recorder: Any) -> None:
        self.value = value
        self.recorder = recorder

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
        made = f" It was made at {self.value.site}." if self.value.site else ""
        return TraceError(
            f"{user_site()}: {what} needs the values of an array of shape {self.shape}, which has none while the "
            f"function is traced by pb.compile.{made} {_ADVICE}"
        )

    def __bool__(self) -> bool:
        raise self._refuse("a choice (`if`, `while`, `and`, `bool`)")

    def __float__(self) -> float:
        raise self._refuse("`float`")

    def __int__(self) -> int:
        raise self._refuse("`int`")

    def __complex__(self) -> complex:
        raise self._refuse("`complex`")

    def __index__(self) -> int:
        raise self._refuse("an index or a range")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self._refuse("turning a tensor into a NumPy array")

    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Any:
        return self.recorder.record("getitem", (self, index))

    def item(self) -> Any:
        raise self._refuse("`item`")

    def tolist(self) -> Any:
        raise self._refuse("`tolist`")


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
