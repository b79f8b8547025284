"""Checkpointing strategies in programs: the same numbers, less memory, and what is made again is made again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.passes.rematerialization import rematerialized
from pullback.compiler.passes.rematerialization.flow import Flow

from ...autodiff.checkpointing.networks import network, parameters
from ...backends.installed import needs_llvmlite, require

pytestmark = needs_llvmlite


def same(function):
    return function


#: How a network is recorded: under which strategy, and with what around each block.
STRATEGIES = {
    "balanced": (pb.BalancedCheckpointing, same),
    "budget": (lambda: pb.BudgetCheckpointing(30_000), same),
    "no budget": (lambda: pb.BudgetCheckpointing(0), same),
    "region": (pb.NoCheckpointing, pb.checkpoint),
    "region in balanced": (pb.BalancedCheckpointing, pb.checkpoint),
    "region in budget": (lambda: pb.BudgetCheckpointing(30_000), pb.checkpoint),
}
PLAIN = (pb.NoCheckpointing, same)
strategies = pytest.mark.parametrize("name", STRATEGIES)
X = np.random.default_rng(7).standard_normal((11, 16))


def on(device, layers):
    """The same parameters on a device."""
    return [
        {name: pb.tensor(w.detach().numpy(), device=device, requires_grad=w.requires_grad) for name, w in p.items()}
        for p in layers
    ]


def arrays(tensors):
    return [tensor.detach().to_device("numpy").numpy() for tensor in tensors]


def assert_equal(mine, other, rtol=1e-12):
    assert len(mine) == len(other)
    for x, y in zip(mine, other):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * max(np.abs(y).max(initial=0), 1e-3))


def step_of(layers, wrap, dropout=0.0, second=False):
    """A compiled step: the loss and all gradients, or their second order."""
    variables = [w for p in layers for w in p.values() if w.requires_grad]

    def step(x):
        loss = network(layers, x, dropout, wrap)
        if second:
            gradients = pb.backward(loss, create_graph=True)
            loss = sum(((gradients[w] * gradients[w]).sum() for w in variables), start=pb.asarray(0.0, dtype=x.dtype))
        gradients = pb.backward(loss)
        return [loss, *[gradients[w] for w in variables if w in gradients]]

    return pb.compile(step)


def results(case, device="numpy", layers=3, calls=2, **options):
    """What calls of a compiled step give, and the step."""
    strategy, wrap = case
    pb.random.seed(5)
    step = step_of(on(device, parameters(layers)), wrap, **options)
    x = pb.tensor(X, device=device)
    with pb.checkpointing(strategy()):
        found = [array for _ in range(calls) for array in arrays(step(x))]
    return found, step


# -- the same numbers ------------------------------------------------------------------------------


@strategies
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_are_those_without(name, dropout):
    plain, _ = results(PLAIN, dropout=dropout)
    mine, step = results(STRATEGIES[name], dropout=dropout)
    assert_equal(mine, plain)
    assert step.traces == 1
    assert "after" in step.source


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("name", ["balanced", "budget", "region"])
def test_other_devices(device, name):
    require(device)
    plain, _ = results(PLAIN, device, layers=2, dropout=0.4)
    mine, step = results(STRATEGIES[name], device, layers=2, dropout=0.4)
    assert_equal(mine, plain, rtol=1e-11)
    assert "after" in step.source


@pytest.mark.parametrize("name", ["balanced", "no budget", "region"])
def test_second_order(name):
    plain, _ = results(PLAIN, layers=2, second=True, calls=1)
    mine, step = results(STRATEGIES[name], layers=2, second=True, calls=1)
    assert_equal(mine, plain, rtol=1e-10)
    assert "after" in step.source


def test_elementwise_work_and_products_are_bit_for_bit_the_same():
    w = pb.tensor(X[:, :11] / 4, requires_grad=True)

    def step_with(wrap):
        block = wrap(lambda h: pb.tanh(pb.exp(h @ w) * 0.1))

        @pb.compile
        def step(x):
            h = x
            for _ in range(5):
                h = block(h)
            return pb.backward((h * h).sum())[w]

        return step

    x = pb.tensor(X[:, :11])
    plain = step_with(same)(x).numpy()
    for strategy, wrap in STRATEGIES.values():
        with pb.checkpointing(strategy()):
            assert step_with(wrap)(x).numpy().tobytes() == plain.tobytes()


@pytest.mark.parametrize("name", ["balanced", "budget", "region"])
def test_writes_in_place_are_followed(name):
    strategy, wrap = STRATEGIES[name]
    w = pb.tensor(X[:, :11] / 3, requires_grad=True)
    state = pb.zeros((11,), dtype="float64")

    def block(h):
        y = pb.exp(h @ w)
        y *= 2.0
        y[2:4] = pb.tanh(y[4:6])
        with pb.no_grad():
            state[...] += y.sum(axis=0)
        return y * 0.01

    def step(x):
        h = x
        call = wrap(block)
        for _ in range(3):
            h = call(h)
        return [pb.backward((h * h).sum())[w], h]

    x = pb.tensor(X[:, :11])
    expected = [*arrays(step(x)), state.numpy().copy()]
    state[...] = 0.0
    with pb.checkpointing(strategy()):
        found = [*arrays(pb.compile(step)(x)), state.numpy().copy()]  # written once
    assert_equal(found, expected)


@pytest.mark.parametrize("name", ["balanced", "budget", "region"])
def test_several_walks(name):
    strategy, wrap = STRATEGIES[name]
    layers = parameters(2)
    variables = [w for p in layers for w in p.values()]

    def step(x):
        first, second = network(layers, x, 0.0, wrap), network(layers, x * 0.5, 0.0, wrap)
        one = pb.backward(first, retain_graph=True)
        other = pb.backward(first * second)
        return [one[w] + other[w] for w in variables]

    x = pb.tensor(X)
    expected = arrays(step(x))
    with pb.checkpointing(strategy()):
        assert_equal(arrays(pb.compile(step)(x)), expected)


@pytest.mark.parametrize("name", ["balanced", "budget", "region"])
def test_gradients_accumulate_in_the_cells(name):
    strategy, wrap = STRATEGIES[name]
    w = pb.tensor(X[:, :11] / 4, requires_grad=True)

    @pb.compile
    def add(x):
        block = wrap(lambda h: pb.tanh(pb.exp(h @ w) * 0.1))
        loss = (block(block(x)) ** 2).sum()
        loss.backward()
        return loss

    x = pb.tensor(X[:, :11])
    with pb.checkpointing(strategy()):
        for _ in range(3):
            add(x)
    found = w.grad.numpy().copy()
    w.grad = None
    add.function(x)
    np.testing.assert_allclose(found, 3 * w.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["balanced", "budget", "region"])
def test_functions_of_the_user_run_once(name):
    strategy, wrap = STRATEGIES[name]
    calls = []

    def forward(x):
        calls.append(1)
        return x * x

    operation = pb.custom_op(forward, name="counted", shape=lambda x: x, x=lambda g, x: 2 * g * x)
    w = pb.tensor(X[:, :11] / 4, requires_grad=True)

    @pb.compile(ignore=["calls"])
    def step(x):
        block = wrap(lambda h: pb.tanh(pb.sin(operation(pb.exp(h @ w))) * 0.1))  # whose slope needs what it made
        return pb.backward(block(block(x)).sum())[w]

    with pb.checkpointing(strategy()):
        step(pb.tensor(X[:, :11]))
        calls.clear()
        found = step(pb.tensor(X[:, :11])).numpy()
    assert len(calls) == 2
    expected = step.function(pb.tensor(X[:, :11])).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# -- gradients taken outside -----------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "jax:cpu"])
@pytest.mark.parametrize("name", ["balanced", "budget", "region"])
def test_gradients_outside_keep_less(name, device):
    require(device)
    found, kept = [], []
    for strategy, wrap in (PLAIN, STRATEGIES[name]):
        layers = on(device, parameters(3))
        pb.random.seed(1)
        loss_of = pb.compile(lambda x, layers=layers, wrap=wrap: network(layers, x, 0.4, wrap))
        with pb.checkpointing(strategy()):
            loss = loss_of(pb.tensor(X, device=device))
            loss_of(pb.tensor(X, device=device))  # draws other numbers
        loss.backward()
        found.append(arrays([w.grad for p in layers for w in p.values()]))
        kept.append(loss_of.memory["outputs"])
    assert_equal(found[1], found[0])
    assert kept[1] < 0.6 * kept[0]


def test_a_number_that_changes_is_that_of_its_call_in_a_later_walk():
    class Settings:
        scale = 1.0

    settings = Settings()
    w = pb.tensor([0.5, 1.0], requires_grad=True)
    f = pb.compile(lambda: pb.exp(w * settings.scale).sum())
    for i in range(8):
        settings.scale = 1.0 + i / 8
        f()
    settings.scale = 2.0
    first = f()
    settings.scale = 3.0
    f()
    first.backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-6)


def test_a_region_around_a_compiled_function_keeps_what_it_was_given():
    layers = parameters(3)
    compiled = pb.compile(lambda x: network(layers, x))
    region = pb.checkpoint(compiled)
    for _ in range(3):
        loss = region(pb.tensor(X))
    loss.backward()
    found = arrays([w.grad for p in layers for w in p.values()])
    assert compiled.traces == 1
    assert compiled.memory["outputs"] < 4 * X.nbytes  # sums of rows, which take little
    for p in layers:
        for w in p.values():
            w.grad = None
    network(layers, pb.tensor(X)).backward()
    assert_equal(found, arrays([w.grad for p in layers for w in p.values()]))


# -- memory ----------------------------------------------------------------------------------------


def deep(wrap, cheap=False, layers=24):
    w = pb.tensor(np.eye(16) * 0.9, requires_grad=True)

    def block(h):
        if not cheap:
            h = h @ w
        return pb.tanh(pb.exp(pb.sin(h) * w[0]) * 0.3)

    @pb.compile
    def step(x):
        h, call = x, wrap(block)
        for _ in range(layers):
            h = call(h)
        return pb.backward((h * h).sum())[w]

    return step


@pytest.mark.parametrize(
    ("case", "share"),
    [
        (("balanced", False), 0.6),
        (("balanced", True), 0.5),
        (("region", False), 0.5),
        (("budget", False), 0.5),
    ],
)
def test_the_arena_of_a_deep_chain_becomes_smaller(case, share):
    name, cheap = case
    x = pb.tensor(np.random.default_rng(0).standard_normal((64, 16)))
    plain = deep(same, cheap)
    expected = plain(x).numpy()
    strategy, wrap = STRATEGIES[name]
    step = deep(wrap, cheap)
    if name == "budget":
        strategy = lambda: pb.BudgetCheckpointing(plain.memory["saved"] // 4)
    with pb.checkpointing(strategy()):
        np.testing.assert_allclose(step(x).numpy(), expected, rtol=1e-12)
    assert step.memory["arena"] < share * plain.memory["arena"]
    assert step.memory["saved"] < share * plain.memory["saved"]


@pytest.mark.parametrize(("name", "share"), [("balanced", 0.4), ("region", 0.2)])
def test_what_is_made_again_is_not_joined_with_what_made_it_first(name, share):
    """Its loops would fit into those of the forward pass, which read the same arrays: then all would be kept."""
    arenas = []
    for strategy, wrap in (PLAIN, STRATEGIES[name]):
        step = step_of(parameters(6), wrap)
        with pb.checkpointing(strategy()):
            step(pb.tensor(np.ones((40, 16))))
        arenas.append(step.memory["arena"])
    assert arenas[1] < share * arenas[0]


@pytest.mark.parametrize("divisor", [2, 4, 8, 16])
def test_small_budgets_hold_for_a_deep_chain(divisor):
    x = pb.tensor(np.random.default_rng(0).standard_normal((64, 16)))
    plain, step = deep(same), deep(same)
    expected = plain(x).numpy()
    budget = plain.memory["saved"] // divisor
    with pb.checkpointing(pb.BudgetCheckpointing(budget)):
        np.testing.assert_allclose(step(x).numpy(), expected, rtol=1e-12)
    assert step.memory["saved"] <= budget
    assert counted_bytes(step._latest().program) <= budget


def test_a_long_chain_of_cheap_operations_is_held_in_pieces():
    arenas = []
    for layers in (40, 80):
        step = deep(same, True, layers)
        with pb.checkpointing(pb.BalancedCheckpointing()):
            step(pb.tensor(np.ones((64, 16))))
        arenas.append(step.memory["arena"])
    assert arenas[1] < 1.9 * arenas[0]


def counted_bytes(program):
    """The most bytes that walks find kept or make again, by the letter: counted for each instruction."""
    flow = Flow(program)
    live: dict = {}
    for position, one in enumerate(program.instructions):
        for value in one.values():
            root = flow.root(value)
            if root in flow.makers and not flow.is_free(root) and root not in flow.wanted:
                made, again = flow.walk_of(root), flow.makers[root].after is not None
                if one.mark.walk not in (0, made) or (again and one.op not in flow_loops()):
                    live[root] = position
    return max(
        (
            sum(root.nbytes for root, end in live.items() if flow.position[root] <= at <= end)
            for at in range(len(program.instructions))
        ),
        default=0,
    )


def flow_loops():
    """The operations that are parts of loops, which hold nothing of what they make for each other."""
    from pullback.operations import OPERATIONS

    return {name for name, operation in OPERATIONS.items() if operation.scalar or operation.reduces}


@pytest.mark.parametrize("seed", range(6))
def test_a_budget_is_never_exceeded(seed):
    generator = np.random.default_rng(seed)
    widths = generator.integers(3, 24, generator.integers(3, 8))
    weights = [pb.tensor(generator.standard_normal((m, n)) / 3, requires_grad=True) for m, n in pairwise(widths)]
    kinds = generator.integers(0, 4, len(weights))
    activations = [pb.tanh, pb.gelu, lambda h: h * pb.sigmoid(h), lambda h: pb.layer_norm(h, axis=-1)]

    def run(x):
        h, skips = x, []
        for w, kind in zip(weights, kinds):
            h = activations[kind](h @ w)
            skips.append(h.sum(axis=-1))
        loss = (h * h).mean() + sum((s * s).mean() for s in skips)
        gradients = pb.backward(loss)
        return [gradients[w] for w in weights]

    x = pb.tensor(generator.standard_normal((int(generator.integers(2, 9)), int(widths[0]))))
    plain = pb.compile(run)
    expected = arrays(plain(x))
    least = pb.compile(run)
    with pb.checkpointing(pb.BudgetCheckpointing(0)):
        assert_equal(arrays(least(x)), expected)
    floor, saved = least.memory["saved"], plain.memory["saved"]
    for budget in generator.integers(floor, max(saved, floor + 1), 3):
        step = pb.compile(run)
        with pb.checkpointing(pb.BudgetCheckpointing(int(budget))):
            assert_equal(arrays(step(x)), expected)
        assert step.memory["saved"] <= budget
        assert counted_bytes(step._latest().program) <= budget


def test_a_budget_that_is_large_enough_changes_nothing():
    layers = parameters(2)
    plain, step = step_of(layers, same), step_of(layers, same)
    plain(pb.tensor(X))
    with pb.checkpointing(pb.BudgetCheckpointing(plain.memory["saved"])):
        step(pb.tensor(X))
    assert step.source == plain.source
    assert step.memory == plain.memory


def test_programs_without_a_strategy_are_left_alone():
    step = step_of(parameters(2), same)
    step(pb.tensor(X))
    program = step._latest().program
    assert rematerialized(program) is program
    assert all(one.after is None for one in program.instructions)


# -- which program fits ----------------------------------------------------------------------------


def test_a_program_is_for_one_strategy():
    step = step_of(parameters(2), same)
    x = pb.tensor(X)
    step(x)
    for _ in range(3):  # equal strategies share a program
        with pb.checkpointing(pb.BalancedCheckpointing()):
            step(x)
    assert step.traces == 2
    assert "checkpointing" in step.recompilations[-1]
    for budget in (10_000, 20_000, 10_000):
        with pb.checkpointing(pb.BudgetCheckpointing(budget)):
            step(x)
            assert step.memory["saved"] <= budget
    assert step.traces == 4
    step(x)
    assert step.traces == 4
    assert "after" not in step.source


def test_a_strategy_inside_the_function_counts():
    layers = parameters(3)
    variables = [w for p in layers for w in p.values()]
    strategy = pb.BudgetCheckpointing(20_000)

    @pb.compile
    def step(x):
        with pb.checkpointing(strategy):
            loss = network(layers, x)
        gradients = pb.backward(loss)
        return [gradients[w] for w in variables]

    found = arrays(step(pb.tensor(X)))
    step(pb.tensor(X))
    assert step.traces == 1
    assert step.memory["saved"] <= 20_000
    assert_equal(found, arrays(step.function(pb.tensor(X))))


def test_a_strategy_that_is_entered_again_is_known_at_once():
    step = step_of(parameters(1), same)
    x = pb.tensor(X)
    strategy = pb.BalancedCheckpointing()
    with pb.checkpointing(strategy):
        step(x)
        mode = pb.modes.current()
    for _ in range(3):
        with pb.checkpointing(strategy):
            assert pb.modes.current() is mode  # which native guards compare
            step(x)
    with pb.no_grad(), pb.checkpointing(strategy):
        assert not pb.modes.current().recording
    assert pb.modes.current() is None
