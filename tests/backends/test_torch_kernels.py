"""PyTorch's own kernels are used where they can be, and give what the portable ones give."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.recipe import Table

from .installed import require

require("torch:cpu")
torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from pullback.backends import portable, torch_losses  # noqa: E402
from pullback.backends.torch_backend import BACKEND  # noqa: E402


class Called(TorchDispatchMode):
    """The names of the functions that PyTorch runs."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.__name__.partition(".")[0])
        return function(*args, **(kwargs or {}))


def variables(*shapes, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=torch.float64).to(dtype) for shape in shapes]


def gradients(function, arrays):
    tensors = [pb.asarray(a.clone()).set_requires_grad(True) for a in arrays]
    out = function(*tensors)
    torch.manual_seed(1)
    seed = torch.randn(tuple(out.shape), dtype=torch.float64).to(out._raw.dtype)
    found = pb.backward(out, pb.asarray(seed))
    return [out._raw, *(found[t]._raw for t in tensors)], seed


def same(function, theirs, *shapes, tolerance=1e-10):
    arrays = variables(*shapes)
    (out, *grads), seed = gradients(function, arrays)
    leaves = [a.clone().requires_grad_() for a in arrays]
    expected = theirs(*leaves)
    torch.testing.assert_close(out, expected.detach(), rtol=tolerance, atol=tolerance)
    for g, e in zip(grads, torch.autograd.grad(expected, leaves, seed)):
        torch.testing.assert_close(g, e, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("heads", [(4, 4), (6, 2), (3, 1)])
@pytest.mark.parametrize(("length", "keys", "causal"), [(7, 7, True), (5, 9, False), (5, 9, True), (1, 1, True)])
def test_attention(heads, length, keys, causal):
    def attention(q, k, v):
        return pb.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    def theirs(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    same(attention, theirs, (2, heads[0], length, 8), (2, heads[1], keys, 8), (2, heads[1], keys, 8))


def test_attention_with_more_axes_before():
    def attention(q, k, v):
        return pb.scaled_dot_product_attention(q, k, v, is_causal=True)

    same(attention, lambda *a: functional.scaled_dot_product_attention(*a, is_causal=True), *[(2, 3, 2, 5, 4)] * 3)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction):
    target = torch.tensor([1, 0, -100, 3, 2])

    def loss(x):
        return pb.cross_entropy(x, pb.asarray(target), reduction=reduction)

    same(loss, lambda x: functional.cross_entropy(x, target, reduction=reduction), (5, 4))


def test_cross_entropy_of_what_is_ignored_or_impossible():
    x = torch.tensor([[0.0, float("inf")], [float("-inf"), 1.0], [2.0, 1.0]], dtype=torch.float64)
    target = torch.tensor([-100, 0, 1])
    logits = pb.asarray(x).set_requires_grad(True)
    losses = pb.cross_entropy(logits, pb.asarray(target), reduction="none")
    assert losses._raw.tolist()[:2] == [0.0, float("inf")]
    with pb.guard("off"):
        grad = pb.backward(losses, pb.ones((3,), dtype="float64", device="torch:cpu"))[logits]._raw
    np.testing.assert_allclose(grad.numpy()[:2], [[0.0, 0.0], [-1.0, 1.0]])


def test_all_ignored():
    logits = pb.asarray(torch.randn(3, 4)).set_requires_grad(True)
    loss = pb.cross_entropy(logits, pb.asarray(torch.full((3,), -100)))
    assert loss.item() == 0.0
    assert not pb.backward(loss)[logits]._raw.any()


def test_a_sure_prediction_in_half_precision_has_a_gradient():
    x = torch.tensor([[8.0, 0.0]], dtype=torch.bfloat16)
    logits = pb.asarray(x).set_requires_grad(True)
    grad = pb.backward(pb.cross_entropy(logits, pb.asarray(torch.tensor([0]))))[logits]._raw.float()
    share = 1 / (1 + np.exp(8.0))
    np.testing.assert_allclose(grad.numpy(), [[-share, share]], rtol=0.01)  # 1 - share is 1 in bfloat16


def test_rows_are_computed_in_parts(monkeypatch):
    whole = torch_losses._losses(*variables((9, 5)), torch.arange(9).remainder(5).unsqueeze(1), torch.float64)
    monkeypatch.setattr(torch_losses, "_ROWS_BYTES", 100)
    parts = torch_losses._losses(*variables((9, 5)), torch.arange(9).remainder(5).unsqueeze(1), torch.float64)
    torch.testing.assert_close(parts, whole)


@pytest.mark.parametrize("has", [(True, True), (True, False), (False, False), (False, True)])
def test_layer_norm_over_several_axes(has):
    names = [name for name, given in zip(("weight", "bias"), has) if given]

    def norm(x, *parameters):
        return pb.layer_norm(x, (3, 4), **dict(zip(names, parameters)))

    def theirs(x, *parameters):
        return functional.layer_norm(x, (3, 4), **dict(zip(names, parameters)))

    same(norm, theirs, (2, 5, 3, 4), *[(3, 4)] * len(names))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions(groups, axes):
    name = f"conv{axes}d"
    options = {"stride": 2, "padding": 1, "dilation": 2, "groups": groups}
    same(
        lambda *a: getattr(pb, name)(*a, **options),
        lambda *a: getattr(functional, name)(*a, **options),
        (2, 4, *(9, 8, 7)[:axes]), (6, 4 // groups, *(3, 2, 1)[:axes]), (6,),
    )  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", [(0, 0), (2, 1)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize("size", [(9, 8), (12, 13)])
def test_input_gradients_of_channels_last(groups, stride, padding, dilation, size):
    kernel = (3, 2)
    shape = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(size, padding, dilation, kernel, stride)]
    g, weight = variables((2, 12, *shape), (12, 12 // groups, *kernel))
    arguments = size, stride, tuple((p, p) for p in padding), dilation, groups
    last = g.to(memory_format=torch.channels_last)
    assert not last.is_contiguous()
    with Called() as called:
        made = BACKEND.xp.convolution_input_gradient(last, weight, *arguments)
    assert called.names == ["convolution"] and made.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(made, BACKEND.xp.convolution_input_gradient(g, weight, *arguments))


def test_a_transformer_block_runs_in_fused_kernels():
    x, w, b, norm, bias = variables((2, 6, 8), (24, 8), (24,), (8,), (8,), dtype=torch.float32)

    def block(x, w, b, norm, bias):
        qkv = pb.linear(pb.layer_norm(x, 8, norm, bias), w, b)
        q, k, v = (pb.permute_dims(part.reshape(2, 6, 2, 4), (0, 2, 1, 3)) for part in pb.split(qkv, 3, axis=-1))
        mixed = pb.scaled_dot_product_attention(q, k, v, is_causal=True)
        logits = pb.gelu(pb.silu(mixed)).reshape(-1, 4)
        return pb.cross_entropy(logits, pb.asarray(torch.zeros(len(logits._raw), dtype=torch.int64)))

    with Called() as called, pb.guard("off"):
        gradients(block, [x, w, b, norm, bias])
    made = {
        "native_layer_norm", "native_layer_norm_backward", "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward", "gelu", "gelu_backward", "silu", "silu_backward",
    }  # fmt: skip
    assert made <= set(called.names)
    assert not {"exp", "tanh", "erf", "sqrt", "rsqrt", "mean"} & set(called.names)


def test_numbers_beside_arrays_make_no_arrays():
    x = pb.asarray(torch.randn(3)).set_requires_grad(True)
    with Called() as called, pb.guard("off"):
        pb.backward(pb.sum((2.0 * x + 1) / 3 - x**2 - (1 - x)))
    assert not {"full", "scalar_tensor", "_to_copy"} & set(called.names)


def test_integers_beside_numbers_are_numpys():
    x = pb.asarray(torch.tensor([1, 2, 3]))
    for made in (x * 0.5, 0.5 * x, x / 2, x + 1.5):
        assert made.dtype == pb.float64


def test_a_rule_must_keep_what_the_tables_rule_keeps():
    table = Table(BACKEND.xp, [])
    table.rules["tanh"] = {"x": lambda g, out: g}
    with pytest.raises(TypeError, match="arguments of the table's rule"):
        table.replace({"tanh": {"x": lambda g, x: g}})


# -- whose memory ------------------------------------------------------------------------------------


def test_gradients_are_not_copied(monkeypatch):
    monkeypatch.setattr(type(BACKEND), "copy", None)
    x, w, b = variables((5, 4), (3, 4), (3,))
    tensors = [pb.asarray(a).set_requires_grad(True) for a in (x, w, b)]
    found = pb.backward(pb.sum(pb.tanh(pb.linear(*tensors))))
    assert all(found[t]._raw.is_contiguous() for t in tensors)


def test_gradients_that_others_can_see_are_copied():
    seed = torch.ones(3)
    x, y = (pb.asarray(torch.zeros(3)).set_requires_grad(True) for _ in range(2))
    found = pb.backward(x + y, pb.asarray(seed))
    found[x]._raw[0] = 7.0
    assert seed.tolist() == [1.0, 1.0, 1.0]
    assert found[y]._raw.tolist() == [1.0, 1.0, 1.0]


def test_whose_memory_an_array_has():
    class Holder:
        pass

    holder = Holder()
    holder.raw = torch.zeros(4) + 1
    assert BACKEND.is_exclusive(holder, "raw")
    view = holder.raw[:2]
    assert not BACKEND.is_exclusive(holder, "raw")
    del view
    same_memory = holder.raw.detach()
    assert not BACKEND.is_exclusive(holder, "raw")
    del same_memory
    assert BACKEND.is_exclusive(holder, "raw")
    array = holder.raw.numpy()
    assert not BACKEND.is_exclusive(holder, "raw")
    del array
    mine = np.zeros(4)
    holder.raw = torch.from_numpy(mine)
    assert not BACKEND.is_exclusive(holder, "raw")


# -- the guard on a device (see tests/autodiff/test_pending.py for what is looked at later) ----------


@pytest.fixture
def on_device(monkeypatch):
    """Have the CPU count as a device that is waited for."""
    monkeypatch.setattr(type(BACKEND), "is_on_device", lambda self, raw: True)


def test_what_is_masked_stays_zero_on_a_device(on_device):
    w = pb.asarray(torch.tensor([0.0, 4.0])).set_requires_grad(True)
    root = pb.sqrt(w)
    found = pb.backward(pb.sum(pb.where(w > 0, root, pb.zeros_like(root))))
    assert found[w]._raw.tolist() == [0.0, 0.25]


def test_many_arrays_of_many_kinds_are_looked_at_together():
    arrays = [
        torch.zeros(2), torch.tensor([1.0, float("nan")]), torch.zeros(0), torch.arange(3), torch.tensor(float("inf")),
        torch.tensor([1e300], dtype=torch.float64), torch.tensor([complex(0, float("inf"))]),
        torch.tensor([3e38], dtype=torch.bfloat16),
    ]  # fmt: skip
    expected = [True, False, True, True, False, True, False, True]
    assert BACKEND.finite(arrays) == expected
    before = [array.clone() for array in arrays]
    assert BACKEND.finite_later(arrays)() == expected
    for array, old in zip(arrays, before):
        assert torch.equal(array.nan_to_num(7.0), old.nan_to_num(7.0))
    for i, is_finite in enumerate(expected):
        assert BACKEND.finite_later(arrays[i : i + 1])() == [is_finite]


def test_arrays_that_are_looked_at_later_may_be_views_and_are_not_held():
    base = torch.zeros(3, 4)
    base[1, 2] = float("inf")
    assert BACKEND.finite_later([base[:, ::2], torch.ones(()).expand(5), base.T[:2]])() == [False, True, True]
    arrays = [torch.ones(3), torch.full((2,), float("nan"))]
    answer = BACKEND.finite_later(arrays)
    arrays.clear()
    assert answer() == [False, False]  # one of them was not finite, and nobody can tell which


def test_portable_kernels_are_for_the_rest():
    x = torch.randn(3, 4, dtype=torch.float64)
    found = BACKEND.xp.softmax(x, (-2, -1))
    torch.testing.assert_close(found, portable.bind("softmax", BACKEND.xp)(x, (-2, -1)))
    torch.testing.assert_close(found.sum(), torch.tensor(1.0, dtype=torch.float64))
