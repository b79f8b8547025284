"""Arrays of the user's that meet variables and are filled anew before the graph is walked."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import borrowing

POINT = np.array([0.7, 1.3, 2.1])


def multiplied_in_place(p, buffer):
    q = p * 1.0
    q *= buffer
    return q * q


def assigned(p, buffer):
    q = p * 1.0
    q[:] = buffer * p
    return q * q


OPERATIONS = {
    "operator": lambda p, b: p * b,
    "operator from the left": lambda p, b: b / p,
    "power": lambda p, b: p**b,
    "matrix product": lambda p, b: b @ p,
    "in place": multiplied_in_place,
    "assignment": assigned,
    "mask": lambda p, b: np.where(b > 1.5, p, 0 * p),
    "mask itself": lambda p, b: np.where(b, p * p, b),
    "index": lambda p, b: p[b.astype(int) % 3] * b,
    "ufunc": lambda p, b: np.arctan2(p, b),
    "ufunc of a composite": lambda p, b: np.hypot(b, p),
    "np.multiply": lambda p, b: np.multiply(b, p),
    "np.dot": lambda p, b: np.dot(p, b),
    "np.einsum": lambda p, b: np.einsum("i,i->", p, b),
    "np.outer": lambda p, b: np.outer(b, p),
    "np.convolve": lambda p, b: np.convolve(p, b),
    "np.clip": lambda p, b: np.clip(p, b - 1, b),
    "np.average": lambda p, b: np.average(p, weights=b),
    "np.linalg.solve": lambda p, b: np.linalg.solve(p[:, None] * np.eye(3), b),
    "method": lambda p, b: p.dot(b),
    "pb.linear": lambda p, b: pb.linear(p[None], b[None]),
    "pb.mse_loss": lambda p, b: pb.mse_loss(p, b),
    "pb.cross_entropy": lambda p, b: pb.cross_entropy(p[None], np.array([1]), weight=b),
    "pb.scaled_dot_product_attention": lambda p, b: pb.scaled_dot_product_attention(p[:, None], b[:, None], b[:, None]),
}


def refilled(operation):
    def f(p):
        buffer, total = np.ones(3), 0.0
        for k in range(3):
            buffer[:] = [k + 1.0, k + 2.0, k + 0.5]
            total = total + np.sum(operation(p, buffer))
        return total

    return f


def fresh(operation):
    return lambda p: sum(np.sum(operation(p, np.array([k + 1.0, k + 2.0, k + 0.5]))) for k in range(3))


@pytest.mark.parametrize("transform", [pb.grad, pb.hessian, pb.jacfwd, lambda f: pb.grad(pb.checkpoint(f))])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_buffer_that_is_filled_anew(name, transform):
    operation = OPERATIONS[name]
    expected = transform(fresh(operation))(POINT)
    np.testing.assert_allclose(transform(refilled(operation))(POINT), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
def test_layouts_and_random_numbers_into_a_buffer(order):
    generator = np.random.default_rng(0)
    noise = [generator.standard_normal((3, 3)) for _ in range(4)]

    def f(p):
        buffer, total = np.zeros((3, 3), order=order), 0.0
        for part in noise:
            np.copyto(buffer, part)
            total = total + np.sum(np.sin(p @ buffer.T[:, ::-1]))
        return total

    expected = sum(part.T[:, ::-1] @ np.cos(POINT @ part.T[:, ::-1]) for part in noise)
    np.testing.assert_allclose(pb.grad(f)(POINT), expected, rtol=1e-12)


LARGE = borrowing.LARGEST_COPY // 8 + 1


@pytest.mark.parametrize("shape", [(LARGE,), (2, LARGE), (LARGE, 3)])
def test_a_large_one_is_not_copied_but_looked_at(shape):
    def f(p):
        buffer, total = np.zeros(shape), 0.0
        for k in range(2):
            buffer += k + 1
            total = total + np.sum(p * buffer)
        return total

    with pytest.raises(pb.GradientError, match=r"in `multiply`, but it was written in place since\. Write into a new"):
        pb.grad(f)(2.0)
    assert f(2.0) == 2.0 * np.prod(shape) * (1 + 3)


def test_what_another_graph_has_kept_is_no_concern():
    buffer = np.ones(LARGE)
    x = pb.tensor(2.0, requires_grad=True)
    other = (x * buffer).sum()  # alive, and not walked
    buffer[:] = 3.0
    assert pb.backward((x * buffer).sum())[x].item() == 3.0 * LARGE
    with pytest.raises(pb.GradientError, match="written in place"):
        other.backward()
    del other
    gc.collect()
    assert not borrowing.has_shared()


def test_a_batch_that_is_filled_anew_between_steps():
    batch, w = np.empty(LARGE, np.float64), pb.tensor(1.0, requires_grad=True)
    for step in range(3):
        batch[:] = step
        (w * batch).sum().backward()
    assert w.grad.item() == LARGE * (0 + 1 + 2)


def test_one_array_in_many_operations_is_copied_once():
    constant = np.random.default_rng(0).random(10_000)

    def f(x):
        for _ in range(100):
            x = x * constant
        return x

    x = pb.tensor(np.ones(10_000), requires_grad=True)
    f(x)
    tracemalloc.start()
    y = f(x)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 103 * constant.nbytes  # a hundred results, of which each is an operand, and one constant
    assert y.shape == (10_000,)


def test_nothing_is_copied_where_nothing_is_recorded():
    constant, x = np.ones(3), pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pb.no_grad():
        _ = x * constant
        _ = pb.linear(x[None], np.ones((1, 3)))
    assert id(constant) not in borrowing._copies
    (x * constant).sum()
    assert id(constant) in borrowing._copies
    del constant
    gc.collect()
    assert all(reference() is not None for reference, _ in list(borrowing._copies.values()))
