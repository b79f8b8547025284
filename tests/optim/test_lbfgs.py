from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.optim.line_search import Point, strong_wolfe

from ..backends.installed import optional
from .problems import data, network_loss, parameters, values

torch = optional("torch")
lbfgs = optional("torch.optim.lbfgs")

CASES = [
    {"lr": 0.1},
    {"lr": 0.1, "max_iter": 4, "history_size": 3},
    {"lr": 0.1, "tolerance_grad": 1e-2},
    {"lr": 0.1, "tolerance_change": 1e-2},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 5, "max_iter": 7},
    {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_iter": 5, "max_eval": 40},
    {"line_search_fn": "strong_wolfe", "lr": 1e-3, "max_iter": 5},
    {"line_search_fn": "strong_wolfe", "max_eval": 3},
    {"line_search_fn": "strong_wolfe", "max_eval": 1},
]


def closure_of(xp, tensors, optimizer, x, y, calls):
    def closure():
        optimizer.zero_grad()
        loss = network_loss(xp, tensors, x, y)
        loss.backward()
        calls.append(loss.item())
        return loss

    return closure


@pytest.mark.parametrize("options", CASES, ids=str)
def test_same_losses_and_parameters_as_pytorch(options):
    initial, (x, y) = values(), data()
    ours, theirs = parameters(initial), [torch.tensor(value, requires_grad=True) for value in initial]
    our_calls, their_calls = [], []
    optimizer, reference = pb.optim.LBFGS(ours, **options), torch.optim.LBFGS(theirs, **options)
    closure = closure_of(pb, ours, optimizer, pb.asarray(x), pb.asarray(y), our_calls)
    expected = closure_of(torch, theirs, reference, torch.tensor(x), torch.tensor(y), their_calls)
    addresses = [t._raw.ctypes.data for t in ours]
    for _ in range(3):
        assert optimizer.step(closure).item() == pytest.approx(reference.step(expected).item(), rel=1e-8)
    np.testing.assert_allclose(our_calls, their_calls, rtol=1e-6)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-7)
    assert [t._raw.ctypes.data for t in ours] == addresses
    state, other = optimizer.state_dict()["state"][0], reference.state_dict()["state"][0]
    assert (state["func_evals"], state["n_iter"]) == (other["func_evals"], other["n_iter"])


#: Waves on which the search stalls at an end of its bracket, or rises at the second step.
HARD = [
    (-0.79, 1.94, 2.41, 0.22, 0.62, 0.2),
    (-0.18, 1.61, 2.38, 0.15, 0.7, 2.39),
    (-0.7, 0.18, 5.22, 0.1, 0.08, 2.3),
    (0.65, 1.3, 2.55, 0.21, -1.76, 0.24),
    (-0.97, 0.51, 5.06, 0.16, 1.93, 0.34),
]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 25])
def test_line_search_goes_where_pytorchs_goes(turns):
    """On wavy and on steep functions, which take it through every branch."""
    rng = np.random.default_rng(0)
    random = rng.uniform((-1, 0.1, 0.2, 0.0, -2, -3), (1, 3, 6, 0.3, 2, 1), (60, 6))
    trials = [(False, *case) for case in HARD] + [(i % 2 == 0, *c[:5], 10.0 ** c[5]) for i, c in enumerate(random)]
    lengths = []
    for steep, tilt, height, pitch, wall, start, first in trials:

        def loss(x, steep=steep, tilt=tilt, height=height, pitch=pitch, wall=wall):
            if steep:
                return torch.exp(pitch * (x - 1)) - height * x
            return tilt * x + height * torch.sin(pitch * x) + wall * x**4

        def value_and_slope(x, loss=loss):
            point = torch.tensor(x, dtype=torch.float64, requires_grad=True)
            value = loss(point)
            value.backward()
            return value.item(), point.grad.item()

        begin, slope = value_and_slope(start)
        direction = -np.sign(slope)

        def evaluate(length, start=start, direction=direction, f=value_and_slope):
            value, slope = f(start + length * direction)
            return Point(length, value, slope, slope * direction)

        def objective(x, t, d, f=value_and_slope):
            value, slope = f(float(x + t * d))
            return value, torch.tensor([slope], dtype=torch.float64)

        vector = torch.tensor([direction], dtype=torch.float64)
        gradient = torch.tensor([slope], dtype=torch.float64)
        expected = lbfgs._strong_wolfe(
            objective,
            torch.tensor(start, dtype=torch.float64),
            first,
            vector,
            begin,
            gradient,
            gradient.dot(vector),
            max_ls=turns,
        )
        point, calls = strong_wolfe(evaluate, Point(0.0, begin, slope, -abs(slope)), first, turns, 1e-9)
        assert point.at == pytest.approx(float(expected[2]), rel=1e-9)
        assert point.loss == pytest.approx(expected[0], rel=1e-9) and calls == expected[3]
        lengths.append(calls)
    assert len(set(lengths)) >= min(3, turns)


@pytest.mark.parametrize("source", ["pullback", "pytorch"])
def test_goes_on_from_a_saved_state(source):
    initial, (x, y) = values(), data()
    options = {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 6}
    xp = pb if source == "pullback" else torch
    if source == "pullback":
        tensors, arrays = parameters(initial), (pb.asarray(x), pb.asarray(y))
        optimizer = pb.optim.LBFGS(tensors, **options)
    else:
        tensors, arrays = [torch.tensor(value, requires_grad=True) for value in initial], map(torch.tensor, (x, y))
        optimizer = torch.optim.LBFGS(tensors, **options)
    closure = closure_of(xp, tensors, optimizer, *arrays, [])
    for _ in range(2):
        optimizer.step(closure)
    copies = parameters([np.array(t.detach().numpy()) for t in tensors])
    resumed = pb.optim.LBFGS(copies)
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.param_groups[0]["history_size"] == 6
    resumed.step(closure_of(pb, copies, resumed, pb.asarray(x), pb.asarray(y), []))
    optimizer.step(closure)
    for a, b in zip(copies, tensors):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("at", [1, 2, 4])
def test_an_error_in_the_function_leaves_everything_as_it_was(at):
    tensors = parameters(values())
    x, y = map(pb.asarray, data())
    optimizer = pb.optim.LBFGS(tensors, line_search_fn="strong_wolfe")
    calls = []
    closure = closure_of(pb, tensors, optimizer, x, y, calls)
    optimizer.step(closure)
    before = [t.detach() for t in tensors]
    state = optimizer.state_dict()["state"][0]
    calls.clear()

    def failing():
        if len(calls) + 1 == at:
            raise KeyError("stop")
        return closure()

    with pytest.raises(KeyError, match="stop"):
        optimizer.step(failing)
    assert all([(t == b).all() for t, b in zip(tensors, before)])
    after = optimizer.state_dict()["state"][0]
    assert after["n_iter"] == state["n_iter"] and (after["d"] == state["d"]).all()


def test_minimum_of_rosenbrock_from_afar():
    w = pb.tensor(np.array([-1.2, 1.0]), requires_grad=True)
    optimizer = pb.optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=100)

    def loss():
        optimizer.zero_grad()
        value = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        value.backward()
        return value

    optimizer.step(loss)
    np.testing.assert_allclose(w.detach().numpy(), [1.0, 1.0], atol=1e-4)


def test_a_loss_that_is_infinite_on_the_way_is_turned_away_from():
    w = pb.tensor(np.array([0.5]), requires_grad=True)
    optimizer = pb.optim.LBFGS([w], lr=1e6, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = pb.exp(w[0] * w[0] * 100) + w[0]
        with pb.guard("off"), np.errstate(over="ignore", invalid="ignore"):
            value.backward()
        return value

    with np.errstate(over="ignore"):
        for _ in range(5):
            optimizer.step(loss)
    assert abs(w.item()) < 0.1


def test_stays_at_a_minimum():
    w = pb.tensor(np.array([1e-9, 0.0]), requires_grad=True)
    optimizer = pb.optim.LBFGS([w])
    calls = []

    def loss():
        optimizer.zero_grad()
        calls.append((w * w).sum())
        calls[-1].backward()
        return calls[-1]

    assert optimizer.step(loss) is calls[0] and len(calls) == 1
    assert w.tolist() == [1e-9, 0.0]
    resumed = pb.optim.LBFGS([w])
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.state_dict() == optimizer.state_dict()


def test_refuses_what_it_cannot_do():
    w = pb.tensor([1.0], requires_grad=True)
    optimizer = pb.optim.LBFGS([w])
    with pytest.raises(pb.ConfigurationError, match="function"):
        optimizer.step()
    with pytest.raises(pb.ConfigurationError, match="one group"):
        optimizer.add_param_group({"params": [pb.tensor([1.0], requires_grad=True)]})
    with pytest.raises(pb.ConfigurationError, match="strong_wolfe"):
        pb.optim.LBFGS([w], line_search_fn="armijo")
    with pytest.raises(pb.DtypeError, match="float16"):
        pb.optim.LBFGS([pb.zeros((2,), dtype=pb.float16)])
    with pytest.raises(pb.DtypeError, match="tensor"):
        pb.optim.LBFGS([np.ones(2)])
    state = {"func_evals": 1, "n_iter": 1, "t": 0.1, "H_diag": 1.0, "prev_loss": 2.0}
    for broken, message in [
        ({"d": np.ones(2, np.float32), "prev_flat_grad": np.ones(1, np.float32)}, "d has"),
        ({"d": np.ones(1), "prev_flat_grad": np.ones(1)}, "float64"),
        ({}, "has no d, prev_flat_grad"),
    ]:
        with pytest.raises(pb.PullbackError, match=message):
            optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: {**state, **broken}}})
