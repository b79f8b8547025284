"""What cannot be traced is refused with the user's line and a way out, and what goes wrong in a call says so."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import require


def branch(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def loop(x: Any) -> Any:
    while (x < 10).all():
        x = x * 2
    return x


def number(x: Any) -> Any:
    return x * float(x[0])


def item(x: Any) -> Any:
    return x * x.sum().item()


def array(x: Any) -> Any:
    return x * np.asarray(x)


def position(x: Any) -> Any:
    return x[: int(x[0])]


def mask(x: Any) -> Any:
    return x[x > 0]


@pytest.mark.parametrize("function", [branch, loop, number, item, array, position, mask])
def test_values_are_not_there_while_tracing(function: Any) -> None:
    line = r"test_refusals.py:\d+|depends on values"
    with pytest.raises(pb.TraceError, match=line):
        pb.compile(function)(pb.tensor([1.0, 2.0]))


def test_the_line_is_the_users_and_the_way_out_is_named() -> None:
    with pytest.raises(pb.TraceError) as caught:
        pb.compile(branch)(pb.tensor([1.0]))
    first = branch.__code__.co_firstlineno
    assert f"test_refusals.py:{first + 1}" in str(caught.value)
    assert "pb.where" in str(caught.value) and "pb.cond" in str(caught.value)


@pytest.mark.parametrize("draw", [lambda: np.random.random(), lambda: random.random()])
def test_chance_from_elsewhere_is_refused(draw: Any) -> None:
    with pytest.raises(pb.TraceError, match="Draw them from"):
        pb.compile(lambda x: x * draw())(pb.tensor([1.0]))


def test_an_array_that_is_kept_in_a_list_is_refused() -> None:
    kept: list[Any] = []

    @pb.compile
    def f(x: Any) -> Any:
        kept.append(x * 2)
        return x

    with pytest.raises(pb.TraceError, match=r"`kept` had 0 items and has 1.*return the value"):
        f(pb.tensor([1.0]))
    assert kept == []


def test_an_array_that_is_kept_all_the_same_says_so_when_it_is_used() -> None:
    kept: list[Any] = []

    @pb.compile(ignore=["kept"])
    def f(x: Any) -> Any:
        kept.append(x * 2)
        return x

    f(pb.tensor([1.0]))
    with pytest.raises(pb.TraceError, match="Return it from the function"):
        kept[0] + 1
    with pytest.raises(pb.TraceError):
        kept[0].item()
    assert "shape" in repr(kept[0])


def test_a_result_that_needs_a_gradient_outside_is_not_cut_off_silently() -> None:
    w = pb.tensor([2.0], requires_grad=True)
    f = pb.compile(lambda x: w * x)
    loss = f(pb.tensor([3.0])).sum()
    loss.backward()
    assert w.grad is not None and w.grad.item() == 3.0


def test_an_index_out_of_bounds_is_an_error() -> None:
    f = pb.compile(lambda x, i: pb.take(x, i, axis=0))
    x = pb.tensor([1.0, 2.0, 3.0])
    assert f(x, pb.tensor([0, -1])).tolist() == [1.0, 3.0]
    with pytest.raises(IndexError):
        f(x, pb.tensor([0, 3]))
    assert f(x, pb.tensor([1, 2])).tolist() == [2.0, 3.0]


def test_other_devices_are_refused() -> None:
    require("strict:device1")
    x = pb.tensor([1.0], device="strict:device1")
    with pytest.raises(pb.DeviceError, match="'numpy', PyTorch's and JAX's devices so far, and got a tensor on 's"):
        pb.compile(lambda x: x * 2)(x)
    with pytest.raises(pb.DeviceError, match=r"test_refusals.*so far, and found a tensor on 'strict:device1'"):
        pb.compile(lambda: x * 2)()


def test_memory_that_is_not_there() -> None:
    def huge(x: Any) -> Any:
        return pb.sum(pb.sort(pb.broadcast_to(x, (1 << 24, 1 << 24)), axis=0))

    with pytest.raises(MemoryError):
        pb.compile(huge)(pb.tensor([1.0]))


def test_not_a_function() -> None:
    with pytest.raises(TypeError, match="expected a function"):
        pb.compile(3)


class TestGuard:
    def test_a_loss_that_is_not_finite_names_its_origin_and_changes_nothing(self) -> None:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        optimizer = pb.optim.SGD([w], 0.1)

        @pb.compile
        def step(x: Any) -> Any:
            loss = pb.log(w * x).sum()
            optimizer.step(pb.backward(loss))
            return loss

        good, bad = pb.tensor([1.0, 1.0]), pb.tensor([1.0, -1.0])
        step(good)
        before = w.tolist()
        for _ in range(2):
            log_made_nan = r"`log` made nan: test_refusals.py:\d+"
            with pytest.raises(pb.NumericalInstabilityError, match=log_made_nan), np.errstate(all="ignore"):
                step(bad)
        assert w.tolist() == before and optimizer._slots[0][0].step == 1
        step(good)
        assert w.tolist() != before

    def test_a_gradient_that_is_not_finite(self) -> None:
        w = pb.tensor([0.0, 1.0], requires_grad=True)

        @pb.compile
        def step() -> Any:
            loss = pb.sqrt(w).sum()
            loss.backward()
            return loss

        for _ in range(2):
            with pytest.raises(pb.NumericalInstabilityError, match="sqrt"), np.errstate(all="ignore"):
                step()
        assert w.grad is None

    def test_off_and_warn(self) -> None:
        w = pb.tensor([0.0], requires_grad=True)
        step = pb.compile(lambda: pb.backward((1 / w).sum())[w])
        with pb.guard("off"), np.errstate(all="ignore"):
            assert step().tolist() == [-np.inf]
        with pb.guard("warn"), np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
            assert step().tolist() == [-np.inf]


def test_an_index_that_numpys_kernel_finds_out_of_bounds_is_the_error_of_the_eager_call() -> None:
    count = pb.tensor([0.0])

    @pb.compile
    def put(x: Any, i: Any) -> Any:
        with pb.no_grad():
            count.__iadd__(1.0)
        return pb.put_along_axis(x, i, 1.0, axis=1)

    x = pb.zeros((2, 3))
    put(x, pb.tensor([[0], [2]]))
    with pytest.raises(pb.IndexingError):
        put(x, pb.tensor([[0], [3]]))
    assert put(x, pb.tensor([[1], [2]])).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
