"""Loops that do not wait for each other are one launch, and only those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.targets.cuda.grouping import grouped
from pullback.targets.cuda.loops.many import Together, family
from pullback.targets.kernels import Access, Buffer, Call, Location, Loop, Step, Write

from . import interpreted
from .interpreted import torch


def scaled(n: int, dtype: str = "float32", inputs: int = 1) -> Loop:
    """y = 3 * x, and so on."""
    access = Access(dtype, (1,))
    steps = [Step("read", (), dtype, i) for i in range(inputs)] + [Step("number", (), dtype, number=3.0)]
    for i in range(inputs):
        steps.append(Step("multiply", (len(steps) - 1, i), dtype))
    return Loop((), (n,), (access,) * inputs, tuple(steps), (Write(len(steps) - 1, access),))


def temporary(offset: int, nbytes: int) -> Buffer:
    buffer = Buffer("temporary", 0, nbytes)
    buffer.offset = offset
    return buffer


def call(loop: Any, reads: list[Buffer], writes: list[Buffer]) -> Call:
    return Call(loop, [*map(Location, reads)], [*map(Location, writes)])


def sizes(calls: list[Call]) -> list[list[int]]:
    return [[number for number, _ in group] for group in grouped(list(enumerate(calls)))]


def test_loops_of_any_size_are_a_family_if_they_compute_the_same() -> None:
    assert family(scaled(32)) == family(scaled(4096))
    assert family(scaled(32)) != family(scaled(33))  # which cannot be read several elements at a time
    assert family(scaled(33)) == family(scaled(7))
    assert family(scaled(32)) != family(scaled(32, "float64"))
    assert family(scaled(32)) != family(scaled(32, inputs=2))


def test_calls_that_read_or_write_what_another_writes_are_apart() -> None:
    a, b, c, d = (temporary(i * 256, 256) for i in range(4))
    loop = scaled(64)
    assert sizes([call(loop, [a], [b]), call(loop, [c], [d])]) == [[0, 1]]
    assert sizes([call(loop, [a], [b]), call(loop, [b], [d])]) == [[0], [1]]  # reads what was written
    assert sizes([call(loop, [a], [b]), call(loop, [c], [a])]) == [[0], [1]]  # writes what is read
    assert sizes([call(loop, [a], [b]), call(loop, [c], [b])]) == [[0], [1]]  # writes it again
    on_both = temporary(128, 256)  # other memory of the arena, in the place of a and b
    assert sizes([call(loop, [a], [c]), call(loop, [d], [on_both])]) == [[0], [1]]
    other = scaled(64, inputs=2)
    assert sizes([call(loop, [a], [b]), call(other, [a, a], [c]), call(loop, [a], [d])]) == [[0, 2], [1]]
    assert sizes([call(loop, [a], [b]), call(object(), [b], [c]), call(loop, [a], [d])]) == [[0], [1], [2]]


def test_parts_of_one_array_that_lie_between_each_other_are_written_together() -> None:
    source, target = temporary(0, 4096), temporary(4096, 4096)
    read, write = Access("float32", (8, 1)), Access("float32", (24, 1))
    loop = Loop((20,), (8,), (read,), (Step("read", (), "float32"),), (Write(0, write),))

    def part(start: int) -> Call:
        return Call(loop, [Location(source)], [Location(target, 4 * start)])

    assert sizes([part(0), part(8), part(16)]) == [[0, 1, 2]]
    assert sizes([part(0), part(4), part(16)]) == [[0], [1, 2]]
    assert sizes([part(0), part(24)]) == [[0], [1]]


def total(n: int, dtype: str = "float32", op: str = "total_sum") -> Loop:
    """The sum of squares, and the largest element."""
    read, once = Access(dtype, (1,)), Access(dtype, (0,))
    steps = (
        Step("read", (), dtype),
        Step("square", (0,), dtype),
        Step(op, (1,), dtype),
        Step("total_max", (0,), dtype),
    )
    return Loop((), (n,), (read,), steps, (Write(2, once), Write(3, once)))


def test_totals_wait_for_each_other_until_one_is_needed() -> None:
    a, b, c, d, e, f = (temporary(i * 256, 256) for i in range(6))
    work, loop = object(), total(64)
    assert sizes([call(loop, [a], [b, c]), call(work, [a], [d]), call(loop, [a], [e, f])]) == [[1], [0, 2]]
    needed = [call(loop, [a], [b, c]), call(work, [b], [d]), call(loop, [a], [e, f])]
    assert sizes(needed) == [[0], [1], [2]]
    overwritten = [call(loop, [a], [b, c]), call(work, [d], [a]), call(loop, [d], [e, f])]
    assert sizes(overwritten) == [[0], [1], [2]]
    before = [call(scaled(64), [a], [b]), call(loop, [b], [c, d])]
    assert sizes(before) == [[0], [1]]


@pytest.mark.parametrize(
    ("dtype", "op"),
    [("float32", "total_sum"), ("float64", "total_max"), ("int32", "total_sum"), ("float32", "total_min")],
)
@pytest.mark.parametrize("lengths", [(5, 1, 700, 9000), (16, 4096, 512)])
def test_totals_of_several_in_one_launch(dtype: str, op: str, lengths: tuple[int, ...]) -> None:
    kind = getattr(torch, dtype)
    arrays = [
        [(torch.arange(n) % 7 - 3).to(kind), torch.zeros(3, dtype=kind), torch.zeros(3, dtype=kind)] for n in lengths
    ]
    Together([total(n, dtype, op) for n in lengths], torch.device("cpu")).launch(arrays, False)
    for x, first, second in arrays:
        expected = {"total_sum": torch.sum, "total_max": torch.max, "total_min": torch.min}[op](x * x)
        assert first.tolist() == [expected, 0, 0]
        assert second.tolist() == [x.max(), 0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
@pytest.mark.parametrize("lengths", [(5, 1, 700, 3000), (16, 4096, 512)])
def test_a_launch_of_several_computes_what_each_does(dtype: str, lengths: tuple[int, ...]) -> None:
    kind = getattr(torch, dtype)
    arrays = [[(torch.arange(n) % 50).to(kind), torch.zeros(n + 3, dtype=kind)] for n in lengths]
    Together([scaled(n, dtype) for n in lengths], torch.device("cpu")).launch(arrays, False)
    for n, (x, y) in zip(lengths, arrays):
        assert (y[:n] == 3 * x).all()
        assert (y[n:] == 0).all()


def test_arrays_that_are_not_aligned_and_truth_values() -> None:
    access, truth = Access("float32", (1,)), Access("bool", (1,))
    steps = (Step("read", (), "float32"), Step("read", (), "bool", 1), Step("logical_not", (1,), "bool"))
    loops = [Loop((), (n,), (access, truth), steps, (Write(0, access), Write(2, truth))) for n in (16, 48)]
    made = [
        [torch.randn(n + 1)[1:], torch.arange(n) % 3 == 0, torch.zeros(n + 1)[1:], torch.zeros(n, dtype=torch.bool)]
        for n in (16, 48)
    ]
    Together(loops, torch.device("cpu")).launch(made, False)
    for x, flags, y, others in made:
        assert (x == y).all()
        assert (flags != others).all()


def test_a_launch_that_was_captured_waits_for_its_table() -> None:
    x, y = torch.ones(32), torch.zeros(32)
    together = Together([scaled(32), scaled(32)], torch.device("cpu"))
    together._table[:] = torch.tensor([[x.data_ptr(), y.data_ptr(), 32]] * 2)
    z = torch.zeros(32)
    fill = together.launch([[x, z], [x, z]], True)
    assert (y == 3).all()  # as the table had it
    assert (z == 0).all()
    fill()
    together._launches([[16]])[0].run()
    assert (z == 3).all()


def test_the_parameters_of_a_model_are_updated_by_few_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape) for shape in ((4, 5), (5,), (5, 7), (7,), (7, 2), (2,))]

    def made(device: str) -> tuple[list[Any], Any]:
        weights = [pb.asarray(array, device=device, copy=True).set_requires_grad(True) for array in start]
        optimizer = pb.optim.AdamW(weights, lr=0.1)

        def step(x: Any) -> Any:
            for i in range(0, 6, 2):
                x = pb.tanh(x @ weights[i] + weights[i + 1])
            loss = pb.sum(x * x)
            optimizer.step(pb.backward(loss))
            return loss

        return weights, step

    (weights, step), (expected, eager) = made("torch:cpu"), made("numpy")
    compiled = pb.compile(step)
    x = rng.normal(size=(3, 4))
    for _ in range(3):
        with np.errstate(all="ignore"):
            compiled(pb.asarray(x, device="torch:cpu"))
        eager(pb.asarray(x))
    for ours, right in zip(weights, expected):
        np.testing.assert_allclose(ours.detach().to_device("numpy").numpy(), right.detach().numpy(), rtol=1e-12)
    executable = compiled._programs[0].built.executable._executable
    updates = [group for piece in executable._pieces for group in piece.launches if len(group) > 1]
    assert sum(len(group) for group in updates) >= 6
    assert len(updates) <= 2
    assert interpreted is not None
