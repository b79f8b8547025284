"""Random programs: many shared nodes, views, masks and dead ends, on any library with a class like `Pullback`."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

SIZE = 3


class Pullback:
    """The instructions in terms of tensors."""

    tanh, exp, matmul, where, concat, sum = pb.tanh, pb.exp, pb.matmul, pb.where, pb.concat, pb.sum

    @staticmethod
    def variable(array: np.ndarray) -> Any:
        return pb.tensor(array, requires_grad=True)

    @staticmethod
    def constant(array: np.ndarray) -> Any:
        return pb.asarray(array)

    @staticmethod
    def transpose(x: Any) -> Any:
        return pb.matrix_transpose(x)


def program(library: Any, seed: int, length: int = 40) -> tuple[list[Any], list[Any], Any]:
    """Variables, all values and the result of a random program on square matrices, the same for both libraries."""
    generator = np.random.default_rng(seed)
    variables = [library.variable(generator.standard_normal((SIZE, SIZE)) / 2) for _ in range(3)]
    values = list(variables)
    values.append(library.constant(generator.standard_normal((SIZE, SIZE)) / 2))
    for _ in range(length):
        a, b = (values[i] for i in generator.integers(0, len(values), 2))
        kind = generator.integers(0, 12)
        mask = library.constant(generator.random((SIZE, SIZE)) > 0.5)
        number = float(generator.uniform(0.5, 1.5))
        if kind == 0:
            new = a + b
        elif kind == 1:
            new = a - b * number
        elif kind == 2:
            new = library.tanh(a * b)
        elif kind == 3:
            new = library.matmul(library.tanh(a), library.tanh(b)) * 0.3
        elif kind == 4:
            new = library.transpose(a)
        elif kind == 5:
            new = library.where(mask, a, b)
        elif kind == 6:
            new = library.concat([a[1:], b[:1]])
        elif kind == 7:
            new = a[:, :1] * number + library.tanh(b)
        elif kind == 8:
            new = library.exp(-a * a) / (b * b + 1.0)
        elif kind == 9:
            new = a + library.sum(library.tanh(b)) * 0.1
        elif kind == 10:
            new = library.tanh(a.reshape(SIZE * SIZE))[None, :SIZE] * b
        else:
            new = library.tanh(a) ** 2
        values.append(new)
    tail = values[-6:]
    total = library.sum(library.tanh(tail[0]))
    for value in tail[1:]:
        total = total + library.sum(library.tanh(value) * value)
    return variables, values, total
