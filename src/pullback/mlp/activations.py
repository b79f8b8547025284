"""Activation functions as lists of NumPy calls into given buffers.

A step is `(function, arguments)`: nothing is left to decide, look up or allocate when it runs. The functions are those
of the same names in Pullback: `leaky_relu` has its slope of 0.01, `gelu` is the exact one. Arrays of a call have one
shape: for two shapes NumPy allocates a buffer, `copyto` excepted.
"""

from __future__ import annotations

from functools import partial
from math import pi, sqrt
from typing import Any, Callable, NamedTuple

import numpy as np

from .. import coefficients
from ..errors import ConfigurationError
from .straight import Step

__all__ = ["ACTIVATIONS", "Activation", "activation_named"]

_SLOPE = 0.01
_LARGEST_EXPONENT = {"f": 87.0, "d": 708.0}  # exp of more would overflow


class Activation(NamedTuple):
    """How to apply an activation function, and its derivative."""

    name: str
    #: (z, out, kept, work) -> steps. `out` and `z` are the same memory unless `keeps_input`.
    forward: Callable[[Any, Any, Any, Any], list[Step]]
    #: (z, out, kept, factor) -> steps that write the derivative to `factor`; None if the output depends on all inputs.
    factor: Callable[[Any, Any, Any, Any], list[Step]] | None
    #: The derivative needs z and something `kept` beside the output.
    keeps_input: bool = False
    #: Half of the inputs are about zero in the output, so that weights start larger (He).
    halves: bool = False


def activation_named(name: str) -> Activation:
    if name not in ACTIVATIONS:
        raise ConfigurationError(f"there is no activation {name!r}; there are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def _number(value: float, like: Any) -> Any:
    """A constant as a 0-d array: NumPy takes that faster than a Python number."""
    return np.array(value, like.dtype)


def _identity(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    return []


def _relu(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    return [(partial(np.maximum, out=out), (z, _number(0, z)))]


def _relu_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    return [(np.sign, (out, factor))]


def _leaky_relu(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    return [(np.multiply, (z, _number(_SLOPE, z), work[0])), (partial(np.maximum, out=out), (z, work[0]))]


def _leaky_relu_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    return [(np.sign, (out, factor)), (partial(np.maximum, out=factor), (factor, _number(_SLOPE, out)))]


def _tanh(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    return [(np.tanh, (z, out))]


def _tanh_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    return [(np.multiply, (out, out, factor)), (np.subtract, (_number(1, out), factor, factor))]


def sigmoid_steps(z: Any, out: Any) -> list[Step]:
    """1 / (1 + exp(-z)); the exponent is cut off where the result would be too small to be represented."""
    return [
        (np.negative, (z, out)),
        (partial(np.minimum, out=out), (out, _number(_LARGEST_EXPONENT[z.dtype.char], z))),
        (np.exp, (out, out)),
        (np.add, (out, _number(1, z), out)),
        (np.reciprocal, (out, out)),
    ]


def _sigmoid(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    return sigmoid_steps(z, out)


def _sigmoid_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    return [(np.multiply, (out, out, factor)), (np.subtract, (out, factor, factor))]


def _silu(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    return [*sigmoid_steps(z, kept), (np.multiply, (z, kept, out))]


def _silu_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    """s + out (1 - s) with s = sigmoid(z), which was kept."""
    return [
        (np.subtract, (_number(1, out), kept, factor)),
        (np.multiply, (factor, out, factor)),
        (np.add, (factor, kept, factor)),
    ]


def _gelu(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    """z times the normal distribution function, which is kept.

    Its tail is exp(-a**2) t P(t) / Q(t) / 2 with a = |z| / sqrt(2) and t = 1 / (2 + a); see `coefficients`.
    """
    a, t, denominator = work
    single = z.dtype.char == "f"
    above = coefficients.ERFCX_SINGLE_NUMERATOR if single else coefficients.ERFCX_NUMERATOR
    below = coefficients.ERFCX_SINGLE_DENOMINATOR if single else coefficients.ERFCX_DENOMINATOR
    positive = np.empty(z.shape, np.bool_)
    return [
        (np.absolute, (z, a)),
        (np.multiply, (a, _number(sqrt(0.5), z), a)),
        (np.add, (a, _number(2, z), t)),
        (np.reciprocal, (t, t)),
        *_polynomial(t, above, kept),
        *_polynomial(t, below, denominator),
        (np.divide, (kept, denominator, kept)),
        (np.multiply, (kept, t, kept)),
        (np.multiply, (a, a, a)),
        (np.negative, (a, a)),
        (np.exp, (a, a)),
        (np.multiply, (kept, a, kept)),
        (np.multiply, (kept, _number(0.5, z), kept)),
        (np.greater, (z, _number(0, z), positive)),
        (partial(np.subtract, where=positive), (_number(1, z), kept, kept)),
        (np.multiply, (z, kept, out)),
    ]


def _gelu_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    """P(z) + z p(z) with the normal distribution P, which was kept, and its density p."""
    return [
        (np.multiply, (z, z, factor)),
        (np.multiply, (factor, _number(-0.5, z), factor)),
        (np.exp, (factor, factor)),
        (np.multiply, (factor, _number(1 / sqrt(2 * pi), z), factor)),
        (np.multiply, (factor, z, factor)),
        (np.add, (factor, kept, factor)),
    ]


def _polynomial(t: Any, ascending: tuple[float, ...], out: Any) -> list[Step]:
    """Horner's rule."""
    *lower, highest = (_number(value, t) for value in ascending)
    steps: list[Step] = [(np.multiply, (t, highest, out)), (np.add, (out, lower.pop(), out))]
    while lower:
        steps += [(np.multiply, (out, t, out)), (np.add, (out, lower.pop(), out))]
    return steps


def _softmax(z: Any, out: Any, kept: Any, work: Any) -> list[Step]:
    column = np.empty((*z.shape[:-1], 1), z.dtype)
    reduced = {"axis": -1, "keepdims": True, "out": column}
    return [
        (partial(np.maximum.reduce, **reduced), (z,)),
        (np.copyto, (work[0], column)),
        (np.subtract, (z, work[0], out)),
        (np.exp, (out, out)),
        (partial(np.add.reduce, **reduced), (out,)),
        (np.copyto, (work[0], column)),
        (np.divide, (out, work[0], out)),
    ]


def softmax_backward(out: Any, cotangent: Any, delta: Any, work: Any) -> list[Step]:
    """out (g - sum(g out)), for each row."""
    column = np.empty((*out.shape[:-1], 1), out.dtype)
    return [
        (np.multiply, (cotangent, out, work)),
        (partial(np.add.reduce, axis=-1, keepdims=True, out=column), (work,)),
        (np.copyto, (work, column)),
        (np.subtract, (cotangent, work, delta)),
        (np.multiply, (delta, out, delta)),
    ]


def _identity_factor(z: Any, out: Any, kept: Any, factor: Any) -> list[Step]:
    return []


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("identity", _identity, _identity_factor),
        Activation("relu", _relu, _relu_factor, halves=True),
        Activation("leaky_relu", _leaky_relu, _leaky_relu_factor, halves=True),
        Activation("tanh", _tanh, _tanh_factor),
        Activation("sigmoid", _sigmoid, _sigmoid_factor),
        Activation("gelu", _gelu, _gelu_factor, keeps_input=True, halves=True),
        Activation("silu", _silu, _silu_factor, keeps_input=True, halves=True),
        Activation("softmax", _softmax, None),
    )
}
