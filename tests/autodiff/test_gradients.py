"""`backward` and the Gradients container."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import pullback as pb


def variable(*values: float, dtype=np.float64) -> pb.Tensor:
    return pb.tensor(np.array(values, dtype=dtype), requires_grad=True)


class TestContainer:
    def test_get_pop_set_contains(self):
        w, v = variable(1, 2), variable(3, 4)
        grads = pb.backward((w * v).sum())
        assert w in grads and len(grads) == 2 and w.grad is None
        assert np.array_equal(grads[w].numpy(), [3, 4])
        popped = grads.pop(w)
        assert np.array_equal(popped.numpy(), [3, 4]) and w not in grads and grads.get(w) is None
        with pytest.raises(KeyError, match="get"):
            grads[w]
        grads[w] = np.array([7.0, 8.0])
        assert np.array_equal(grads[w].numpy(), [7, 8])
        assert sorted(g.numpy()[0] for g in grads) == [1, 7]

    def test_set_checks_what_it_is_given(self):
        w = variable(1, 2)
        grads = pb.backward((w * w).sum())
        with pytest.raises(pb.ShapeError, match=r"\(3,\)"):
            grads[w] = np.zeros(3)
        with pytest.raises(pb.DtypeError, match="float32"):
            grads[w] = np.zeros(2, dtype=np.float32)
        assert np.array_equal(grads[w].numpy(), [2, 4])

    def test_entries_are_owned_and_contiguous(self):
        w, v = variable(1, 2, 3), variable(1, 2, 3)
        grads = pb.backward((w + v).sum())
        for g in grads:
            assert g._raw.flags.c_contiguous and g._raw.flags.writeable and g._raw.base is None
        g = grads[w]
        g += 1
        assert np.array_equal(grads[v].numpy(), [1, 1, 1])

    def test_the_callers_cotangent_is_never_taken(self):
        w = variable(1, 2)
        seed = np.array([1.0, 1.0])
        grads = pb.backward(w + 0.0, seed)
        grads[w][0] = 9.0
        assert np.array_equal(seed, [1, 1])


class TestNorms:
    @pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30, 3e19])
    def test_clip_is_right_for_large_and_tiny_values(self, scale):
        w = variable(3, 4, dtype=np.float32)
        grads = pb.backward((w * np.float32(scale)).sum())
        norm = grads.clip_global_norm(0.5 * scale)
        assert norm.item() == pytest.approx(np.sqrt(2) * scale, rel=1e-5)
        assert grads.global_norm().item() == pytest.approx(0.5 * scale, rel=1e-5)

    def test_clip_leaves_small_gradients_alone(self):
        w = variable(3, 4)
        grads = pb.backward((w * w).sum() / 2)
        assert grads.clip_global_norm(10.0).item() == 5
        assert np.array_equal(grads[w].numpy(), [3, 4])

    def test_zero_gradients(self):
        w = variable(3, 4)
        grads = pb.backward((w * 0.0).sum())
        assert grads.clip_global_norm(1.0).item() == 0
        assert np.array_equal(grads[w].numpy(), [0, 0])

    def test_clip_value_scale_zero_add(self):
        w, v = variable(3, -4), variable(1)
        grads = pb.backward((w * w).sum() / 2)
        grads.clip_value(3.5)
        assert np.array_equal(grads[w].numpy(), [3, -3.5])
        grads.scale(2)
        assert np.array_equal(grads[w].numpy(), [6, -7])
        other = pb.backward((w * 2).sum() + v.sum())
        grads.add(other)
        assert np.array_equal(grads[w].numpy(), [8, -5]) and grads[v].item() == 1
        grads.zero()
        assert np.array_equal(grads[w].numpy(), [0, 0])
        assert np.array_equal(other[v].numpy(), [1])

    def test_refusals(self):
        grads = pb.backward((variable(1) * 2).sum())
        for call in (
            lambda: grads.scale(float("nan")),
            lambda: grads.clip_global_norm(0),
            lambda: grads.clip_value(-1),
        ):
            with pytest.raises(ValueError):
                call()


class TestBackward:
    def test_wrt_intermediates(self):
        w = variable(2, 3)
        y = w * w
        z = (y * y).sum()
        grads = pb.backward(z, wrt=[y], retain_graph=True)
        assert np.array_equal(grads[y].numpy(), [8, 18]) and len(grads) == 1
        grads = pb.backward(z, wrt=[y, w])
        assert np.array_equal(grads[w].numpy(), 4 * np.array([2.0, 3.0]) ** 3) and len(grads) == 2

    def test_wrt_what_does_not_matter(self):
        w, v = variable(2), variable(3)
        grads = pb.backward((w * w).sum(), wrt=[v])
        assert grads.get(v) is None

    def test_wrt_without_gradient(self):
        w = variable(2)
        with pytest.raises(KeyError, match="does not require"):
            pb.backward((w * w).sum(), wrt=[pb.tensor([1.0])])

    def test_non_scalar_needs_a_cotangent(self):
        w = variable(2, 3)
        with pytest.raises(pb.ShapeError, match=r"\(2,\).*gradient="):
            (w * w).backward()
        with pytest.raises(pb.ShapeError, match=r"\(3,\)"):
            (w * w).backward(np.ones(3))
        with pytest.raises(pb.DtypeError):
            (w * w).backward(np.ones(2, dtype=np.float32))
        (w * w).backward(np.array([1.0, 10.0]))
        assert np.array_equal(w.grad.numpy(), [4, 60])

    def test_of_an_untracked_tensor(self):
        with pytest.raises(pb.GradientError, match="requires_grad=True"):
            pb.tensor(1.0).backward()

    def test_consumed_graph_changes_nothing(self):
        w = variable(2)
        y = w * w
        first, second = y * 2, y * w
        first.sum().backward()
        before = w.grad.numpy().copy()
        kept = second._node.saved
        with pytest.raises(pb.GraphConsumedError, match="retain_graph=True"):
            second.sum().backward()
        assert np.array_equal(w.grad.numpy(), before) and second._node.saved is kept

    def test_a_walk_to_some_tensors_leaves_the_rest_of_the_graph(self):
        w, v = variable(2), variable(3)
        y, x = w * w, v * v
        z = (y * x).sum()
        pb.backward(z, wrt=[y], retain_graph=True)
        pb.backward(y.sum(), wrt=[w], retain_graph=True)
        pb.backward(z, wrt=[y])
        assert pb.backward(x.sum())[v].item() == 6 and pb.backward(y.sum())[w].item() == 4

    def test_a_complex_loss_is_refused(self):
        z = pb.tensor(np.array([1 + 2j]), requires_grad=True)
        with pytest.raises(pb.DtypeError, match="abs"):
            (z * z).sum().backward()
        (z * z).sum().backward(np.array(1.0 + 0j))
        assert np.allclose(z.grad.numpy(), 2 * (1 - 2j))

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128])
    def test_many_parts_of_one_tensor(self, dtype):
        """Their gradients are added into one buffer: with whatever index, overlapping, repeated, reversed."""
        rng = np.random.default_rng(0)
        values = rng.standard_normal((6, 3)).astype(dtype)
        indices = [0, -1, slice(1, 4), (slice(None, None, -2), 1), np.array([0, 0, 5]), np.arange(6) % 2 == 0,
                   (np.array([1, 1]), np.array([2, 2])), (..., None), (slice(None), np.array([0, 2, 0]))]  # fmt: skip
        w = pb.tensor(values, requires_grad=True)
        total, expected = 0.0, np.zeros(values.shape, dtype)
        for k, index in enumerate(indices):
            total = total + pb.real(w[index] * (k + 1.0)).sum()
            np.add.at(expected, index, k + 1.0)
        total.backward()
        assert w.grad.dtype == w.dtype
        assert np.allclose(w.grad.numpy(), expected, rtol=1e-3 if dtype == np.float16 else 1e-12)

    def test_many_parts_cost_no_array_of_the_whole_each(self):
        w = pb.tensor(np.ones((400, 250)), requires_grad=True)
        pb.backward((w * w).sum())  # what looks at large gradients is loaded now
        total = 0.0
        for i in range(400):
            total = total + (w[i] * w[i]).sum()
        tracemalloc.start()
        total.backward()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 * w.nbytes
        assert np.array_equal(w.grad.numpy(), 2 * np.ones((400, 250)))

    def test_retain_graph_walks_twice(self):
        w = variable(2)
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        assert w.grad.item() == 8

    def test_create_graph_under_no_grad(self):
        w = variable(3)
        loss = (w * w * w).sum()
        with pb.no_grad():
            first = pb.backward(loss, create_graph=True)[w]
        assert pb.backward(first.sum())[w].item() == 18

    def test_complex_gradients_descend(self):
        z = pb.tensor(np.array([1 + 2j]), requires_grad=True)
        loss = pb.abs(z * (2 - 1j)) ** 2
        loss.sum().backward()
        assert np.allclose(z.grad.numpy(), 2 * 5 * (1 + 2j))


class TestGradientOfATensor:
    def test_accumulate_checks_and_adds(self):
        w = variable(1, 2)
        g = np.array([1.0, 1.0])
        w.accumulate_grad(g)
        w.accumulate_grad(g)
        assert np.array_equal(w.grad.numpy(), [2, 2]) and np.array_equal(g, [1, 1])
        for bad, error in ((np.ones((1, 2)), pb.ShapeError), (np.ones(2, np.float32), pb.DtypeError)):
            with pytest.raises(error):
                w.accumulate_grad(bad)
        assert np.array_equal(w.grad.numpy(), [2, 2])

    def test_scale_allocates_nothing(self):
        w = pb.tensor(np.ones(100_000), requires_grad=True)
        (w * 2).sum().backward()
        address = w.grad._raw.ctypes.data
        w.scale_grad(0.5)
        tracemalloc.start()
        w.scale_grad(0.5)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2_000 and w.grad._raw.ctypes.data == address
        assert w.grad.numpy()[0] == 0.5

    @pytest.mark.parametrize("factor", [float("nan"), float("inf")])
    def test_scale_refuses_what_is_not_finite(self, factor):
        w = variable(1)
        (w * 2).sum().backward()
        with pytest.raises(ValueError, match="finite"):
            w.scale_grad(factor)
        assert w.grad.item() == 2

    def test_zero_keeps_the_memory(self):
        w = variable(1, 2)
        (w * 2).sum().backward()
        address = w.grad._raw.ctypes.data
        w.zero_grad()
        assert np.array_equal(w.grad.numpy(), [0, 0]) and w.grad._raw.ctypes.data == address

    def test_backward_accumulates_in_place(self):
        w = variable(1, 2)
        (w * 2).sum().backward()
        address = w.grad._raw.ctypes.data
        (w * 3).sum().backward()
        assert np.array_equal(w.grad.numpy(), [5, 5]) and w.grad._raw.ctypes.data == address

    def test_integers_cannot_require_a_gradient(self):
        with pytest.raises(pb.DtypeError, match="int64"):
            pb.tensor([1, 2], requires_grad=True)
        t = pb.tensor([1, 2])
        with pytest.raises(pb.DtypeError):
            t.requires_grad = True
        assert not t.requires_grad

    def test_requires_grad_can_be_turned_on_and_off(self):
        t = pb.tensor([1.0])
        t.requires_grad = True
        (t * 2).sum().backward()
        t.requires_grad = False
        assert t.grad.item() == 2 and not (t * 2).requires_grad
        t.requires_grad = True
        (t * 2).sum().backward()
        assert t.grad.item() == 4
        with pytest.raises(pb.GradientError, match="detach"):
            (t * 2).requires_grad = False


@pytest.mark.parametrize("convert", [float, np.asarray, complex, lambda t: t.numpy(), np.from_dlpack])
def test_a_gradient_is_never_dropped_silently(convert):
    w = pb.tensor(1.0, requires_grad=True)
    with pytest.raises(pb.GradientError, match="detach"):
        convert(w * 2)


def test_assignment_into_a_numpy_array_raises():
    w = pb.tensor(1.0, requires_grad=True)
    out = np.zeros(2)
    with pytest.raises((pb.GradientError, ValueError)) as error:
        out[0] = w * 2
    reason = error.value if isinstance(error.value, pb.GradientError) else error.value.__cause__
    assert isinstance(reason, pb.GradientError) and "detach" in str(reason)
    assert np.array_equal(out, [0, 0])
