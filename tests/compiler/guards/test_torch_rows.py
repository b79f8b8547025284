"""Native code that looks at PyTorch's tensors is right about them, and where it cannot look at them, Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import needs_llvmlite, optional, require

torch = optional("torch")
pytestmark = needs_llvmlite


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    require("torch:cpu")


def found(raw: Any, dtype: str, shape: tuple[int, ...], is_written: bool = False, references: int = 0) -> int | None:
    """The address that rows for a tensor of this form find, or None."""
    from pullback.compiler.guards.native.object_access import Record
    from pullback.compiler.guards.rows import Rows
    from pullback.compiler.guards.torch_rows import emit_tensor

    rows, bases = Rows(), np.zeros(1, np.int64)
    emit_tensor(rows, rows.given(0), pb.dtypes.numpy_dtype(pb.dtypes.get(dtype)), shape, is_written, references, 0)
    record = Record(rows.simplified(), rows.registers, bases.ctypes.data)
    return int(bases[0]) if record.check()(raw) is None else None


def test_tensors_lie_in_memory_as_expected() -> None:
    from pullback.compiler.guards.torch_rows import is_possible

    assert is_possible()


@pytest.mark.parametrize("dtype", [dtype.name for dtype in pb.dtypes.ALL if dtype.name != "bfloat16"])
def test_a_tensor_is_known_by_its_dtype(dtype: str) -> None:
    raw = torch.zeros(3, 2, dtype=getattr(torch, dtype))
    for other in pb.dtypes.ALL:
        if other.name != "bfloat16":
            assert (found(raw, other.name, (3, 2)) is not None) is (other.name == dtype)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (2, 1, 3), (0, 4), (2, 1, 3, 1, 2), (2, 3, 1, 2, 1, 2, 3)])
def test_a_tensor_is_known_by_its_shape_and_layout(shape: tuple[int, ...]) -> None:
    raw = torch.zeros(shape)
    assert found(raw, "float32", shape, True) is not None
    assert found(raw, "float32", (*shape, 1)) is None and found(raw, "float32", (1, *shape)) is None
    for axis, length in enumerate(shape):
        assert found(raw, "float32", (*shape[:axis], length + 1, *shape[axis + 1 :])) is None
        longer = torch.zeros(*shape[:axis], 2 * length, *shape[axis + 1 :])
        every_other = longer[(slice(None),) * axis + (slice(None, None, 2),)]
        assert (found(every_other, "float32", shape) is not None) is every_other.is_contiguous()
    reversed_axes = torch.zeros(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    assert (found(reversed_axes, "float32", shape) is not None) is reversed_axes.is_contiguous()


def test_the_address_is_that_of_the_first_element() -> None:
    raw = torch.zeros(6, 2, dtype=torch.int16)
    for i in range(5):
        assert found(raw[i : i + 2], "int16", (2, 2)) == raw.data_ptr() + 4 * i


def test_memory_that_is_not_aligned_is_left_to_python() -> None:
    raw = torch.frombuffer(bytearray(25), dtype=torch.float32, offset=1, count=6)
    assert found(raw, "float32", (6,)) is None


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("count", [3, 300_000])
def test_without_native_looks_all_is_the_same(monkeypatch: pytest.MonkeyPatch, device: str, count: int) -> None:
    from pullback.compiler.calling import fast_memory

    monkeypatch.setitem(fast_memory.MEMORIES, device, lambda: None)
    w = pb.ones((count,), device=device).set_requires_grad(True)
    optimizer = pb.optim.SGD([w], 0.1)

    @pb.compile
    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).sum()
        optimizer.step(pb.backward(loss))
        return loss

    step(pb.ones((count,), device=device))
    view = w.detach()[1:]
    for _ in range(2):
        step(pb.ones((count,), device=device))
    assert step._programs[0].fast_path is None
    np.testing.assert_allclose(w.detach().numpy(), np.full(count, 0.512), rtol=1e-6)
    np.testing.assert_allclose(view.numpy(), np.full(count - 1, 0.8), rtol=1e-6)
    assert step.traces == 1
