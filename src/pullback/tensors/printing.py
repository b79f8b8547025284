"""How tensors print: as NumPy prints arrays, with what a tensor has beyond one."""

from __future__ import annotations

import dis
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends
from ..autodiff.base import resolved, values_of
from ..markup import shown_safely
from .conversion import Conversions

if TYPE_CHECKING:
    pass

_SHOWN_BY_VALUES = ("int64", "bool")  # dtypes that a reader takes for granted; so is the default float dtype


def laid_out(prefix: str, values: Any, notes: list[str]) -> str:
    """Values after `prefix`, then the notes: on the last line if there is room, else on one of their own."""
    body = np.array2string(values, separator=", ", prefix=prefix, suffix=")") if values.size else "[]"
    if values.size > np.get_printoptions()["threshold"] or (values.size == 0 and values.shape != (0,)):
        notes = [f"shape={values.shape}", *notes]
    if not notes:
        return f"{prefix}{body})"
    ending = ", ".join(notes) + ")"
    last_line = prefix + body[body.rfind("\n") + 1 :] if "\n" not in body else body[body.rfind("\n") + 1 :]
    fits = len(last_line) + len(ending) + 2 <= np.get_printoptions()["linewidth"]
    return f"{prefix}{body}, {ending}" if fits else f"{prefix}{body},\n{' ' * len(prefix)}{ending}"


def _printable(values: Any) -> Any:
    """NumPy formats only its own dtypes well: bfloat16 is shown as the float32 of the same value."""
    return values.astype(np.float32) if values.dtype.name == "bfloat16" else values


def _notes(tensor: Any, values: Any) -> list[str]:
    from ..autodiff.creation import default_dtype

    notes = []
    dtype = tensor.dtype
    usual = dtype == default_dtype() or (dtype.name in _SHOWN_BY_VALUES and values.size)
    if not usual:
        notes.append(f"dtype={dtype.name}")
    if tensor.requires_grad:
        notes.append("requires_grad=True")
    if tensor.device != "numpy":
        notes.append(f"device={tensor.device!r}")
    return notes


def is_formatting(frame: FrameType) -> bool:
    """Whether a frame is in the middle of `text % values`, which asks for numbers just as `float(t)` does.

    No other `%` that Python has does so: the one of numbers leaves a tensor to the tensor.
    """
    code = frame.f_code.co_code
    return (code[frame.f_lasti], code[frame.f_lasti + 1]) in _remainders()


@cache
def _remainders() -> frozenset[tuple[int, int]]:
    """The instructions of `a % b` and `a %= b`, with their arguments."""
    found = []
    for source in ("a % b", "a %= b"):
        for instruction in dis.get_instructions(compile(source, "", "exec")):
            if instruction.opname == "BINARY_OP":
                found.append((instruction.opcode, instruction.arg or 0))
    return frozenset(found)


class Printing(Conversions):
    """Texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        """The `repr` of a tensor: dtype where it is not the usual one, `requires_grad` and device where there is one.

        >>> import pullback as pb
        >>> pb.tensor([1, 2], dtype=pb.float64, requires_grad=True)
        tensor([1., 2.], dtype=float64, requires_grad=True)
        """
        tensor = resolved(self)
        backend = backends.of(tensor._raw)
        if backend is None or not backend.is_concrete(tensor._raw):
            if backend.name == "vmap":
                return f"tensor(<{tensor._raw.level.size} examples>, shape={tensor.shape}, dtype={tensor.dtype.name})"
            return f"tensor(<traced, without values>, shape={tensor.shape}, dtype={tensor.dtype.name})"
        values = _printable(values_of(tensor))
        return laid_out("tensor(", values, _notes(tensor, values))

    __str__ = __repr__

    @shown_safely
    def _repr_html_(self) -> str:
        """What a notebook shows: shape, dtype, device, bytes, the range of the values, and some of them."""
        from .notebook import html

        return html(self)

    def __format__(self, specification: str) -> str:
        """`format(t, ".3f")`: a tensor without axes is formatted as its number."""
        if self.ndim == 0:
            return format(self.item(), specification)
        if not specification:
            return str(self)
        raise TypeError(
            f"cannot format a tensor of shape {self.shape} with {specification!r}: only one without axes is a number. "
            "Write `t.item()` for a single element."
        )
