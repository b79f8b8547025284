"""What a newcomer writes: results are the function's own, and what cannot work says what to write instead."""

from __future__ import annotations

import copy
import pickle
import re
from collections import OrderedDict, namedtuple
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytest.importorskip("llvmlite")  # some of what is compiled here is found in the module, by its name

x = pb.tensor([1.0, 2.0])


def caught(y: Any) -> Any:
    try:
        return y * (1 if y.sum() > 0 else 2)
    except Exception:
        return -y


def masked(y: Any) -> Any:
    return y[y > 1]


def distinct(y: Any) -> Any:
    return pb.unique_values(y)


def drawn(y: Any) -> Any:
    return y * np.random.random()


def formatted(y: Any) -> Any:
    print(f"{y.sum():.3f}")
    return y


def through_numpy(y: Any) -> Any:
    return y * np.median(np.array([y[0], y[1]]))


@pytest.mark.parametrize("function", [caught, masked, distinct, drawn, formatted, through_numpy])
def test_every_refusal_names_the_line_and_a_way_out(function: Any) -> None:
    first = function.__code__.co_firstlineno
    with pytest.raises(pb.TraceError) as error:
        pb.compile(function)(x)
    line = re.match(r"test_habits\.py:(\d+): ", str(error.value))
    assert line and first <= int(line[1]) <= first + 3
    assert re.search(r"pb\.where|pb\.random|return the tensor|pb\.equal", str(error.value))


def test_an_error_that_the_function_catches_is_not_lost() -> None:
    with pytest.raises(pb.TraceError, match="caught caught this error and went on"):
        pb.compile(caught)(x)


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


@pytest.mark.parametrize(
    "function",
    [
        lambda y: (part for part in (y,)),
        lambda y: map(abs, [y]),
        lambda y: {"a": y}.items(),
        lambda y: [y, Box(y * 2)],
    ],
)
def test_results_that_would_hide_traced_tensors(function: Any) -> None:
    with pytest.raises(pb.TraceError, match=r"test_habits.py:\d+: <lambda> returns a .* Return"):
        pb.compile(function)(x)


def test_coroutines_are_no_results() -> None:
    async def later(y: Any) -> Any:
        return y

    with pytest.raises(pb.TraceError, match="returns a coroutine"):
        pb.compile(later)(x)


def test_objects_without_tensors_are_fine_results() -> None:
    box = Box(3)
    assert pb.compile(lambda y: [y, box, "text", None, 2])(x)[1:] == [box, "text", None, 2]


class TestForwardMode:
    """A program has no tangents: derivatives in forward mode are those of the function itself."""

    cube = pb.compile(lambda y: (y**3).sum())

    def test_of_an_argument(self) -> None:
        v = np.array([1.0, 2.0])
        value, tangent = pb.jvp(TestForwardMode.cube, (v,), (np.ones(2),))
        assert (value, tangent) == (9.0, 15.0)
        assert np.array_equal(pb.hessian(TestForwardMode.cube)(v), np.diag([6.0, 12.0]))

    def test_second_derivatives(self) -> None:
        v, direction = np.array([1.0, 2.0]), np.array([3.0, -1.0])
        assert np.array_equal(pb.jacrev(pb.grad(TestForwardMode.cube))(v), np.diag([6.0, 12.0]))
        assert np.array_equal(pb.hvp(TestForwardMode.cube, (v,), (direction,))[0], [18.0, -12.0])
        w = pb.tensor(v, requires_grad=True)
        captured = pb.compile(lambda y: (w**2 * y**3).sum())
        assert np.array_equal(pb.hessian(captured)(v), np.diag(6 * v**3))
        assert pb.grad(pb.grad(lambda s: TestForwardMode.cube(s * w)))(2.0) == pytest.approx(12.0 * (1 + 8))

    def test_of_what_is_found_outside(self) -> None:
        held: list[Any] = [None]
        product = pb.compile(lambda y: y * held[0])

        def function(w: Any) -> Any:
            held[0] = w
            return product(x)

        assert pb.jvp(function, (np.ones(2),), (np.ones(2),))[1].tolist() == [1.0, 2.0]


class TestArguments:
    def test_numbers_that_are_equal_and_not_the_same(self) -> None:
        sign = pb.compile(lambda y, s: pb.copysign(y, s))
        assert sign(x, 0.0).tolist() == [1.0, 2.0] and sign(x, -0.0).tolist() == [-1.0, -2.0]
        assert sign(x, np.float32(-0.0)).tolist() == [-1.0, -2.0] and sign(x, np.float32(0.0)).tolist() == [1.0, 2.0]

    def test_nan_is_nan(self) -> None:
        product = pb.compile(lambda y, s: y * s, max_traces=1)
        for _ in range(3):
            assert np.isnan(product(x, float("nan")).numpy()).all()

    def test_sets_are_known_by_what_is_in_them(self) -> None:
        count = pb.compile(lambda y, *, among: y * len(among))
        assert [count(x, among=set(range(n))).tolist()[0] for n in (1, 2, 3, 2)] == [1.0, 2.0, 3.0, 2.0]
        assert count.traces == 3

    def test_another_object_at_the_same_address(self) -> None:
        class Unhashable(list):  # type: ignore[type-arg]
            pass

        size = pb.compile(lambda y, *, among: y * len(among))
        assert [size(x, among=Unhashable([0] * n)).tolist()[0] for n in range(1, 5)] == [1.0, 2.0, 3.0, 4.0]

    def test_reasons(self) -> None:
        f = pb.compile(lambda y, *rest, **named: y * 1)
        for rest, named in [((), {}), ((3,), {}), (("a",), {}), ((), {"k": {"b": 1}}), ((), {"k": {"b": 2.0}})]:
            f(x, *rest, **named)
        assert f.recompilations == [
            "argument 1 was not there before",
            "argument 1 was 3 and is 'a'",
            "argument 'k'['b'] was not there before",
            "argument 'k'['b'] was 1 and is 2.0",
        ]

    def test_a_tensor_that_was_kept_from_a_trace(self) -> None:
        kept = []
        f = pb.compile(lambda y: kept.append(y * 2) or y, ignore=["kept"])  # type: ignore[func-returns-value]
        f(x)
        assert "traced" in repr(kept[0])
        for use in (f, lambda y: y.item(), lambda y: y + 1, lambda y: float(y), np.asarray, lambda y: np.mean([y])):
            with pytest.raises(
                (pb.TraceError, pb.ShapeError), match=r"test_habits.py:\d+: this array was made|element"
            ):
                use(kept[0])


class TestWrongUse:
    def test_a_class(self) -> None:
        with pytest.raises(TypeError, match=r"Compile an object: compile\(Linear\(...\)\)"):
            pb.compile(pb.nn.Linear)

    @pytest.mark.parametrize("count", [0, -1, 1.5, "3", True])
    def test_max_traces(self, count: Any) -> None:
        with pytest.raises(ValueError, match="max_traces is how many programs may be made"):
            pb.compile(lambda y: y, max_traces=count)


@pb.compile
def tripled(y: Any) -> Any:
    return y * 3


class TestCopies:
    def test_a_function_is_copied_and_pickled_by_name(self) -> None:
        tripled(x)
        assert copy.deepcopy(tripled) is tripled and pickle.loads(pickle.dumps(tripled)) is tripled

    def test_a_module_is_copied_with_its_parameters(self) -> None:
        model = pb.compile(pb.nn.Linear(2, 2))
        before = model(x).detach().tolist()
        other = copy.deepcopy(model)
        with pb.no_grad():
            model.weight[...] = 0.0
        assert other(x).detach().tolist() == before != model(x).detach().tolist()
        assert pickle.loads(pickle.dumps(other))(x).detach().tolist() == before

    def test_names(self) -> None:
        assert repr(pb.compile(partial(tripled.function))) == "<compiled tripled: 0 traces>"
        assert repr(pb.compile(pb.nn.Linear(2, 2))) == "<compiled Linear: 0 traces>"


class TestModules:
    def test_a_compiled_module_keeps_its_attributes(self) -> None:
        model = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Dropout(0.5))
        compiled = pb.compile(model)
        optimizer = pb.optim.SGD(compiled.parameters(), lr=0.1)
        assert len(optimizer.param_groups[0]["params"]) == 2
        assert compiled.train() is model and compiled.training
        compiled.eval()
        assert not model.training and not compiled.training
        assert list(compiled.state_dict()) == list(model.state_dict())
        assert np.allclose(compiled(x).detach().numpy(), model(x).detach().numpy())
        with pytest.raises(AttributeError, match="no attribute 'parametres'"):
            compiled.parametres()

    def test_a_method_shows_its_programs(self) -> None:
        class Net:
            @pb.compile
            def double(self, y: Any) -> Any:
                """Twice y."""
                return y * 2

        net = Net()
        assert net.double(x).tolist() == [2.0, 4.0]
        assert "multiply" in net.double.source and net.double.traces == 1 and net.double.__doc__ == "Twice y."


def test_shapes_are_known_to_numpy_while_tracing() -> None:
    y = pb.ones((4, 3))
    f = pb.compile(lambda t: t.sum() * np.size(t) + np.ndim(t) + np.shape(t)[1] + np.size(t, 0))
    assert f(y).item() == f.function(y).item() == 12 * 12 + 2 + 3 + 4


class TestKernels:
    def test_a_line_each_and_numpy_at_a_glance(self) -> None:
        @pb.compile
        def f(y: Any, w: Any) -> Any:
            return pb.sort(pb.tanh(y @ w + 1), axis=0), pb.exp(y)

        f(pb.ones((4, 3)), pb.ones((3, 5)))
        text = repr(f.kernels)
        assert text.startswith("4 kernels, 4 calls; by NumPy: sort\n")
        assert re.search(r"^  matmul 4x3 by 3x5 \(native\)  # test_habits.py:\d+$", text, re.M)
        assert re.search(r"^  loop \d[\dx]*: add, tanh \(native\)  # test_habits.py:\d+$", text, re.M)
        assert re.search(r"^  sort 4x5 \(numpy\)  # test_habits.py:\d+$", text, re.M)
        assert [use.how for use in f.kernels].count("numpy") == 1

    def test_equal_kernels_are_counted(self) -> None:
        f = pb.compile(lambda y, z: (pb.exp(y), pb.exp(z)))
        f(pb.ones(3), pb.ones(3))
        assert re.fullmatch(r"1 kernel, 2 calls; all native\n  loop 3: exp \(native\) x2  # .*", repr(f.kernels))

    def test_whole_kernels(self) -> None:
        f = pb.compile(lambda y, i: (pb.cumulative_sum(y, axis=1), pb.take(y, i, axis=0), pb.argmax(y, axis=1)))
        f(pb.ones((4, 6)), pb.tensor([1, 2]))
        lines = repr(f.kernels)
        for part in ("running sum 4x6", "gather 2x6", "argmax 4x6"):
            assert part in lines


class Pair:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts


pb.tree.register(Pair, lambda pair: (pair.parts, None), lambda data, children: Pair(*children))
Named = namedtuple("Named", "one other")


def test_trees_come_back_as_they_are_by_the_short_way() -> None:
    """Containers in containers, made anew by each call: states of models, say."""

    @pb.compile
    def f(y: Any) -> Any:
        z = y + 1
        return {
            "b": [z, (y * 2,), []], "a": None, 3: {"y": z, "x": ()}, "c": Named(z, y * 3), "d": OrderedDict(q=y * 4),
            "e": Pair(z, [y * 5]), "f": "text",
        }  # fmt: skip

    results = [f(x * number) for number in (1, 2, 3)]
    assert f._latest().fast_path is not None
    for number, result in enumerate(results, 1):
        expected = f.function(x * number)
        assert list(result) == list(expected) and list(result[3]) == ["y", "x"]
        found, structure = pb.tree.flatten(result)
        leaves, same = pb.tree.flatten(expected)
        assert structure == same and type(result["c"]) is Named and type(result["d"]) is OrderedDict
        assert type(result["e"]) is Pair and result["a"] is None and result["b"][2] == []
        assert result["b"][0] is result[3]["y"] is result["c"].one is result["e"].parts[0]
        for one, other in zip(found, leaves):
            assert one == other if isinstance(one, str) else bool((one == other).all())
    assert results[1] is not results[2] and results[1]["b"] is not results[2]["b"]
