"""The graph and its walk: shared nodes, repeated walks, what is released and when."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.apply import Outputs
from pullback.autodiff.tables import NUMPY_TABLE
from pullback.operations import OPERATIONS


def variable(value, dtype=pb.float64) -> pb.Tensor:
    return pb.tensor(value, dtype=dtype, requires_grad=True)


def numbers(tensor: pb.Tensor) -> np.ndarray:
    return np.asarray(tensor.detach()._raw)


@pytest.fixture
def visits():
    """Count how often the rules of some operations are called."""
    counts: dict[str, int] = {}
    changed = []

    def count(*names: str) -> dict[str, int]:
        for (name, _), recipe in list(NUMPY_TABLE.recipes.items()):
            if name in names:
                right = recipe.backward

                def counted(*args, name=name, right=right):
                    counts[name] = counts.get(name, 0) + 1
                    return right(*args)

                changed.append((recipe, right))
                recipe.backward = counted
        return counts

    for mask in ((True, True), (True, False), (False, True)):  # so that they are there to be counted
        for name in ("add", "multiply"):
            NUMPY_TABLE.recipe(OPERATIONS[name], mask)
    yield count
    for recipe, right in reversed(changed):
        recipe.backward = right


# -- shared nodes --------------------------------------------------------------------------------


def test_a_node_used_twice_counts_twice() -> None:
    w = variable(3.0)
    y = 2.0 * w
    z = y + y
    assert pb.backward(z)[w].item() == 4.0


def test_residual_chain_of_depth_8() -> None:
    x = variable(0.7)
    y = x
    for _ in range(8):
        y = y + 0.1 * y
    assert pb.backward(y)[x].item() == pytest.approx(1.1**8, rel=1e-14)


def test_residual_chain_of_vectors() -> None:
    x = variable([0.5, -1.0, 2.0])
    y = x
    for _ in range(8):
        y = y + 0.1 * y
    cotangent = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(numbers(pb.backward(y, cotangent)[x]), cotangent * 1.1**8, rtol=1e-14)


def test_diamond() -> None:
    x = variable([1.0, 2.0])
    a = x * 3.0
    left, right = a * a, a + 1.0
    out = pb.sum(left * right)  # 9x^2 (3x + 1): 81 x^2 + 18 x
    np.testing.assert_allclose(numbers(pb.backward(out)[x]), [99.0, 360.0])


@pytest.mark.plain_graph
def test_diamonds_in_a_row_are_walked_in_linear_time(visits) -> None:
    x = variable(1.0)
    y = x
    for _ in range(60):  # 2**60 ways from end to end
        y = y + y
    counts = visits("add")
    assert pb.backward(y)[x].item() == 2.0**60
    assert counts["add"] == 60


def test_late_use_of_an_early_node() -> None:
    """The first node is used again by the last one: nothing may be passed on before everything has arrived."""
    x = variable(2.0)
    first = x * x
    y = first
    for _ in range(5):
        y = y * 1.5
    z = y * first + first  # 1.5**5 x**4 + x**2
    assert pb.backward(z)[x].item() == pytest.approx(1.5**5 * 4 * 8 + 4)


def test_the_same_variable_as_both_inputs() -> None:
    x = variable([2.0, 3.0])
    assert numbers(pb.backward(pb.sum(x * x))[x]).tolist() == [4.0, 6.0]
    assert numbers(pb.backward(pb.sum(x - x))[x]).tolist() == [0.0, 0.0]


def test_shared_parameter_across_layers() -> None:
    generator = np.random.default_rng(0)
    w, x = generator.standard_normal((3, 3)), generator.standard_normal((2, 3))

    def network(first, second):
        return pb.sum(pb.tanh(pb.matmul(pb.tanh(pb.matmul(pb.asarray(x), first)), second)))

    one, two = variable(w), variable(w)
    apart = pb.backward(network(one, two))
    shared = variable(w)
    together = pb.backward(network(shared, shared))
    np.testing.assert_allclose(numbers(together[shared]), numbers(apart[one]) + numbers(apart[two]), rtol=1e-13)
    assert len(together) == 1
    assert len(apart) == 2


def test_entries_are_owned_even_where_two_variables_get_the_same_cotangent() -> None:
    x, y = variable([1.0, 2.0]), variable([3.0, 4.0])
    grads = pb.backward(x + y, np.array([5.0, 6.0]))
    assert not np.shares_memory(grads[x]._raw, grads[y]._raw)
    for gradient in grads:
        assert gradient._raw.flags.writeable
        assert gradient._raw.flags.c_contiguous


def test_a_given_cotangent_is_not_changed_and_not_handed_out() -> None:
    x = variable([1.0, 2.0])
    cotangent = np.array([5.0, 6.0])
    y = x + 0.0
    gradient = pb.backward(y + y, cotangent)[x]
    assert cotangent.tolist() == [5.0, 6.0]
    assert not np.shares_memory(gradient._raw, cotangent)
    assert not np.shares_memory(pb.backward(x + 0.0, cotangent)[x]._raw, cotangent)


def test_a_broadcast_gradient_is_an_array_of_its_own() -> None:
    x = variable(np.ones((3, 4)))
    gradient = pb.backward(pb.sum(x))[x]._raw
    assert gradient.flags.c_contiguous
    assert gradient.flags.writeable
    assert 0 not in gradient.strides


# -- walking again -------------------------------------------------------------------------------


def test_walking_twice_with_retain_graph() -> None:
    x = variable([1.0, 2.0])
    y = pb.sum(x * x * x)
    first = numbers(pb.backward(y, retain_graph=True)[x])
    second = numbers(pb.backward(y, retain_graph=True)[x])
    third = numbers(pb.backward(y)[x])
    assert first.tolist() == second.tolist() == third.tolist() == [3.0, 12.0]


def test_gradients_add_up_over_walks() -> None:
    x = variable([1.0, 2.0])
    y = pb.sum(x * x)
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert numbers(x.grad).tolist() == [4.0, 8.0]
    pb.sum(x * 3.0).backward()
    assert numbers(x.grad).tolist() == [7.0, 11.0]


def test_the_function_touches_no_grad() -> None:
    x = variable([1.0, 2.0])
    pb.backward(pb.sum(x * x))
    assert x.grad is None


def test_a_walked_graph_is_consumed_and_says_what_to_write() -> None:
    x = variable([1.0, 2.0])
    y = pb.sum(x * x)
    y.backward()
    with pytest.raises(pb.GraphConsumedError, match="retain_graph=True"):
        y.backward()
    with pytest.raises(pb.GraphConsumedError, match="retain_graph=True"):
        pb.backward(y)


def test_nothing_is_changed_when_a_part_of_the_graph_was_consumed() -> None:
    """The consumed part is found before the walk starts: no gradient is added and no other value released."""
    x, w = variable([1.0, 2.0]), variable([3.0, 4.0])
    shared = x * x
    pb.sum(shared).backward()
    before = numbers(x.grad).copy()
    fresh = w * w
    total = pb.sum(shared * 2.0) + pb.sum(fresh)
    with pytest.raises(pb.GraphConsumedError):
        total.backward()
    assert w.grad is None
    assert numbers(x.grad).tolist() == before.tolist()
    pb.sum(fresh).backward()  # its own part is whole
    assert numbers(w.grad).tolist() == [6.0, 8.0]


@pytest.mark.plain_graph
def test_saved_values_are_released_as_the_walk_passes() -> None:
    x = variable(np.ones((4, 4)))
    y = pb.exp(x)
    saved = weakref.ref(y._raw)
    z = pb.sum(y * 2.0)
    del y
    assert saved() is not None
    pb.backward(z)
    assert saved() is None


@pytest.mark.plain_graph
def test_saved_values_stay_with_retain_graph() -> None:
    x = variable(np.ones((4, 4)))
    y = pb.exp(x)
    saved = weakref.ref(y._raw)
    z = pb.sum(y * 2.0)
    del y
    pb.backward(z, retain_graph=True)
    assert saved() is not None
    del z
    assert saved() is None


# -- with respect to ------------------------------------------------------------------------------


def test_wrt_an_intermediate() -> None:
    x = variable([1.0, 2.0])
    y = x * x
    z = pb.sum(y * y)
    grads = pb.backward(z, wrt=y, retain_graph=True)
    assert numbers(grads[y]).tolist() == [2.0, 8.0]
    assert x not in grads
    both = pb.backward(z, wrt=[x, y])
    assert numbers(both[y]).tolist() == [2.0, 8.0]
    assert numbers(both[x]).tolist() == [4.0, 32.0]


@pytest.mark.plain_graph
def test_wrt_walks_only_where_it_must(visits) -> None:
    x, w = variable(2.0), variable(3.0)
    side = w
    for _ in range(10):
        side = side * 1.5
    out = x * 2.0 + side
    counts = visits("multiply")
    assert pb.backward(out, wrt=x)[x].item() == 2.0
    assert counts["multiply"] == 1


def test_wrt_the_result_itself() -> None:
    x = variable([1.0, 2.0])
    y = x * x
    grads = pb.backward(y, np.array([3.0, 4.0]), wrt=[y, x])
    assert numbers(grads[y]).tolist() == [3.0, 4.0]
    assert numbers(grads[x]).tolist() == [6.0, 16.0]


def test_wrt_something_the_result_does_not_depend_on() -> None:
    x, other = variable(1.0), variable(2.0)
    grads = pb.backward(x * x, wrt=[x, other])
    assert other not in grads
    assert grads.get(other) is None
    with pytest.raises(KeyError, match="does not depend"):
        grads[other]


def test_wrt_a_clone_is_wrt_the_variable() -> None:
    x = variable([1.0, 2.0])
    grads = pb.backward(pb.sum(x.clone() * 3.0))
    assert numbers(grads[x]).tolist() == [3.0, 3.0]


def test_detach_cuts() -> None:
    x = variable(3.0)
    assert pb.backward(x * x.detach())[x].item() == 3.0


def test_the_variable_itself_as_the_result() -> None:
    x = variable(3.0)
    assert pb.backward(x)[x].item() == 1.0


def test_several_outputs_with_absent_cotangents() -> None:
    """A walk from one output of several leaves the others' cotangents out."""
    x = variable([3.0, 1.0, 2.0])
    parts = pb.unstack(x)
    grads = pb.backward(parts[1] * 5.0)
    assert numbers(grads[x]).tolist() == [0.0, 5.0, 0.0]


@pytest.mark.plain_graph
def test_frozen_layers_are_not_walked(visits) -> None:
    frozen = pb.tensor(2.0, dtype=pb.float64)
    y = frozen
    for _ in range(10):
        y = y * 1.5
    w = variable(1.0)
    counts = visits("multiply")
    pb.backward(y * w)
    assert counts["multiply"] == 1


def test_a_hook_on_an_intermediate_in_wrt_is_called_once():
    w = variable([1.0, 2.0])
    y = w * 2
    calls = []
    y.register_hook(lambda g: (calls.append(1), 10 * g)[1])
    grads = pb.backward((y * y).sum(), wrt=[y, w])
    assert len(calls) == 1
    assert grads[y].tolist() == [40.0, 80.0] and grads[w].tolist() == [80.0, 160.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_see_complex_gradients_as_the_user_does(create_graph):
    z = pb.tensor(np.array([1 + 2j]), requires_grad=True)
    y = z * (2 + 1j)
    seen = {}
    y.register_hook(lambda g: seen.update(y=g.detach()))
    z.register_hook(lambda g: (seen.update(z=g.detach()), g * 2)[1])
    grads = pb.backward(pb.real(y * (1 - 3j)).sum(), wrt=[y, z], create_graph=create_graph)
    assert seen["y"].tolist() == [1 + 3j] == grads[y].tolist()
    assert seen["z"].tolist() == [5 + 5j]
    assert grads[z].tolist() == [10 + 10j]


def test_hooks_may_return_arrays_and_nothing_else_than_arrays():
    w = variable([1.0, 2.0])
    w.register_hook(lambda g: np.array([5.0, 6.0]))
    (w * 2).sum().backward()
    assert w.grad.tolist() == [5.0, 6.0]
    w = variable([1.0, 2.0])
    w.register_hook(lambda g: 3.0)
    with pytest.raises(pb.ShapeError, match="hook"):
        (w * 2).sum().backward()


def test_many_outputs_are_walked_in_linear_work(monkeypatch):
    made = 0
    create = Outputs.__init__

    def counted(self, *args):
        nonlocal made
        made += 1
        create(self, *args)

    monkeypatch.setattr(Outputs, "__init__", counted)
    x = pb.tensor(np.arange(300.0).reshape(300, 1), requires_grad=True)
    total = 0.0
    for row in pb.unstack(x):
        total = total * 0.5 + row * row
    total.sum().backward()
    assert made < 3 * 300
    assert np.allclose(x.grad.numpy()[:, 0], 2 * np.arange(300.0) * 0.5 ** np.arange(299, -1, -1))


def test_a_hook_that_refers_to_its_own_tensor_is_collected():
    class Large:
        pass

    alive = weakref.WeakSet()
    for _ in range(20):
        y = pb.tensor([1.0, 2.0], requires_grad=True) * 2.0
        load = Large()
        alive.add(load)
        y.register_hook(lambda g, y=y, load=load: g * y.detach())
        y.sum().backward()
        del y, load
    gc.collect()
    assert not alive
