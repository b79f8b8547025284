"""State read by functions inside of transforms, partials, caches, decorators and other compiled functions."""

from __future__ import annotations

import functools
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb

from ..harness import X, case, variable

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: pb.grad(f),
    "value_and_grad": lambda f: pb.value_and_grad(f),
    "vjp": lambda f: lambda x: pb.vjp(f, x)[1](pb.tensor(1.0)),
    "jvp": lambda f: lambda x: pb.jvp(f, (x,), (pb.ones((2,)),)),
    "jacrev": lambda f: pb.jacrev(f),
    "hessian": lambda f: pb.hessian(f),
    "checkpoint": lambda f: pb.checkpoint(f),
    "grad_of_grad": lambda f: pb.grad(lambda x: pb.grad(f)(x).sum()),
}


def _through(name: str, transform: Callable[[Any], Any]) -> None:
    @case(name=f"number_read_inside_of_{name}")
    def number(compiled: Any) -> Iterator[Any]:
        scale = 2.0
        f = compiled(transform(lambda x: (x**3 * scale).sum()))
        for scale in (2.0, 3.0, 2.0):  # noqa: B007
            yield f(X)

    @case(name=f"object_read_by_a_helper_inside_of_{name}")
    def through_helper(compiled: Any) -> Iterator[Any]:
        config = SimpleNamespace(power=3)

        def help_(x: Any, c: Any) -> Any:
            return x**c.power

        f = compiled(lambda x: transform(lambda y: help_(y, config).sum())(x))
        yield f(X)
        config.power = 2
        yield f(X)
        config.power = 3
        yield f(X)


for _name, _transform in TRANSFORMS.items():
    _through(_name, _transform)


@case
def method_inside_of_grad(compiled: Any) -> Iterator[Any]:
    class Energy:
        power = 2

        def __call__(self, x: Any) -> Any:
            return (x**self.power).sum()

    energy = Energy()
    f = compiled(pb.grad(energy))
    yield f(X)
    energy.power = 3
    yield f(X)
    Energy.__call__ = lambda self, x: x.sum()
    yield f(X)


@case
def function_of_arrays_inside_of_grad(compiled: Any) -> Iterator[Any]:
    scale, x = [2.0], np.array([1.0, 2.0])
    f = compiled(pb.grad(lambda x: np.sum(np.tanh(x) * scale[0])))
    yield f(x)
    scale[0] = 3.0
    yield f(x)


# -- partials ------------------------------------------------------------------------------------


def affine(x: Any, scale: Any = 1.0, *, shift: Any = 0.0) -> Any:
    return x * scale + shift


@case
def partial_with_an_object(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(scale=2.0)
    f = compiled(partial(lambda c, x: x * c.scale, config))
    yield f(X)
    config.scale = 3.0
    yield f(X)


@case
def keywords_of_a_partial_changed(compiled: Any) -> Iterator[Any]:
    made = partial(affine, scale=2.0, shift=1.0)
    f = compiled(made)
    yield f(X)
    made.keywords["scale"] = 3.0
    yield f(X)
    yield f(X, shift=7.0)
    made.keywords["scale"] = 2.0
    yield f(X)


@case
def partial_in_a_list_replaced(compiled: Any) -> Iterator[Any]:
    steps = [partial(affine, scale=2.0)]
    f = compiled(lambda x: steps[0](x))
    yield f(X)
    steps[0] = partial(affine, scale=4.0)
    yield f(X)


@case
def partial_set_to_another_state(compiled: Any) -> Iterator[Any]:
    made = partial(affine, scale=2.0)
    f = compiled(lambda x: made(x))
    yield f(X)
    made.__setstate__((affine, (), {"scale": 5.0}, {}))
    yield f(X)


@case
def partialmethod_whose_object_changes(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale = 2.0

        def apply(self, sign: float, x: Any) -> Any:
            return x * sign * self.scale

        negative = functools.partialmethod(apply, -1.0)

    layer = Layer()
    f = compiled(lambda x: layer.negative(x))
    yield f(X)
    layer.scale = 3.0
    yield f(X)


# -- decorators and caches -----------------------------------------------------------------------


@case
def decorator_with_state(compiled: Any) -> Iterator[Any]:
    settings = {"scale": 2.0}

    def scaling(function: Any) -> Any:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) * settings["scale"]

        return inner

    @compiled
    @scaling
    def f(x: Any) -> Any:
        return x + 1

    yield f(X)
    settings["scale"] = 3.0
    yield f(X)
    settings["scale"] = 2.0
    yield f(X)


@case
def function_under_a_decorator_changes(compiled: Any) -> Iterator[Any]:
    shift = 1.0

    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def inner(x: Any) -> Any:
            return function(function(x))

        return inner

    f = compiled(twice(twice(lambda x: x + shift)))
    yield f(X)
    shift = 2.0
    yield f(X)


@case
def cache_cleared(compiled: Any) -> Iterator[Any]:
    rate = [2.0]

    @functools.cache
    def looked_up(name: str) -> float:
        return rate[0]

    f = compiled(lambda x: x * looked_up("rate"))
    yield f(X)
    rate[0] = 3.0
    yield f(X)
    looked_up.cache_clear()
    yield f(X)


@case
def cache_of_a_method_cleared(compiled: Any) -> Iterator[Any]:
    class Table:
        size = 2

        @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
        def weight(self, k: int) -> float:
            return float(self.size * k)

    table = Table()
    f = compiled(lambda x: x * table.weight(3))
    yield f(X)
    table.size = 5
    yield f(X)
    Table.weight.cache_clear()
    yield f(X)


@case
def cached_property_deleted(compiled: Any) -> Iterator[Any]:
    class Table:
        size = 2

        @functools.cached_property
        def scale(self) -> float:
            return self.size * 10.0

    table = Table()
    f = compiled(lambda x: x * table.scale)
    yield f(X)
    table.size = 3
    yield f(X)
    del table.scale
    yield f(X)


@case
def single_dispatch_registers_a_type(compiled: Any) -> Iterator[Any]:
    class Mode:
        pass

    @functools.singledispatch
    def scale_of(mode: Any) -> float:
        return 2.0

    mode = Mode()
    f = compiled(lambda x: x * scale_of(mode))
    yield f(X)
    scale_of.register(Mode, lambda mode: 3.0)
    yield f(X)
    scale_of.register(Mode, lambda mode: 4.0)
    yield f(X)


@case
def single_dispatch_method_by_the_type_of_a_setting(compiled: Any) -> Iterator[Any]:
    class Layer:
        setting: Any = 2

        @functools.singledispatchmethod
        def scale(self, setting: Any) -> float:
            return 1.0

        @scale.register
        def _(self, setting: int) -> float:
            return 10.0 * setting

        @scale.register
        def _(self, setting: str) -> float:
            return 100.0

    layer = Layer()
    f = compiled(lambda x: x * layer.scale(layer.setting))
    for setting in (2, "text", None, 3, 2):
        layer.setting = setting
        yield f(X)


# -- compiled functions in each other ------------------------------------------------------------


@case
def compiled_function_inside_reads_state(compiled: Any) -> Iterator[Any]:
    config = {"scale": 2.0}
    inner = compiled(lambda x: x * config["scale"])
    outer = compiled(lambda x: inner(x) + 1)
    yield outer(X)
    config["scale"] = 3.0
    yield outer(X)
    yield inner(X)
    config["scale"] = 2.0
    yield outer(X)


@case
def compiled_twice_over(compiled: Any) -> Iterator[Any]:
    scale = 2.0
    f = compiled(compiled(lambda x: x * scale))
    yield f(X)
    scale = 3.0
    yield f(X)


@case
def compiled_function_in_a_list_replaced(compiled: Any) -> Iterator[Any]:
    steps = [compiled(lambda x: x * 2)]
    f = compiled(lambda x: steps[0](x))
    yield f(X)
    steps[0] = compiled(lambda x: x * 3)
    yield f(X)


@case
def gradient_of_a_compiled_function(compiled: Any) -> Iterator[Any]:
    power = 2
    f = pb.grad(compiled(lambda x: (x**power).sum()))
    yield f(X)
    power = 3
    yield f(X)


@case
def gradient_through_a_compiled_function_that_reads_state(compiled: Any) -> Iterator[Any]:
    config, w = SimpleNamespace(scale=2.0), variable(1.0, 2.0)
    f = compiled(lambda x: (w * x * config.scale).sum())
    for scale in (2.0, 3.0, 2.0):
        config.scale, w.grad = scale, None
        f(X).backward()
        yield w.grad


@case
def custom_op_whose_kernel_reads_state(compiled: Any) -> Iterator[Any]:
    scale = 2.0
    scaling = pb.custom_op(lambda x: x * scale, name="scaling", x=lambda g: g * scale)
    f = compiled(lambda x: pb.value_and_grad(lambda y: scaling(y).sum())(x))
    yield f(X)
    scale = 3.0
    yield f(X)


@case
def custom_op_whose_numpy_kernel_reads_state(compiled: Any) -> Iterator[Any]:
    config = {"scale": np.float32(2.0)}
    scaling = pb.custom_op(lambda x: np.cumsum(x) * config["scale"], name="scaling", shape=lambda x: x)
    f = compiled(lambda x: scaling(x) + 1)
    yield f(X)
    config["scale"] = np.float32(3.0)
    yield f(X)


@case
def custom_op_replaced(compiled: Any) -> Iterator[Any]:
    op = pb.custom_op(lambda x: x * 2, name="double")
    f = compiled(lambda x: op(x))
    yield f(X)
    op = pb.custom_op(lambda x: x * 3, name="triple")
    yield f(X)
