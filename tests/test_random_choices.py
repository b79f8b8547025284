"""pb.random: choices by weights and by logits, and generators that are split, on every device, compiled and mapped."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy.random import joined

from .backends.installed import optional, require

stats = optional("scipy.stats")

WEIGHTS = np.array([0.1, 0.0, 0.5, 0.4])


def counts_of(drawn: Any, length: int) -> np.ndarray:
    return np.bincount(np.asarray(drawn).ravel(), minlength=length)


def fits(drawn: Any, weights: np.ndarray) -> bool:
    counts = counts_of(drawn, len(weights))
    assert not counts[weights == 0].any()
    expected = (weights / weights.sum() * counts.sum())[weights > 0]
    return stats.chisquare(counts[weights > 0], expected).pvalue > 1e-3


def test_drawn_as_often_as_weights_say() -> None:
    g = pb.random.Generator(0)
    n = 20_000
    with np.errstate(divide="ignore"):
        logits = np.log(WEIGHTS) + 7.0
    assert fits(g.categorical(logits, (n,)), WEIGHTS)
    assert fits(g.multinomial(pb.asarray(WEIGHTS), n, replace=True), WEIGHTS)
    assert fits(g.choice(4, (n,), p=WEIGHTS), WEIGHTS)
    assert fits(g.choice(4, (n,), p=(3 * WEIGHTS).tolist()), WEIGHTS)
    assert fits(g.choice(4, (n,), p=pb.asarray(WEIGHTS)), WEIGHTS)
    first = g.multinomial(pb.asarray(np.broadcast_to(WEIGHTS, (n, 4))), 2)
    assert fits(first[:, 0], WEIGHTS)
    # the second is drawn in proportion to what is left: the chance of {0, 2} in either order
    pair = 0.1 * 0.5 / 0.9 + 0.5 * 0.1 / 0.5
    found = np.mean(np.sort(np.asarray(first), axis=1).tolist() == np.array([0, 2]), axis=1) == 1.0
    assert abs(found.mean() - pair) < 0.015


@pytest.mark.parametrize("scale", [1e-39, 1e38], ids=str)
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_weights_of_any_size(scale: float, device: str) -> None:
    require(device)
    g = pb.random.Generator(0)
    weights = np.array([0.0, 1.0, 2.0]) * scale
    narrow = pb.asarray(weights.astype(np.float32), device=device)
    assert fits(g.multinomial(narrow, 5000, replace=True).to_device("numpy"), weights)
    assert set(g.multinomial(narrow, 2).tolist()) == {1, 2}
    assert g.multinomial(pb.asarray(np.float32([0.0, 1e-39, 1.0]), device=device), 2).tolist() == [2, 1]


def test_weights_whose_sum_is_too_large() -> None:
    weights = np.array([0.0, 1.5e308, 1.5e308])
    assert fits(pb.random.Generator(0).choice(3, (5000,), p=weights), weights / 1e308)


def test_orders_of_equal_numbers_are_the_same_on_every_machine() -> None:
    class Tied(pb.random.Generator):
        def _made(self, *args: Any, **options: Any) -> Any:
            return super()._made(*args, **options) % np.uint64(7)

    drawn = pb.random.Generator(3)._made((1000,), 2, joined) % np.uint64(7)
    assert Tied(3).permutation(1000).tolist() == np.argsort(drawn, kind="stable").tolist()


def test_gumbel_numbers() -> None:
    drawn = np.asarray(pb.random.Generator(2).gumbel((60_000,), 1.0, 2.0, dtype="float64"))
    assert stats.kstest(drawn, stats.gumbel_r(1.0, 2.0).cdf).pvalue > 0.01


def test_shapes_axes_and_kinds() -> None:
    g = pb.random.Generator(1)
    logits = np.zeros((2, 5, 3))
    assert g.categorical(logits).shape == (2, 5)
    assert g.categorical(logits, axis=1).shape == (2, 3)
    assert g.categorical(logits, (4, 2, 5)).shape == (4, 2, 5)
    assert g.categorical([1, 2, 3]).shape == ()
    assert g.categorical(np.zeros((0, 3))).shape == (0,)
    assert g.categorical(np.zeros(1), (3,)).tolist() == [0, 0, 0]
    assert g.categorical(np.zeros((1, 3)), (4,)).dtype == pb.int64
    assert g.multinomial([1, 2, 3]).shape == (1,)
    assert g.multinomial(np.ones((2, 3)), 0).shape == (2, 0)
    assert g.multinomial(np.ones((0, 3)), 2).shape == (0, 2)
    assert sorted(g.multinomial(np.ones(3), 3).tolist()) == [0, 1, 2]
    rows = np.arange(12.0).reshape(4, 3)
    assert g.choice(rows, (2, 2), p=WEIGHTS).shape == (2, 2, 3)
    assert g.choice(rows, (), axis=1, p=[0.0, 1.0, 0.0]).tolist() == rows[:, 1].tolist()
    assert sorted(g.choice(4, (3,), replace=False, p=WEIGHTS).tolist()) == [0, 2, 3]
    chosen = g.choice(pb.tensor([1.0, 2.0], requires_grad=True), (3,), p=[1.0, 1.0])
    assert chosen.requires_grad


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda g: g.choice(3, (2,), p=[0.5, 0.5]), pb.ShapeError, r"expected \(3,\)"),
        (lambda g: g.choice(3, (2,), p=[0.5, -0.5, 1.0]), ValueError, "not negative"),
        (lambda g: g.choice(3, (2,), p=[0.0, 0.0, 0.0]), ValueError, "only 0 weights"),
        (lambda g: g.choice(3, (2,), replace=False, p=[0.0, 1.0, 0.0]), ValueError, "only 1 weights"),
        (lambda g: g.choice(np.ones(3), (2,), axis=1), pb.ShapeError, "axis 1"),
        (lambda g: g.multinomial([0.5, np.nan], 1), ValueError, "finite"),
        (lambda g: g.multinomial([1.0, 1.0], 3), pb.ShapeError, "replace=True"),
        (lambda g: g.multinomial([1.0, 0.0], 2), ValueError, "only 1 weights"),
        (lambda g: g.multinomial(1.0), pb.ShapeError, r"\(\.\.\., K\)"),
        (lambda g: g.multinomial([1.0], -1), ValueError, "count is -1"),
        (lambda g: g.multinomial(np.ones((2, 0)), 1, replace=True), pb.ShapeError, "empty"),
        (lambda g: g.categorical(np.ones((2, 3)), (4,)), pb.ShapeError, "do not fit"),
        (lambda g: g.categorical(np.ones((2, 3)), axis=2), pb.ShapeError, "axis 2"),
        (lambda g: g.categorical(np.ones((2, 0))), pb.ShapeError, "empty"),
        (lambda g: g.categorical(np.ones(2) * 1j), pb.DtypeError, "complex128"),
        (lambda g: g.categorical([0.0, np.nan]), ValueError, "NaN"),
        (lambda g: g.categorical([[0.0, 1.0], [-np.inf, -np.inf]]), ValueError, "-inf for every class"),
        (lambda g: g.gumbel((2,), scale=-1.0), ValueError, "negative"),
        (lambda g: g.split(-1), ValueError, "count is -1"),
    ],
)
def test_errors_say_what_was_given_and_leave_the_state(call: Any, error: Any, text: str) -> None:
    generator = pb.random.Generator(0)
    generator.next_key(12)
    with pytest.raises(error, match=text):
        call(generator)
    assert generator.state == {"key": 0, "offset": 12}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: pb.random.normal(size=3), "normal.*`shape=`"),
        (lambda: pb.random.normal((3,), loc=1.0, scale=2.0), "`mean=`"),
        (lambda: pb.random.uniform((3,), minval=1.0), "`low=`"),
        (lambda: pb.random.exponential(size=3), "exponential.*`shape=`"),
        (lambda: pb.random.gumbel(size=3), "gumbel.*`shape=`"),
        (lambda: pb.random.bernoulli(0.5, size=3), "bernoulli.*`shape=`"),
        (lambda: pb.random.integers(3, size=3), "integers.*`shape=`"),
        (lambda: pb.random.choice(3, size=3), "choice.*`shape=`"),
        (lambda: pb.random.permutation([1, 2], dim=0), "permutation.*`axis=`"),
        (lambda: pb.random.categorical([1.0, 2.0], dim=0), "categorical.*`axis=`"),
        (lambda: pb.random.multinomial([1.0, 2.0], num_samples=1, replacement=True), "multinomial.*`count=`"),
    ],
)
def test_other_libraries_keywords_lead_to_ours(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def draws(logits: Any, weights: Any) -> Any:
    first, second = pb.random.split(2)
    (third,) = second.split(1)
    return (
        first.categorical(logits),
        second.multinomial(weights, 2),
        pb.random.multinomial(weights, 3, replace=True),
        pb.random.choice(4, (3,), p=weights),
        pb.random.choice(4, (2,), replace=False, p=[0.2, 0.2, 0.3, 0.3]),
        third.uniform((2,)),
        first.normal((2,)),
        pb.random.gumbel((2,)),
        pb.random.permutation(4),
    )


def numbers(result: Any) -> list[Any]:
    return [x.tolist() for x in result]


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_every_device_has_the_same_numbers(device: str) -> None:
    require(device)
    logits, weights = np.log(WEIGHTS + 0.1).astype(np.float32).reshape(2, 2), WEIGHTS.astype(np.float32)
    with pb.random.using(3):
        here = numbers(draws(pb.asarray(logits), pb.asarray(weights)))
    with pb.random.using(3):
        drawn = draws(pb.asarray(logits, device=device), pb.asarray(weights, device=device))
    assert numbers(drawn) == here
    assert drawn[0].device == drawn[2].device == pb.asarray(logits, device=device).device


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_compiled_functions_draw_and_split_as_they_do(device: str) -> None:
    require(device)
    step = pb.compile(draws)
    logits = pb.asarray(np.zeros((2, 3), np.float32), device=device)
    weights = pb.asarray(WEIGHTS.astype(np.float32), device=device)
    with pb.random.using(5):
        expected = [numbers(draws(logits, weights)) for _ in range(3)]
    with pb.random.using(5):
        found = [numbers(step(logits, weights)) for _ in range(3)]
    assert found == expected
    assert found[0] != found[1]


def test_dropout_with_a_generator_that_was_split_off() -> None:
    def dropped(x: pb.Tensor) -> Any:
        (own,) = pb.random.split(1)
        with pb.random.using(own):
            return pb.dropout(pb.dropout(x, 0.5), 0.5)

    x = pb.ones((50,))
    step = pb.compile(dropped)
    with pb.random.using(5):
        expected = [numbers([dropped(x)]) for _ in range(2)]
    with pb.random.using(5):
        assert [numbers([step(x)]) for _ in range(2)] == expected


@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing(), pb.BudgetCheckpointing(0)])
def test_choices_are_the_same_when_they_are_drawn_again(strategy: Any) -> None:
    def loss(x: Any) -> Any:
        (own,) = pb.random.split(1)
        noise = own.gumbel(x.shape)
        rows = own.choice(3, (2,), p=[0.2, 0.3, 0.5])
        return (pb.softmax(x + noise, axis=-1)[rows] * own.categorical(x)[rows][:, None]).sum()

    x = pb.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4) / 5)
    with pb.random.using(1):
        expected = pb.grad(loss)(x).tolist()
    with pb.random.using(1), pb.checkpointing(strategy):
        assert pb.grad(loss)(x).tolist() == expected


def test_many_examples_draw_their_own_or_the_same() -> None:
    logits, weights = pb.zeros((64, 5)), pb.asarray(np.broadcast_to(WEIGHTS, (64, 4)))

    def f(l: Any, w: Any) -> Any:
        return pb.random.categorical(l), pb.random.multinomial(w, 2), pb.random.choice(4, (2,), p=w)

    for randomness in ("different", "same"):
        with pb.random.using(0):
            found = pb.vmap(f, randomness=randomness)(logits, weights)
        for rows in found:
            alike = len(np.unique(np.asarray(rows).reshape(64, -1), axis=0)) == 1
            assert alike == (randomness == "same")
        assert not (np.asarray(found[1]) == 1).any()
    for weights in ([0.5, 0.5, 0.0], np.array([0.5, 0.5, 0.0])):
        for replace in (True, False):
            chosen = partial(pb.random.choice, 3, (2,), replace=replace, p=weights)
            with pb.random.using(0):
                rows = np.asarray(pb.vmap(lambda l, f=chosen: f() + l[:2], randomness="different")(logits))
            assert rows.shape == (64, 2)
            assert len(np.unique(rows, axis=0)) == (4 if replace else 2)
    with pb.random.using(0):
        children = pb.vmap(lambda l: pb.random.split()[0].uniform((3,)) + l[:3], randomness="different")(logits)
    assert len(np.unique(np.asarray(children), axis=0)) == 64


def test_only_public_names_are_listed() -> None:
    assert set(dir(pb.random)) == set(pb.random.__all__)
    assert pb.random.normal.__module__ == "pullback.random"
