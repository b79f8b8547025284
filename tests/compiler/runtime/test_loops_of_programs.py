"""Loops run natively: the same bits on any number of threads, run after run, also one inside the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.host import HOST
from pullback.compiler.lowering.lower import lower
from pullback.compiler.passes import optimize
from pullback.functions import traced_control_flow

from ...backends.installed import needs_llvmlite

pytestmark = needs_llvmlite


def traced(function: Any, arrays: list[Any]) -> Any:
    compiled = pb.compile(function)
    compiled(*[pb.asarray(array) for array in arrays])
    return compiled._latest().program


def test_threads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.targets.llvm.runtime.executable import build

    monkeypatch.setattr(traced_control_flow, "LONGEST_UNROLLED", 2)

    def run(u: Any, start: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, total = carry
            h = pb.tanh(h @ u + x)
            _, inner = pb.scan(lambda a, b: (a * 0.5 + b, a), h, pb.stack([h, x, h * x]))
            return (h, total + (h * h).sum(0) + inner.sum(0).sum(0)), h * total

        (h, total), ys = pb.scan(step, (start, start[0]), xs, reverse=True)
        return h.sum() + total.sum() + (ys * ys).sum()

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(128, 128)) * 0.05, rng.normal(size=(64, 128)), rng.normal(size=(5, 64, 128))]
    program = optimize(traced(pb.grad(run, argnums=(0, 1, 2)), arrays))
    schedule = lower(program)
    inputs = [*arrays, *[program.constants[value] for value in program.inputs[len(arrays) :]]]
    expected: list[Any] = []
    for threads in (1, 2, 3):
        executable = build(schedule, threads, HOST)
        assert executable.is_native and executable.threads == threads
        for _ in range(5):
            outputs = [np.full(value.shape, np.nan, value.dtype) for value in program.outputs]
            executable.run([x.ctypes.data for x in inputs], [x.ctypes.data for x in outputs])
            expected = expected or outputs
            for one, other in zip(outputs, expected):
                np.testing.assert_array_equal(one, other)
    measured = executable.measure([x.ctypes.data for x in inputs], [x.ctypes.data for x in outputs])
    assert all(nanoseconds > 0 for _, _, nanoseconds in measured)
    for one, other in zip(outputs, expected):
        np.testing.assert_array_equal(one, other)


def test_a_loop_has_the_cost_of_all_its_steps() -> None:
    from pullback.targets.llvm.runtime.executable import build

    def run(x: Any, steps: int) -> Any:
        return pb.scan(lambda h, _: (pb.sin(h), None), x, length=steps)[0]

    costs = [
        build(lower(traced(lambda x, steps=steps: run(x, steps), [np.ones(64)])), 1, HOST).cost for steps in (100, 1000)
    ]
    assert costs[1] == pytest.approx(10 * costs[0], rel=0.1)
