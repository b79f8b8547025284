"""PyTorch's own kernels for pooling, batch normalization and dropout: that they run, and what they give."""

import numpy as np
import pytest

import pullback as pb
from pullback import backends
from pullback.backends.numpy.random import philox_uint32
from pullback.backends.windows import Adaptive, Window

from .installed import optional

torch = optional("torch")
functional = optional("torch.nn.functional")


def names_of_calls(function):
    """The names of PyTorch's operators that `function` calls, and what it returns."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            names.append(str(function).removeprefix("aten.").partition(".")[0])
            return function(*args, **(kwargs or {}))

    names = []
    with Names():
        result = function()
    return names, result


CASES = {
    "max_pool1d": ("max_pool1d", (2, 3, 11), (3,), {"stride": 2, "padding": 1}, "max_pool2d_with_indices"),
    "max_pool2d": ("max_pool2d", (2, 3, 9, 8), ((3, 2),), {"stride": 2, "padding": 1}, "max_pool2d_with_indices"),
    "ceil": ("max_pool2d", (1, 2, 7, 8), (3,), {"stride": 2, "ceil_mode": True}, "max_pool2d_with_indices"),
    "dilated": ("max_pool2d", (1, 2, 9, 9), (2,), {"stride": 1, "dilation": 3}, "max_pool2d_with_indices"),
    "max_pool3d": ("max_pool3d", (1, 2, 5, 6, 7), (2,), {}, "max_pool3d_with_indices"),
    "adaptive_max": ("adaptive_max_pool2d", (2, 2, 7, 9), ((3, 4),), {}, "adaptive_max_pool2d"),
    "adaptive_max1d": ("adaptive_max_pool1d", (2, 2, 7), (3,), {}, "adaptive_max_pool2d"),
    "avg_pool1d": ("avg_pool1d", (2, 3, 11), (3,), {"stride": 2, "padding": 1}, "avg_pool2d"),
    "avg_pool2d": ("avg_pool2d", (2, 3, 9, 8), (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, "avg_pool2d"),
    "without padding": (
        "avg_pool2d", (2, 3, 9, 8), ((3, 2),), {"padding": 1, "count_include_pad": False}, "avg_pool2d",
    ),
    "divisor": ("avg_pool2d", (2, 3, 9, 8), (3,), {"divisor_override": 5}, "avg_pool2d"),
    "avg_pool3d": ("avg_pool3d", (1, 2, 5, 6, 7), (2,), {}, "avg_pool3d"),
    "adaptive_avg": ("adaptive_avg_pool2d", (2, 2, 7, 9), ((3, 4),), {}, "_adaptive_avg_pool2d"),
    "adaptive_avg1d": ("adaptive_avg_pool1d", (2, 2, 7), (3,), {}, "_adaptive_avg_pool2d"),
    "adaptive_avg3d": ("adaptive_avg_pool3d", (1, 2, 5, 6, 7), (2,), {}, "_adaptive_avg_pool3d"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pooling_is_pytorchs_both_ways(name):
    function, shape, arguments, options, kernel = CASES[name]
    torch.manual_seed(0)
    raw = torch.randn(shape, dtype=torch.float64)
    reference = raw.clone().requires_grad_()
    expected = getattr(functional, function)(reference, *arguments, **options)
    g = torch.randn_like(expected)
    (gradient,) = torch.autograd.grad(expected, reference, g)
    x = pb.asarray(raw).set_requires_grad(True)
    names, out = names_of_calls(lambda: getattr(pb, function)(x, *arguments, **options))
    assert kernel in names
    torch.testing.assert_close(out._raw, expected.detach())
    names, found = names_of_calls(lambda: pb.backward(out, gradient=pb.asarray(g)))
    if "avg" in function:
        assert f"{kernel}_backward" in names
    torch.testing.assert_close(found[x]._raw, gradient)


def test_positions_of_maxima_are_those_of_numpy_with_ties_and_nan():
    torch.zeros(1)
    values = np.array([[[[1.0, 1.0, np.nan, 2.0], [1.0, np.nan, 0.0, 2.0], [3.0, 3.0, 3.0, 3.0]]]])
    for options in ({"kernel_size": 2, "stride": 1}, {"kernel_size": 3, "stride": 2, "padding": 1}):
        out, indices = pb.max_pool2d(pb.asarray(torch.tensor(values)), **options, return_indices=True)
        expected, places = pb.max_pool2d(pb.asarray(values), **options, return_indices=True)
        np.testing.assert_array_equal(out.numpy(), expected.numpy())
        np.testing.assert_array_equal(indices.numpy(), places.numpy())


def test_interpolation_copies_no_table_to_the_device_twice():
    x = pb.asarray(torch.randn(1, 2, 5, 6))
    first = pb.interpolate(x, size=(7, 3), mode="bilinear")
    names, again = names_of_calls(lambda: pb.interpolate(x, size=(7, 3), mode="bilinear"))
    assert "_to_copy" not in names
    torch.testing.assert_close(again._raw, first._raw)


@pytest.mark.parametrize("shape", [(6, 5), (4, 5, 7), (3, 5, 4, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_is_pytorchs_both_ways(shape, affine):
    torch.manual_seed(0)
    raws = [torch.randn(shape, dtype=torch.float64)]
    raws += [torch.randn(5, dtype=torch.float64) for _ in range(2)] if affine else []
    theirs = [raw.clone().requires_grad_() for raw in raws]
    running = torch.zeros(5, dtype=torch.float64), torch.ones(5, dtype=torch.float64)
    expected = functional.batch_norm(
        theirs[0], *(r.clone() for r in running), *theirs[1:], training=True, momentum=0.3, eps=1e-3
    )
    g = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, theirs, g)
    ours = [pb.asarray(raw).set_requires_grad(True) for raw in raws]
    given = [pb.asarray(r) for r in running]
    names, (out, mean, variance) = names_of_calls(
        lambda: pb.batch_norm(ours[0], *given, *ours[1:], training=True, momentum=0.3, eps=1e-3)
    )
    assert "native_batch_norm" in names
    torch.testing.assert_close(out._raw, expected.detach())
    functional.batch_norm(theirs[0], *running, training=True, momentum=0.3)
    torch.testing.assert_close(mean._raw, running[0])
    torch.testing.assert_close(variance._raw, running[1])
    names, found = names_of_calls(lambda: pb.backward(out, gradient=pb.asarray(g)))
    assert "native_batch_norm_backward" in names
    for x, gradient in zip(ours, gradients):
        torch.testing.assert_close(found[x]._raw, gradient)


def test_a_variance_much_smaller_than_eps_is_exact():
    x = torch.ones(4, 2, 3, dtype=torch.float64) + 1e-9 * torch.arange(24.0, dtype=torch.float64).reshape(4, 2, 3)
    variance = pb.batch_norm(pb.asarray(x), *(pb.asarray(torch.zeros(2).double()),) * 2, training=True, momentum=1.0)[2]
    torch.testing.assert_close(variance._raw, x.transpose(0, 1).flatten(1).var(1), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize(
    ("key", "offset", "count"),
    [(2**63 + 5, 0, 100), (1, 4 * (2**32 - 10), 1000), (2**64 - 1, 4 * (2**64 - 1), 8), (7, 6, 33)],
)
def test_words_of_pytorch_are_those_of_numpy(key, offset, count):
    torch.zeros(1)
    from pullback.backends.torch_random import words

    found = words(key, offset, count, torch.device("cpu")).numpy()
    np.testing.assert_array_equal(found, philox_uint32(key, offset, count))


def test_dropout_is_numpys():
    torch.zeros(1)
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    pb.random.seed(3)
    expected = pb.dropout(pb.asarray(x), 0.4)
    pb.random.seed(3)
    found = pb.dropout(pb.asarray(torch.tensor(x)), 0.4)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("windows", [
    (Window(7, 3, 3, 2, 0, 1), Window(6, 3, 3, 2, 1, 1)),
    (Window(7, 4, 2, 2, 0, 1), Window(6, 3, 2, 2, 0, 1)),  # the last one goes beyond the end
    (Adaptive(7, 3), Adaptive(6, 4)),
])  # fmt: skip
def test_what_follows_maxima_back_adds_up_what_belongs_to_each_place(windows, last):
    xp = backends.for_device("torch:cpu")[0].xp
    x = torch.randn(2, 3, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    pooled, indices = xp.max_pool(x, windows)
    found = xp.max_pool_gradient(pooled * pooled, indices, windows)
    torch.testing.assert_close(found, xp.pool_scatter(pooled * pooled, indices, (7, 6)))
