"""Normalisation layers, dropout and embedding: statistics, extremes, dtypes, errors, and the portable kernels."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from ..backends.installed import BFLOAT16, optional
from .portable_namespace import PORTABLE

torch = optional("torch")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("shape", [(), (1,), (0, 4), (3, 4), (700, 96)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layer_norm_agrees_with_torch(shape: tuple[int, ...], dtype) -> None:
    shape = (*shape, 6)
    x, weight, bias = normal(*shape).astype(dtype), normal(6, seed=1).astype(dtype), normal(6, seed=2).astype(dtype)
    inputs = [pb.tensor(a, requires_grad=True) for a in (x, weight, bias)]
    out = pb.layer_norm(inputs[0], 6, *inputs[1:])
    references = [torch.tensor(a, requires_grad=True) for a in (x, weight, bias)]
    expected = torch.nn.functional.layer_norm(references[0], (6,), *references[1:])
    tolerance = {"rtol": 1e-4, "atol": 1e-3} if dtype is np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(out._raw, expected.detach().numpy(), **tolerance)
    cotangent = normal(*shape, seed=3).astype(dtype)
    gradients = pb.backward(out, gradient=cotangent)
    expected.backward(torch.tensor(cotangent))
    for mine, theirs in zip(inputs, references):
        assert gradients[mine].dtype == dtype
        np.testing.assert_allclose(gradients[mine]._raw, theirs.grad.numpy(), **tolerance)


def test_a_large_mean_costs_no_digits() -> None:
    x = normal(4, 64)
    np.testing.assert_allclose(pb.layer_norm(x + 1e6, 64)._raw, pb.layer_norm(x, 64)._raw, atol=1e-8)
    out = pb.layer_norm((x + 1000).astype(np.float32), 64)._raw
    np.testing.assert_allclose(out, pb.layer_norm(x, 64)._raw, atol=1e-3)


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
def test_half_precision_is_computed_in_single_precision(dtype) -> None:
    x = pb.asarray(normal(3, 512) * 300, dtype=dtype)  # squares overflow float16
    weight = pb.asarray(np.ones(512), dtype=pb.float32).set_requires_grad(True)
    for out in (pb.layer_norm(x, 512, weight), pb.rms_norm(x, 512, weight), pb.batch_norm(x, training=True)[0]):
        assert out.dtype == dtype
        assert np.isfinite(out._raw.astype(np.float32)).all()
    out = pb.layer_norm(x, 512, weight)
    gradient = pb.backward(out, gradient=np.ones(out.shape, out._raw.dtype))[weight]
    assert gradient.dtype == pb.float32


def test_batch_norm_moves_its_statistics_as_torch_does() -> None:
    x, weight, bias = normal(5, 3, 4), normal(3, seed=1), normal(3, seed=2)
    mean, variance = normal(3, seed=3), np.abs(normal(3, seed=4))
    their_mean, their_variance = torch.tensor(mean), torch.tensor(variance)
    expected = torch.nn.functional.batch_norm(
        torch.tensor(x), their_mean, their_variance, torch.tensor(weight), torch.tensor(bias), True, 0.3
    )
    before = mean.copy(), variance.copy()
    out, new_mean, new_variance = pb.batch_norm(x, mean, variance, weight, bias, training=True, momentum=0.3)
    np.testing.assert_allclose(out._raw, expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(new_mean._raw, their_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(new_variance._raw, their_variance.numpy(), rtol=1e-12)
    np.testing.assert_array_equal((mean, variance), before)
    assert not new_mean.requires_grad
    out, same_mean, _ = pb.batch_norm(x, mean, variance, weight, bias)
    expected = torch.nn.functional.batch_norm(*map(torch.tensor, (x, mean, variance, weight, bias)))
    np.testing.assert_allclose(out._raw, expected.numpy(), rtol=1e-12)
    np.testing.assert_array_equal(same_mean._raw, mean)
    assert pb.batch_norm(x, training=True)[1:] == (None, None)


def test_dropout_scales_what_it_keeps_and_repeats_with_the_seed() -> None:
    x = pb.tensor(np.ones((200, 50)), requires_grad=True)
    pb.random.seed(5)
    out = pb.dropout(x, 0.3)
    assert set(np.unique(out._raw)) == {0.0, 1 / 0.7}
    assert abs(float((out._raw == 0).mean()) - 0.3) < 0.02
    np.testing.assert_array_equal(pb.backward(out.sum())[x]._raw, out._raw)
    assert not np.array_equal(pb.dropout(x, 0.3)._raw, out._raw)
    pb.random.seed(5)
    np.testing.assert_array_equal(pb.dropout(x, 0.3)._raw, out._raw)
    np.testing.assert_array_equal(
        pb.dropout(x.detach().astype(pb.float32), 0.3, generator=pb.random.Generator(5))._raw > 0, out._raw > 0
    )
    assert pb.dropout(x, 0.3, training=False) is x
    assert not pb.dropout(x, 1.0)._raw.any()
    assert not pb.backward(pb.dropout(x, 1.0).sum())[x]._raw.any()
    with pytest.raises(ValueError, match="p must be a probability"):
        pb.dropout(x, 1.5)


def test_dropout_gives_zero_for_infinite_elements() -> None:
    x = np.full(1000, np.inf)
    assert set(np.unique(pb.dropout(x, 0.5)._raw)) == {0.0, np.inf}


def test_embedding_adds_up_repeated_rows() -> None:
    table = normal(50, 8).astype(np.float32)
    indices = np.random.default_rng(1).integers(0, 50, (20, 30))
    weight = pb.tensor(table, requires_grad=True)
    out = pb.embedding(indices, weight)
    np.testing.assert_array_equal(out._raw, table[indices])
    cotangent = normal(20, 30, 8, seed=2).astype(np.float32)
    expected = np.zeros((50, 8))
    np.add.at(expected, indices, cotangent.astype(np.float64))
    np.testing.assert_allclose(pb.backward(out, gradient=cotangent)[weight]._raw, expected, atol=1e-4)


def test_the_padding_row_gets_no_gradient() -> None:
    weight = pb.tensor(normal(4, 2), requires_grad=True)
    out = pb.embedding(np.array([3, 1, 3]), weight, padding_idx=-1)
    np.testing.assert_array_equal(out._raw, weight._raw[[3, 1, 3]])
    np.testing.assert_array_equal(pb.backward(out.sum())[weight]._raw, [[0, 0], [1, 1], [0, 0], [0, 0]])


def test_errors_say_what_was_given() -> None:
    x = normal(2, 6)
    with pytest.raises(pb.ShapeError, match=r"normalized_shape \(5,\) is not the end of the shape \(2, 6\)"):
        pb.layer_norm(x, 5)
    with pytest.raises(pb.ShapeError, match=r"weight has shape \(5,\), expected \(6,\)"):
        pb.layer_norm(x, 6, np.ones(5))
    with pytest.raises(TypeError, match="either normalized_shape or axis"):
        pb.layer_norm(x)
    with pytest.raises(pb.DtypeError, match="int64"):
        pb.rms_norm(np.arange(4), 4)
    with pytest.raises(pb.ShapeError, match="6 channels cannot be split into 4 groups"):
        pb.group_norm(x, 4)
    with pytest.raises(pb.ShapeError, match="running_mean has shape"):
        pb.batch_norm(x, np.zeros(5), np.ones(6))
    with pytest.raises(pb.ShapeError, match="one value per channel"):
        pb.batch_norm(x[:1], training=True)
    with pytest.raises(TypeError, match="running_mean and running_var are needed"):
        pb.batch_norm(x)
    with pytest.raises(IndexError, match="from 0 to 9 for a table of 6 rows"):
        pb.embedding(np.array([0, 9]), x.T)
    with pytest.raises(IndexError, match="from -1"):
        pb.embedding(np.array([-1]), x)
    with pytest.raises(pb.DtypeError, match="indices must be integers"):
        pb.embedding(x, x)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("layer_norm", (normal(2, 3, 4), normal(4), normal(4, seed=1), (-1,), 1e-5)),
        ("layer_norm", (normal(2, 3, 4), None, None, (-3, -1), 1e-5)),
        ("rms_norm", (normal(2, 3, 4), normal(3, 1), (-2,), 1e-5)),
        ("batch_norm", (normal(2, 3, 4), normal(3, 1), None, (-3, -1), 1e-5)),
        ("multiply_add", (normal(2, 3, 4), normal(3, 1), normal(4))),
        ("dropout", (normal(2, 3, 4), 0.5, 7, 8)),
        ("embedding", (np.array([[1, 0], [1, 1]]), normal(2, 3))),
    ],
)
def test_portable_kernel_agrees(name: str, arguments: tuple) -> None:
    found, expected = getattr(PORTABLE, name)(*arguments), getattr(NUMPY.xp, name)(*arguments)
    pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_embedding_takes_indices_of_a_dtype_that_cannot_hold_the_number_of_rows(dtype: type) -> None:
    weight = pb.ones((300, 2)).set_requires_grad(True)
    pb.sum(pb.embedding(np.array([0, 1, 1, 5], dtype), weight)).backward()
    assert weight.grad[:6, 0].tolist() == [1, 2, 0, 0, 0, 1]


def test_parameters_in_the_place_of_the_shape_are_explained():
    for normalize in (pb.layer_norm, pb.rms_norm):
        with pytest.raises(pb.DtypeError, match=r"got Tensor: tensor.*by name: axis=-1, weight=w"):
            normalize(pb.ones((2, 3)), pb.ones(3))
    assert pb.layer_norm(pb.ones((2, 3)), np.int64(3)).shape == pb.layer_norm(pb.ones((2, 3)), [3]).shape == (2, 3)


def test_cosines_beside_vectors_of_zeros() -> None:
    x = pb.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=pb.float64, requires_grad=True)
    out = pb.cosine_similarity(x, np.array([0.0, 2.0]))
    np.testing.assert_allclose(out.detach(), [0, 0.8], rtol=1e-15)
    out.sum().backward()
    np.testing.assert_allclose(x.grad, [[0, 1e8], [-0.096, 0.072]], rtol=1e-12)
    y = pb.tensor([[0.0, 0.0]], requires_grad=True)
    pb.cosine_similarity(y, y).sum().backward()
    assert y.grad.tolist() == [[0, 0]]
    far = np.array([1e300, 1e300])
    assert pb.cosine_similarity(far, -far).item() == pytest.approx(-1, rel=1e-15)
    assert pb.cosine_similarity(np.zeros((3, 0)), np.zeros((3, 0))).tolist() == [0, 0, 0]
    with pytest.raises(pb.AxisError):
        pb.cosine_similarity(np.zeros((2, 3)), np.zeros(3), axis=2)
    with pytest.raises(pb.ShapeError, match="cosine_similarity"):
        pb.cosine_similarity(np.zeros((2, 3)), np.zeros((2, 4)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: pb.one_hot(np.array([1, -1]), 3),
        lambda: pb.nll_loss(np.zeros((2, 3)), np.array([1, -1])),
        lambda: pb.nll_loss(np.zeros((2, 3)), np.array([-1, 1]), ignore_index=5),
    ],
)
def test_class_numbers_out_of_range_are_said_as_they_were_given(call) -> None:
    with pytest.raises(
        pb.IndexingError, match=r"(one_hot|nll_loss): class numbers must be from 0 to 2, got -1 to 1\.$"
    ):
        call()


def test_class_numbers_out_of_range_for_one_of_many_examples() -> None:
    with pytest.raises(pb.IndexingError, match="one_hot: class numbers must be from 0 to 2"):
        pb.vmap(lambda i: pb.one_hot(i, 3))(np.array([1, 3]))


def test_one_hot() -> None:
    classes = np.array([[0, 2], [1, 1]], np.uint8)
    expected = np.eye(3, dtype=np.int64)[classes]
    for found in (pb.one_hot(classes), pb.one_hot(classes, 3), pb.one_hot(classes.astype(np.int64), -1)):
        assert found.dtype == pb.int64
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(pb.one_hot(classes, 3, axis=0), np.moveaxis(expected, -1, 0))
    assert pb.one_hot(2, 4, dtype=pb.float32).tolist() == [0, 0, 1, 0]
    assert pb.one_hot(np.zeros((0, 2), int), 3).shape == (0, 2, 3)
    np.testing.assert_array_equal(pb.vmap(lambda c: pb.one_hot(c, 3))(classes), expected)
    np.testing.assert_array_equal(pb.compile(lambda c: pb.one_hot(c, 3))(pb.asarray(classes)), expected)
    for wrong in ([3], [-1]):
        with pytest.raises(pb.IndexingError, match="one_hot: class numbers must be from 0 to 2"):
            pb.one_hot(np.array(wrong), 3)
    with pytest.raises(pb.ShapeError, match="give num_classes"):
        pb.one_hot(np.zeros(0, int))
    with pytest.raises(pb.DtypeError, match="float64"):
        pb.one_hot(np.zeros(2), 3)
    with pytest.raises(pb.TraceError):
        pb.compile(lambda c: pb.one_hot(c))(pb.asarray(classes))


def test_masked_fill_keeps_shape_and_dtype() -> None:
    x = pb.tensor([1.0, 0.0], dtype=pb.float16, requires_grad=True)
    with np.errstate(divide="ignore"):
        out = pb.masked_fill(pb.log(x), np.array([False, True]), -1e4)
    assert out.dtype == pb.float16 and out.detach().tolist() == [0, -1e4]
    with pb.guard("off"):
        assert pb.backward(out.sum())[x].tolist() == [1, 0]
    assert pb.masked_fill(np.array([1, 2]), True, 7).tolist() == [7, 7]
    value = pb.tensor(0.5, dtype=pb.float64, requires_grad=True)
    out = pb.masked_fill(x, np.array([False, True]), value)
    assert out.dtype == pb.float16 and out.detach().tolist() == [1, 0.5] and pb.backward(out.sum())[value].item() == 1
    for x, mask, value, error, words in (
        (np.array([1, 2]), True, 0.5, pb.DtypeError, "0.5 does not fit into int64"),
        (np.zeros(2), np.ones(2), 0, pb.DtypeError, "Compare to get one"),
        (np.zeros(2), np.ones((2, 2), bool), 0, pb.ShapeError, "does not broadcast"),
        (np.zeros(2), np.ones(2, bool), np.zeros(2), pb.ShapeError, "expected one number"),
    ):
        with pytest.raises(error, match=words):
            pb.masked_fill(x, mask, value)


def test_instance_norm_needs_something_to_vary() -> None:
    with pytest.raises(pb.ShapeError, match="must have the axes"):
        pb.instance_norm(np.zeros((2, 3)))
    with pytest.raises(pb.ShapeError, match="no variance"):
        pb.instance_norm(np.zeros((2, 3, 1)))
    with pytest.raises(pb.ShapeError, match="weight has shape"):
        pb.instance_norm(np.zeros((2, 3, 4)), weight=np.ones(4))
