"""Copy-on-write: sole holders write in place, shared memory is copied once, nobody sees another's write."""

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.graph import saved_values


def address(t: pb.Tensor) -> int:
    return t._raw.__array_interface__["data"][0]


WRITES = {
    "iadd": lambda t: t.__iadd__(1.0),
    "isub": lambda t: t.__isub__(1.0),
    "imul": lambda t: t.__imul__(3.0),
    "itruediv": lambda t: t.__itruediv__(2.0),
    "ipow": lambda t: t.__ipow__(3.0),
    "iadd-tensor": lambda t: t.__iadd__(pb.tensor(np.full(t.shape, 2.0))),
    "setitem-slice": lambda t: t.__setitem__(slice(1, 3), 7.0),
    "setitem-int": lambda t: t.__setitem__(0, 7.0),
    "setitem-all": lambda t: t.__setitem__(..., 7.0),
    "setitem-mask": lambda t: t.__setitem__(t > 0.5, 7.0),
    "setitem-integers": lambda t: t.__setitem__(pb.tensor([0, 2]), 7.0),
    "data_mut": lambda t: t.data_mut().__setitem__(0, 7.0),
}


def start() -> pb.Tensor:
    return pb.tensor(np.array([1.0, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize("name", WRITES)
class TestEveryWrite:
    def test_changes_the_tensor(self, name):
        t = start()
        WRITES[name](t)
        assert not np.array_equal(t.numpy(), start().numpy())

    def test_leaves_clones_alone(self, name):
        t = start()
        clone = t.clone()
        WRITES[name](t)
        assert np.array_equal(clone.numpy(), [1, 2, 3, 4])
        t = start()
        clone = t.clone()
        WRITES[name](clone)
        assert np.array_equal(t.numpy(), [1, 2, 3, 4])

    def test_leaves_views_alone(self, name):
        t = start()
        view = t[:3]
        WRITES[name](t)
        assert np.array_equal(view.numpy(), [1, 2, 3])

    def test_of_a_view_leaves_the_base_alone(self, name):
        t = start()
        view = t[:]
        WRITES[name](view)
        assert np.array_equal(t.numpy(), [1, 2, 3, 4])

    def test_leaves_a_borrowed_array_alone(self, name):
        array = np.array([1.0, 2.0, 3.0, 4.0])
        WRITES[name](pb.asarray(array))
        assert np.array_equal(array, [1, 2, 3, 4])
        base = np.arange(8.0)
        WRITES[name](pb.asarray(base[:4]))
        assert np.array_equal(base, np.arange(8.0))

    def test_leaves_exports_alone(self, name):
        t = start()
        exported = t.numpy()
        raw = t.data
        shared = np.from_dlpack(t)
        WRITES[name](t)
        for array in (exported, raw, shared):
            assert np.array_equal(array, [1, 2, 3, 4])

    def test_leaves_saved_values_alone(self, name):
        w = pb.tensor(np.ones(4), requires_grad=True)
        t = start()
        y = (w * t).sum()  # keeps t
        WRITES[name](t)
        y.backward()
        assert np.array_equal(w.grad.numpy(), [1, 2, 3, 4])

    def test_of_a_sole_holder_keeps_the_address(self, name):
        t = start()
        before = address(t)
        WRITES[name](t)
        assert address(t) == before


def test_clone_of_a_gibibyte_takes_no_memory():
    t = pb.asarray(np.zeros(2**28, dtype=np.float32))
    tracemalloc.start()
    clone = t.clone()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000
    assert address(clone) == address(t)


def test_a_shared_buffer_is_copied_once():
    t = start()
    clone = t.clone()
    t += 1.0
    first = address(t)
    t += 1.0
    assert address(t) == first != address(clone)


def test_writing_to_a_slice_copies_at_most_the_slice():
    t = pb.tensor(np.zeros(1_000_000))
    before = address(t)
    tracemalloc.start()
    t[:2] += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert address(t) == before
    assert peak < 100_000
    assert np.array_equal(t.numpy()[:3], [1, 1, 0])


def test_a_view_that_outlives_its_base_owns_the_memory():
    t = start()
    view = t[1:3]
    before = address(view)
    del t
    view += 1
    assert address(view) == before


def test_overlapping_assignment_reads_the_old_values():
    t = start()
    t[1:] = t[:-1]
    assert np.array_equal(t.numpy(), [1, 1, 2, 3])


def test_in_place_square_of_itself():
    w = pb.tensor(np.array([2.0, 3.0]), requires_grad=True)
    y = w * 1.0
    y *= y
    y.sum().backward()
    assert np.array_equal(y.detach().numpy(), [4, 9])
    assert np.array_equal(w.grad.numpy(), [4, 6])


def test_in_place_chain_on_an_intermediate_is_recorded():
    w = pb.tensor(np.array([2.0, 3.0]), requires_grad=True)
    y = w * 2
    z = y.exp()
    y += w
    y *= w
    y /= 2
    y -= 1
    ((y + z) ** 2).sum().backward()
    x = np.array([2.0, 3.0])
    value = 1.5 * x * x - 1 + np.exp(2 * x)
    assert np.allclose(w.grad.numpy(), 2 * value * (3 * x + 2 * np.exp(2 * x)), rtol=1e-12)


def test_assignment_into_an_untracked_buffer_is_recorded():
    w = pb.tensor(np.array([2.0, 3.0]), requires_grad=True)
    buffer = pb.zeros(4, dtype=pb.float64)
    for i in range(2):
        buffer[2 * i] = w[i] * w[i]
    buffer[1:2] = 5.0
    (buffer * pb.asarray([1.0, 2.0, 3.0, 4.0], dtype=pb.float64)).sum().backward()
    assert np.array_equal(w.grad.numpy(), [4, 18])


def test_overwritten_elements_get_no_gradient():
    w = pb.tensor(np.array([2.0, 3.0, 4.0]), requires_grad=True)
    y = w * w
    y[1] = 0.0
    y.sum().backward()
    assert np.array_equal(w.grad.numpy(), [4, 0, 8])


def test_masked_assignment_of_a_tensor():
    w = pb.tensor(np.array([2.0, 3.0]), requires_grad=True)
    y = pb.zeros(3, dtype=pb.float64)
    y[np.array([True, False, True])] = w
    (y * y).sum().backward()
    assert np.array_equal(w.grad.numpy(), [4, 6])


class TestVariables:
    def test_cannot_be_written_while_recording(self):
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        for write in (lambda: w.__iadd__(1.0), lambda: w.__setitem__(0, 1.0)):
            with pytest.raises(pb.GradientError, match="no_grad"):
                write()
        assert np.array_equal(w.detach().numpy(), [1, 2])

    def test_stay_variables_when_updated(self):
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        before = address(w)
        for _ in range(3):
            (w * w).sum().backward()
            with pb.no_grad():
                w -= 0.25 * w.grad
            w.zero_grad()
        assert w.is_leaf and address(w) == before
        assert np.allclose(w.detach().numpy(), [0.125, 0.25])

    def test_clones_are_the_same_variable_until_one_is_written(self):
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        clone = w.clone()
        assert clone.grad_cell is w.grad_cell
        (clone * 3).sum().backward()
        assert np.array_equal(w.grad.numpy(), [3, 3])
        with pb.no_grad():
            w += 1
        assert clone.grad_cell is not w.grad_cell
        assert np.array_equal(clone.detach().numpy(), [1, 2])
        (clone * 5).sum().backward()
        assert np.array_equal(w.grad.numpy(), [3, 3])
        assert np.array_equal(clone.grad.numpy(), [8, 8])

    def test_writing_a_clone_leaves_the_variable(self):
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        clone, other = w.clone(), w.clone()
        with pb.no_grad():
            clone[0] = 9.0
        assert w.grad_cell is other.grad_cell is not clone.grad_cell
        (clone * 2).sum().backward()
        assert w.grad is None

    def test_updating_leaves_a_recorded_graph_alone(self):
        w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
        loss = (w * w).sum()
        with pb.no_grad():
            w += 10
        loss.backward()
        assert np.array_equal(w.grad.numpy(), [2, 4])


def test_results_under_no_grad_are_untracked():
    w = pb.tensor([1.0], requires_grad=True)
    y = w * 2
    with pb.no_grad():
        y += 1
    assert not y.requires_grad


class TestRefusals:
    def test_in_place_result_of_another_shape(self):
        t = start()
        with pytest.raises(pb.ShapeError, match=r"\(3, 4\)"):
            t += pb.tensor(np.ones((3, 4)))
        assert t.shape == (4,)

    def test_in_place_result_of_another_dtype(self):
        t = pb.tensor([1, 2])
        with pytest.raises(pb.DtypeError, match="float"):
            t += 0.5
        with pytest.raises(pb.DtypeError):
            t /= 2
        assert np.array_equal(t.numpy(), [1, 2])

    def test_assigning_another_kind(self):
        t = pb.tensor([1, 2])
        with pytest.raises(pb.DtypeError, match="int64"):
            t[0] = 0.5
        with pytest.raises(pb.DtypeError, match="float64"):
            t[:] = pb.tensor(np.ones(2))
        assert np.array_equal(t.numpy(), [1, 2])

    def test_assigning_a_shape_that_does_not_fit(self):
        t = start()
        for make in (lambda: t, lambda: t.clone()):
            with pytest.raises(pb.ShapeError):
                make()[:2] = pb.tensor(np.ones(3))
        assert np.array_equal(t.numpy(), [1, 2, 3, 4])

    def test_raw_writes_to_a_result(self):
        w = pb.tensor([1.0], requires_grad=True)
        with pytest.raises(pb.GradientError, match="data_mut"):
            (w * 2).data_mut()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("own", "other"), [("float32", "float64"), ("int32", "int64"), ("float64", "complex128")])
def test_a_result_of_another_dtype_is_refused_whoever_holds_the_memory(own, other, shared):
    x = pb.ones(3, dtype=own)
    holder = x.clone() if shared else None
    with pytest.raises(pb.DtypeError, match="in-place add"):
        x += pb.ones(3, dtype=other)
    assert x.tolist() == [1, 1, 1]
    del holder


def test_dividing_a_result_by_itself_in_place_keeps_what_the_rule_needs():
    w = pb.tensor([1.5, 2.5], requires_grad=True)
    y = w * 2
    y /= y
    assert saved_values(y._node)[0].tolist() == [3.0, 5.0]


def test_clones_stay_one_variable_when_the_original_is_written():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    first = w.clone()
    second = first.clone()
    with pb.no_grad():
        w *= 10
    (first * 3).sum().backward()
    assert second.grad.tolist() == [3.0, 3.0] and w.grad is None
    with pb.no_grad():
        second += 1
    assert first.tolist() == [1.0, 2.0] and first.grad_cell is not second.grad_cell


def test_dead_clones_are_forgotten():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    alive = [w.clone() for _ in range(20)]
    for _ in range(1000):
        w.clone()
    assert len(w._node.clones) < 100
    with pb.no_grad():
        w += 1
    assert all(clone.tolist() == [1.0, 2.0] for clone in alive)


COPIES = {
    "clone": lambda x: x.clone(),
    "copy": lambda x: x.copy(),
    "copy.copy": copy.copy,
    "asarray": lambda x: pb.asarray(x, copy=True),
    "astype": lambda x: x.astype(x.dtype),
    "np.copy": np.copy,
}
WRITES_TO_COPIES = {
    "an element": lambda y, x: y.__setitem__(0, 0.0),
    "a slice": lambda y, x: y.__setitem__(slice(1, None), x[:2] * 3),
    "add": lambda y, x: y.__iadd__(1.0),
    "multiply": lambda y, x: y.__imul__(x),
    "out": lambda y, x: np.multiply(x, x, out=y),
    "copyto": lambda y, x: np.copyto(y, x * 3),
    "sort": lambda y, x: y.sort(descending=True),
}


@pytest.mark.parametrize("write", WRITES_TO_COPIES)
@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("compiles", [False, True])
def test_a_write_to_a_copy_of_a_variable_is_recorded(made, write, compiles):
    values, weights = np.array([1.0, 2.0, 3.0]), pb.asarray(np.array([5.0, 7.0, 11.0]))
    x = pb.tensor(values, requires_grad=True)

    def gradient():
        y = COPIES[made](x)
        WRITES_TO_COPIES[write](y, x)
        return pb.backward((y * y * weights).sum() + (x * weights).sum())[x], y.detach()

    def functional(v):
        y = COPIES[made](v * 1.0)
        WRITES_TO_COPIES[write](y, v)
        return pb.sum(y * y * weights) + pb.sum(v * weights)

    found, y = (pb.compile(gradient) if compiles else gradient)()
    assert np.allclose(found.numpy(), pb.grad(functional)(values))
    assert x.tolist() == [1.0, 2.0, 3.0] and x.is_leaf and y.tolist() != [1.0, 2.0, 3.0]
    with pytest.raises(pb.GradientError, match="clone"):
        x[0] = 0.0


def test_a_failed_write_to_a_copy_of_a_variable_leaves_it_a_clone():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    with pytest.raises(pb.ShapeError):
        y[:] = pb.tensor([1.0, 2.0, 3.0])
    with pytest.raises(pb.ShapeError):
        y += pb.tensor([1.0, 2.0, 3.0])
    assert y.is_leaf and y.grad_cell is x.grad_cell and y.tolist() == [1.0, 2.0]
