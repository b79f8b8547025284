"""What strategies hold on to, for how long, and that values they compute again are never out of date."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.checkpointing import replay
from tests.autodiff.checkpointing.networks import block, equal, gradients, parameters

STRATEGIES = {
    "balanced": pb.BalancedCheckpointing,
    "budget": lambda: pb.BudgetCheckpointing(40_000),
    "no budget": lambda: pb.BudgetCheckpointing(0),
}
under_each = pytest.mark.parametrize("strategy", list(STRATEGIES.values()), ids=list(STRATEGIES))


def growth(run) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


# -- nothing grows ----------------------------------------------------------------------------------------


def test_a_budget_that_is_never_full_does_not_grow():
    strategy = pb.BudgetCheckpointing(10**9)
    w = pb.tensor(np.eye(8), requires_grad=True)

    def steps(count):
        for _ in range(count):
            with pb.checkpointing(strategy):
                y = w
                for _ in range(5):
                    y = pb.tanh(y @ w)
            pb.backward(y.sum())

    steps(50)
    assert growth(lambda: steps(300)) < 50_000
    assert strategy.held == 0


@under_each
@pytest.mark.parametrize("given", [False, True], ids=["numbers", "arrays"])
def test_a_state_that_is_moved_by_random_numbers_does_not_grow(strategy, given):
    state = pb.zeros((1000,), dtype="float64")

    def steps(count):
        nonlocal state
        for i in range(count):
            noise = pb.random.normal((1000,), dtype="float64")
            state = state * 0.9 + (noise + pb.asarray(np.full(1000, float(i))) if given else noise)

    with pb.checkpointing(strategy()):
        steps(50)
        assert growth(lambda: steps(300)) < 100_000


def test_a_summary_keeps_no_batch_alive():
    with pb.checkpointing(pb.BalancedCheckpointing()):
        history = []

        def steps():
            for i in range(20):
                batch = pb.asarray(np.full((1000, 10), float(i)))
                history.append(pb.mean(batch + pb.random.normal((1000, 10), dtype="float64")))

        assert growth(steps) < 100_000


# -- nothing is out of date ----------------------------------------------------------------------------------


def step_of_sgd(h):
    pb.optim.SGD([h], lr=0.1).step([pb.ones((4, 4), dtype="float64")])


def move_of_a_module(h):
    module = pb.nn.Module()
    module.h = h
    module.astype("float32")
    module.astype("float64")


def into_its_raw_array(h):
    h.data_mut()[1] = 7.0


def as_out_of_numpy(h):
    np.multiply(np.ones((4, 4)), 3.0, out=h)


def loading(h):
    module = pb.nn.Module()
    module.h = h
    module.load_state_dict({"h": np.full((4, 4), 2.5)})


def exporting(h):
    np.asarray(h)  # read-only
    torch = pytest.importorskip("torch")
    torch.utils.dlpack.from_dlpack(h.__dlpack__(copy=False)).mul_(2)


WRITES = (step_of_sgd, move_of_a_module, into_its_raw_array, as_out_of_numpy, loading, exporting)


@under_each
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_what_is_written_by_any_means_is_not_made_again(strategy, write):
    w = pb.tensor(np.eye(4), requires_grad=True)

    def slope(strategy):
        pb.random.seed(1)
        with pb.checkpointing(strategy):
            h = pb.random.normal((4, 4), dtype="float64") * 2.0
            write(h)
            loss = (w @ h).sum()
        return pb.backward(loss)[w].numpy()

    expected = slope(pb.NoCheckpointing())
    assert slope(strategy()).tobytes() == expected.tobytes()


@pytest.mark.parametrize("draw", ["uniform", "normal", "exponential"])
def test_numbers_are_drawn_again_in_their_dtype_and_on_their_device(draw):
    w = pb.tensor(np.ones(5), requires_grad=True)
    before = pb.default_dtype()
    pb.set_default_dtype("float64")
    try:
        with pb.checkpointing(pb.BudgetCheckpointing(0)):
            numbers = getattr(pb.random, draw)((5,))
            loss = (w * numbers).sum()
    finally:
        pb.set_default_dtype(before)
    assert pb.backward(loss)[w].numpy().tobytes() == numbers.numpy().tobytes()


def test_numbers_are_drawn_again_with_the_arguments_of_then():
    w = pb.tensor(np.ones(3), requires_grad=True)
    chances, shape = [0.9, 0.9, 0.9], [3]
    with pb.checkpointing(pb.BudgetCheckpointing(0)):
        mask = pb.random.bernoulli(chances).astype(pb.float64) + pb.random.uniform(shape, dtype="float64")
        loss = (w * mask).sum()
    chances[:] = [0.0, 0.0, 0.0]
    shape.append(7)
    assert pb.backward(loss)[w].numpy().tobytes() == mask.numpy().tobytes()


def test_a_write_in_place_leaves_the_layout_that_it_leaves_without_a_strategy():
    w = pb.tensor(np.random.default_rng(0).standard_normal((37, 41)), requires_grad=True)

    def total(strategy):
        with pb.checkpointing(strategy):
            y = pb.tanh(w.T) * 1.0
            y += pb.sin(pb.asarray(np.ones((41, 37))) * 0.1) + 0.0
            y[3:5] = 0.25
            z = pb.asarray(np.ones((37, 41))).T * 1.0
            z[2] = y[2]
            return pb.sum(y) + pb.sum(z), (y._raw.strides, z._raw.strides)

    expected, strides = total(pb.NoCheckpointing())
    for strategy in STRATEGIES.values():
        found, layout = total(strategy())
        assert layout == strides
        assert found.item() == expected.item()


# -- regions ---------------------------------------------------------------------------------------------------


def walk_peak(loss) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        with pb.guard("off"):  # which would hold what the walk has passed for a while
            loss.backward()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def chained(layers, x, each, together=lambda f: f, groups=1):
    size = len(layers) // groups

    def group(some, x):
        for p in some:
            x = each(block)(p, x)
        return x

    for i in range(groups):
        x = together(group)(layers[i * size : (i + 1) * size], x)
    return (x * x).mean()


def test_regions_in_regions_are_held_one_at_a_time():
    layers = parameters(12)
    x = pb.asarray(np.random.default_rng(1).standard_normal((400, 16)))
    chained(layers, x, each=lambda f: f).backward()
    expected = gradients(layers)
    alone = walk_peak(chained(layers, x, each=pb.checkpoint))
    gradients(layers)
    losses = []
    held = growth(lambda: losses.append(chained(layers, x, each=pb.checkpoint, together=pb.checkpoint)))
    assert held < 5 * x.nbytes  # of twelve that go into the inner ones
    nested = walk_peak(losses.pop())
    assert equal(gradients(layers), expected)
    assert nested < alone + 14 * x.nbytes  # what goes into each of the inner ones


def test_regions_under_a_budget_are_held_one_at_a_time_and_counted():
    layers = parameters(12)
    x = pb.asarray(np.random.default_rng(1).standard_normal((400, 16)))
    chained(layers, x, each=lambda f: f).backward()
    expected = gradients(layers)
    alone = walk_peak(chained(layers, x, each=pb.checkpoint))
    gradients(layers)
    strategy = pb.BudgetCheckpointing(1_500_000)
    with pb.checkpointing(strategy):
        loss = chained(layers, x, each=pb.checkpoint)
    walk_peak(loss)
    assert equal(gradients(layers), expected)
    assert 1_000_000 < strategy.peak <= strategy.bytes  # a region computed again is more than a million
    strategy = pb.BudgetCheckpointing(200_000)  # less than goes into the regions
    with pb.checkpointing(strategy):
        loss = chained(layers, x, each=pb.checkpoint)
    assert walk_peak(loss) < 1.5 * alone
    assert equal(gradients(layers), expected)
    assert strategy.held == 0


@pytest.mark.parametrize("length", [50, 100])
def test_a_region_is_computed_again_once_for_gradients_of_gradients(length, monkeypatch):
    w = pb.tensor(np.full(3, 0.3), requires_grad=True)

    def waves(x):
        for _ in range(length):
            x = pb.sin(x)
        return x.sum()

    runs = 0
    ordinary = replay._arrays_of

    def counting(*given):
        nonlocal runs
        runs += 1
        return ordinary(*given)

    monkeypatch.setattr(replay, "_arrays_of", counting)
    with pb.checkpointing(pb.NoCheckpointing()):  # a region under a budget of nothing cannot be held
        slope = pb.backward(pb.checkpoint(waves)(w), create_graph=True)[w]
    assert runs <= length
    assert pb.backward(slope.sum())[w].numpy().tobytes() == second_slope(waves, w)


def second_slope(function, w) -> bytes:
    return pb.backward(pb.backward(function(w), create_graph=True)[w].sum())[w].numpy().tobytes()


async def coroutine(x):
    return pb.tanh(x)


def generator(x):
    yield pb.tanh(x)


@pytest.mark.parametrize("function", [coroutine, generator, 5, None])
def test_what_does_not_compute_when_called_is_refused(function):
    with pytest.raises(pb.DtypeError, match="checkpoint: expected a function"):
        pb.checkpoint(function)
