"""Operations of one's own: a function of arrays with gradient rules, with a static argument, and an object."""

from typing import Any

import numpy as np

import pullback as pb
from pullback import Tensor


def _soft_clip(x: Any, *, limit: float = 1.0) -> Any:
    return limit * np.tanh(x / limit)


soft_clip = pb.custom_op(
    _soft_clip,
    name="soft_clip",
    shape=lambda x, limit: x,
    x=lambda g, out, limit: g * (1 - (out / limit) ** 2),
)
cube = pb.custom_op(lambda x: x * x * x, name="cube", x=lambda g, x: 3 * g * x * x)


class Square(pb.BackwardOp):
    def __init__(self, x: Tensor) -> None:
        super().__init__([x])
        self.x = x

    def backward(self, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return (2 * self.x * gradient,)


def square(x: Tensor) -> Tensor:
    result = x.detach() ** 2
    result.set_backward_op(Square(x))
    return result


def main() -> Tensor:
    w = pb.tensor([0.5, 2.0], requires_grad=True)
    loss = soft_clip(w, limit=2.0).sum() + cube(w).sum() + square(w).sum()
    loss.backward()
    assert w.grad is not None
    gradient: Tensor = w.grad
    pb.gradcheck(lambda x: soft_clip(x, limit=2.0), (np.array([0.5, 2.0]),))
    return gradient


if __name__ == "__main__":
    print(main())
