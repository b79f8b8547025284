"""Every strategy gives the gradients of no strategy, bit for bit, and keeps less."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.graph import saved_values
from tests.autodiff.checkpointing.networks import block, equal, gradients, network, parameters
from tests.autodiff.random_graphs import Pullback, program
from tests.backends.installed import require

STRATEGIES = {
    "none": pb.NoCheckpointing,
    "balanced": pb.BalancedCheckpointing,
    "budget": lambda: pb.BudgetCheckpointing(40_000),
    "no budget": lambda: pb.BudgetCheckpointing(0),
}
under_each = pytest.mark.parametrize("strategy", list(STRATEGIES.values()), ids=list(STRATEGIES))


def inputs(rows: int = 24) -> pb.Tensor:
    return pb.asarray(np.random.default_rng(1).standard_normal((rows, 16)))


def plain(layers, dropout=0.0):
    pb.random.seed(3)
    with pb.checkpointing(pb.NoCheckpointing()):
        network(layers, inputs(), dropout).backward()
    return gradients(layers)


# -- the same gradients ------------------------------------------------------------------------------


@under_each
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("frozen", [(), ("wide",), ("scale", "shift", "narrow")])
def test_gradients_are_bit_for_bit_the_same(strategy, dropout, frozen):
    layers = parameters(5, frozen=frozen)
    expected = plain(layers, dropout)
    assert any(g is not None for g in expected)
    pb.random.seed(3)
    with pb.checkpointing(strategy()):
        loss = network(layers, inputs(), dropout)
    loss.backward()  # outside: what was recorded inside counts
    assert equal(gradients(layers), expected)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("frozen", [(), ("wide",), ("scale", "shift", "narrow")])
@under_each
def test_regions_are_bit_for_bit_the_same(strategy, dropout, frozen):
    layers = parameters(5, frozen=frozen)
    expected = plain(layers, dropout)
    pb.random.seed(3)
    with pb.checkpointing(strategy()):
        network(layers, inputs(), dropout, wrap=pb.checkpoint).backward()
    assert equal(gradients(layers), expected)


@under_each
def test_regions_nest(strategy):
    layers = parameters(8)
    expected = plain(layers, 0.3)

    @pb.checkpoint
    def pair(first, second, x):
        return pb.checkpoint(block)(second, pb.checkpoint(block)(first, x, 0.3) * 1.0, 0.3)

    @pb.checkpoint
    def four(some, x):
        return pair(some[2], some[3], pair(some[0], some[1], x))

    pb.random.seed(3)
    with pb.checkpointing(strategy()):
        x = four(layers[4:], four(layers[:4], inputs()))
        (x * x).mean().backward()
    found = gradients(layers)
    assert equal(found, expected)


@pytest.mark.parametrize("seed", range(12))
@under_each
def test_random_programs(strategy, seed):
    with pb.checkpointing(pb.NoCheckpointing()):
        variables, _, result = program(Pullback, seed)
        expected = pb.backward(result)
    with pb.checkpointing(strategy()):
        again, _, other = program(Pullback, seed)
    found = pb.backward(other)
    for v, w in zip(variables, again):
        assert (v in expected) == (w in found)
        if v in expected:
            assert expected[v].numpy().tobytes() == found[w].numpy().tobytes()


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_in_a_region(seed):
    with pb.checkpointing(pb.NoCheckpointing()):
        variables, _, result = program(Pullback, seed)
        expected = pb.backward(result)
    again, _, other = pb.checkpoint(program)(Pullback, seed)
    found = pb.backward(other)
    for v, w in zip(variables, again):
        if v in expected:
            assert expected[v].numpy().tobytes() == found[w].numpy().tobytes()


@under_each
@pytest.mark.parametrize("wrap", [lambda f: f, pb.checkpoint], ids=["open", "region"])
def test_second_order(strategy, wrap):
    layers = parameters(2)

    def squared_slopes(strategy):
        with pb.checkpointing(strategy):
            grads = pb.backward(network(layers, inputs(4), wrap=wrap), create_graph=True)
            loss = sum((grads[w] * grads[w]).sum() for p in layers for w in p.values())
            loss.backward()
        return gradients(layers)

    assert equal(squared_slopes(strategy()), squared_slopes(pb.NoCheckpointing()))


@under_each
def test_a_graph_that_is_retained_is_walked_again(strategy):
    layers = parameters(3)
    with pb.checkpointing(strategy()):
        loss = network(layers, inputs(), wrap=pb.checkpoint)
    loss.backward(retain_graph=True)
    first = gradients(layers)
    loss.backward()
    assert equal(gradients(layers), first)
    with pytest.raises(pb.GraphConsumedError):
        loss.backward()


@under_each
def test_parts_of_a_graph(strategy):
    layers = parameters(4)
    with pb.checkpointing(pb.NoCheckpointing()):
        expected = pb.backward(network(layers, inputs()), wrt=[layers[2]["wide"]])
    with pb.checkpointing(strategy()):
        loss = network(layers, inputs(), wrap=pb.checkpoint)
    found = pb.backward(loss, wrt=[layers[2]["wide"]])
    w = layers[2]["wide"]
    assert found[w].numpy().tobytes() == expected[w].numpy().tobytes()


@under_each
def test_two_results_share_a_trunk(strategy):
    layers = parameters(3)
    w = pb.tensor(np.full((16, 16), 0.1), requires_grad=True)

    def run():
        x = inputs()
        for p in layers:
            x = block(p, x)
        return pb.tanh(x).sum(), pb.exp(x @ w).mean()

    def both(strategy):
        with pb.checkpointing(strategy):
            first, second = run()
        first.backward(retain_graph=True)
        second.backward()
        found = [*gradients(layers), w.grad.numpy().copy()]
        w.grad = None
        return found

    assert equal(both(strategy()), both(pb.NoCheckpointing()))


# -- what is kept ------------------------------------------------------------------------------------


def plain_bytes(make_loss) -> int:
    with pb.checkpointing(pb.NoCheckpointing()):
        return bytes_held(make_loss)


def bytes_held(make_loss) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        loss = make_loss()
        held = tracemalloc.get_traced_memory()[0] - before
        del loss
    finally:
        tracemalloc.stop()
    return held


def test_balanced_keeps_less():
    layers, x = parameters(12), inputs(400)
    expected = plain_bytes(lambda: network(layers, x))
    with pb.checkpointing(pb.BalancedCheckpointing()):
        assert bytes_held(lambda: network(layers, x)) < 0.6 * expected


def test_a_region_keeps_its_inputs():
    layers, x = parameters(12), inputs(400)
    network(layers, inputs(2), wrap=pb.checkpoint)  # what is compiled at the first call is not held for the walk
    held = bytes_held(lambda: network(layers, x, wrap=pb.checkpoint))
    assert held < 1.3 * 12 * x.nbytes


@pytest.mark.parametrize("share", [0.8, 0.5, 0.25, 0.1])
def test_a_budget_is_never_exceeded(share):
    layers, x = parameters(12), inputs(400)
    most = int(share * plain_bytes(lambda: network(layers, x)))
    expected = None
    for strategy in (pb.NoCheckpointing(), pb.BudgetCheckpointing(most)):
        with pb.checkpointing(strategy):
            loss = network(layers, x)
        if expected is not None:
            assert strategy.held <= most
        loss.backward()
        found = gradients(layers)
        assert expected is None or equal(found, expected)
        expected = found
    assert 0 < strategy.peak <= most
    assert strategy.held == 0


def test_a_budget_that_is_large_enough_drops_nothing():
    layers = parameters(3)
    strategy = pb.BudgetCheckpointing(10**9)
    with pb.checkpointing(strategy):
        loss = network(layers, inputs())
    node, seen = loss._node, 0
    stack = [node]
    while stack:
        node = stack.pop()
        stack.extend(node.inputs)
        for part in node.saved or ():
            seen += hasattr(part, "replay") and hasattr(part, "first")
            assert getattr(part, "raw", 0) is not None
    assert seen > 10
    loss.backward()


def test_views_count_their_memory_once():
    w = pb.tensor(np.ones((64, 64)), requires_grad=True)
    strategy = pb.BudgetCheckpointing(10**9)
    with pb.checkpointing(strategy):
        y = pb.exp(w)
        parts = [y[:, :32], y[:, 32:], y.T]
        loss = sum((part * part).sum() for part in parts)
    assert strategy.held == y.nbytes
    loss.backward()
    assert strategy.held == 0


def test_a_long_chain_of_cheap_operations_is_held_in_pieces():
    x = pb.tensor(np.full(10_000, 0.5), requires_grad=True)

    def chain():
        y = x
        for _ in range(200):
            y = pb.sin(y)
        return y.sum()

    with pb.checkpointing(pb.BalancedCheckpointing()):
        assert bytes_held(chain) < 30 * x.nbytes  # of 200
        loss = chain()
    with pb.guard("off"):  # which would hold what the walk has passed for a while
        assert bytes_held(lambda: loss.backward()) < 40 * x.nbytes


def test_what_is_computed_from_itself_for_ever_does_not_grow():
    with pb.checkpointing(pb.BalancedCheckpointing()):
        w = pb.tensor(np.ones(1000), requires_grad=True)
        average = pb.exp(w).detach() * 0.0

        def steps(count):
            nonlocal average
            for _ in range(count):
                average = average * 0.9 + pb.exp(w).detach() * 0.1

        steps(50)
        assert bytes_held(lambda: steps(300)) < 100_000


# -- nothing of the user's runs twice --------------------------------------------------------------------


@under_each
def test_functions_are_called_once(strategy):
    calls = 0
    w = pb.tensor(np.ones(5), requires_grad=True)

    @pb.checkpoint
    def counted(x):
        nonlocal calls
        calls += 1
        return pb.tanh(x * w) * w

    with pb.checkpointing(strategy()):
        loss = counted(counted(w)).sum()
    loss.backward()
    assert calls == 2


@under_each
def test_operations_of_the_user_run_once(strategy):
    calls = []

    def forward(x):
        calls.append(1)
        return x**3

    cube = pb.custom_op(forward, x=lambda g, x: 3 * g * x * x)
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    with pb.checkpointing(strategy()):
        loss = pb.checkpoint(lambda x: pb.exp(cube(pb.sin(x))))(x).sum()
    loss.backward()
    s = np.sin([1.0, 2.0])
    assert np.allclose(x.grad.numpy(), np.exp(s**3) * 3 * s**2 * np.cos([1.0, 2.0]))
    assert len(calls) == 1


@under_each
def test_running_statistics_are_updated_once(strategy):
    x = pb.tensor(np.random.default_rng(0).standard_normal((8, 3)), requires_grad=True)
    means, variances = pb.zeros(3, dtype=pb.float64), pb.ones(3, dtype=pb.float64)
    updates = []

    @pb.checkpoint
    def layer(x):
        out, mean, _ = pb.batch_norm(x, means, variances, training=True)
        updates.append(mean.detach().numpy().copy())
        return pb.tanh(out)

    with pb.checkpointing(strategy()):
        loss = layer(x).sum()
    loss.backward()
    assert len(updates) == 1


@pytest.mark.parametrize("draw", ["uniform", "normal", "exponential", "bernoulli", "integers"])
@pytest.mark.parametrize("strategy", [lambda: pb.BudgetCheckpointing(0), None], ids=["budget", "region"])
def test_random_numbers_are_drawn_again(draw, strategy):
    w = pb.tensor(np.ones((50, 20)), requires_grad=True)
    drawing = {
        "uniform": lambda: pb.random.uniform((50, 20)),
        "normal": lambda: pb.random.normal((50, 20)),
        "exponential": lambda: pb.random.exponential((50, 20)),
        "bernoulli": lambda: pb.random.bernoulli(0.5, (50, 20)),
        "integers": lambda: pb.random.integers(0, 9, (50, 20)),
    }[draw]

    def noisy(w):
        numbers = drawing()
        return (pb.where(numbers > 0.5, w, w * w) * pb.astype(numbers, pb.float64)).sum(), pb.random.uniform((2,))

    def run(strategy):
        pb.random.seed(11)
        w.grad = None
        if strategy is None:
            loss, after = pb.checkpoint(noisy)(w)
        else:
            with pb.checkpointing(strategy):
                loss, after = noisy(w)
        if not isinstance(strategy, pb.NoCheckpointing):
            for node in reversed(walked(loss._node)):
                assert all(getattr(part, "raw", None) is None for part in node.saved if hasattr(part, "replay"))
        loss.backward()
        return [w.grad.numpy().copy(), after.numpy().copy()]

    assert equal(run(strategy and strategy()), run(pb.NoCheckpointing()))


def walked(node):
    seen, stack = {node}, [node]
    while stack:
        for parent in stack.pop().inputs:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return sorted((n for n in seen if n.recipe is not None), key=lambda n: n.seq)


# -- values that change afterwards --------------------------------------------------------------------------


@under_each
@pytest.mark.parametrize("wrap", [lambda f: f, pb.checkpoint], ids=["open", "region"])
def test_writes_after_the_fact_change_nothing(strategy, wrap):
    def run(strategy, write):
        x = pb.tensor(np.linspace(0.1, 1.0, 6), requires_grad=True)
        w = pb.tensor(np.linspace(1.0, 2.0, 6), requires_grad=True)
        c = pb.tensor(np.linspace(-1.0, 1.0, 6))

        def f(x):
            nonlocal w
            y = pb.sin(x) * c
            z = pb.exp(y) * w
            if write:
                y += 5.0
                c[:] = 7.0
                with pb.no_grad():
                    w *= 3.0
            return z * z

        with pb.checkpointing(strategy):
            z = wrap(f)(x)
            if write:
                with pb.no_grad():
                    x -= 2.0
            loss = (z * z).sum()
        loss.backward()
        return [x.grad.numpy(), w.grad.numpy()]

    assert equal(run(strategy(), True), run(pb.NoCheckpointing(), False))


@under_each
def test_writes_that_are_recorded_are_right(strategy):
    def run(strategy):
        x = pb.tensor(np.linspace(0.1, 1.0, 6), requires_grad=True)
        with pb.checkpointing(strategy):
            y = pb.exp(x)
            z = pb.sin(y)
            y *= z
            y[1:3] = z[2:4] * y[0]
            z += y
            loss = (pb.tanh(z) * y).sum()
        loss.backward()
        return [x.grad.numpy()]

    assert equal(run(strategy()), run(pb.NoCheckpointing()))


@under_each
def test_an_untracked_value_that_is_written_is_not_made_again(strategy):
    w = pb.tensor(np.ones(4), requires_grad=True)
    with pb.checkpointing(strategy()):
        factor = pb.exp(w).detach() * pb.tanh(w).detach()
        mask = pb.exp(w) > 0.5
        factor_values = factor * 1.0
        with pb.no_grad():
            factor += 1.0
        loss = pb.checkpoint(lambda: (pb.where(mask, w, 0.0) * factor * factor_values).sum())()
    loss.backward()
    values = np.e * np.tanh(1.0)
    assert np.allclose(w.grad.numpy(), (values + 1.0) * values)


@under_each
def test_an_optimizer_writes_in_place_while_the_loss_is_alive(strategy):
    layers = parameters(3)
    address = layers[1]["wide"]._raw.ctypes.data
    with pb.checkpointing(strategy()):
        loss = network(layers, inputs(), wrap=pb.checkpoint) + network(layers, inputs())
    loss.backward()
    with pb.no_grad():
        for p in layers:
            for w in p.values():
                w -= 0.1 * w.grad
    assert layers[1]["wide"]._raw.ctypes.data == address
    assert loss.item() > 0


@under_each
def test_everything_is_freed_with_the_walk(strategy):
    w = pb.tensor(np.ones(100), requires_grad=True)
    with pb.checkpointing(strategy()):
        x = pb.asarray(np.linspace(0, 1, 100))
        raw = weakref.ref(x._raw)
        hidden = pb.exp(w * x)
        inner = weakref.ref(hidden._raw)
        loss = (pb.sin(hidden) * hidden).sum()
    del x, hidden
    loss.backward()
    assert raw() is None and inner() is None
    assert loss.item() != 0


# -- the rest of the engine ---------------------------------------------------------------------------


@under_each
@pytest.mark.parametrize("wrap", [lambda f: f, pb.checkpoint], ids=["open", "region"])
def test_the_guard_names_the_same_culprit(strategy, wrap):
    def message(strategy, f):
        x = pb.tensor([0.0, 1.0, 4.0], requires_grad=True)
        with pb.checkpointing(strategy):
            loss = wrap(f)(x)
        with pytest.raises(pb.NumericalInstabilityError) as caught:
            loss.backward()
        return str(caught.value)

    for f in (
        lambda x: (pb.sqrt(x * x) * pb.exp(x)).sum(),  # born backward
        lambda x: (pb.exp(pb.log(pb.sin(x) * 0.0) + 1.0) * pb.log(x * 0.0)).sum(),  # born forward
    ):
        with np.errstate(all="ignore"):
            assert message(strategy(), f) == message(pb.NoCheckpointing(), f)


@under_each
def test_masked_infinities_stay_out(strategy):
    x = pb.tensor([0.0, 1.0, 4.0], requires_grad=True)
    with pb.checkpointing(strategy()):
        loss = pb.where(x > 0, pb.sqrt(x) * pb.exp(x), 0.0).sum()
    loss.backward()
    assert x.grad.numpy()[0] == 0.0 and np.isfinite(x.grad.numpy()).all()


@under_each
def test_operations_with_lists_and_several_outputs(strategy):
    def run(strategy):
        w = pb.tensor(np.random.default_rng(5).standard_normal((6, 4)), requires_grad=True)
        with pb.checkpointing(strategy):
            first, second = pb.split(pb.tanh(w @ w.T), 2, axis=0)
            values, vectors = pb.linalg.eigh(pb.exp(w.T @ w * 0.1))
            joined = pb.concat([first * second, pb.sin(first)], axis=1)
            stacked = pb.stack([joined, pb.exp(joined * 0.1)])
            loss = (stacked**2).sum() + (values * values).sum() + (vectors**2 @ values).sum()
        loss.backward()
        return [w.grad.numpy()]

    assert equal(run(strategy()), run(pb.NoCheckpointing()))


@under_each
@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_backends(strategy, device):
    require(device)

    def run(strategy):
        w = pb.tensor(np.random.default_rng(5).standard_normal((6, 4)), device=device, requires_grad=True)
        with pb.checkpointing(strategy):
            x = pb.checkpoint(lambda w: pb.tanh(w @ w.T))(w)
            y = pb.gelu(x[:3, ::2] * 2.0).reshape((-1,))
            loss = (pb.exp(y) * y).sum()
        loss.backward()
        return [np.asarray(w.grad._backend.to_numpy(w.grad._raw)).copy()]

    assert equal(run(strategy()), run(pb.NoCheckpointing()))


@under_each
def test_transforms(strategy):
    def f(x):
        return pb.sum(pb.checkpoint(lambda x: pb.exp(pb.sin(x)) * x)(x) ** 2)

    x = np.linspace(0.1, 1.0, 5)
    with pb.checkpointing(pb.NoCheckpointing()):
        expected = pb.grad(f)(x), pb.hessian(f)(x), pb.jvp(f, (x,), (np.ones(5),))
    with pb.checkpointing(strategy()):
        found = pb.grad(f)(x), pb.hessian(f)(x), pb.jvp(f, (x,), (np.ones(5),))
    assert np.array_equal(expected[0], found[0]) and np.array_equal(expected[1], found[1])
    assert expected[2] == found[2]


@under_each
def test_threads(strategy):
    """A strategy belongs to the context that set it; one object may serve several threads."""
    shared = strategy()
    layers = [parameters(4, seed) for seed in range(4)]
    expected = [plain(p) for p in layers]
    found = [None] * 4

    def work(i):
        for _ in range(5):
            with pb.checkpointing(shared):
                loss = network(layers[i], inputs(), wrap=pb.checkpoint if i % 2 else (lambda f: f))
            loss.backward()
            found[i] = gradients(layers[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(equal(a, b) for a, b in zip(expected, found))
    assert getattr(shared, "held", 0) == 0


def test_hooks_see_the_same_gradients():
    def run(strategy):
        seen = []
        x = pb.tensor([0.5, 1.0], requires_grad=True)
        with pb.checkpointing(strategy):
            y = pb.exp(x)
            y.register_hook(lambda g: seen.append(g.numpy().copy()) or g * 2.0)
            loss = (pb.sin(y) * y).sum()
        loss.backward()
        return [*seen, x.grad.numpy()]

    assert equal(run(pb.BalancedCheckpointing()), run(pb.NoCheckpointing()))


@under_each
def test_saved_values_can_be_looked_at(strategy):
    x = pb.tensor([0.5, 1.0], requires_grad=True)
    with pb.checkpointing(strategy()):
        z = pb.sin(pb.exp(x))
    assert np.allclose(saved_values(z._node)[0], np.exp([0.5, 1.0]))
    assert np.allclose(saved_values(z._node)[0], np.exp([0.5, 1.0]))
    z.sum().backward()


# -- saying what to write ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["balanced", 5, pb.BalancedCheckpointing, None])
def test_what_is_no_strategy_is_refused(wrong):
    with pytest.raises(pb.DtypeError, match=r"pb.BalancedCheckpointing\(\)"):
        pb.checkpointing(wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "1 GB"])
def test_a_budget_is_a_number_of_bytes(wrong):
    with pytest.raises(pb.DtypeError, match="number of bytes"):
        pb.BudgetCheckpointing(wrong)


def test_blocks_nest_and_end():
    from pullback import modes

    before = modes.current()
    balanced, budget = pb.BalancedCheckpointing(), pb.BudgetCheckpointing(5)
    with pb.checkpointing(balanced) as given:
        assert given is balanced and modes.current().checkpointing is balanced
        with pb.checkpointing(budget):
            assert modes.current().checkpointing is budget
        with pb.checkpointing(pb.NoCheckpointing()):
            assert modes.current() is None
        assert modes.current().checkpointing is balanced
    assert modes.current() is before


# -- Autodiff(backend, checkpointing) ------------------------------------------------------------------------


@under_each
def test_an_autodiff_backend_brings_its_strategy(strategy):
    values = np.linspace(0.1, 1.0, 5)

    def run(checkpointing):
        ad = pb.Autodiff("numpy", checkpointing)
        x = ad.from_inner(values).set_requires_grad(True)
        y = ad.sin(ad.exp(x)) * x
        y = y * y.clone() + y.detach()
        y += x
        return ad.grad(x, ad.backward(ad.exp(y * 0.1)))

    assert run(strategy()).tobytes() == run(None).tobytes()


def test_operators_on_its_tensors_are_recorded_under_it():
    budget = pb.BudgetCheckpointing(10**6)
    ad = pb.Autodiff("numpy", budget)
    x = ad.tensor(np.ones(100), requires_grad=True)
    with pb.checkpointing(pb.NoCheckpointing()):  # not in a region, which would drop everything
        y = pb.exp(x * x) * 2.0
    assert budget.held > 0
    assert isinstance(y.clone(), type(x)) and isinstance(y, type(x))
    assert isinstance(ad.ones(3), type(x))
    y.sum().backward()
    assert budget.held == 0
    assert np.allclose(x.grad.numpy(), 4 * np.e)


def test_autodiff_refuses_what_is_no_strategy():
    with pytest.raises(pb.DtypeError, match=r"Autodiff: expected pb\.NoCheckpointing"):
        pb.Autodiff("numpy", checkpointing="balanced")
    assert pb.Autodiff("numpy", pb.NoCheckpointing()).tensor(1.0) is not None


def test_its_tensors_are_updated_in_place():
    ad = pb.Autodiff("numpy", pb.BalancedCheckpointing())
    w = ad.tensor(np.linspace(0.1, 1.0, 8), requires_grad=True)
    address = w._raw.ctypes.data
    (w * w).sum().backward()
    with pb.no_grad():
        w -= 0.1 * w.grad
        w[0] = 0.5
    expected = np.linspace(0.1, 1.0, 8) * 0.8
    expected[0] = 0.5
    assert np.allclose(w.detach().numpy(), expected)
    assert w._raw.ctypes.data == address and isinstance(w, type(ad.ones(1)))
    y = pb.exp(w) * 1.0
    y += w
    y *= y
    assert isinstance(y, type(w))
    plain = pb.tensor(w.detach().numpy(), requires_grad=True)
    z = pb.exp(plain) * 1.0
    z += plain
    z *= z
    assert pb.backward(y.sum())[w].numpy().tobytes() == pb.backward(z.sum())[plain].numpy().tobytes()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "LBFGS"])
def test_its_tensors_can_be_optimized(name):
    ad = pb.Autodiff("numpy", pb.BalancedCheckpointing())

    def after_three_steps(w):
        optimizer = getattr(pb.optim, name)([w], lr=0.1)

        def loss():
            optimizer.zero_grad()
            value = (pb.exp(w) * w).sum()
            value.backward()
            pb.optim.clip_global_norm([w], 1.0)
            return value

        for _ in range(3):
            if name == "LBFGS":
                optimizer.step(loss)
            else:
                loss()
                optimizer.step()
        return w.detach().numpy().tobytes()

    values = np.linspace(0.1, 1.0, 8)
    found = after_three_steps(ad.tensor(values, requires_grad=True))
    assert found == after_three_steps(pb.tensor(values, requires_grad=True))


def test_its_tensors_move_between_devices():
    require("torch:cpu")
    ad = pb.Autodiff("numpy", pb.BalancedCheckpointing())
    w = ad.tensor(np.linspace(0.1, 1.0, 8), requires_grad=True)
    there = w.to_device("torch:cpu")
    assert there.device == "torch:cpu" and isinstance(there, type(w))
    (there * there).sum().backward()
    assert np.allclose(w.grad.numpy(), np.linspace(0.2, 2.0, 8))


def test_its_tensors_are_dropped_in_regions():
    budget = pb.BudgetCheckpointing(10**9)
    ad = pb.Autodiff("numpy", budget)
    w = ad.tensor(np.eye(8), requires_grad=True)
    loss = pb.checkpoint(lambda x: pb.tanh(pb.tanh(x @ x) @ x).sum())(w)
    assert budget.held == 0
    expected = pb.tensor(np.eye(8), requires_grad=True)
    pb.tanh(pb.tanh(expected @ expected) @ expected).sum().backward()
    assert pb.backward(loss)[w].numpy().tobytes() == expected.grad.numpy().tobytes()
