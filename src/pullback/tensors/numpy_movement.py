"""NumPy's functions that only move elements: NumPy itself moves the numbers of the places, and the elements follow.

So every argument means what it means to NumPy, and every wrong one raises what NumPy raises.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import pullback as pb

from ..autodiff.base import resolved
from ..errors import DtypeError
from .numpy_protocols import in_numpy
from .tensor import Tensor

#: Which arguments of a function have the elements that are moved, by place and name; the others say where to.
MOVED: dict[str, tuple[tuple[int, str], ...]] = {
    "append": ((0, "arr"), (1, "values")), "array_split": ((0, "ary"),), "block": ((0, "arrays"),),
    "broadcast_to": ((0, "array"),), "choose": ((1, "choices"),), "column_stack": ((0, "tup"),),
    "compress": ((1, "a"),), "concatenate": ((0, "arrays"),), "copyto": ((0, "dst"), (1, "src")),
    "delete": ((0, "arr"),), "diag": ((0, "v"),), "diagflat": ((0, "v"),), "diagonal": ((0, "a"),),
    "dsplit": ((0, "ary"),), "dstack": ((0, "tup"),), "expand_dims": ((0, "a"),), "extract": ((1, "arr"),),
    "fill_diagonal": ((0, "a"), (1, "val")), "flip": ((0, "m"),), "fliplr": ((0, "m"),), "flipud": ((0, "m"),),
    "full": ((1, "fill_value"),), "full_like": ((1, "fill_value"),), "hsplit": ((0, "ary"),), "hstack": ((0, "tup"),),
    "insert": ((0, "arr"), (2, "values")), "moveaxis": ((0, "a"),), "pad": ((0, "array"), (9, "constant_values")),
    "place": ((0, "arr"), (2, "vals")), "put": ((0, "a"), (2, "v")),
    "put_along_axis": ((0, "arr"), (2, "values")), "putmask": ((0, "a"), (2, "values")), "ravel": ((0, "a"),),
    "repeat": ((0, "a"),), "reshape": ((0, "a"),), "resize": ((0, "a"),), "roll": ((0, "a"),),
    "rollaxis": ((0, "a"),), "rot90": ((0, "m"),), "select": ((1, "choicelist"), (2, "default")),
    "split": ((0, "ary"),), "squeeze": ((0, "a"),), "stack": ((0, "arrays"),), "swapaxes": ((0, "a"),),
    "take": ((0, "a"),), "take_along_axis": ((0, "arr"),), "tile": ((0, "A"),), "transpose": ((0, "a"),),
    "tril": ((0, "m"),), "triu": ((0, "m"),), "unstack": ((0, "x"),),
    "vsplit": ((0, "ary"),), "vstack": ((0, "tup"),), "linalg.diagonal": ((0, "x"),), "fft.fftshift": ((0, "x"),),
    "fft.ifftshift": ((0, "x"),),
}  # fmt: skip
#: Those of which all arguments by position are moved.
MOVED_ALL = frozenset(("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid"))


def is_movement(name: str) -> bool:
    """Whether all that a function does is to move elements; `np.pad` computes some in other modes."""
    return (name in MOVED or name in MOVED_ALL) and name != "pad"


class _Pool:
    """The elements of all moved arguments in one row, after a zero, which is what NumPy fills with."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.size = 1

    def places(self, x: Any) -> Any:
        """The numbers that the elements of `x` have in the row, in the form and the memory layout of `x`."""
        if isinstance(x, (list, tuple)):
            return type(x)([self.places(part) for part in x])
        if isinstance(x, Tensor):
            raw = resolved(x)._raw
            strides = raw if type(raw) is np.ndarray else np.empty(x.shape, bool)
        else:
            strides = np.asarray(x)
            if strides.dtype.kind not in "biufc":
                raise DtypeError(f"only numbers can be joined with a tensor that requires a gradient, got {x!r:.60}.")
            x = pb.asarray(strides)
        places = np.empty_like(strides, dtype=np.int64)
        places[...] = np.arange(self.size, self.size + x.size).reshape(x.shape)
        self.size += x.size
        self.parts.append(pb.ravel(x))
        return places

    def gathered(self, result: Any) -> Any:
        """What is at the places that NumPy returned."""
        if isinstance(result, (list, tuple)):
            return type(result)([self.gathered(part) for part in result])
        first = self.parts[0]
        return pb.concat([pb.zeros((1,), dtype=first.dtype, device=first.device), *self.parts])[result]


def moved(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that moves elements; those that write to their first argument give what would be in it."""
    pool = _Pool()
    if name in MOVED_ALL:
        places, options = tuple(pool.places(x) for x in args), in_numpy(kwargs)
    else:
        moving, options = list(args), dict(kwargs)
        for place, key in MOVED[name]:
            if place < len(moving):
                moving[place] = pool.places(moving[place])
            elif key in options:
                options[key] = pool.places(options[key])
        places, options = in_numpy(tuple(moving)), in_numpy(options)
    for key in ("dtype", "casting"):
        options.pop(key, None)
    if name in ("full", "full_like"):
        places, options["dtype"] = places[:2], np.int64
    result = function(*places, **options)
    if result is None:
        result = places[0] if places else next(options[key] for _, key in MOVED[name][:1])
    return pool.gathered(result)
