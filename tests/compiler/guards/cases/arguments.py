"""Arguments of other kinds, values, orders and lengths from call to call."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from functools import partial
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb

from ..harness import X, attempt, case, variable

Y = pb.tensor([5.0, 7.0])


def given(name: str, function: Callable[..., Any], *calls: tuple[Any, ...], **declared: Any) -> None:
    """A case in which a function is called with each of these tuples of arguments, and with the first again."""

    @case(name=name, **declared)
    def run(compiled: Any) -> Iterator[Any]:
        f = compiled(function)
        for args in (*calls, calls[0]):
            yield attempt(f, *args)


def times(x: Any, y: Any) -> Any:
    return x * y


def scaling(k: float) -> Callable[[Any], Any]:
    return lambda x: x * k


given("argument_integers", times, (X, 2), (X, 3))
given("argument_floats", times, (X, 2.0), (X, 2.5))
given("argument_integer_and_float", lambda x, n: x.astype(pb.int64) * n, (X, 2), (X, 2.0))
given("argument_true_and_one", lambda x, n: x if n is True else -x, (X, True), (X, 1), (X, 1.0))
given("argument_zero_and_minus_zero", pb.copysign, (X, 0.0), (X, -0.0))
given("argument_nan", lambda x, n: x * (1 if n == n else 2), (X, float("nan")), (X, 0.0))
given("argument_numpy_number_and_float", times, (X, np.float64(2.0)), (X, 2.0), (X, np.float32(2.0)))
given("argument_numpy_integers", times, (X, np.int64(2)), (X, np.int64(3)), (X, np.bool_(True)))
given("argument_infinity", pb.minimum, (X, float("inf")), (X, 3.5), (X, float("-inf")))
given("argument_complex", lambda x, z: x * z.real, (X, 2j + 1), (X, 2j + 3))
given("argument_huge_integer", lambda x, n: x * (n % 7), (X, 10**30), (X, 10**30 + 1))
given("argument_strings", lambda x, mode: x if mode == "same" else -x, (X, "same"), (X, "negative"))
given("argument_bytes", lambda x, mode: x * len(mode), (X, b"ab"), (X, b"abc"), (X, "ab"))
given("argument_none_and_tensor", lambda x, y: x if y is None else x * y, (X, None), (X, Y), (X, 3.0))
given("argument_tensor_and_array", times, (X, Y), (X, np.array([5.0, 7.0], np.float32)), (X, np.array([5.0, 7.0])))
given("argument_shapes", lambda x: x * 2, (X,), (pb.ones((3,)),), (pb.ones((1, 2)),), (pb.tensor(4.0),))
given("argument_dtypes", lambda x: x * 2, (X,), (X.astype(pb.float64),), (pb.tensor([1, 2]),), (pb.tensor([True]),))
given("argument_of_length_zero", lambda x: x.sum(), (X,), (pb.zeros((0,)),))
given("argument_strides", lambda x: x * 2, (pb.ones((2, 3)),), (pb.tensor(np.arange(6.0).reshape(3, 2).T),))
given("argument_slices", lambda x, part: x[part], (X, slice(0, 1)), (X, slice(0, 2)), (X, 1), (X, ...))
given("argument_dtype_objects", lambda x, dtype: x.astype(dtype), (X, pb.float64), (X, pb.int32))
given("argument_functions", lambda x, f: f(x), (X, pb.exp), (X, pb.tanh), (X, abs))
given("argument_types", lambda x, kind: x * (1 if kind is int else 2), (X, int), (X, float))
given("argument_ranges", lambda x, numbers: sum((x for _ in numbers), x), (X, range(2)), (X, range(3)))
given("argument_sets", lambda x, among: x if 1 in among else -x, (X, {1, 2}), (X, {2}), (X, frozenset((1,))))
given("argument_lists_of_other_lengths", sum, ([X, Y], 0), ([X], 0), ([X, Y, Y], 0))
given("argument_lists_of_numbers", lambda x, c: x * sum(c), (X, [1, 2]), (X, [1, 3]), (X, [1, 2, 0]), (X, []))
given("argument_list_and_tuple", lambda c: c[0] * (2 if isinstance(c, list) else 3), ([X],), ((X,),))
given("argument_nested_lists", lambda c: c[0][0] * c[1], ([[X], 2],), ([[Y], 2],), ([[X, Y], 3],))
given("argument_dict_keys", lambda c: c.get("a", X) * c.get("b", Y), ({"a": X},), ({"b": X},), ({"a": Y, "b": X},))
given("argument_dict_order", lambda c: next(iter(c.values())) * 2, ({"a": X, "b": Y},), ({"b": Y, "a": X},))
given(
    "argument_dict_order_of_results",
    lambda c: {k: v * 2 for k, v in c.items()},
    ({"a": X, "b": Y},),
    ({"b": Y, "a": X},),
)
given("argument_dict_with_integer_keys", lambda c: c[min(c)] * 2, ({1: X, 2: Y},), ({0: Y, 1: X},))
given(
    "argument_dict_and_ordered_dict", lambda c: c["a"] * (2 if type(c) is dict else 3), ({"a": X},), (OrderedDict(a=X),)
)
given("argument_dict_of_strings", lambda c, x: x if c["m"] == "a" else -x, ({"m": "a"}, X), ({"m": "b"}, X))
given("argument_named_tuples", lambda p: p.a * 2, (namedtuple("P", "a b")(X, 1),), (namedtuple("P", "a b")(Y, 1),))
given("argument_tuple_of_numbers", lambda x, shape: pb.broadcast_to(x, shape), (X, (3, 2)), (X, (1, 2)), (X, (2, 2)))
given("argument_the_same_twice", lambda x, y: x * y + (0 if x is y else 1), (X, X), (X, Y), (Y, Y))
given("argument_extra_positions", lambda *xs: sum(xs), (X,), (X, Y), (X, Y, X))
given("argument_missing", times, (X, 2), (X,), (X, 3))
given("argument_objects_with_tensors", lambda c: c["w"][0] * c["n"], ({"w": (X,), "n": 2},), ({"w": (Y,), "n": 3},))
given("argument_functions_of_the_same_code", lambda x, f: f(x), (X, scaling(2)), (X, scaling(3)))
given("argument_partials", lambda x, f: f(x), (X, partial(times, 2)), (X, partial(times, 3)))


@case
def keywords_of_every_kind(compiled: Any) -> Iterator[Any]:
    def run(x: Any, /, y: Any = 2.0, *rest: Any, scale: Any = 1.0, **options: Any) -> Any:
        return (x * y + sum(rest)) * scale + options.get("shift", 0.0)

    f = compiled(run)
    yield f(X)
    yield f(X, 3.0)
    yield f(X, y=3.0)
    yield f(X, 3.0, 1.0, 2.0)
    yield f(X, scale=2.0)
    yield f(X, shift=5.0)
    yield f(X, y=Y, scale=Y, shift=Y)
    yield f(X)


@case
def keywords_in_another_order(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda **named: {name: value * 2 for name, value in named.items()})
    yield f(a=X, b=Y)
    yield f(b=Y, a=X)
    yield f(b=X, c=Y)


@case
def keyword_and_position_of_one_parameter(compiled: Any) -> Iterator[Any]:
    f = compiled(times)
    yield f(X, Y)
    yield f(X, y=Y)
    yield f(y=X, x=Y)
    yield attempt(f, X, z=Y)


@case
def list_argument_changed_between_calls(compiled: Any) -> Iterator[Any]:
    f, numbers = compiled(lambda x, c: x * c[0]), [2.0]
    yield f(X, numbers)
    numbers[0] = 3.0
    yield f(X, numbers)
    numbers[0] = X
    yield f(Y, numbers)


@case
def nested_argument_changed_between_calls(compiled: Any) -> Iterator[Any]:
    f, batch = compiled(lambda b: b["x"][0] * b["options"]["scale"]), {"x": [X], "options": {"scale": 2.0}}
    yield f(batch)
    batch["options"]["scale"] = 3.0
    yield f(batch)
    batch["x"] = [Y, X]
    yield f(batch)
    batch["extra"] = None
    yield f(batch)


@case
def tensor_argument_written_between_calls(compiled: Any) -> Iterator[Any]:
    f, x = compiled(lambda x: x * 2), pb.tensor([1.0, 2.0])
    yield f(x)
    x[0] = 5.0
    yield f(x)


@case
def array_argument_written_between_calls(compiled: Any) -> Iterator[Any]:
    f, x = compiled(lambda x: x * 2), np.array([1.0, 2.0])
    yield f(x)
    x[0] = 5.0
    yield f(x)
    yield f(np.asfortranarray(np.ones((2, 3))))


@case
def argument_that_is_written_inside(compiled: Any) -> Iterator[Any]:
    def push(x: Any, amount: Any) -> Any:
        x += amount
        return x * 2

    f, x = compiled(push), pb.tensor([1.0, 2.0])
    for amount in (1.0, 2.0, X, 1.0):
        yield f(x, amount)
        yield x


@case
def variables_as_arguments_take_turns(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda w, x: (w * x).sum().backward())
    first, second = variable(1.0, 2.0), variable(3.0, 4.0)
    for w in (first, second, first, second):
        f(w, X)
        yield first.grad, second.grad


@case
def object_argument_whose_attributes_change(compiled: Any) -> Iterator[Any]:
    class Batch:
        def __init__(self, x: Any, weight: float) -> None:
            self.x, self.weight = x, weight

    f = compiled(lambda batch: batch.x * batch.weight)
    batch = Batch(X, 2.0)
    yield f(batch)
    batch.x = Y
    yield f(batch)
    batch.weight = 3.0
    yield f(batch)
    yield f(Batch(X, 1.0))


@case
def mutable_object_argument_that_is_hashable_by_value(compiled: Any) -> Iterator[Any]:
    class Version:
        def __init__(self, number: int) -> None:
            self.number, self.scale = number, 2.0

        def __eq__(self, other: Any) -> bool:
            return self.number == other.number

        def __hash__(self) -> int:
            return hash(self.number)

    f, first, second = compiled(lambda x, v: x * v.scale), Version(1), Version(1)
    yield f(X, first)
    second.scale = 5.0
    yield f(X, second)
    yield f(X, first)
