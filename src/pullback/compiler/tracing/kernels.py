"""The trace backend's kernels: each writes down a call of the kernel of that name, or expands it into simpler ones.

What is expanded through its portable form (softmax, layer_norm, ...) becomes elementwise work, reductions and matrix
products, which the compiler knows how to join. What has one native kernel, or none at all, is written down whole.
"""

from __future__ import annotations

import math
from typing import Any

from ...backends import portable
from ...backends.numpy import _FAMILIES
from ...backends.protocol import Kernels

#: NumPy's kernels with a portable form that is better for fusion than the whole.
EXPANDED = frozenset((
    "widened", "narrowed", "blockwise", "relu", "leaky_relu", "elu", "silu", "gelu", "softplus", "log_sigmoid",
    "softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "batch_norm", "multiply_add", "dropout",
    "linear", "clip", "ndtr", "cross_entropy_gradient", "soft_cross_entropy",
    "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "huber_loss", "rotate_pairs", "rotary_embedding",
    "xlogy", "shift",
))  # fmt: skip


class TraceKernels(Kernels):
    """Kernels on symbols, made at first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = any(name in vars(family) for family in _FAMILIES)
        kernel = _recording(name) if own and name not in EXPANDED else portable.bind(name, self)
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

    def mean(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        count = _count(x, axis)
        if x.dtype.kind not in "f" or x.dtype.itemsize < 4 or not count:
            return record("mean", (x, axis, keepdims))
        return self.sum(x, axis, keepdims) / count

    def var(self, x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
        free = _count(x, axis) - correction
        if x.dtype.kind not in "f" or x.dtype.itemsize < 4 or free <= 0:
            return record("var", (x, axis, correction, keepdims))
        deviation = x - self.mean(x, axis, True)
        return self.sum(deviation * deviation, axis, keepdims) / free

    def std(self, x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
        return self.sqrt(self.var(x, axis, correction, keepdims))

    def pow(self, x: Any, y: Any) -> Any:
        if type(y) in (int, float) and getattr(x, "dtype", None) is not None and x.dtype.kind == "f":
            if y == 2:
                return record("square", (x,))
            if y == 3:
                return x * x * x
            if y == 1:
                return x
        return record("pow", (x, y))

    def embedding(self, indices: Any, weight: Any) -> Any:
        _note_bounds(indices, weight.shape[0])
        return portable.bind("embedding", self)(indices, weight)

    def cross_entropy(self, x: Any, target: Any, weight: Any, ignore_index: int, *options: Any) -> Any:
        counted = self.where(self.not_equal(target, ignore_index), target, self.zeros_like(target))
        _note_bounds(counted, x.shape[1] if x.ndim > 1 else x.shape[0])
        return portable.bind("cross_entropy", self)(x, target, weight, ignore_index, *options)

    def positive(self, x: Any) -> Any:
        return x if x.dtype.kind != "b" else record("positive", (x,))


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
