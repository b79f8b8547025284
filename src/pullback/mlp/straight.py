"""Calls in a row as one function: without a loop, since at one sample that would be a tenth of the time."""

from __future__ import annotations

from typing import Any, Callable

Step = tuple[Callable[..., Any], tuple[Any, ...]]


class Input:
    """The array that the function is given, or a view of it, among the arguments of a step."""

    __slots__ = ("expression",)

    def __init__(self, expression: str = "x") -> None:
        self.expression = expression

    @property
    def T(self) -> Input:  # noqa: N802
        return Input(f"{self.expression}.T")


def sample_of(shape: tuple[int, ...]) -> Input:
    """The input of shape (in,) or (1, in) as a vector."""
    return Input("x" if len(shape) == 1 else "x[0]")


def in_a_row(steps: list[Step], result: Any = None) -> Callable[[Any], Any]:
    """A function of the input that makes the calls and returns `result`.

    >>> import numpy as np
    >>> from pullback.mlp.straight import Input, in_a_row
    >>> out = np.zeros(2)
    >>> run = in_a_row([(np.multiply, (Input(), 2.0, out)), (np.add, (out, 1.0, out))], out)
    >>> run(np.array([1.0, 2.0]))
    array([3., 5.])
    """
    scope: dict[str, Any] = {"result": result}
    lines = ["def run(x):"]
    for i, (call, arguments) in enumerate(steps):
        scope[f"call{i}"] = call
        names = []
        for j, argument in enumerate(arguments):
            if isinstance(argument, Input):
                names.append(argument.expression)
            else:
                scope[f"argument{i}_{j}"] = argument
                names.append(f"argument{i}_{j}")
        lines.append(f"    call{i}({', '.join(names)})")
    exec("\n".join([*lines, "    return result"]), scope)  # made of the names above alone
    run: Callable[[Any], Any] = scope["run"]
    return run
