"""What changes between two calls is noticed: a compiled function does what the function itself would do.

Each case is a generator that makes a function with `wrap`, calls it, changes something, and yields what is to be
compared. It runs twice: with functions as they are, and compiled.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pullback as pb

Case = Callable[[Callable[[Any], Any]], Iterator[Any]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def variable(*values: float) -> pb.Tensor:
    return pb.tensor(list(values), requires_grad=True)


def values_of(thing: Any) -> Any:
    if isinstance(thing, pb.Tensor):
        return np.array(thing.detach().numpy())
    if isinstance(thing, dict):
        return {name: values_of(part) for name, part in thing.items()}
    return thing


# -- who needs a gradient ------------------------------------------------------------------------


@case
def a_constant_becomes_a_variable(wrap: Any) -> Iterator[Any]:
    w, x = pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0])
    scaled = wrap(lambda x: w * x)
    yield scaled(x)
    w.set_requires_grad(True)
    result = scaled(x)
    yield result.requires_grad
    result.sum().backward()
    yield w.grad


@case
def one_of_two_variables_is_frozen(wrap: Any) -> Iterator[Any]:
    w, v, x = variable(1.0, 2.0), variable(5.0, 6.0), pb.tensor([3.0, 4.0])
    total = wrap(lambda x: (w * x + v * x * x).sum())
    total(x).backward()
    w.set_requires_grad(False)
    total(x).backward()
    yield w.grad
    yield v.grad
    w.set_requires_grad(True)
    total(x).backward()
    yield w.grad


@case
def a_frozen_parameter_is_not_updated(wrap: Any) -> Iterator[Any]:
    w, v, x = variable(1.0, 2.0), variable(5.0, 6.0), pb.tensor([3.0, 4.0])
    optimizer = pb.optim.Adam([w, v], 0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x + v * x * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    step = wrap(step)
    for frozen in (False, False, True, True, False):
        w.set_requires_grad(not frozen)
        yield step(x)
        yield w
        yield v


@case
def a_hook_is_added_and_removed(wrap: Any) -> Iterator[Any]:
    w, x = variable(1.0, 2.0), pb.tensor([1.0, 3.0])
    slope = wrap(lambda x: pb.backward((w * w * x).sum())[w])
    yield slope(x)
    handle = w.register_hook(lambda g: g * 10)
    yield slope(x)
    handle.remove()
    yield slope(x)


@case
def a_parameter_and_its_clone_part_at_the_first_step(wrap: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    clone = w.clone()
    optimizer = pb.optim.SGD([w], 0.1)

    def step(x: Any) -> Any:
        loss = (w * clone * x).sum()
        optimizer.step(pb.backward(loss))
        return loss

    step = wrap(step)
    for _ in range(3):
        yield step(pb.tensor([1.0, 2.0]))
        yield w
        yield clone


# -- optimizers ----------------------------------------------------------------------------------


def stepping(wrap: Any, optimizer: Any, *variables: pb.Tensor) -> Any:
    def step(x: Any) -> Any:
        loss = sum(((w * x) ** 2).sum() for w in variables)
        optimizer.step(pb.backward(loss))
        return loss

    return wrap(step)


@case
def parameters_are_added_to_an_optimizer(wrap: Any) -> Iterator[Any]:
    w, v, x = variable(1.0, 2.0), variable(5.0, 6.0), pb.tensor([0.3, 0.4])
    optimizer = pb.optim.SGD([w], 0.1)
    step = stepping(wrap, optimizer, w, v)
    step(x)
    optimizer.add_param_group({"params": [v], "lr": 0.01})
    for _ in range(2):
        yield step(x)
        yield w
        yield v


@case
def the_state_of_an_optimizer_is_loaded(wrap: Any) -> Iterator[Any]:
    w, x = variable(1.0, 2.0), pb.tensor([3.0, 4.0])
    optimizer = pb.optim.Adam([w], 0.1)
    step = stepping(wrap, optimizer, w)
    step(x)
    saved = optimizer.state_dict()
    step(x)
    step(x)
    optimizer.load_state_dict(saved)
    for _ in range(2):
        yield step(x)
        yield w
    yield optimizer.state_dict()["state"][0]


@case
def parameters_have_taken_different_numbers_of_steps(wrap: Any) -> Iterator[Any]:
    w, v, x = variable(1.0, 2.0), variable(5.0, 6.0), pb.tensor([0.3, 0.4])
    optimizer = pb.optim.Adam([w, v], 0.1)
    step = stepping(wrap, optimizer, w, v)
    yield step(x)
    yield step(x)
    for _ in range(3):
        optimizer.step(pb.backward((w * w).sum()))
    yield step(x)
    yield w
    yield v


@case
def two_steps_in_one_call_are_counted_as_two(wrap: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    optimizer = pb.optim.Adam([w], 0.1)

    def twice(x: Any) -> None:
        for _ in range(2):
            optimizer.step(pb.backward((w * w * x).sum()))

    twice = wrap(twice)
    for _ in range(3):
        twice(pb.tensor([1.0, 2.0]))
        yield w


@case
def a_step_alone_with_gradients_from_outside(wrap: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    optimizer = pb.optim.Adam([w], 0.1)
    step = wrap(lambda: optimizer.step())
    for k in range(4):
        w.grad = None
        (w * w * (k + 1)).sum().backward()
        step()
        yield w


@case
def a_gradient_that_is_read(wrap: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    read = wrap(lambda: pb.zeros((2,)) if w.grad is None else w.grad * 2)
    yield read()
    for gradient in ([3.0, 4.0], [5.0, 5.0]):
        w.grad = pb.tensor(gradient)
        yield read()
    w.grad = None
    yield read()


@case
def the_scale_of_a_loss_changes(wrap: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    optimizer = pb.optim.SGD([w], 0.1)
    scaler = pb.optim.LossScaler(init_scale=8.0, growth_interval=1)
    scaled = wrap(lambda x: scaler.scale((w * w * x).sum()))
    for _ in range(3):
        w.grad = None
        scaled(pb.tensor([1.0, 2.0])).backward()
        yield w.grad
        scaler.step(optimizer)
        scaler.update()
    yield w


# -- modules -------------------------------------------------------------------------------------


class Layers(pb.nn.Module):
    def __init__(self, kind: Any) -> None:
        self.layers = kind([pb.nn.Linear(2, 2)])
        self.table = pb.nn.Embedding(4, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x @ self.table.weight.mT


def changed_layers(wrap: Any, kind: Any) -> Iterator[Any]:
    pb.random.seed(0)
    model, x = Layers(kind), pb.tensor([[3.0, 4.0]])
    run = wrap(lambda x: model(x))
    yield run(x)
    model.layers.append(pb.nn.Linear(2, 2))
    yield run(x)
    model.layers[0] = pb.nn.Linear(2, 2)
    yield run(x)
    model.table.weight = pb.nn.Parameter(pb.ones((4, 2)))  # of a module that is never called
    yield run(x)


@case
def modules_in_a_module_list(wrap: Any) -> Iterator[Any]:
    yield from changed_layers(wrap, pb.nn.ModuleList)


@case
def modules_in_a_plain_list(wrap: Any) -> Iterator[Any]:
    yield from changed_layers(wrap, list)


@case
def a_weight_of_a_module_that_is_not_called(wrap: Any) -> Iterator[Any]:
    pb.random.seed(0)
    model, x = pb.nn.Linear(2, 3), pb.tensor([[3.0, 4.0]])
    run = wrap(lambda x: x @ model.weight.mT)
    yield run(x)
    model.weight = pb.nn.Parameter(pb.ones((3, 2)))
    yield run(x)


# -- arrays, arguments, generators ---------------------------------------------------------------


@case
def views_of_an_array_from_outside(wrap: Any) -> Iterator[Any]:
    table, x = np.arange(10.0, dtype=np.float32), pb.ones((5,))
    run = wrap(lambda x: x * table[::2] + table.reshape(2, 5).T[:, 0])
    for _ in range(3):
        yield run(x)
        table += 1


@case
def a_tensor_that_borrows_a_transposed_array(wrap: Any) -> Iterator[Any]:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    borrowed, x = pb.asarray(array.T), pb.ones((3, 2))
    run = wrap(lambda x: x * borrowed)
    yield run(x)
    array += 1
    yield run(x)
    borrowed += 1
    yield run(x)
    yield array.copy()


@case
def a_tensor_given_twice_and_written_to(wrap: Any) -> Iterator[Any]:
    def push(x: Any, y: Any) -> Any:
        x += 1
        return x * y

    push = wrap(push)
    x = pb.tensor([1.0, 2.0])
    for y in (pb.tensor([1.0, 1.0]), x, x, pb.tensor([2.0, 1.0])):
        yield push(x, y)
        yield x


@case
def a_tensor_given_and_found_outside(wrap: Any) -> Iterator[Any]:
    t = pb.tensor([1.0, 2.0])

    def push(x: Any) -> Any:
        x += 1
        return x * t

    push = wrap(push)
    for x in (pb.tensor([5.0, 5.0]), t, t):
        yield push(x)
        yield t


@case
def another_default_generator(wrap: Any) -> Iterator[Any]:
    run = wrap(lambda x: pb.dropout(x, 0.5) + pb.random.uniform((20,)))
    x, generator = pb.ones((20,)), pb.random.Generator(9)
    pb.random.seed(1)
    yield run(x)
    with pb.random.using(generator):
        yield run(x)
        yield run(x)
    yield run(x)
    yield generator.state


@case
def numbers_drawn_without_arguments(wrap: Any) -> Iterator[Any]:
    pb.random.seed(0)
    draw = wrap(lambda: pb.random.normal((3,)))
    yield draw()
    yield draw()
    yield type(draw()).__name__


@case
def orders_and_choices(wrap: Any) -> Iterator[Any]:
    pb.random.seed(3)
    draw = wrap(
        lambda x: (
            pb.random.permutation(7), pb.random.permutation(x), pb.random.choice(x, (2, 2)), pb.random.choice(5, (3,)),
            pb.random.choice(x, (3,), replace=False),
        )
    )  # fmt: skip
    for k in range(3):
        yield from draw(pb.tensor([1.0, 2.0, 3.0, 4.0]) * k)
    yield pb.random.get_state()


@case
def a_captured_table_indexed_by_an_argument(wrap: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0, 3.0)
    run = wrap(lambda i: w[i])
    yield run(pb.tensor([0, 2]))
    yield run(pb.tensor([-1, 1]))


@case
def variables_that_the_function_makes(wrap: Any) -> Iterator[Any]:
    def slope(x: Any) -> Any:
        t = x.detach().set_requires_grad(True)
        u = pb.tensor([1.0, 2.0], requires_grad=True)
        (t * t * u).sum().backward()
        return t.grad, u.grad

    slope = wrap(slope)
    for k in range(4):
        yield from slope(pb.tensor([1.0 + k, 2.0]))
    yield getattr(slope, "traces", 1)  # one program serves all calls


# -- running them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("verify", [False, True])
def test_a_change_is_noticed(name: str, verify: bool) -> None:
    expected = [values_of(found) for found in CASES[name](lambda function: function)]
    with pb.compiled(verify=verify):
        found = [values_of(found) for found in CASES[name](pb.compile)]
    assert len(found) == len(expected)
    for number, (ours, theirs) in enumerate(zip(found, expected)):
        check(ours, theirs, f"{name}, {number}")


def check(ours: Any, theirs: Any, what: str) -> None:
    assert type(ours) is type(theirs), what
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), what
        for name in theirs:
            check(ours[name], theirs[name], f"{what}, {name}")
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=what)
    else:
        assert ours == theirs, what


def test_an_array_argument_that_is_written_to_is_refused() -> None:
    def push(a: Any) -> Any:
        a += 1
        return a

    with pytest.raises(pb.TraceError, match="argument 0, which is a NumPy array"):
        pb.compile(push)(np.array([1.0, 2.0]))


def test_the_reasons_are_named() -> None:
    w = variable(1.0, 2.0)
    optimizer = pb.optim.SGD([w], 0.1)
    step = stepping(pb.compile, optimizer, w)
    x = pb.tensor([0.1, 0.2])
    step(x)
    optimizer.load_state_dict(optimizer.state_dict())
    step(x)
    optimizer.add_param_group({"params": [variable(3.0)]})
    step(x)
    w.register_hook(lambda g: g)
    step(x)
    state, parameters, hooks = step.recompilations
    assert "another state" in state and "other parameters" in parameters and "hooks" in hooks


def test_an_average_that_counts_its_updates_is_refused() -> None:
    w = variable(1.0, 2.0)
    average = pb.optim.ExponentialMovingAverage([w])
    with pytest.raises(pb.TraceError, match="after the compiled step"):
        pb.compile(lambda: average.update())()
    assert average.updates == 0


@pytest.mark.parametrize("zeroes", [False, True])
@pytest.mark.parametrize("steps", [False, True])
def test_a_gradient_that_each_call_reads_and_replaces(zeroes: bool, steps: bool) -> None:
    def made(wrap: Any) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        optimizer = pb.optim.SGD([w], lr=0.1)

        def function(x: Any) -> Any:
            (w * x).sum().backward()
            seen = w.grad * 0.5  # type: ignore[operator]
            w.grad = None
            if zeroes:
                optimizer.zero_grad()
            (w**3 * x).mean().backward()
            if steps:
                optimizer.step()
            return seen

        return wrap(function), w

    (plain, w), (compiled, v) = made(lambda function: function), made(pb.compile)
    for i in range(6):
        x = pb.tensor([1.0 + i, 2.0])
        if i == 4:
            w.grad, v.grad = w.grad * 3.0, v.grad * 3.0  # by somebody else
        assert np.allclose(plain(x).numpy(), compiled(x).numpy())
        assert np.allclose(w.grad.numpy(), v.grad.numpy()) and np.allclose(w.detach().numpy(), v.detach().numpy())
    assert compiled.traces == 1


def test_a_gradient_that_is_replaced_and_found_elsewhere_too() -> None:
    def made(wrap: Any) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        w.grad = pb.tensor([1.0, 1.0])
        kept = [w.grad]

        def function(x: Any) -> Any:
            seen = kept[0] * x + w.grad
            w.grad = None
            (w * x).sum().backward()
            return seen

        return wrap(function)

    plain, compiled = made(lambda function: function), made(pb.compile)
    for i in range(4):
        x = pb.tensor([1.0 + i, 2.0])
        assert np.allclose(plain(x).numpy(), compiled(x).numpy())


def test_what_a_function_writes_to_and_replaces_is_written_to_once() -> None:
    """Beside tensors that every call finds replaced: they become inputs, in a call that is made twice and compared."""

    def results(wrap: Any) -> list[Any]:
        w = pb.tensor([0.3, -0.2, 0.9], dtype=pb.float64, requires_grad=True)
        cell = SimpleNamespace(h=pb.tensor([0.5, 1.0, 1.5], dtype=pb.float64), mix=w)

        def step() -> Any:
            cell.h[0] -= 0.5
            cell.h = cell.h * 0.5 + cell.mix.detach()
            return cell.h * 2

        step = wrap(step)
        found = []
        for i in range(7):
            cell.mix = pb.tanh(w * (0.3 + 0.1 * i))
            before = cell.h
            found.append((step().tolist(), before.tolist(), cell.h.tolist()))
        return found

    assert results(pb.compile) == results(lambda function: function)
