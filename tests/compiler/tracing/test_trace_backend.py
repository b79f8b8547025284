"""The trace backend: symbols as arrays, with gradients on top like on any other backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.program import Program, Value
from pullback.compiler.tracing.recorder import Recorder
from pullback.compiler.tracing.shapes import form_of
from pullback.compiler.tracing.symbol import Symbol
from pullback.operations import OPERATIONS
from tests.compiler.meaning import run


def symbols(recorder: Recorder, *shapes: tuple[int, ...]) -> tuple[list[Value], list[Symbol]]:
    values = [Value(shape, np.float64) for shape in shapes]
    return values, [Symbol(value, recorder) for value in values]


def test_autodiff_over_the_trace_backend_writes_forward_and_backward() -> None:
    recorder = Recorder()
    values, (x, w) = symbols(recorder, (3, 4), (4,))
    traced = pb.Autodiff("trace")
    a, b = (traced.from_inner(raw).set_requires_grad(True) for raw in (x, w))
    loss = traced.sum(traced.tanh(a * b))
    grads = traced.backward(loss)
    outputs = [traced.inner(loss).value, traced.grad(a, grads).value, traced.grad(b, grads).value]
    program = Program(values, recorder.instructions, outputs)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 4)), rng.standard_normal(4)]
    found, _ = run(program, arrays)
    value, expected = pb.value_and_grad(lambda x, w: np.sum(np.tanh(x * w)), argnums=(0, 1))(*arrays)
    np.testing.assert_allclose(found[0], value)
    for ours, theirs in zip(found[1:], expected):
        np.testing.assert_allclose(ours, theirs)


def test_a_second_level_differentiates_the_first() -> None:
    recorder = Recorder()
    values, (x,) = symbols(recorder, ())
    first = pb.Autodiff("trace")
    second = pb.Autodiff(first)
    inner = first.from_inner(x).set_requires_grad(True)
    outer = second.from_inner(inner)
    slope = second.grad(outer, second.backward(outer * outer * outer))
    curvature = first.grad(inner, first.backward(slope))
    (found,), _ = run(Program(values, recorder.instructions, [curvature.value]), [np.asarray(2.0)])
    assert found == 12.0


def test_a_program_prints_readably() -> None:
    recorder = Recorder()
    values, (x, w) = symbols(recorder, (2, 3), (3, 2))
    out = (x @ w) * 2.0
    text = str(Program(values, recorder.instructions, [out.value]))
    lines = text.splitlines()
    assert lines[0] == "program(%0: float64[2, 3], %1: float64[3, 2])"
    assert lines[1].startswith("  %2 = matmul(%0, %1) : float64[2, 2]  # test_trace_backend.py:")
    assert lines[2].startswith("  %3 = multiply(%2, 2.0) : float64[2, 2]")
    assert lines[3] == "  return %3"


def test_symbols_say_that_they_are_where_the_program_will_run() -> None:
    recorder = Recorder()
    _, (x,) = symbols(recorder, (2,))
    tensor = pb.Autodiff("trace").from_inner(x)
    assert tensor.device == "numpy" and tensor.shape == (2,) and tensor.dtype == pb.float64
    assert tensor.to_device("numpy").shape == (2,)
    assert "shape=(2,)" in repr(tensor)


def test_arrays_of_another_trace_are_refused() -> None:
    (_, (x,)), (_, (y,)) = symbols(Recorder(), (2,)), symbols(Recorder(), (2,))
    with pytest.raises(pb.TraceError, match="another trace"):
        x + y


ELEMENTWISE = [name for name, op in OPERATIONS.items() if op.elementwise and not op.static and len(op.inputs) == 2]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_shapes_and_dtypes_are_those_of_numpys_kernels(name: str) -> None:
    kernel = getattr(pb.backends.NUMPY.xp, name)
    dtypes = ("bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64")
    others: list[Any] = [*dtypes, 2, 2.5, True]
    for first in dtypes:
        for second in others:
            args = (
                Value((3, 1), first),
                Value((1, 4), second) if isinstance(second, str) else second,
            )
            arrays = [np.ones(a.shape, a.dtype) if isinstance(a, Value) else a for a in args]
            with np.errstate(all="ignore"):
                try:
                    expected = np.asarray(kernel(*arrays))
                except (TypeError, OverflowError) as error:
                    with pytest.raises(type(error)):
                        form_of(name, args)
                    continue
            assert form_of(name, args) == (expected.shape, expected.dtype), (first, second)
