"""Losses: extremes, what is ignored, dtypes, errors, and the portable kernels."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from ..backends.installed import BFLOAT16, optional
from .portable_namespace import PORTABLE

torch = optional("torch")

LOGITS = np.random.default_rng(0).normal(size=(6, 5))
CLASSES = np.array([0, 4, -100, 2, 2, -100])


def value_and_gradient(function, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    variable = pb.tensor(x, requires_grad=True)
    loss = function(variable)
    return loss._raw, pb.backward(loss, gradient=np.ones(loss.shape, x.dtype))[variable]._raw


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_all_ignored_is_zero_with_zero_gradient(reduction: str, label_smoothing: float) -> None:
    ignored = np.full(6, -100)
    loss, gradient = value_and_gradient(
        lambda x: pb.cross_entropy(x, ignored, reduction=reduction, label_smoothing=label_smoothing), LOGITS
    )
    assert loss == 0
    assert not gradient.any()


def test_ignored_samples_may_be_infinite() -> None:
    x = LOGITS.copy()
    x[2] = np.inf
    x[5] = np.nan
    loss, gradient = value_and_gradient(lambda t: pb.cross_entropy(t, CLASSES), x)
    kept = CLASSES >= 0
    expected = torch.nn.functional.cross_entropy(torch.tensor(LOGITS[kept]), torch.tensor(CLASSES[kept]))
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    assert not gradient[~kept].any()


def test_huge_logits() -> None:
    x = np.array([[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4]])
    loss, gradient = value_and_gradient(lambda t: pb.cross_entropy(t, np.array([0, 0]), reduction="none"), x)
    np.testing.assert_array_equal(loss, [0, 2e4])
    np.testing.assert_array_equal(gradient, [[0, 0, 0], [-1, 0, 1]])
    x = np.array([[0.0, -np.inf, 0.0]])
    loss, gradient = value_and_gradient(lambda t: pb.cross_entropy(t, np.array([2])), x)
    assert loss == pytest.approx(np.log(2))
    np.testing.assert_array_equal(gradient, [[0.5, 0, -0.5]])


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_offset_of_the_logits_does_not_cost_precision(label_smoothing: float, weighted: bool) -> None:
    x = np.array([[0.0, 1.0, 2.0], [2.0, 2.0, 2.0]], np.float32)
    weight = np.array([1.0, 2.0, 3.0], np.float32) if weighted else None

    def loss(t: pb.Tensor) -> pb.Tensor:
        return pb.cross_entropy(t, np.array([1, 0]), weight, reduction="none", label_smoothing=label_smoothing)

    arguments = (np.array([1, 0]), weight, -100, "none", label_smoothing)
    for offset in (1e4, 1e7, -1e7):
        moved = x + np.float32(offset)
        for found, expected in zip(value_and_gradient(loss, moved), value_and_gradient(loss, x)):
            np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)
        portable = PORTABLE.cross_entropy(moved, *arguments)
        np.testing.assert_allclose(portable[0], value_and_gradient(loss, x)[0], rtol=2e-6)


@pytest.mark.parametrize("shape", [(700, 300), (3, 50, 4000), (2, 7, 3, 5)])
def test_many_logits_are_looked_at_in_blocks(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape).astype(np.float32)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    loss, gradient = value_and_gradient(lambda t: pb.cross_entropy(t, target), x)
    theirs = torch.tensor(x, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(theirs, torch.tensor(target))
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    np.testing.assert_allclose(gradient, theirs.grad.numpy(), atol=1e-7)


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
def test_half_precision_is_added_up_in_single_precision(dtype) -> None:
    n = 30000
    x = pb.asarray(np.zeros((n, 2)), dtype=dtype).set_requires_grad(True)
    loss = pb.cross_entropy(x, np.zeros(n, int), reduction="mean")
    assert loss.dtype == dtype
    assert abs(float(loss._raw) - np.log(2)) < 0.01
    assert pb.mse_loss(x, pb.asarray(np.ones((n, 2)), dtype=dtype))._raw == 1
    assert pb.backward(pb.mse_loss(x, pb.asarray(np.ones((n, 2)), dtype=dtype)))[x].dtype == dtype


def test_binary_cross_entropy_at_extremes() -> None:
    x = np.array([-1e5, -50.0, 0.0, 50.0, 1e5])
    for y in (0.0, 0.25, 1.0):
        loss, gradient = value_and_gradient(
            lambda t, y=y: pb.binary_cross_entropy_with_logits(t, np.full(5, y), reduction="none"), x
        )
        np.testing.assert_allclose(loss, np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))), rtol=1e-15)
        assert np.isfinite(gradient).all()
    assert pb.binary_cross_entropy_with_logits(x, np.array([0, 1, 0, 1, 1])).dtype == pb.float64


def test_probabilities_of_zero_and_one_have_pytorchs_losses_and_slopes() -> None:
    x = np.array([0.0, 1.0, 0.0, 1.0, 1e-300, 1e-20, 0.3])
    y = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5])
    tensor = torch.tensor(x, requires_grad=True)
    expected = torch.nn.functional.binary_cross_entropy(tensor, torch.tensor(y), reduction="none")
    (slopes,) = torch.autograd.grad(expected.sum(), tensor)
    with np.errstate(all="raise", under="ignore"):
        loss, gradient = value_and_gradient(lambda t: pb.binary_cross_entropy(t, y, reduction="none"), x)
    np.testing.assert_allclose(loss, expected.detach(), rtol=1e-14)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-8)  # PyTorch's 1e-12 is one of single precision
    slopes = gradient
    total = lambda t: pb.binary_cross_entropy(t, y, reduction="sum")
    each = lambda t, y: pb.binary_cross_entropy(t, y)
    mapped = lambda t: pb.vmap(each)(t, pb.asarray(y)).sum()
    for function in (pb.grad(total), pb.compile(pb.grad(total)), pb.grad(mapped)):
        np.testing.assert_allclose(function(pb.asarray(x)), slopes, rtol=1e-14)
    np.testing.assert_allclose(pb.vmap(pb.grad(each))(x, y), slopes, rtol=1e-14)
    _, by_target = value_and_gradient(lambda t: pb.binary_cross_entropy(x, t, reduction="none"), y)
    assert np.isfinite(by_target).all()
    assert np.isnan(pb.binary_cross_entropy(np.array([np.nan]), np.zeros(1)).item())


@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers_that_are_no_probabilities_have_no_loss() -> None:
    assert np.isnan(pb.binary_cross_entropy(np.array([1.5, -0.5]), np.ones(2), reduction="none")._raw).tolist() == [
        True,
        True,
    ]


def test_nll_loss_of_ignored_and_impossible_classes() -> None:
    x = np.log(np.array([[0.5, 0.5], [0.1, 0.9], [0.2, 0.8]]))
    x[1] = [-np.inf, np.nan]
    loss, gradient = value_and_gradient(lambda t: pb.nll_loss(t, np.array([0, 7, 1]), ignore_index=7), x)
    assert loss == pytest.approx(-np.log([0.5, 0.8]).mean(), rel=1e-14)
    np.testing.assert_array_equal(gradient, [[-0.5, 0], [0, 0], [0, -0.5]])
    loss, gradient = value_and_gradient(lambda t: pb.nll_loss(t, np.full(3, -100), np.ones(2)), x)
    assert loss == 0 and not gradient.any()
    for wrong in ([0, -1, 1], [0, 2, 1]):
        with pytest.raises(pb.IndexingError, match="nll_loss: class numbers must be from 0 to 1"):
            pb.nll_loss(x, np.array(wrong))
    logs = pb.log_softmax(LOGITS, 1)
    for options in ({}, {"weight": np.arange(1.0, 6)}, {"reduction": "sum"}, {"reduction": "none"}):
        np.testing.assert_allclose(
            pb.nll_loss(logs, CLASSES, **options)._raw, pb.cross_entropy(LOGITS, CLASSES, **options)._raw, rtol=1e-14
        )
    small = pb.nll_loss(pb.zeros((4, 300), dtype=pb.float16), np.zeros(4, np.int8))
    assert small.dtype == pb.float16 and small.item() == 0


def test_kl_div_of_what_never_happens_is_zero() -> None:
    x, target = np.array([-np.inf, -1.0, 0.0]), np.array([0.0, 0.5, 0.0])
    logs = np.array([-np.inf, np.log(0.5), -np.inf])
    for function, second in ((lambda t, u: pb.kl_div(t, u, "none"), target), (
        lambda t, u: pb.kl_div(t, u, "none", log_target=True), logs,
    )):  # fmt: skip
        with np.errstate(all="raise"):
            loss, gradient = value_and_gradient(lambda t, f=function, u=second: f(t, u), x)
            _, by_target = value_and_gradient(lambda u, f=function: f(x, u), second)
        np.testing.assert_allclose(loss, [0, 0.5 * (np.log(0.5) + 1), 0], rtol=1e-14)
        np.testing.assert_allclose(gradient, [0, -0.5, 0], rtol=1e-14)
        assert np.isfinite(by_target).all() and by_target[1] != 0
    assert pb.kl_div(np.zeros((4, 3)), np.ones((4, 3)), "batchmean").item() == 0
    with pytest.raises(ValueError, match='"mean", "batchmean", "sum" or "none", got "avg"'.replace('"avg"', "'avg'")):
        pb.kl_div(x, target, "avg")
    with pytest.raises(pb.ShapeError, match="no first axis"):
        pb.kl_div(np.array(0.0), np.array(1.0), "batchmean")


def test_smooth_l1_loss_becomes_l1_loss() -> None:
    x = np.array([-2.0, -0.0, 1e-9, 0.5, 3.0])
    for beta in (0.0, 1e-12):
        loss, gradient = value_and_gradient(lambda t, b=beta: pb.smooth_l1_loss(t, np.zeros(5), "none", b), x)
        np.testing.assert_allclose(loss, np.abs(x), atol=1e-12)
        np.testing.assert_array_equal(gradient, np.sign(x))
    with pytest.raises(ValueError, match="beta must not be negative"):
        pb.smooth_l1_loss(x, x, beta=-1.0)


def test_kinks() -> None:
    _, gradient = value_and_gradient(lambda t: pb.l1_loss(t, np.zeros(3), "sum"), np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(gradient, [-1, 0, 1])
    loss, gradient = value_and_gradient(
        lambda t: pb.huber(t, np.zeros(4), "none", 2.0), np.array([-5.0, -2.0, 0.0, 2.0])
    )
    np.testing.assert_array_equal(loss, [8, 2, 0, 2])
    np.testing.assert_array_equal(gradient, [-2, -2, 0, 2])


def test_errors_say_what_was_given() -> None:
    with pytest.raises(pb.ShapeError, match=r"x has shape \(3, 1\), target \(3,\)"):
        pb.mse_loss(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="reduction must be"):
        pb.l1_loss(np.zeros(3), np.zeros(3), reduction="avg")
    with pytest.raises(ValueError, match="delta must be positive"):
        pb.huber_loss(np.zeros(3), np.zeros(3), delta=0)
    with pytest.raises(IndexError, match="from 0 to 5 for 5 classes"):
        pb.cross_entropy(LOGITS, np.array([0, 1, 2, 3, 4, 5]))
    with pytest.raises(pb.ShapeError, match=r"target has shape \(5,\), expected \(6,\)"):
        pb.cross_entropy(LOGITS, np.zeros(5, int))
    with pytest.raises(pb.ShapeError, match=r"expected \(2, 5\) .*Classes are along axis 1: .*swapaxes\(1, -1\)"):
        pb.cross_entropy(np.zeros((2, 3, 5)), np.zeros((2, 3), int))
    with pytest.raises(pb.ShapeError, match="probabilities have shape"):
        pb.cross_entropy(LOGITS, np.zeros(6))
    with pytest.raises(pb.DtypeError, match="int64"):
        pb.cross_entropy(np.zeros((2, 2), int), np.zeros(2, int))
    with pytest.raises(pb.ShapeError, match="weight has shape"):
        pb.cross_entropy(LOGITS, CLASSES, np.ones(4))
    with pytest.raises(ValueError, match="label_smoothing"):
        pb.cross_entropy(LOGITS, CLASSES, label_smoothing=2)
    with pytest.raises(pb.ShapeError, match="pos_weight"):
        pb.binary_cross_entropy_with_logits(LOGITS, LOGITS, pos_weight=np.ones(4))
    with pytest.raises(pb.GradientError, match="weight"):
        pb.cross_entropy(LOGITS, CLASSES, pb.tensor(np.ones(5), requires_grad=True))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 6)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
@pytest.mark.parametrize("positions", [(), (2, 3)])
def test_portable_cross_entropy_agrees(reduction: str, weight, label_smoothing: float, positions: tuple) -> None:
    rng = np.random.default_rng(2)
    x, target = rng.normal(size=(4, 5, *positions)), rng.integers(0, 5, (4, *positions))
    target[0] = 9
    static = 9, reduction, label_smoothing
    expected = NUMPY.xp.cross_entropy(x, target, weight, *static)
    found = PORTABLE.cross_entropy(x, target, weight, *static)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-13)
    g = rng.normal(size=expected[0].shape)
    gradients = [xp.cross_entropy_gradient(g, x, target, weight, *expected[1:], *static) for xp in (NUMPY.xp, PORTABLE)]
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-12, atol=1e-15)
    soft = rng.dirichlet(np.ones(5), (4, *positions))
    soft = np.moveaxis(soft, -1, 1)
    pair = [xp.soft_cross_entropy(x, soft, weight, reduction, label_smoothing) for xp in (NUMPY.xp, PORTABLE)]
    np.testing.assert_allclose(pair[1], pair[0], rtol=1e-13)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_other_portable_kernels_agree(reduction: str) -> None:
    rng = np.random.default_rng(3)
    x, y, weight, pos_weight = (
        rng.normal(size=(4, 3)),
        rng.uniform(size=(4, 3)),
        rng.uniform(size=3),
        rng.uniform(size=(4, 1)),
    )
    for name, arguments in {
        "mse_loss": (x, y, reduction),
        "l1_loss": (x, y, reduction),
        "huber_loss": (x, y, reduction, 0.5),
        "binary_cross_entropy": (np.clip(y, 0.2, 1), y, weight, reduction),
        "binary_cross_entropy_with_logits": (x, y, weight, pos_weight, reduction),
    }.items():
        np.testing.assert_allclose(
            getattr(PORTABLE, name)(*arguments), getattr(NUMPY.xp, name)(*arguments), rtol=1e-13, err_msg=name
        )
