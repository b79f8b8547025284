"""Pickles of tensors."""

from __future__ import annotations

import pickle
import pickletools

import numpy as np
import pytest

import pullback as pb

from .test_conversion import VALUES


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_round_trip(values, protocol):
    tensor = pb.asarray(values)
    again = pickle.loads(pickle.dumps(tensor, protocol))
    assert again.dtype == tensor.dtype
    assert again.shape == tensor.shape
    assert again.device == tensor.device
    assert not again.requires_grad
    assert again.numpy().tobytes() == tensor.numpy().tobytes()


def test_bfloat16_round_trip():
    pytest.importorskip("ml_dtypes")
    again = pickle.loads(pickle.dumps(pb.tensor([1.5, 2.0], dtype="bfloat16")))
    assert again.dtype == pb.bfloat16
    assert again.tolist() == [1.5, 2.0]


def test_a_variable_stays_a_variable_without_its_gradient():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    pb.sum(w * w).backward()
    again = pickle.loads(pickle.dumps(w))
    assert again.requires_grad
    assert again.is_leaf
    assert again.grad is None
    pb.sum(again * 3).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [2.0, 4.0])


def test_what_was_unpickled_can_be_written():
    again = pickle.loads(pickle.dumps(pb.tensor([1.0, 2.0])))
    again += 1
    assert again.tolist() == [2.0, 3.0]


def test_an_intermediate_is_refused():
    w = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"result of `multiply`.*detach"):
        pickle.dumps(w * 2)
    assert pickle.loads(pickle.dumps((w * 2).detach())).tolist() == [2.0]


def test_memory_can_travel_out_of_band():
    tensor = pb.asarray(np.arange(1000.0))
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert len(content) < 1000
    assert pickle.loads(content, buffers=buffers).tolist() == tensor.tolist()


def test_only_one_function_is_named_in_a_pickle():
    content = pickle.dumps(pb.tensor([1.0], requires_grad=True), 2)
    named = [argument for operation, argument, _ in pickletools.genops(content) if operation.name == "GLOBAL"]
    assert [name for name in named if not name.startswith("_codecs")] == ["pullback.tensors.conversion unpickled"]


@pytest.mark.parametrize("dtype", [pb.float32, pb.bool, pb.bfloat16])
def test_dtypes(dtype):
    assert pickle.loads(pickle.dumps(dtype)) is dtype
