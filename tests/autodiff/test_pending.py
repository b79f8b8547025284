"""The guard on a device: `backward` waits for nothing, and what is wrong is raised where somebody waits."""

import threading
import warnings

import pytest

import pullback as pb
from pullback.autodiff import pending
from tests.backends.installed import optional

torch = optional("torch")


@pytest.fixture
def reads(monkeypatch):
    """Have PyTorch's CPU count as a device that is waited for; how often its answers are read."""
    torch.tensor(0.0)  # skips where there is no PyTorch
    from pullback.backends.torch_backend import BACKEND

    monkeypatch.setattr(type(BACKEND), "is_on_device", lambda self, raw: True)
    made = []
    start = type(BACKEND).finite_later

    def finite_later(self, raws):
        answer = start(self, raws)

        def read():
            made.append(len(raws))
            return answer()

        return read

    monkeypatch.setattr(type(BACKEND), "finite_later", finite_later)
    yield made
    pending.checks.waiting.clear()


def variable(*values):
    return pb.asarray(torch.tensor(values)).set_requires_grad(True)


def test_backward_starts_one_check_and_does_not_read_it(reads):
    w = pb.asarray(torch.randn(3, 3)).set_requires_grad(True)
    x = pb.relu(w)
    for _ in range(5):
        x = pb.tanh(x @ w)
    loss = pb.sum(x)
    loss.backward()
    assert reads == []
    loss.item()
    assert reads == [2]  # the loss and one gradient
    loss.item()
    assert reads == [2]


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.item(), lambda t: float(t.detach()), lambda t: bool(t.detach()), lambda t: t.detach().numpy(),
        lambda t: t.tolist(), repr, lambda t: t.to_device("numpy"), lambda t: f"{t.detach():.2f}",
    ],
)  # fmt: skip
def test_reading_any_value_raises_what_went_wrong_before(reads, read):
    w = variable(0.0, 0.0)
    pb.sum(pb.sqrt(w)).backward()
    other = pb.asarray(torch.tensor(1.0))
    with pytest.raises(pb.NumericalInstabilityError, match=r"1 of 1 variables.*what `sqrt` passes on.*retain_graph"):
        read(other)
    read(other)  # once


def test_the_next_backward_raises_before_it_changes_anything(reads):
    w, v = variable(0.0, 0.0), variable(1.0, 2.0)
    pb.sum(pb.sqrt(w)).backward()
    loss = pb.sum(v * v)
    with pytest.raises(pb.NumericalInstabilityError, match="`sqrt`"):
        loss.backward()
    assert v.grad is None
    loss.backward()
    assert v.grad.tolist() == [2.0, 4.0]


def test_a_result_that_is_not_finite(reads):
    w = variable(1.0, -1.0)
    pb.backward(pb.sum(pb.log(w)))
    with pytest.raises(pb.NumericalInstabilityError, match=r'the result is nan.*pb.guard\("trace"\)'):
        w.tolist()
    with pytest.raises(pb.NumericalInstabilityError, match="`log` made nan"):  # it keeps the graph: waits, and names it
        pb.backward(pb.sum(pb.log(w)), retain_graph=True)


def test_a_graph_that_is_kept_is_looked_at_at_once(reads):
    w = variable(0.0, 0.0)
    with pytest.raises(pb.NumericalInstabilityError, match="gradient of `sqrt` is inf"):
        pb.backward(pb.sum(pb.sqrt(w)), retain_graph=True)


def test_the_end_of_a_guard_block_looks(reads):
    w = variable(0.0, 0.0)
    with pytest.raises(pb.NumericalInstabilityError), pb.guard("raise"):
        pb.sum(pb.sqrt(w)).backward()
        assert reads == []
    with pytest.raises(ZeroDivisionError), pb.guard("raise"):  # its own error is not hidden
        pb.sum(pb.sqrt(w)).backward()
        raise ZeroDivisionError
    assert len(pending.checks.waiting) == 1


def test_the_mode_of_the_walk_counts_not_that_of_the_look(reads):
    w = variable(0.0, 0.0)
    with pytest.warns(RuntimeWarning, match="not finite"), pb.guard("warn"):
        pb.sum(pb.sqrt(w)).backward()
    with pb.guard("off"):
        pb.sum(pb.sqrt(w)).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        w.tolist()
    assert reads == [2]


def test_gradients_are_not_held_for_the_look(reads):
    w = variable(1.0, 2.0)
    pb.sum(w * w).backward()
    assert len(pending.checks.waiting) == 1
    grad = w.grad
    assert grad._backend.is_exclusive(grad, "_raw")


def test_variables_of_several_dtypes_in_one_look(reads):
    w, v = variable(1.0, 2.0), pb.asarray(torch.zeros(3, dtype=torch.float64)).set_requires_grad(True)
    (pb.sum(w * w) + pb.sum(pb.sqrt(v)).astype(pb.float32)).backward()
    with pytest.raises(pb.NumericalInstabilityError, match="1 of 2 variables"):
        w.tolist()


def test_each_thread_hears_of_its_own_walks():
    heard = []

    def work():
        pending.checks.waiting.append(lambda: heard.append(threading.get_ident()))
        started.set()
        done.wait()
        pending.look()

    started, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    assert not pending.checks
    pending.look()
    assert not heard
    done.set()
    thread.join()
    assert heard == [thread.ident]
