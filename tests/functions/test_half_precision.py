"""float16 and bfloat16: sums are added up in float32 and rounded once, wherever many numbers are added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pullback as pb
from pullback.dtypes import DType

from ..backends.installed import BFLOAT16, require

COUNT = 5000  # float16 cannot count beyond 2048 in steps of one, bfloat16 not beyond 256
NOUGHTS = np.zeros(COUNT, int)
halves = pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16], ids=lambda dtype: dtype.name)


def ones(shape: tuple[int, ...], dtype: DType) -> pb.Tensor:
    return pb.ones(shape, dtype=dtype)


SUMS: dict[str, Callable] = {
    "sum": lambda x: pb.sum(x, axis=0),
    "cumulative_sum": lambda x: pb.cumulative_sum(x, axis=0)[-1],
    "vecdot": lambda x: pb.vecdot(x, x, axis=0),
    "matmul": lambda x: pb.matrix_transpose(x) @ x[:, 0],
    "einsum": lambda x: pb.einsum("ij->j", x),
    "vector_norm": lambda x: pb.linalg.vector_norm(x, axis=0) ** 2,
    "index_add": lambda x: pb.index_add(x[:1] * 0, NOUGHTS, x)[0],
}


@halves
@pytest.mark.parametrize("name", SUMS)
def test_long_sums(name: str, dtype: DType) -> None:
    result = SUMS[name](ones((COUNT, 2), dtype))
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(pb.float32)._raw, [COUNT] * 2, rtol=1e-2)


GRADIENTS: dict[str, Callable] = {
    "broadcasting": lambda x: x + ones((COUNT, 1), x.dtype),
    "broadcast_to": lambda x: pb.broadcast_to(x, (COUNT, 1)),
    "getitem": lambda x: x[NOUGHTS],
    "take": lambda x: pb.take(x, NOUGHTS, axis=0),
    "take_along_axis": lambda x: pb.take_along_axis(x, NOUGHTS, axis=0),
    "embedding": lambda x: pb.embedding(NOUGHTS, x[:, None]),
    "linear": lambda x: pb.linear(ones((COUNT, 1), x.dtype), ones((1, 1), x.dtype), x),
    "cumulative_prod": lambda x: pb.cumulative_prod(pb.concat([x, ones((COUNT - 1,), x.dtype)])),
}


@halves
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_that_are_long_sums(name: str, dtype: DType) -> None:
    x = ones((1,), dtype).set_requires_grad(True)
    out = GRADIENTS[name](x)
    gradient = pb.backward(out, pb.ones(out.shape, dtype=dtype))[x]
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient.astype(pb.float32)._raw, [COUNT], rtol=1e-2)


@halves
def test_equal_elements_have_no_variance(dtype: DType) -> None:
    assert pb.var(ones((COUNT, 2), dtype), axis=0).tolist() == [0, 0]


@halves
def test_a_norm_does_not_overflow_on_the_way(dtype: DType) -> None:
    assert pb.linalg.vector_norm(pb.asarray([300.0, 400.0], dtype=dtype)).item() == 500


@halves
@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky", "eigh", "qr", "svd"])
def test_decompositions_refuse_half_precision(name: str, dtype: DType) -> None:
    with pytest.raises(pb.DtypeError, match=dtype.name):
        getattr(pb.linalg, name)(pb.eye(2, dtype=dtype))


@halves
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_python_numbers_keep_half_precision(device: str, dtype: DType) -> None:
    require(device)
    x = pb.asarray([1.0, 2.0], dtype=dtype, device=device)
    for result in (x + 1.0, 2.0 * x, x / 2, 1 - x, x > 0.5, pb.where(x > 1.0, x, 0.5), pb.maximum(x, 1.5)):
        assert result.dtype == (dtype if result.dtype.kind == "float" else pb.bool)
    x += 0.5
    assert x.to_device("numpy").astype(pb.float32).tolist() == [1.5, 2.5]
