"""The trace backend's kernels: each writes down a call of the kernel of that name, or expands it into simpler ones.

What is expanded through its portable form (softmax, layer_norm, ...) becomes elementwise work, reductions and matrix
products, which the compiler knows how to join. What has one native kernel, or none at all, is written down whole.
"""

from __future__ import annotations

import math
from functools import wraps
from typing import Any

from ... import dtypes
from ...backends import portable
from ...backends.protocol import Kernels
from ...operations import OPERATIONS
from ..host import has_kernel, host_dtype
from . import averages, statistics

#: Kernels beside the operations' own whose portable form is better for fusion than the whole.
_EXPANDED = frozenset((
    "outer", "widened", "narrowed", "blockwise", "reciprocal_deviation", "sum_of_squares",
    "unpack_int4", "unpack_nf4", "unpack_float8", "pack_nf4", "pack_float8",
))  # fmt: skip

#: Kernels that take functions, constants of other kinds than arrays, or places in random streams inside of other
#: arguments: what they do with symbols is written down.
_NEVER_WHOLE = frozenset(("outer", "blockwise", "quantized_matmul", "packed_linear", "low_rank_linear"))


_MANY_CLASSES = 1024

#: Scores of attention with dropout up to which it is made of products and elementwise work: no native kernel drops.
MOST_SCORES = 1 << 24


def _unless_library(method: Any) -> Any:
    """A kernel for programs on the host. Those on a library's devices name the library's kernel, which is run whole."""
    return _whole_for_libraries(method.__name__, method, 1)


def _whole_for_libraries(op: str, kernel: Any, own: int = 0) -> Any:
    """The same of a function that begins with `own` arguments which are not the kernel's."""

    @wraps(kernel)
    def chosen(*args: Any, **named: Any) -> Any:
        recorder = _recorder_of(args, named)
        return kernel(*args, **named) if recorder.library is None else recorder.record(op, args[own:], named)

    return chosen


def _expanded_or_whole(xp: Any, op: str, args: tuple[Any, ...]) -> Any:
    return _whole_for_libraries(op, portable.bind(op, xp))(*args)


class TraceKernels(Kernels):
    """Kernels on symbols, made at first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        expands = OPERATIONS[name].expands if name in OPERATIONS else name in _EXPANDED
        if has_kernel(name) and not expands:
            return self.__dict__.setdefault(name, _recording(name))
        kernel = portable.bind(name, self)
        if expands == "floats":
            kernel = _expanding(name, kernel)
        if name not in _NEVER_WHOLE:
            kernel = _whole_for_libraries(name, kernel)
        self.__dict__[name] = kernel
        return kernel

    # -- what the standard or NumPy does before it computes ----------------------------------------

    @staticmethod
    def is_complex(x: Any) -> bool:
        return x.dtype.kind == "c"

    def conj(self, x: Any) -> Any:
        return record("conj", (x,)) if x.dtype.kind == "c" else x

    def real(self, x: Any) -> Any:
        return record("real", (x,)) if x.dtype.kind == "c" else x

    def astype(self, x: Any, dtype: Any) -> Any:
        dtype = host_dtype(dtype)  # that of a variable from outside may be of its library
        return x if x.dtype == dtype else record("astype", (x, dtype))

    def reshape(self, x: Any, shape: Any) -> Any:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if -1 in shape:
            known = math.prod([n for n in shape if n != -1])
            if known and x.size % known == 0:
                shape = tuple([x.size // known if n == -1 else n for n in shape])
        return x if shape == x.shape else record("reshape", (x, shape))

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return x if tuple(shape) == x.shape else record("broadcast_to", (x, tuple(shape)))

    @_unless_library
    def mean(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        count = _count(x, axis)
        if _is_half(x) and count:
            return self.narrowed(self.mean(self.widened(x), axis, keepdims), x.dtype)
        if not _is_plain(x) or not count:
            return record("mean", (x, axis, keepdims))
        return self.sum(x, axis, keepdims) / count

    @_unless_library
    def var(self, x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
        if not _is_plain(x) or _count(x, axis) <= correction:
            return record("var", (x, axis, correction, keepdims))
        deviation = x - self.mean(x, axis, True)
        total = self.sum(deviation * deviation, axis, keepdims)
        return _required(self, total / (_count(x, axis) - correction), -1.0)

    @_unless_library
    def std(self, x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
        if not _is_plain(x) or _count(x, axis) <= correction:
            return record("std", (x, axis, correction, keepdims))
        total = _required_squares(self, x - self.mean(x, axis, True), axis, keepdims)
        return self.sqrt(total / (_count(x, axis) - correction))

    @_unless_library
    def layer_norm(self, x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
        out, mean, rstd = portable.bind("layer_norm", self)(x, weight, bias, axis, eps)
        return out, mean, _required(self, rstd, 0.0)

    @_unless_library
    def rms_norm(self, x: Any, weight: Any, axis: Any, eps: float) -> Any:
        out, rstd = portable.bind("rms_norm", self)(x, weight, axis, eps)
        return out, _required(self, rstd, 0.0)

    @_unless_library
    def batch_norm(self, x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
        if _recorder_of((x,), None).abilities.reads_once and x.size:
            return statistics.normalized_by_batch(self, x, weight, bias, axis, eps)
        out, mean, variance = portable.bind("batch_norm", self)(x, weight, bias, axis, eps)
        return out, mean, _required(self, variance, -1.0)

    @_unless_library
    def pow(self, x: Any, y: Any) -> Any:
        if type(y) in (int, float) and getattr(x, "dtype", None) is not None and x.dtype.kind == "f":
            if y == 2:
                return record("square", (x,))
            if y == 3:
                return x * x * x
            if y == 1:
                return x
            if y == 0.5:
                return record("sqrt", (x,))  # as NumPy does, which matters at -inf
        return record("pow", (x, y))

    def embedding(self, indices: Any, weight: Any) -> Any:
        _note_bounds(indices, weight.shape[0])
        return _expanded_or_whole(self, "embedding", (indices, weight))

    def cross_entropy(self, x: Any, target: Any, weight: Any, ignore_index: int, *options: Any) -> Any:
        counted = self.where(self.not_equal(target, ignore_index), target, self.zeros_like(target))
        _note_bounds(counted, x.shape[1] if x.ndim > 1 else x.shape[0])
        return self._loss("cross_entropy", x, (x, target, weight, ignore_index, *options))

    def cross_entropy_gradient(self, g: Any, x: Any, *options: Any) -> Any:
        return self._loss("cross_entropy_gradient", x, (g, x, *options))

    def _loss(self, op: str, x: Any, args: tuple[Any, ...]) -> Any:
        """Of few classes in loops with what is around it; of many by the target's own kernel, if it has one."""
        recorder = _recorder_of((x,), None)
        if x.shape[-1] >= _MANY_CLASSES and op in recorder.abilities.whole:
            return recorder.record(op, args)
        return _expanded_or_whole(self, op, args)

    @_unless_library
    def vecdot(self, x: Any, y: Any, axis: int) -> Any:
        if _is_plain(x) and _is_plain(y):
            return self.sum(x * y, (axis,), False)
        return record("vecdot", (x, y, axis))

    @_unless_library
    def vector_norm(self, x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
        if _is_plain(x) and ord == 2 and axis != ():
            return self.sqrt(_required_squares(self, x, axis, keepdims))
        return record("vector_norm", (x, axis, keepdims, ord))

    @_unless_library
    def resample(self, x: Any, axes: Any, transposed: bool) -> Any:
        if (_is_plain(x) or _is_half(x)) and x.size and averages.are_side_by_side(axes):
            made = (averages.spread if transposed else averages.averaged)(self, self.widened(x), axes)
            return self.narrowed(made, x.dtype)
        return record("resample", (x, axes, transposed))

    @_unless_library
    def attention(self, q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, *dropout: Any) -> Any:
        args = (q, k, v, mask, is_causal, scale, *dropout)
        if _has_small_scores(q, k, *dropout):
            return portable.bind("attention", self)(*args)
        return record("attention", args)

    @_unless_library
    def attention_gradient(
        self, g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any,
        is_causal: bool, scale: float, *dropout: Any,
    ) -> Any:  # fmt: skip
        args = (g, q, k, v, mask, out, lse, needs, is_causal, scale, *dropout)
        if not _has_small_scores(q, k, *dropout):
            return record("attention_gradient", args)
        gradients = portable.bind("attention_gradient", self)(*args)
        return tuple([gradient if needed else None for gradient, needed in zip(gradients, needs)])

    def positive(self, x: Any) -> Any:
        return x if x.dtype.kind != "b" else record("positive", (x,))


def _is_plain(x: Any) -> bool:
    """Whether an array is of float32 or float64."""
    return bool(x.dtype.kind == "f" and x.dtype.itemsize >= 4)


def _is_half(x: Any) -> bool:
    return bool(dtypes.from_numpy(x.dtype) in (dtypes.float16, dtypes.bfloat16))


def _has_small_scores(q: Any, k: Any, p: float, key: Any, offset: Any) -> bool:
    """Whether attention drops some of its scores, and all of them can be in memory: then simpler kernels do it."""
    return bool(p) and math.prod(q.shape[:-1]) * k.shape[-2] <= MOST_SCORES


def _required(xp: Any, statistic: Any, low: float) -> Any:
    """A statistic that must be finite and above `low`; where squares have overflown, NumPy's kernels know another way.

    The program looks at it when it has run, and is refused if it is not (see `calling/checks.py`).
    """
    if statistic.size:
        fits = xp.logical_and(xp.greater(statistic, low), xp.less(statistic, math.inf))
        _recorder_of((statistic,), None).requirements[fits.value] = None
    return statistic


def _required_squares(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum of squares of numbers that are neither so large that it overflows nor so small that it vanishes."""
    total = xp.sum(xp.square(x), axis, keepdims)
    if total.size and x.size:
        largest = xp.max(xp.abs(x), axis, keepdims)
        fits = xp.logical_and(xp.greater(total, dtypes.lost_squares(x.dtype)), xp.less(total, math.inf))
        nothing = xp.logical_or(xp.equal(largest, 0.0), xp.logical_not(xp.less(largest, math.inf)))
        _recorder_of((total,), None).requirements[xp.logical_or(fits, nothing).value] = None
    return total


def _note_bounds(indices: Any, size: int) -> None:
    """Indices that are not counted from the end."""
    recorder = _recorder_of((indices,), None)
    recorder.bounds[recorder._argument(indices), 0, size] = None


def _count(x: Any, axis: Any) -> int:
    return x.size if axis is None else math.prod([x.shape[a] for a in axis])


def record(op: str, args: tuple[Any, ...], named: dict[str, Any] | None = None) -> Any:
    """Write down a call, in the recorder of the symbols among its arguments."""
    return _recorder_of(args, named).record(op, args, named)


def _recording(op: str) -> Any:
    def kernel(*args: Any, **named: Any) -> Any:
        return record(op, args, named)

    kernel.__name__ = op
    return kernel


def _recorder_of(args: Any, named: Any) -> Any:
    from ... import modes

    found = _find(args) or (_find(named.values()) if named else None)
    if found is None:
        trace = modes.tracing()
        if trace is None:
            raise TypeError("no symbol among the arguments, and no function is being traced.")
        found = trace.recorder
    return found


def _expanding(op: str, expand: Any) -> Any:
    """A kernel that is expanded for floats: of integers NumPy's own makes floats, each in its way, and is kept whole.

    What half-precision numbers are expanded into may be wider, and is then rounded as NumPy's kernel does.
    """

    def kernel(*args: Any, **named: Any) -> Any:
        dtype = args[0].dtype
        if dtype.kind in "biu":
            return record(op, args, named)
        made = expand(*args, **named)
        return made if dtype.itemsize > 2 or made.dtype == dtype else record("astype", (made, dtype))

    return kernel


def _find(args: Any) -> Any:
    from .symbol import Symbol

    for arg in args:
        if type(arg) is Symbol:
            return arg.recorder
        if type(arg) in (tuple, list):
            found = _find(arg)
            if found is not None:
                return found
    return None
