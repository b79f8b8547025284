"""Tensors from outside: replaced, written, read as values, with and without gradients and hooks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb

from ..harness import X, case, changes, variable


def pair() -> Any:
    return pb.tensor([1.0, 2.0])


def write(*values: Any) -> Callable[[Any], None]:
    """A change: a tensor gets these values in place."""
    return lambda t: t.__setitem__(..., pb.tensor(list(values)))


def add_one(t: Any) -> None:
    t += 1


def through_data(t: Any) -> None:
    t.data_mut()[...] = 7.0


changes(
    "tensor_item_written",
    pair,
    lambda t: lambda x: x * t,
    lambda t: t.__setitem__(0, 5.0),
    lambda t: t.__setitem__(0, 1.0),
)
changes("tensor_added_to_in_place", pair, lambda t: lambda x: x * t, add_one, add_one)
changes("tensor_written_through_data_mut", pair, lambda t: lambda x: x * t, through_data)
changes("tensor_written_before_and_after", pair, lambda t: lambda x: x * t.reshape(2, 1) + t, write(5.0, 6.0))
changes("tensor_cloned_and_written", pair, lambda t: lambda x: x * t.clone(), write(5.0, 6.0))
changes(
    "tensor_detached_and_written",
    lambda: variable(1.0, 2.0),
    lambda t: lambda x: x * t.detach(),
    lambda t: through_data(t),
)
changes("tensor_as_an_index", lambda: pb.tensor([0, 1]), lambda i: lambda x: x[i], write(1, 1), write(0, 1))
changes("tensor_as_indices_of_take", lambda: pb.tensor([0, 1]), lambda i: lambda x: pb.take(x, i, axis=0), write(1, 0))
changes(
    "tensor_as_a_mask_of_where",
    lambda: pb.tensor([True, False]),
    lambda m: lambda x: pb.where(m, x, 0.0),
    write(False, True),
)
changes(
    "tensor_as_a_mask_that_multiplies",
    lambda: pb.tensor([1.0, 0.0]),
    lambda m: lambda x: (x * m).sum(),
    write(0.0, 1.0),
)
changes(
    "tensor_as_labels",
    lambda: pb.tensor([0, 1]),
    lambda y: lambda x: pb.cross_entropy(pb.stack([x, -x]), y),
    write(1, 1),
)
changes(
    "tensor_in_a_list_replaced",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, pair() * 3),
    lambda c: c[0].__setitem__(0, 9.0),
)
changes(
    "tensor_in_a_nested_dict_replaced",
    lambda: {"a": {"w": pair()}},
    lambda c: lambda x: x * c["a"]["w"],
    lambda c: c["a"].update(w=pair() * 3),
)
changes(
    "tensor_of_another_dtype",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, c[0].astype(pb.float64)),
    lambda c: c.__setitem__(0, pair()),
)
changes(
    "tensor_of_another_shape",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, pb.ones((3, 2))),
    lambda c: c.__setitem__(0, pair()),
)
changes(
    "tensor_replaced_by_a_view",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, pb.ones((2, 2)).mT[0] * 4),
)
changes(
    "tensor_becomes_a_number",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, 2.0),
    lambda c: c.__setitem__(0, pair()),
)
changes(
    "tensor_becomes_an_array",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, np.full(2, 5.0, np.float32)),
)
changes(
    "tensor_becomes_none",
    lambda: [pair()],
    lambda c: lambda x: x if c[0] is None else x * c[0],
    lambda c: c.__setitem__(0, None),
    lambda c: c.__setitem__(0, pair()),
)
changes(
    "tensors_that_trade_places",
    lambda: [pair(), pair() * 5],
    lambda c: lambda x: x * c[0] - c[1],
    lambda c: c.reverse(),
    lambda c: c.reverse(),
)
changes(
    "tensors_that_become_one",
    lambda: [pair(), pair() * 5],
    lambda c: lambda x: x * c[0] - c[1],
    lambda c: c.__setitem__(1, c[0]),
    lambda c: c[0].__setitem__(0, 7.0),
)
changes(
    "tensor_that_is_the_argument_too", lambda: [X], lambda c: lambda x: x * c[0], lambda c: c.__setitem__(0, pair())
)
changes(
    "tensor_in_a_set_of_results",
    lambda: [pair()],
    lambda c: lambda x: {"w": c[0], "y": x * c[0]},
    lambda c: c[0].__setitem__(0, 4.0),
)

# -- values of small tensors ---------------------------------------------------------------------

changes(
    "tensor_value_by_item",
    lambda: pb.tensor(2.0),
    lambda t: lambda x: x * t.item(),
    write(3.0),
    write(2.0),
)
changes(
    "tensor_value_by_float",
    lambda: pb.tensor(2.0),
    lambda t: lambda x: x * float(t),
    write(3.0),
    write(2.0),
)
changes("tensor_value_by_int", lambda: pb.tensor(1), lambda t: lambda x: x * int(t), write(3))
changes(
    "tensor_value_in_a_choice",
    pair,
    lambda t: lambda x: x if t.sum() > 0 else -x,
    write(-5.0, 1.0),
    write(1.0, 2.0),
    refused=True,
)
changes("tensor_value_by_tolist", pair, lambda t: lambda x: sum(x * n for n in t.tolist()), write(5.0, 6.0))
changes("tensor_value_by_numpy", pair, lambda t: lambda x: x * float(t.numpy()[0]), write(5.0, 6.0))
changes("tensor_value_as_a_place", lambda: pb.tensor(0), lambda t: lambda x: x[int(t)], write(1), write(0))
changes(
    "tensor_value_as_a_mask",
    lambda: pb.tensor([True, False]),
    lambda t: lambda x: x[t],
    write(True, True),
)
changes(
    "tensor_shape_in_a_choice",
    lambda: [pair()],
    lambda c: lambda x: x * c[0].shape[0] + c[0].ndim,
    lambda c: c.__setitem__(0, pb.ones((5, 1))),
)
changes(
    "tensor_dtype_in_a_choice",
    lambda: [pair()],
    lambda c: lambda x: x if c[0].dtype == pb.float32 else -x,
    lambda c: c.__setitem__(0, pb.tensor([1, 2])),
)


# -- gradients -----------------------------------------------------------------------------------


@case
def requires_grad_toggled(compiled: Any) -> Iterator[Any]:
    w = pair()
    f = compiled(lambda x: w * x)
    for needed in (False, True, False, True):
        w.set_requires_grad(needed)
        result = f(X)
        yield result, result.requires_grad


@case
def requires_grad_read(compiled: Any) -> Iterator[Any]:
    w = pair()
    f = compiled(lambda x: x * (2 if w.requires_grad else 3))
    for needed in (False, True, False):
        w.set_requires_grad(needed)
        yield f(X)


@case
def requires_grad_of_an_argument_toggled(compiled: Any) -> Iterator[Any]:
    f, x = compiled(lambda x: (x**2).sum()), pair()
    for needed in (False, True, False, True):
        x.set_requires_grad(needed)
        result = f(x)
        yield result, result.requires_grad
        if needed:
            x.grad = None
            result.backward()
            yield x.grad


@case
def grad_set_and_cleared(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)

    def accumulate(x: Any) -> Any:
        (w * x).sum().backward()
        return w.grad * 1

    f = compiled(accumulate)
    for before in (None, pb.ones((2,)), pb.zeros((2,)), None):
        w.grad = before
        yield f(X)
        yield f(X)
        yield w.grad


@case
def grad_read_where_there_may_be_none(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    f = compiled(lambda x: x if w.grad is None else x * w.grad)
    for gradient in (None, pb.tensor([3.0, 4.0]), pb.tensor([5.0, 6.0]), None):
        w.grad = gradient
        yield f(X)


@case
def grad_of_one_of_two_cleared(compiled: Any) -> Iterator[Any]:
    w, v = variable(1.0, 2.0), variable(3.0, 4.0)
    f = compiled(lambda x: (w * v * x).sum().backward())
    f(X)
    yield w.grad, v.grad
    w.grad = None
    f(X)
    yield w.grad, v.grad
    v.grad[0] = 100.0
    f(X)
    yield w.grad, v.grad


@case
def grad_kept_from_an_earlier_call_stays(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    f = compiled(lambda x: (w * x).sum().backward())
    f(X)
    kept = w.grad
    w.grad = None
    f(X * 2)
    yield kept, w.grad


@case
def variables_tied_and_untied(compiled: Any) -> Iterator[Any]:
    held = SimpleNamespace(a=variable(1.0, 2.0))
    held.b = held.a
    f = compiled(lambda x: pb.backward((held.a * held.b * x).sum())[held.a])
    yield f(X)
    held.b = variable(1.0, 2.0)
    yield f(X)
    held.b = held.a
    yield f(X)


# -- hooks ---------------------------------------------------------------------------------------


def slope(w: Any) -> Any:
    return lambda x: pb.backward((w * w * x).sum())[w]


@case
def hook_added_and_removed(compiled: Any) -> Iterator[Any]:
    w = variable(1.0, 2.0)
    f = compiled(slope(w))
    yield f(X)
    first = w.register_hook(lambda g: g * 10)
    yield f(X)
    second = w.register_hook(lambda g: g + 1)
    yield f(X)
    first.remove()
    yield f(X)
    second.remove()
    yield f(X)


@case
def hook_whose_closure_changes(compiled: Any) -> Iterator[Any]:
    w, scale = variable(1.0, 2.0), 2.0
    w.register_hook(lambda g: g * scale)
    f = compiled(slope(w))
    yield f(X)
    scale = 3.0
    yield f(X)


@case
def hook_of_an_object_whose_attribute_changes(compiled: Any) -> Iterator[Any]:
    class Clip:
        limit = 5.0

        def __call__(self, g: Any) -> Any:
            return pb.clip(g, -self.limit, self.limit)

    w, hook = variable(1.0, 2.0), Clip()
    w.register_hook(hook)
    f = compiled(slope(w))
    yield f(X)
    hook.limit = 1.0
    yield f(X)


@case
def hook_inside_on_an_intermediate_result(compiled: Any) -> Iterator[Any]:
    w, config = variable(1.0, 2.0), {"scale": 2.0}

    def run(x: Any) -> Any:
        y = w * x
        y.register_hook(lambda g: g * config["scale"])
        return pb.backward((y * y).sum())[w]

    f = compiled(run)
    yield f(X)
    config["scale"] = 3.0
    yield f(X)
    yield f(X)
