"""What type checkers make of tensors: `make lint` reads this, nobody runs it."""

from __future__ import annotations

from typing import assert_type

import pullback as pb

x = pb.tensor([1.0, 2.0], requires_grad=True)
assert_type(x, pb.Tensor)
assert_type(x + 1, pb.Tensor)
assert_type(2.0 * x, pb.Tensor)
assert_type(x @ x, pb.Tensor)
assert_type(-x, pb.Tensor)
assert_type(x < 1, pb.Tensor)
assert_type(x[0], pb.Tensor)
assert_type(x.T, pb.Tensor)
assert_type(x.tanh(), pb.Tensor)
assert_type(x.sum(axis=0, keepdims=True), pb.Tensor)
assert_type(x.reshape(2, 1), pb.Tensor)
assert_type(x.grad, pb.Tensor | None)
assert_type(x.shape, tuple[int, ...])
assert_type(x.set_requires_grad(False), pb.Tensor)
assert_type(pb.tanh(x), pb.Tensor)
assert_type(pb.maximum(x, 0.0), pb.Tensor)
assert_type(len(x), int)
assert_type(float(x[0]), float)
