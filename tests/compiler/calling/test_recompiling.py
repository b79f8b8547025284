"""When a function is traced again, and what is said about it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback as pb


def test_one_program_serves_equal_calls() -> None:
    add = pb.compile(lambda x, y: x + y)
    for n in range(3):
        assert add(pb.tensor([float(n)]), pb.tensor([1.0])).item() == n + 1
    assert add.traces == 1 and add.recompilations == []


def test_the_reason_is_named() -> None:
    add = pb.compile(lambda x, k: x * k)
    add(pb.tensor([1.0]), 2.0)
    add(pb.tensor([1.0, 2.0]), 2.0)
    add(pb.tensor([1.0, 2.0], dtype=pb.float64), 2.0)
    add(pb.tensor([1.0, 2.0], dtype=pb.float64), 3.0)
    shape, dtype, number = add.recompilations
    assert "argument 0 had shape (1,) and has (2,)" in shape
    assert "argument 0 was float32 and is float64" in dtype
    assert "argument 1 was 2.0 and is 3.0" in number and "as a tensor" in number


def test_programs_are_kept() -> None:
    double = pb.compile(lambda x: x * 2)
    for _ in range(3):
        double(pb.zeros((2,)))
        double(pb.zeros((3,)))
    assert double.traces == 2


def test_more_than_max_traces_is_an_error_that_says_why() -> None:
    double = pb.compile(lambda x: x * 2, max_traces=1)
    double(pb.zeros((2,)))
    with pytest.raises(pb.TraceError, match=r"max_traces is 1: argument 0 had shape \(2,\) and has \(3,\)"):
        double(pb.zeros((3,)))
    assert double(pb.zeros((2,))).shape == (2,)


def test_many_programs_are_worth_a_warning() -> None:
    double = pb.compile(lambda x: x * 2)
    for n in range(1, 9):
        double(pb.zeros((n,)))
    with pytest.warns(RuntimeWarning, match="has been compiled 9 times"):
        double(pb.zeros((9,)))


def test_modes_belong_to_the_key() -> None:
    net = pb.nn.Dropout(0.5)
    run = pb.compile(lambda x: net(x))
    x = pb.ones((50,))
    assert 0.0 in run(x).tolist()
    net.eval()
    assert run(x).tolist() == x.tolist()
    assert "`net.training` was True and is False" in run.recompilations[0]
    net.train()
    assert 0.0 in run(x).tolist()
    assert run.traces == 2


def test_trees_of_arguments_and_results() -> None:
    @pb.compile
    def f(tree: Any, *, scale: Any, name: str = "x") -> Any:
        return {"sum": tree["a"] + tree["b"][0] * scale, "name": name, "pair": (tree["a"], None)}

    tree = {"a": pb.tensor([1.0]), "b": [pb.tensor([2.0])]}
    for _ in range(2):
        result = f(tree, scale=pb.tensor(3.0), name="y")
        assert result["sum"].item() == 7.0 and result["name"] == "y"
        assert result["pair"][0].item() == 1.0 and result["pair"][1] is None
    assert f.traces == 1


def test_arrays_in_arrays_out() -> None:
    slope = pb.compile(pb.grad(lambda x: (x**3).sum()))
    for x in (np.array([1.0, 2.0]), np.array([3.0, 4.0])):
        found = slope(x)
        assert type(found) is np.ndarray and found.dtype == np.float64
        np.testing.assert_allclose(found, 3 * x**2, rtol=1e-12)


def test_outputs_are_new_values() -> None:
    double = pb.compile(lambda x: x * 2)
    first = double(pb.tensor([1.0]))
    second = double(pb.tensor([5.0]))
    assert (first.item(), second.item()) == (2.0, 10.0)


def test_an_argument_returned_as_it_is_and_twice() -> None:
    f = pb.compile(lambda x: (x, x, x + 0))
    x = pb.tensor([1.0, 2.0])
    results = f(x)
    results[2][0] = 9.0
    assert results[0] is results[1] is not x  # one thing, as it is eagerly
    results[0][0] = 8.0
    assert x.tolist() == [1.0, 2.0] and results[2].tolist() == [9.0, 2.0]


def test_a_compiled_method() -> None:
    class Scale:
        def __init__(self, k: float) -> None:
            self.k = pb.tensor(k)

        @pb.compile
        def __call__(self, x: Any) -> Any:
            return x * self.k

    two, three = Scale(2.0), Scale(3.0)
    assert two(pb.tensor([1.0])).item() == 2.0
    assert three(pb.tensor([1.0])).item() == 3.0
    assert two(pb.tensor([4.0])).item() == 8.0


def test_a_compiled_function_inside_another() -> None:
    inner = pb.compile(lambda x: x * 2)
    outer = pb.compile(lambda x: inner(x) + 1)
    assert outer(pb.tensor([1.0])).item() == 3.0
    assert inner.traces == 0


def test_source_kernels_and_memory_show_what_was_made() -> None:
    f = pb.compile(lambda x: pb.tanh(x).sum())
    with pytest.raises(pb.TraceError, match="call it first"):
        print(f.source)
    f(pb.zeros((4,)))
    assert "tanh(" in f.source and "test_recompiling.py" in f.source
    assert f.kernels and all(use.how in ("native", "numpy") for use in f.kernels)
    assert f.memory["inputs"] == 16


def test_no_warnings_of_numpy_come_out_of_a_program() -> None:
    f = pb.compile(lambda x: pb.log(x) + 1 / x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert not np.isfinite(f(pb.tensor([0.0])).item())
