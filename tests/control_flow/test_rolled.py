"""Long loops in compiled programs: one instruction, with the values and derivatives of the eager loop."""

from __future__ import annotations

import importlib
import itertools
from contextvars import ContextVar
from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.iteration import every_instruction, iterations
from pullback.errors import NumericalInstabilityError
from pullback.functions import traced_control_flow
from pullback.functions.traced_control_flow import LONGEST_UNROLLED

from .test_compiled import differentiated

LONG = LONGEST_UNROLLED + 5


def program_of(compiled: Any) -> Any:
    return compiled._latest().program


def compare(found: Any, expected: Any) -> None:
    for one, other in zip(pb.tree.leaves(found), pb.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


def check(function: Callable[..., Any], *arguments: Any, loops: int | None = None) -> Any:
    """Compare a function, its gradient and its second derivatives, compiled, with those of the eager one.

    `loops` is how many the program of the function itself has.
    """
    tensors = [pb.asarray(np.asarray(x, np.float64)) for x in arguments]
    compiled = pb.compile(function)
    compare(compiled(*tensors), function(*tensors))
    if loops is not None:
        assert len(iterations(program_of(compiled))) == loops
    eager = differentiated(function)
    both = pb.compile(eager, max_traces=1)
    for scale in (1.0, 1.1):
        compare(both(*[x * scale for x in tensors]), eager(*[x * scale for x in tensors]))
    return compiled


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).normal(size=shape) * 0.5


def cell(u: pb.Tensor) -> Callable[[pb.Tensor, pb.Tensor], Any]:
    def step(h: pb.Tensor, x: pb.Tensor) -> Any:
        h = pb.tanh(h @ u + x)
        return h, h * x

    return step


def recurrent(u: pb.Tensor, start: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
    last, states = pb.scan(cell(u), start, xs)
    return (states * states).sum() + (last * pb.arange(last.shape[-1], dtype=pb.float64)).sum()


@pytest.mark.parametrize("steps", [1, LONGEST_UNROLLED - 1, LONGEST_UNROLLED, LONGEST_UNROLLED + 1, 2 * LONG])
def test_lengths_around_the_longest_that_is_unrolled(steps: int) -> None:
    check(recurrent, random(3, 3), random(2, 3), random(steps, 2, 3), loops=int(steps > LONGEST_UNROLLED))


def test_no_steps() -> None:
    compiled = pb.compile(lambda u, start, xs: pb.scan(cell(u), start, xs))
    last, states = compiled(*[pb.asarray(x) for x in (random(3, 3), random(2, 3), random(0, 2, 3))])
    assert states.shape == (0, 2, 3) and last.tolist() == random(2, 3).tolist()


@pytest.mark.parametrize("reverse", [False, True])
def test_trees_integers_and_what_is_captured(reverse: bool) -> None:
    scale = pb.asarray(random(3, seed=5))

    def f(u: pb.Tensor, xs: pb.Tensor, factor: pb.Tensor) -> pb.Tensor:
        weight = u * factor

        def step(carry: Any, x: Any) -> Any:
            h = pb.tanh(carry["h"] @ weight + x[0] * scale)
            n = carry["n"] + 1
            return {"h": h, "n": n, "old": carry["h"]}, {"a": h * carry["n"], "b": (x[1], n)}

        start = {"h": pb.zeros(3, dtype=pb.float64), "n": 0, "old": pb.ones(3, dtype=pb.float64)}
        last, ys = pb.scan(step, start, (xs, xs[:, :1]), reverse=reverse)
        return (ys["a"] * ys["a"]).sum() + (last["h"] * last["old"] * ys["b"][0]).sum() * last["n"] + ys["b"][1].sum()

    check(f, random(3, 3), random(LONG, 3), 0.7, loops=1)


def test_no_slices_and_no_outputs() -> None:
    def f(x: pb.Tensor) -> pb.Tensor:
        last, nothing = pb.scan(lambda x, _: (pb.sin(x) + 0.5 * x, None), x, length=LONG)
        assert nothing is None
        return (last * x).sum()

    check(f, random(4), loops=1)


def test_slices_and_constants_that_are_views() -> None:
    def f(u: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        start = pb.broadcast_to(u[0], (2, 3))
        _, states = pb.scan(cell(u.T[::-1]), start, pb.permute_dims(xs, (2, 0, 1))[::-1])
        return (states * xs[0, 0, 0]).sum()

    check(f, random(3, 3), random(2, 3, LONG), loops=1)


def test_carries_that_trade_places_or_stay() -> None:
    def f(a: pb.Tensor, b: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        (a, b, c), ys = pb.scan(lambda s, x: ((s[1], s[0] * x, s[2]), s[2] * x), (a, b, a), xs + 1)
        return (a * b + c).sum() + (ys * ys).sum()

    check(f, random(3), random(3, seed=1), random(LONG, 3) * 0.1, loops=1)


def test_loops_inside_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_control_flow, "LONGEST_UNROLLED", 3)

    def f(u: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def outer(h: pb.Tensor, x: pb.Tensor) -> Any:
            total, inner = pb.scan(lambda s, y: (pb.tanh(s @ u + y * h), s * y), h, xs * x.sum())
            return pb.tanh(total), (inner * x).sum(0)

        last, ys = pb.scan(outer, pb.zeros(2, dtype=pb.float64), xs)
        return last.sum() + (ys * ys).sum()

    compiled = check(f, random(2, 2), random(5, 2), loops=1)
    (loop,) = iterations(program_of(compiled))
    assert len(iterations(loop.args[0].body)) == 1


@pytest.mark.parametrize("start", [0.3, 2.5, -7.0])
def test_while_loop_that_stops_early(start: float) -> None:
    def f(a: pb.Tensor) -> pb.Tensor:
        def newton(carry: Any) -> Any:
            x, _ = carry
            step = (x**3 + x - a) / (3 * x**2 + 1)
            return x - step, abs(step)

        return pb.while_loop(lambda carry: carry[1] > 1e-10, newton, (a, 1.0), max_steps=LONG)[0]

    check(f, start, loops=1)


def test_steps_after_the_last_have_no_gradient_at_all() -> None:
    def f(x: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(carry: Any) -> Any:  # once it has stopped, the logarithm's factor is infinite
            n, y = carry
            return n + 1, y + pb.log(xs[n]) * x

        _, y = pb.while_loop(lambda carry: xs[carry[0]] > 0, step, (pb.asarray(0), x), max_steps=LONG)
        return y

    check(f, 0.5, [2.0, 3.0, 0.0, 5.0], loops=1)


def test_the_condition_is_not_asked_after_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    xs = pb.asarray(np.arange(1.0, LONG + 1, dtype=np.float32))

    def run(x: pb.Tensor) -> Any:
        def condition(carry: Any) -> Any:
            return xs[carry[0]] > 0  # there are as many as steps

        return pb.while_loop(condition, lambda carry: (carry[0] + 1, carry[1] + xs[carry[0]]), (0, x), max_steps=LONG)

    compiled, expected = pb.compile(run), run(pb.asarray(1.0))
    calling = importlib.import_module("pullback.compiler.calling.compiled")
    monkeypatch.setattr(calling, "on_device", None)  # which would run what the program refuses
    compare(compiled(pb.asarray(1.0)), expected)
    assert len(iterations(program_of(compiled))) == 1


def test_a_loop_that_may_not_run_leaves_its_variables_without_gradient() -> None:
    w, c = (pb.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))

    def run(limit: pb.Tensor) -> pb.Tensor:
        return pb.while_loop(lambda x: x.sum() < limit, lambda x: x + w * w, c * 0.5, max_steps=LONG)

    compiled = pb.compile(run)
    for limit in (0.0, 9.0):
        found = []
        for function in (run, compiled):
            w.grad = c.grad = None
            function(pb.asarray(limit)).sum().backward()
            found.append([None if x.grad is None else x.grad.tolist() for x in (w, c)])
        assert found[0] == found[1] and (found[0][0] is None) is (limit == 0.0)
    assert len(iterations(program_of(compiled))) == 1


def test_a_choice_in_the_body() -> None:
    def f(x: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            h = pb.cond(h < x, lambda: h * x + 0.1, lambda: pb.log(h - x + 1) - x)
            return h, pb.where(x > 0, pb.sqrt(pb.maximum(x, 0)), 0)

        last, ys = pb.scan(step, x, xs)
        return last + (ys * ys).sum()

    check(f, 0.5, random(LONG), loops=1)


def test_zero_cotangents_stay_zero_where_a_factor_is_infinite() -> None:
    def f(xs: pb.Tensor) -> pb.Tensor:
        _, ys = pb.scan(lambda h, x: (h * 0.9, pb.log(x) * h), pb.asarray(2.0, dtype=pb.float64), xs)
        return pb.where(xs > 0, ys, 0).sum()

    xs = np.abs(random(LONG)) + 0.1
    xs[3] = 0.0
    compiled = pb.compile(pb.grad(f))  # which no guard looks at
    with np.errstate(all="ignore"):
        compare(compiled(pb.asarray(xs)), pb.grad(f)(pb.asarray(xs)))
    assert len(iterations(program_of(compiled))) == 2


def test_a_choice_in_a_step_and_gradients_taken_outside() -> None:
    w, c = (pb.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))

    def run(xs: pb.Tensor) -> pb.Tensor:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            return pb.cond(x > 0, lambda: h * w, lambda: h + c), None

        return pb.scan(step, pb.ones(2), xs)[0]

    compiled = pb.compile(run)
    for sign in (1.0, -1.0):
        xs = pb.asarray(np.full(LONG, sign, np.float32))
        found = []
        for function in (run, compiled):
            gradients = pb.backward(function(xs).sum())
            found.append([x in gradients for x in (w, c)])
        assert found[0] == found[1] == [sign > 0, sign < 0]


def test_the_guard_looks_at_gradients_in_a_step() -> None:
    def run(start: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(w: pb.Tensor, x: pb.Tensor) -> Any:
            v = w.detach().set_requires_grad(True)
            return w - pb.backward(pb.sqrt(v * x).sum())[v] * 0.0, None

        return pb.scan(step, start, xs)[0]

    compiled = pb.compile(run)
    start, xs = pb.asarray(np.ones(2)), np.ones((LONG, 2))
    compare(compiled(start, pb.asarray(xs)), run(start, pb.asarray(xs)))
    assert len(iterations(program_of(compiled))) == 1
    xs[5, 0] = 0.0
    for function in (run, compiled):
        with pytest.raises(NumericalInstabilityError), np.errstate(all="ignore"):
            function(start, pb.asarray(xs))


def test_gradients_taken_outside() -> None:
    u, start = (pb.tensor(random(*shape), requires_grad=True) for shape in ((3, 3), (2, 3)))
    xs = pb.tensor(random(LONG, 2, 3), requires_grad=True)
    compiled = pb.compile(lambda xs: pb.scan(cell(u), start, xs))
    for asked in (0, 1):
        found = []
        for function in (compiled, lambda xs: pb.scan(cell(u), start, xs)):
            result = function(xs)[asked]
            gradients = pb.backward((result * result).sum())
            found.append([gradients[x] for x in (u, start, xs)])
        compare(*found)
    assert compiled.traces == 1


def test_a_part_of_the_carry_that_is_not_used_has_no_gradient() -> None:
    a, b = (pb.tensor(random(3, seed=seed), requires_grad=True) for seed in range(2))

    def run(xs: pb.Tensor) -> pb.Tensor:
        return pb.scan(lambda carry, x: ((carry[0] * x, x), None), (a, b), xs)[0][0]

    for function in (run, pb.compile(run)):
        gradients = pb.backward(function(pb.asarray(random(LONG, 3))).sum())
        assert a in gradients and b not in gradients


def test_training_of_a_recurrent_network() -> None:
    def network() -> Any:
        parameters = [pb.tensor(random(*shape), requires_grad=True) for shape in ((4, 5), (5, 5), (5,))]
        optimizer = pb.optim.AdamW(parameters, lr=0.05)

        def train(xs: pb.Tensor, y: pb.Tensor) -> pb.Tensor:
            w, u, b = parameters
            optimizer.zero_grad()
            last, _ = pb.scan(lambda h, x: (pb.tanh(x @ w + h @ u + b), None), pb.zeros((3, 5), dtype=pb.float64), xs)
            loss = ((last - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return train, parameters

    batches = [(pb.asarray(random(LONG, 3, 4, seed=i)), pb.asarray(random(3, 5, seed=i))) for i in range(4)]
    (eager, expected), (function, found) = network(), network()
    compiled = pb.compile(function)
    for batch in batches:
        np.testing.assert_allclose(compiled(*batch).item(), eager(*batch).item(), rtol=1e-9)
    compare([x.detach() for x in found], [x.detach() for x in expected])
    assert len(iterations(program_of(compiled))) == 2


def test_programs_and_memory_do_not_grow_with_the_length() -> None:
    sizes = []
    for steps in (2 * LONG, 8 * LONG):

        def run(u: pb.Tensor, xs: pb.Tensor) -> Any:
            return pb.grad(lambda u: pb.scan(cell(u), pb.zeros((2, 3), dtype=pb.float64), xs)[0].sum())(u)

        compiled = pb.compile(run)
        compiled(pb.asarray(random(3, 3)), pb.asarray(random(steps, 2, 3)))
        instructions = sum(1 for _ in every_instruction(program_of(compiled)))
        # what gradients need of each step: no more than three arrays of the state's size
        sizes.append((instructions, len(compiled.kernels), compiled.memory["arena"] - 3 * steps * 2 * 3 * 8))
        assert all(use.how == "native" for use in compiled.kernels)
        assert max(use.times for use in compiled.kernels) >= steps
    assert sizes[0][:2] == sizes[1][:2]
    assert sizes[1][2] <= sizes[0][2] + 512


def test_arrays_and_numbers_that_every_step_makes() -> None:
    outside = np.array([0.5, -0.5])

    def f(x: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            h = h * pb.asarray(np.array([0.5, 0.25])) + x * np.array([1.0, 2.0]) / np.sqrt(3.0) + outside
            return h, h * np.float64(2.0)

        last, ys = pb.scan(step, x, xs)
        return (last * last).sum() + ys.sum()

    check(f, random(2), random(LONG, 2), loops=1)


def test_complex_numbers_and_arrays_without_elements() -> None:
    xs = random(LONG, 2) + 1j * random(LONG, 2, seed=1)
    compiled = pb.compile(lambda xs: pb.scan(lambda h, x: (h * x + 1j, h), pb.zeros(2, dtype=pb.complex128), xs))
    compare(compiled(pb.asarray(xs)), compiled.function(pb.asarray(xs)))
    assert len(iterations(program_of(compiled))) == 1
    empty = pb.compile(lambda xs: pb.scan(lambda h, x: (h + 1, (x, h)), 0.0, xs))
    last, (ys, counts) = empty(pb.zeros((LONG, 0, 3)))
    assert last.item() == LONG and ys.shape == (LONG, 0, 3) and counts.tolist() == list(range(LONG))


def test_autocast_in_the_body() -> None:
    u, xs = pb.asarray(random(3, 3).astype(np.float32)), pb.asarray(random(LONG, 2, 3).astype(np.float32))

    def run(u: pb.Tensor, xs: pb.Tensor) -> Any:
        with pb.autocast("float16"):
            return pb.scan(cell(u), pb.zeros((2, 3)), xs)[0].astype(pb.float32).sum()

    compiled = pb.compile(pb.value_and_grad(run))
    for found, expected in zip(compiled(u, xs), pb.value_and_grad(run)(u, xs)):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-2, atol=2e-2)
    assert len(iterations(program_of(compiled))) == 2


def test_gradients_inside_a_step() -> None:
    def f(start: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(w: pb.Tensor, x: pb.Tensor) -> Any:
            value, gradient = pb.value_and_grad(lambda w: pb.sin(w * x).sum())(w)
            return w - 0.1 * gradient, value

        last, values = pb.scan(step, start, xs)
        return (last * last).sum() + values.sum()

    check(f, random(3), random(LONG, 3), loops=1)


def test_kernels_of_numpys_in_the_body() -> None:
    def f(x: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            h = pb.linalg.solve(pb.eye(2, dtype=pb.float64) * 3 + x, h)
            return h, pb.sort(h)

        last, ys = pb.scan(step, x, xs)
        return last.sum() + (ys * pb.asarray([1.0, 2.0])).sum()

    compiled = check(f, random(2), random(LONG, 2, 2), loops=1)
    assert {use.kernel.op for use in compiled.kernels if use.how == "numpy"} == {"solve", "sort"}


def test_indices_out_of_bounds_in_a_step_are_the_error_of_the_eager_function() -> None:
    table = pb.asarray(random(5, 3))
    compiled = pb.compile(lambda xs: pb.scan(lambda h, i: (h + table[i], None), pb.zeros(3, dtype=pb.float64), xs)[0])
    indices = np.arange(LONG) % 5
    np.testing.assert_allclose(compiled(pb.asarray(indices)).numpy(), random(5, 3)[indices].sum(0))
    indices[LONG // 2] = 7
    with pytest.raises(IndexError):
        compiled(pb.asarray(indices))


def test_the_guard_names_the_line_in_the_body() -> None:
    w = pb.tensor([2.0, 3.0], requires_grad=True)

    def train(xs: pb.Tensor) -> pb.Tensor:
        w.grad = None
        loss = pb.scan(lambda h, x: (h + pb.log(w * x), None), pb.zeros(2), xs)[0].sum()
        loss.backward()
        return loss.detach()

    compiled = pb.compile(train)
    xs = np.ones((LONG, 2), np.float32)
    compiled(pb.asarray(xs))
    compiled(pb.asarray(xs))
    xs[3, 1] = -1.0
    with pytest.raises(NumericalInstabilityError, match=r"test_rolled.py:\d+"), np.errstate(invalid="ignore"):
        compiled(pb.asarray(xs))


@pytest.mark.parametrize("reverse", [False, True])
def test_random_numbers_are_those_of_the_eager_loop(reverse: bool) -> None:
    own = pb.random.Generator(7)

    def run(xs: pb.Tensor, w: pb.Tensor) -> Any:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            h = pb.tanh(pb.dropout(h * w + x, 0.5))
            return h, pb.dropout(x, 0.3, generator=own)

        before = pb.dropout(xs[0], 0.5)
        last, ys = pb.scan(step, before, xs, reverse=reverse)
        return (pb.dropout(last, 0.5) * w).sum() + (ys * ys).sum()

    xs, w = pb.asarray(random(LONG, 5)), pb.asarray(random(5))
    both = []
    for function in (run, pb.compile(pb.grad(run, argnums=(0, 1)))):
        pb.random.seed(3)
        own.state = {"key": 5, "offset": 0}
        computed = pb.grad(run, argnums=(0, 1)) if function is run else function
        both.append([computed(xs, w) for _ in range(3)] + [pb.random.normal((2,))])
    compare(*both)
    assert len(iterations(program_of(function))) == 2


def test_errors_in_a_step_are_those_of_the_eager_loop() -> None:
    def run(xs: pb.Tensor) -> Any:
        return pb.scan(lambda h, x: (pb.concat([h, x]), None), pb.zeros(2, dtype=pb.float64), xs)

    with pytest.raises(pb.ShapeError) as eager:
        run(pb.asarray(random(LONG, 2)))
    with pytest.raises(pb.ShapeError) as compiled:
        pb.compile(run)(pb.asarray(random(LONG, 2)))
    assert str(compiled.value) == str(eager.value)


# -- what is unrolled --------------------------------------------------------------------------------


def unrolled(function: Callable[..., Any], *arguments: Any) -> Any:
    """The compiled function, which gives what the eager one gives, without a loop in its program."""
    compiled = pb.compile(function)
    for _ in range(2):
        compare(compiled(*arguments), function(*arguments))
    assert not iterations(program_of(compiled))
    return compiled


def test_pythons_state_that_changes_from_step_to_step() -> None:
    xs = pb.asarray(random(LONG, 2))

    def counted_inside(xs: pb.Tensor) -> Any:
        count = [0]

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            count[0] += 1
            return h + x * count[0], None

        return pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)[0]

    def counted_outside(xs: pb.Tensor) -> Any:
        count = 0

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            nonlocal count
            count += 1
            return h + x, None

        return pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)[0] / count

    def collected(xs: pb.Tensor) -> Any:
        kept: list[pb.Tensor] = []

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            kept.append(h * x)
            return h + x, None

        pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)
        return pb.stack(kept)

    def counted_by_an_iterator(xs: pb.Tensor) -> Any:
        numbers = itertools.count(1)
        return pb.scan(lambda h, x: (h + x * next(numbers), None), pb.zeros(2, dtype=pb.float64), xs)[0]

    class Slots:
        __slots__ = ("count",)

    def counted_in_a_slot(xs: pb.Tensor) -> Any:
        slots = Slots()
        slots.count = 0  # type: ignore[attr-defined]

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            slots.count += 1  # type: ignore[attr-defined]
            return h + x, None

        return pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)[0] / slots.count  # type: ignore[attr-defined]

    def left_where_nobody_looks(xs: pb.Tensor) -> Any:
        place: ContextVar[pb.Tensor] = ContextVar("place")

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            place.set(h * x)
            return h + x, None

        pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)
        return place.get()

    for function in (counted_inside, counted_outside, collected, counted_by_an_iterator, counted_in_a_slot):
        unrolled(function, xs)
    unrolled(left_where_nobody_looks, xs)


def test_tensors_that_are_written_in_the_body() -> None:
    xs = pb.asarray(random(LONG, 2))

    def from_inside(xs: pb.Tensor) -> Any:
        total = pb.zeros(2, dtype=pb.float64)

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            nonlocal total
            total += x
            return h + total, None

        return pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)[0]

    unrolled(from_inside, xs)
    state = pb.zeros(2, dtype=pb.float64)

    def from_outside(xs: pb.Tensor) -> Any:
        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            state[...] = state + x
            return h + state, None

        return pb.scan(step, pb.zeros(2, dtype=pb.float64), xs)[0]

    compiled = pb.compile(from_outside)
    for _ in range(3):
        state[...] = 0.0
        found, after = compiled(xs), state.numpy().copy()
        state[...] = 0.0
        compare([found, pb.asarray(after)], [from_outside(xs), state])


def test_an_optimizer_in_the_body() -> None:
    def run(is_compiled: bool) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        optimizer = pb.optim.SGD([w], lr=0.01)

        def step(h: pb.Tensor, x: pb.Tensor) -> Any:
            optimizer.zero_grad()
            loss = ((w * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return h + loss.detach(), None

        def function(xs: pb.Tensor) -> Any:
            return pb.scan(step, pb.asarray(0.0), xs)[0]

        function = pb.compile(function) if is_compiled else function
        return [function(pb.asarray(random(LONG, 2).astype(np.float32))).item() for _ in range(3)], w.tolist()

    np.testing.assert_allclose(*[np.concatenate(run(is_compiled)) for is_compiled in (True, False)], rtol=1e-5)


def test_tangents_and_hooks() -> None:
    u, xs = pb.asarray(random(2, 2)), pb.asarray(random(LONG, 2))

    def moved(u: pb.Tensor, xs: pb.Tensor) -> Any:
        return pb.jvp(lambda u: pb.scan(cell(u), pb.zeros(2, dtype=pb.float64), xs), (u,), (u,))

    unrolled(moved, u, xs)

    def hooked(u: pb.Tensor, xs: pb.Tensor) -> Any:
        v = u.detach().set_requires_grad(True)
        w = v * 2
        w.register_hook(lambda g: g * 3)
        return pb.backward(pb.scan(cell(w), pb.zeros(2, dtype=pb.float64), xs)[0].sum())[v]

    unrolled(hooked, u, xs)
    variable = pb.tensor(random(2, 2), requires_grad=True)
    variable.register_hook(lambda g: g * 3)

    def run(xs: pb.Tensor) -> Any:
        return pb.backward(pb.scan(cell(variable), pb.zeros(2, dtype=pb.float64), xs)[0].sum())[variable]

    compiled = pb.compile(run)
    compare(compiled(xs), run(xs))
    assert len(iterations(program_of(compiled))) == 2


def test_what_is_unrolled_though_it_is_long_warns() -> None:
    def run(xs: pb.Tensor) -> Any:
        kept: list[pb.Tensor] = []
        pb.scan(lambda h, x: (kept.append(h) or h + x, None), 0.0, xs)
        return kept[-1]

    compiled, xs = pb.compile(run), pb.asarray(random(150))
    with pytest.warns(RuntimeWarning, match="scan: all 150 steps"):
        found = compiled(xs)
    compare(found, run(xs))
