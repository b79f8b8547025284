"""What a function finds in the functions around it, in its own defaults, attributes and code."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any, Callable, Iterator

import pullback as pb

from ..harness import X, attempt, case, variable


@case
def closure_number(compiled: Any) -> Iterator[Any]:
    scale = 2.0
    f = compiled(lambda x: x * scale)
    for scale in (2.0, 3.0, 3.0, 2.0):  # noqa: B007
        yield f(X)


@case
def closure_changed_by_a_setter(compiled: Any) -> Iterator[Any]:
    def make() -> tuple[Any, Any]:
        scale = 2.0

        def run(x: Any) -> Any:
            return x * scale

        def set_scale(value: float) -> None:
            nonlocal scale
            scale = value

        return run, set_scale

    f, set_scale = make()
    f = compiled(f)
    for value in (2.0, 5.0, 2.0):
        set_scale(value)
        yield f(X)


@case
def closure_cell_written_from_outside(compiled: Any) -> Iterator[Any]:
    scale = 2.0

    def run(x: Any) -> Any:
        return x * scale

    f = compiled(run)
    yield f(X)
    run.__closure__[0].cell_contents = 9.0
    yield f(X)


@case
def closure_cell_emptied(compiled: Any) -> Iterator[Any]:
    scale = 2.0
    f = compiled(lambda x: x * scale)
    yield f(X)
    del scale
    yield attempt(f, X)
    scale = 4.0
    yield f(X)


@case
def closure_tensor_replaced(compiled: Any) -> Iterator[Any]:
    weight = pb.tensor([1.0, 2.0])
    f = compiled(lambda x: x * weight)
    yield f(X)
    weight = pb.tensor([5.0, 6.0])
    yield f(X)
    weight = pb.tensor([[5.0, 6.0], [7.0, 8.0]])
    yield f(X)
    weight = 3.0
    yield f(X)


@case
def closure_string_and_none(compiled: Any) -> Iterator[Any]:
    mode: Any = None
    f = compiled(lambda x: {None: x, "negative": -x, "twice": x * 2}[mode])
    for mode in (None, "negative", "twice", None):  # noqa: B007
        yield f(X)


@case
def closure_number_of_an_inner_function(compiled: Any) -> Iterator[Any]:
    scale = 2.0

    def run(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return y * scale

        return inner(x) + inner(x)

    f = compiled(run)
    yield f(X)
    scale = 3.0
    yield f(X)


@case
def closure_number_of_a_lambda_in_a_list(compiled: Any) -> Iterator[Any]:
    scale = 2.0
    steps = [lambda x: x + 1, lambda x: x * scale]

    def run(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    f = compiled(run)
    yield f(X)
    scale = 3.0
    yield f(X)
    steps.append(lambda x: -x)
    yield f(X)
    steps[0] = lambda x: x
    yield f(X)


@case
def closure_in_a_comprehension(compiled: Any) -> Iterator[Any]:
    scale, count = 2.0, 3
    f = compiled(lambda x: sum([x * scale * i for i in range(count)], x))
    yield f(X)
    scale = 3.0
    yield f(X)
    count = 1
    yield f(X)


@case
def closure_in_a_generator_expression(compiled: Any) -> Iterator[Any]:
    powers = [1, 2]
    scale = 2.0
    f = compiled(lambda x: sum(x**power * scale for power in powers))
    yield f(X)
    powers.append(3)
    yield f(X)
    scale = 1.0
    yield f(X)


@case
def closure_in_a_dict_comprehension(compiled: Any) -> Iterator[Any]:
    names = ["a", "b"]
    f = compiled(lambda x: {name: x * i for i, name in enumerate(names)})
    yield f(X)
    names[1] = "c"
    yield f(X)


@case
def depth_of_a_recursion(compiled: Any) -> Iterator[Any]:
    depth = 2

    def power(x: Any, k: int) -> Any:
        return x if k == 0 else x * power(x, k - 1)

    f = compiled(lambda x: power(x, depth))
    for depth in (2, 3, 0, 2):  # noqa: B007
        yield f(X)


@case
def function_of_a_recursion_rebound(compiled: Any) -> Iterator[Any]:
    def power(x: Any, k: int) -> Any:
        return x if k == 0 else x * power(x, k - 1)

    f = compiled(lambda x: power(x, 2))
    yield f(X)
    power = lambda x, k: x - k  # noqa: F811
    yield f(X)


@case
def function_made_anew_in_every_call_reads_state(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(scale=2.0)

    def make(c: Any) -> Callable[[Any], Any]:
        return lambda x: x * c.scale

    f = compiled(lambda x: make(config)(x))
    yield f(X)
    config.scale = 3.0
    yield f(X)


@case
def function_two_factories_deep(compiled: Any) -> Iterator[Any]:
    rate = [2.0]

    def outer() -> Any:
        def middle() -> Any:
            return lambda x: x * rate[0]

        return middle

    f = compiled(outer()())
    yield f(X)
    rate[0] = 4.0
    yield f(X)


@case
def nonlocal_tensor_carried(compiled: Any) -> Iterator[Any]:
    state: Any = None

    def run(x: Any) -> Any:
        nonlocal state
        state = x if state is None else state * 0.5 + x
        return state * 2

    f = compiled(run)
    for _ in range(4):
        yield f(X)
        yield state


# -- defaults ------------------------------------------------------------------------------------


@case
def defaults_replaced(compiled: Any) -> Iterator[Any]:
    def run(x: Any, scale: float = 2.0, shift: float = 0.0) -> Any:
        return x * scale + shift

    f = compiled(run)
    yield f(X)
    run.__defaults__ = (3.0, 1.0)
    yield f(X)
    yield f(X, 5.0)
    run.__defaults__ = (2.0, 0.0)
    yield f(X)


@case
def keyword_defaults_changed(compiled: Any) -> Iterator[Any]:
    def run(x: Any, *, scale: float = 2.0) -> Any:
        return x * scale

    f = compiled(run)
    yield f(X)
    run.__kwdefaults__["scale"] = 3.0
    yield f(X)
    run.__kwdefaults__ = {"scale": 4.0}
    yield f(X)
    yield f(X, scale=3.0)


@case
def default_list_changed_in_place(compiled: Any) -> Iterator[Any]:
    factors = [2.0]

    def run(x: Any, among: list[float] = factors) -> Any:
        return x * among[-1]

    f = compiled(run)
    yield f(X)
    factors.append(5.0)
    yield f(X)
    factors.pop()
    yield f(X)


@case
def default_tensor_written(compiled: Any) -> Iterator[Any]:
    def run(x: Any, weight: Any = pb.tensor([1.0, 2.0])) -> Any:  # noqa: B008
        return x * weight

    f = compiled(run)
    yield f(X)
    run.__defaults__[0][0] = 5.0
    yield f(X)
    run.__defaults__ = (pb.tensor([7.0, 7.0]),)
    yield f(X)


@case
def default_object_of_a_helper_changed(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(scale=2.0)

    def help_(x: Any, c: Any = config) -> Any:
        return x * c.scale

    f = compiled(lambda x: help_(x))
    yield f(X)
    config.scale = 3.0
    yield f(X)
    help_.__defaults__ = (SimpleNamespace(scale=8.0),)
    yield f(X)


@case
def default_is_none_then_given(compiled: Any) -> Iterator[Any]:
    def run(x: Any, bias: Any = None) -> Any:
        return x if bias is None else x + bias

    f = compiled(run)
    yield f(X)
    yield f(X, pb.tensor([1.0, 1.0]))
    run.__defaults__ = (pb.tensor([5.0, 5.0]),)
    yield f(X)
    yield f(X, None)


# -- attributes and code -------------------------------------------------------------------------


@case
def attribute_of_the_function_itself(compiled: Any) -> Iterator[Any]:
    def run(x: Any) -> Any:
        return x * run_of.scale

    run_of = run
    run.scale = 2.0
    f = compiled(run)
    yield f(X)
    run.scale = 3.0
    yield f(X)
    run.scale = 2.0
    yield f(X)


@case
def attribute_of_a_helper(compiled: Any) -> Iterator[Any]:
    def help_(x: Any) -> Any:
        return x * help_.factors["scale"]

    help_.factors = {"scale": 2.0}
    f = compiled(lambda x: help_(x))
    yield f(X)
    help_.factors["scale"] = 3.0
    yield f(X)
    help_.factors = {"scale": 4.0}
    yield f(X)


@case
def code_of_the_function_replaced(compiled: Any) -> Iterator[Any]:
    def run(x: Any) -> Any:
        return x * 2

    def other(x: Any) -> Any:
        return x + 100

    f, first = compiled(run), run.__code__
    yield f(X)
    run.__code__ = other.__code__
    yield f(X)
    run.__code__ = first
    yield f(X)


@case
def code_of_a_helper_replaced(compiled: Any) -> Iterator[Any]:
    def help_(x: Any) -> Any:
        return x * 2

    f = compiled(lambda x: help_(x) + 1)
    yield f(X)
    help_.__code__ = (lambda x: x * 5).__code__
    yield f(X)


@case
def functions_of_equal_code_and_other_globals(compiled: Any) -> Iterator[Any]:
    code = (lambda x: x * factor).__code__  # noqa: F821
    namespaces = [{"factor": 2.0}, {"factor": 3.0}]
    found = [compiled(FunctionType(code, namespace)) for namespace in namespaces]
    for f in found:
        yield f(X)
    namespaces[0]["factor"] = 7.0
    for f in found:
        yield f(X)


@case(steady=True)
def functions_of_one_factory_apart(compiled: Any) -> Iterator[Any]:
    def scaling(scale: float) -> Any:
        return compiled(lambda x: x * scale)

    f, g = scaling(2.0), scaling(3.0)
    for h in (f, g, f):
        yield h(X)


@case
def gradient_function_chosen_by_a_closure(compiled: Any) -> Iterator[Any]:
    w, loss_of = variable(1.0, 2.0), pb.mse_loss
    f = compiled(lambda x: pb.backward(loss_of(w * x, x))[w])
    yield f(X)
    loss_of = lambda output, target: abs(output - target).sum()
    yield f(X)
