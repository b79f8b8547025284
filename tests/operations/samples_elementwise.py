"""Samples of the elementwise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample, rng


def _torch(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        import torch

        return getattr(torch, name)(*args)

    return function


def _jax(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        import jax.numpy

        return getattr(jax.numpy, name)(*args)

    return function


def uniform(case: str, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    return np.asarray(rng(case).uniform(low, high, shape))


def signed(case: str, shape: tuple[int, ...], low: float = 0.3, high: float = 1.7) -> np.ndarray:
    """Numbers of either sign, away from zero."""
    generator = rng(case)
    return np.asarray(generator.uniform(low, high, shape) * generator.choice([-1.0, 1.0], shape))


def disc(case: str, shape: tuple[int, ...], low: float = 0.3, high: float = 0.8) -> np.ndarray:
    """Complex numbers off the axes, where branch cuts are."""
    generator = rng(case)
    angle = generator.uniform(0.3, 1.2, shape) + generator.choice([0.0, 0.5, 1.0, 1.5], shape) * np.pi
    return np.asarray(generator.uniform(low, high, shape) * np.exp(1j * angle))


SAMPLES: list[Sample] = []

# name: range of the argument, whether it takes complex numbers, the name in torch, in jax (None: not compared)
UNARY: dict[str, tuple[float, float, bool, str | None, str | None]] = {
    "negative": (-2, 2, True, "negative", "negative"),
    "positive": (-2, 2, True, "positive", "positive"),
    "square": (-2, 2, True, "square", "square"),
    "reciprocal": (0.5, 2, True, "reciprocal", "reciprocal"),
    "sqrt": (0.5, 2, True, "sqrt", "sqrt"),
    "exp": (-2, 2, True, "exp", "exp"),
    "expm1": (-2, 2, True, "expm1", "expm1"),
    "log": (0.5, 3, True, "log", "log"),
    "log1p": (-0.5, 2, True, "log1p", "log1p"),
    "log2": (0.5, 3, True, "log2", "log2"),
    "log10": (0.5, 3, True, "log10", "log10"),
    "sin": (-3, 3, True, "sin", "sin"),
    "cos": (-3, 3, True, "cos", "cos"),
    "tan": (-1.2, 1.2, True, "tan", "tan"),
    "asin": (-0.8, 0.8, True, "asin", "asin"),
    "acos": (-0.8, 0.8, True, "acos", "acos"),
    "atan": (-2, 2, True, "atan", "atan"),
    "sinh": (-2, 2, True, "sinh", "sinh"),
    "cosh": (-2, 2, True, "cosh", "cosh"),
    "tanh": (-2, 2, True, "tanh", "tanh"),
    "asinh": (-2, 2, True, "asinh", "asinh"),
    "acosh": (1.3, 3, True, "acosh", "acosh"),
    "atanh": (-0.8, 0.8, True, "atanh", "atanh"),
    "abs": (0.5, 2, True, "abs", "abs"),
    "sign": (0.5, 2, True, "sign", "sign"),
    "conj": (-2, 2, True, "conj", "conj"),
    "floor": (0.1, 0.9, False, "floor", "floor"),
    "ceil": (0.1, 0.9, False, "ceil", "ceil"),
    "trunc": (0.1, 0.9, False, "trunc", "trunc"),
    "round": (0.1, 0.4, False, "round", "round"),
    "real": (-2, 2, True, None, "real"),
    "imag": (-2, 2, True, None, None),
}
for _name, (_low, _high, _complex, _in_torch, _in_jax) in UNARY.items():
    _references = {
        "torch": None if _in_torch is None else _torch(_in_torch),
        "jax": None if _in_jax is None else _jax(_in_jax),
    }
    for _shape in ((2, 3), ()):
        SAMPLES.append(
            Sample(_name, f"shape={_shape}", getattr(pb, _name), (uniform(_name, _shape, _low, _high),), **_references)
        )
    if _complex:
        if _name in ("real", "imag"):
            _references = {"torch": _torch(_name), "jax": _jax(_name)}
        if _name == "sign":
            _references = {"torch": _torch("sgn")}  # in jax its gradient is zero, which does not fit its values
        if _name == "acosh":
            _references = {"torch": _torch(_name)}  # jax takes another branch for the derivative than for the value
        SAMPLES.append(Sample(_name, "complex", getattr(pb, _name), (disc(_name, (2, 3)),), **_references))
for _name in ("abs", "sign"):
    SAMPLES.append(
        Sample(_name, "negative", getattr(pb, _name), (uniform(_name, (4,), -2, -0.5),), torch=_torch(_name))
    )

# name: ranges of the two arguments, complex or not
BINARY: dict[str, tuple[Callable[[str, tuple[int, ...]], np.ndarray], bool]] = {
    "add": (signed, True),
    "subtract": (signed, True),
    "multiply": (signed, True),
    "divide": (signed, True),
    "hypot": (signed, False),
    "atan2": (signed, False),
    "logaddexp": (signed, False),
    "maximum": (signed, False),
    "minimum": (signed, False),
    "copysign": (signed, False),
    "remainder": (signed, False),
    "floor_divide": (signed, False),
    "nextafter": (signed, False),
}
SHAPES = {
    "same": ((2, 3), (2, 3)),
    "broadcast": ((2, 1, 3), (4, 1)),
    "scalar": ((), (3,)),
}
for _name, (_draw, _complex) in BINARY.items():
    for _case, (_first, _second) in SHAPES.items():
        _arguments = (_draw(_name + _case + "1", _first), _draw(_name + _case + "2", _second))
        SAMPLES.append(
            Sample(
                _name,
                _case,
                getattr(pb, _name),
                _arguments,
                torch=None if _name in ("floor_divide", "nextafter") else _torch(_name),
                jax=None if _name in ("nextafter", "floor_divide") else _jax(_name),
                orders=1 if _name == "nextafter" else 2,
            )
        )
    if _complex:
        _arguments = (disc(_name + "complex1", (2, 3)), disc(_name + "complex2", (3,)))
        SAMPLES.append(Sample(_name, "complex", getattr(pb, _name), _arguments, torch=_torch(_name), jax=_jax(_name)))
        _arguments = (uniform(_name + "mixed1", (2, 3), 0.5, 1.5), disc(_name + "mixed2", (2, 1)))
        SAMPLES.append(Sample(_name, "real and complex", getattr(pb, _name), _arguments, torch=_torch(_name)))

for _name in ("subtract", "divide", "pow", "atan2", "remainder"):
    _function = getattr(pb, _name)
    SAMPLES.append(
        Sample(
            _name, "number on the right", lambda x, f=_function: f(x, 1.7), (uniform(_name + "right", (3,), 0.5, 1.5),)
        )
    )
    SAMPLES.append(
        Sample(
            _name, "number on the left", lambda x, f=_function: f(1.7, x), (uniform(_name + "left", (3,), 0.5, 1.5),)
        )
    )

_base, _exponent = uniform("pow base", (2, 3), 0.5, 2.0), uniform("pow exponent", (3,), -2.0, 2.0)
SAMPLES += [
    Sample("pow", "positive base", pb.pow, (_base, _exponent), torch=_torch("pow"), jax=_jax("pow")),
    Sample("pow", "complex", pb.pow, (disc("pow1", (3,)), disc("pow2", (2, 1))), torch=_torch("pow"), jax=_jax("pow")),
    Sample("pow", "square", lambda x: x**2, (signed("square", (2, 3)),), torch=lambda x: x**2),
    Sample("pow", "cube", lambda x: x**3, (signed("cube", (2, 3)),), torch=lambda x: x**3),
    Sample("pow", "to the zero", lambda x: x**0, (signed("zeroth", (2, 3)),), torch=lambda x: x**0),
    Sample("pow", "negative integer exponent", lambda x: x**-2, (signed("inverse", (2, 3)),), torch=lambda x: x**-2),
    Sample("pow", "complex cube", lambda x: x**3, (disc("cube", (2, 3)),), torch=lambda x: x**3),
    Sample(
        "pow",
        "negative base, integer array",
        lambda x: pb.pow(x, pb.asarray(np.array([0, 1, 2, 3]))),
        (uniform("integer powers", (2, 4), -2.0, -0.5),),
        torch=lambda x: x ** x.new_tensor([0, 1, 2, 3]),
    ),
    Sample(
        "pow",
        "unsigned exponents",
        lambda x: pb.pow(x, pb.asarray(np.array([0, 1, 2], np.uint8))),
        (uniform("unsigned", (3,), 0.5, 2.0),),
    ),
    Sample(
        "pow",
        "integer base",
        lambda y: pb.pow(pb.asarray(np.array([1, 2, 3])), y),
        (uniform("integer base", (2, 3), -1.0, 2.0),),
    ),
]

_x = np.asarray([-1.5, -0.4, 0.3, 0.9, 1.8])
_low, _high = np.asarray(-0.9), np.asarray([0.5, 0.6, 0.7, 0.5, 1.1])
SAMPLES += [
    Sample("clip", "numbers", lambda x: pb.clip(x, -1.0, 0.8), (_x,), torch=lambda x: x.clamp(-1.0, 0.8)),
    Sample("clip", "below only", lambda x: pb.clip(x, min=-0.2), (_x,), torch=lambda x: x.clamp(min=-0.2)),
    Sample("clip", "above only", lambda x: pb.clip(x, max=0.8), (_x,), torch=lambda x: x.clamp(max=0.8)),
    Sample("clip", "tensors", pb.clip, (_x.copy(), _low, _high), torch=lambda x, low, high: x.clamp(low, high)),
    Sample("clip", "lower tensor", lambda x, low: pb.clip(x, low, 0.5), (_x.copy(), _low.copy())),
    Sample("clip", "upper tensor", lambda x, high: pb.clip(x, max=high), (_x.copy(), _high.copy())),
    Sample("clip", "bounds exchanged", pb.clip, (_x.copy(), np.asarray(0.5), np.asarray(-0.5))),
]

_mask = np.asarray([[True, False, True], [False, False, True]])
SAMPLES += [
    Sample(
        "where",
        "broadcast",
        lambda x, y: pb.where(pb.asarray(_mask), x, y),
        (signed("where1", (2, 1)), signed("where2", (3,))),
        torch=lambda x, y: _torch("where")(_torch("as_tensor")(_mask), x, y),
        jax=lambda x, y: _jax("where")(_mask, x, y),
    ),
    Sample(
        "masked_fill",
        "number",
        lambda x: pb.masked_fill(x, _mask, 2.5),
        (signed("filled", (2, 3)),),
        torch=lambda x: x.masked_fill(_torch("as_tensor")(_mask), 2.5),
    ),
    Sample(
        "masked_fill",
        "tensor, mask broadcast",
        lambda x, y: pb.masked_fill(x, _mask[:, :1], y),
        (signed("filled1", (2, 3)), np.array(0.7)),
        torch=lambda x, y: x.masked_fill(_torch("as_tensor")(_mask[:, :1]), y),
    ),
    *[
        Sample("rsqrt", case, pb.rsqrt, (values,), torch=_torch("rsqrt"))
        for case, values in (("plain", rng("rsqrt").uniform(0.2, 3, (3, 4))), ("complex", disc("rsqrt", (3,)) + 2))
    ],
    *[
        Sample(
            "lerp",
            f"weight {weight}",
            lambda x, y, w=weight: pb.lerp(x, y, w),
            (signed("lerp1", (2, 1)), signed("lerp2", (3,))),
            torch=lambda x, y, w=weight: _torch("lerp")(x, y, w),
        )
        for weight in (0.25, 0.75, 1.5)
    ],
    Sample(
        "lerp",
        "tensors",
        pb.lerp,
        (signed("lerp3", (2, 3)), signed("lerp4", (3,)), np.array([0.2, 0.7, -1.1])),
        torch=_torch("lerp"),
    ),
    Sample(
        "isclose",
        "chooses",
        lambda x, y: pb.where(pb.isclose(x, y, 0.1), x, y * y),
        (np.array([1.0, 2.0, -3.0]), np.array([1.05, 3.0, -3.1])),
        torch=lambda x, y: _torch("where")(_torch("isclose")(x, y, 0.1), x, y * y),
    ),
    Sample(
        "allclose",
        "chooses",
        lambda x, y: pb.where(pb.allclose(x, y, atol=0.2), x, y * y),
        (np.array([1.0, 2.0]), np.array([1.05, 2.1])),
    ),
    Sample("where", "number", lambda x: pb.where(pb.asarray(_mask), x, 0.0), (signed("where3", (2, 3)),)),
    Sample(
        "where",
        "complex",
        lambda x, y: pb.where(pb.asarray(_mask), x, y),
        (disc("where4", (3,)), disc("where5", (2, 1))),
    ),
    Sample("tril", "square", pb.tril, (signed("tril", (3, 3)),), torch=_torch("tril"), jax=_jax("tril")),
    Sample("tril", "stack, k=1", lambda x: pb.tril(x, k=1), (signed("tril1", (2, 2, 4)),), torch=lambda x: x.tril(1)),
    Sample("triu", "square", pb.triu, (signed("triu", (3, 3)),), torch=_torch("triu"), jax=_jax("triu")),
    Sample(
        "triu", "stack, k=-1", lambda x: pb.triu(x, k=-1), (signed("triu1", (2, 4, 2)),), torch=lambda x: x.triu(-1)
    ),
    Sample("astype", "to complex", lambda x: pb.astype(x, pb.complex128), (signed("astype", (2, 3)),)),
    Sample(
        "astype",
        "complex to real",
        lambda x: TENSORS.astype(x, np.dtype("float64")),
        (disc("to real", (2, 3)),),
    ),
    Sample("atan2", "angle", pb.angle, (disc("angle", (2, 3)),), torch=_torch("angle"), jax=_jax("angle")),
    Sample(
        "stack", "nested list", lambda x, y: pb.asarray([[x, 1.0], [2.0, x * y]]), (np.asarray(1.5), np.asarray(0.5))
    ),
    Sample("broadcast_to", "full", lambda x: pb.full((2, 3), x), (np.asarray(1.5),)),
    Sample("multiply", "linspace", lambda x, y: pb.linspace(x, y, 4), (np.asarray(1.5), np.asarray(0.5))),
    Sample(
        "broadcast_to", "meshgrid", pb.meshgrid, (signed("mesh1", (2,)), signed("mesh2", (3,))), jax=_jax("meshgrid")
    ),
]
