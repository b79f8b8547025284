"""Accumulated gradients are those of one big batch, for micro-batches of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

SIZES = {"equal": [4, 4, 4], "unequal": [1, 7, 4], "one": [12], "with an empty one": [5, 0, 7]}
DATA = np.random.default_rng(0).normal(size=(12, 3))
LABELS = np.arange(12) % 4


def model(seed: int = 1) -> list[pb.Tensor]:
    generator = np.random.default_rng(seed)
    return [pb.tensor(generator.normal(size=shape), requires_grad=True) for shape in ((4, 3), (4,))]


def loss_sum(parameters: list[pb.Tensor], rows: slice, reduction: str = "sum") -> pb.Tensor:
    return pb.cross_entropy(pb.linear(pb.asarray(DATA[rows]), *parameters), LABELS[rows], reduction=reduction)


def micro_batches(sizes: list[int]) -> list[slice]:
    ends = np.cumsum(sizes)
    return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes)]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_gradients_are_those_of_one_big_batch(sizes: list[int]) -> None:
    parameters = model()
    accumulation = pb.optim.Accumulation()
    for rows in micro_batches(sizes):
        accumulation.backward(loss_sum(parameters, rows), rows.stop - rows.start)
    assert (accumulation.weight, accumulation.micro_batches) == (12, len(sizes))
    big = loss_sum(parameters, slice(None), "mean")
    assert accumulation.mean_loss == pytest.approx(big.item(), rel=1e-12)
    expected, found = pb.backward(big), accumulation.gradients()
    for parameter in parameters:
        np.testing.assert_allclose(found[parameter].numpy(), expected[parameter].numpy(), rtol=1e-12, atol=1e-15)


def test_the_mean_of_means_is_something_else() -> None:
    parameters = model()
    rows = micro_batches(SIZES["unequal"])
    big = pb.backward(loss_sum(parameters, slice(None), "mean"))[parameters[0]].numpy()
    means = [pb.backward(loss_sum(parameters, part, "mean"))[parameters[0]].numpy() for part in rows]
    assert np.abs(np.mean(means, axis=0) - big).max() > 0.05 * np.abs(big).max()


def test_masked_tokens_weigh_nothing() -> None:
    parameters = model()
    masked = np.where(np.arange(12) % 3 == 0, -100, LABELS)
    logits = pb.linear(pb.asarray(DATA), *parameters)
    expected = pb.backward(pb.cross_entropy(logits, masked))[parameters[0]]
    accumulation = pb.optim.Accumulation()
    for rows in micro_batches([2, 9, 1]):
        part = pb.linear(pb.asarray(DATA[rows]), *parameters)
        weight = (masked[rows] != -100).sum()
        accumulation.backward(pb.cross_entropy(part, masked[rows], reduction="sum"), weight)
    np.testing.assert_allclose(accumulation.gradients()[parameters[0]].numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("clip_norm", [None, 0.01])
def test_steps_are_those_of_one_big_batch(scaled: bool, clip_norm: float | None) -> None:
    ours, reference = model(), model()
    optimizer, expected = (pb.optim.Adam(parameters, lr=0.1) for parameters in (ours, reference))
    scaler = pb.optim.LossScaler() if scaled else None
    accumulation = pb.optim.Accumulation(scaler)
    for sizes in SIZES.values():
        for rows in micro_batches(sizes):
            accumulation.backward(loss_sum(ours, rows), rows.stop - rows.start)
        assert accumulation.step(optimizer, clip_norm)
        assert accumulation.weight == accumulation.micro_batches == 0
        if scaler is not None:
            scaler.update()
        grads = pb.backward(loss_sum(reference, slice(None), "mean"))
        if clip_norm is not None:
            assert grads.clip_global_norm(clip_norm).item() > clip_norm
        expected.step(grads)
    for mine, other in zip(ours, reference):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-9)


def test_an_overflow_in_one_micro_batch_skips_the_step() -> None:
    parameters = model()
    optimizer, scaler = pb.optim.SGD(parameters, lr=0.1), pb.optim.LossScaler()
    accumulation = pb.optim.Accumulation(scaler)
    accumulation.backward(loss_sum(parameters, slice(0, 4)), 4)
    accumulation.backward(loss_sum(parameters, slice(4, 12)) * float("inf"), 8)
    assert not accumulation.step(optimizer, clip_norm=1.0)
    scaler.update()
    assert scaler.get_scale() == 2.0**15
    for mine, other in zip(parameters, model()):
        np.testing.assert_array_equal(mine.detach().numpy(), other.detach().numpy())
    accumulation.backward(loss_sum(parameters, slice(0, 4)), 4)
    assert accumulation.step(optimizer)


def test_the_scale_must_not_change_between_micro_batches() -> None:
    parameters, scaler = model(), pb.optim.LossScaler()
    accumulation = pb.optim.Accumulation(scaler)
    accumulation.backward(loss_sum(parameters, slice(0, 4)), 4)
    scaler.load_state_dict({**scaler.state_dict(), "scale": 2.0})
    with pytest.raises(pb.GradientError, match=r"from 65536\.0 to 2\.0"):
        accumulation.backward(loss_sum(parameters, slice(4, 12)), 8)
    assert accumulation.weight == 4


def test_a_total_weight_of_zero_is_an_error_that_loses_nothing() -> None:
    parameters = model()
    optimizer, accumulation = pb.optim.SGD(parameters), pb.optim.Accumulation()
    for expected in ("no micro-batch", "1 micro-batches have a total weight of 0"):
        for call in (accumulation.gradients, lambda: accumulation.step(optimizer), lambda: accumulation.mean_loss):
            with pytest.raises(pb.GradientError, match=expected):
                call()
        accumulation.backward(0.0 * loss_sum(parameters, slice(0, 4)), 0)
    accumulation.backward(loss_sum(parameters, slice(0, 4)), 4)
    assert accumulation.step(optimizer)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf")])
def test_bad_weights_are_refused(weight: Any) -> None:
    accumulation = pb.optim.Accumulation()
    loss = loss_sum(model(), slice(0, 4))
    with pytest.raises(pb.GradientError, match="weight must be finite"):
        accumulation.backward(loss, weight)
    accumulation.backward(loss, pb.asarray(4))  # nothing was walked before


def test_an_error_in_a_micro_batch_changes_nothing() -> None:
    parameters = model()
    accumulation = pb.optim.Accumulation()
    accumulation.backward(loss_sum(parameters, slice(0, 4)), 4)
    with pytest.raises(pb.NumericalInstabilityError):
        accumulation.backward(loss_sum(parameters, slice(4, 8)) * float("nan"), 4)
    with pytest.raises(ValueError, match="clip_norm"):
        accumulation.step(pb.optim.SGD(parameters), clip_norm=0.0)
    expected = pb.backward(loss_sum(parameters, slice(0, 4), "mean"))[parameters[0]]
    np.testing.assert_allclose(accumulation.gradients()[parameters[0]].numpy(), expected.numpy(), rtol=1e-12)


def test_reset_forgets() -> None:
    parameters = model()
    accumulation = pb.optim.Accumulation()
    accumulation.backward(loss_sum(parameters, slice(4, 12)), 8)
    accumulation.reset()
    accumulation.backward(loss_sum(parameters, slice(0, 4)), 4)
    expected = pb.backward(loss_sum(parameters, slice(0, 4), "mean"))[parameters[0]]
    np.testing.assert_allclose(accumulation.gradients()[parameters[0]].numpy(), expected.numpy(), rtol=1e-12)
