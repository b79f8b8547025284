"""Portable kernels: products with packed weights, which are kept in few bits and expanded where they are used."""

from __future__ import annotations

from typing import Any, NamedTuple

from .core import raw_dtype


class Form(NamedTuple):
    """How a weight is packed: the name of the scheme, the axis that has scales of its own, and what the weight was."""

    scheme: str
    axis: int | None
    shape: tuple[int, ...]
    dtype: str

    @property
    def part_names(self) -> tuple[str, ...]:
        return _scheme(self).part_names


class Packed(NamedTuple):
    """A weight in the parts that a scheme makes of it (see `backends/quantization`)."""

    parts: tuple[Any, ...]
    form: Form

    @property
    def shape(self) -> tuple[int, ...]:
        return self.form.shape


def expanded(xp: Any, weight: Any, dtype: Any) -> Any:
    """The values of a weight in this dtype if it is packed; else the weight itself."""
    if not isinstance(weight, Packed):
        return weight
    form = weight.form
    return xp.narrowed(_scheme(form).decode(xp, weight.parts, form.axis, form.shape), dtype)


def packed_linear(xp: Any, xs: Any, form: Form) -> Any:
    """x weight^T + bias, given (x, bias, the parts of the weight)."""
    x, bias, *parts = xs
    return xp.linear(x, expanded(xp, Packed(tuple(parts), form), raw_dtype(x)), bias)


def _scheme(form: Form) -> Any:
    from ..quantization import SCHEMES

    return SCHEMES[form.scheme]
