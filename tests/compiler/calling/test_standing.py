"""Native code sees whether tensors stand as they did."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import pullback as pb
from pullback import backends

from ...backends.installed import needs, needs_llvmlite, optional

torch = optional("torch")
pytestmark = [needs("torch", "tensors of PyTorch's"), needs_llvmlite]


def made() -> tuple[Any, list[Any]]:
    from pullback.compiler.calling.standing import standing
    from pullback.compiler.guards.torch_rows import is_possible

    assert is_possible("cpu")
    tensors = [pb.zeros(shape, device="torch:cpu", dtype=pb.bfloat16) for shape in ((2, 3), (4,), (), (1, 5))]
    found = standing(backends.of(tensors[0]._raw), "torch:cpu", tensors[:2], tensors[2:])
    found.note()
    assert found._places, "native code does not know these tensors"
    assert found.holds()
    return found, tensors


@pytest.mark.parametrize("which", [0, 1])
def test_who_sees_what_is_owned_is_noticed(which: int) -> None:
    found, tensors = made()
    for way in (lambda raw: raw, lambda raw: raw[:1], lambda raw: raw.detach(), lambda raw: raw.untyped_storage()):
        other = way(tensors[which]._raw)
        assert not found.holds()
        del other
        gc.collect()
        assert found.holds()


def test_others_may_be_seen_and_written_to() -> None:
    found, tensors = made()
    held = tensors[2]._raw, tensors[3]._raw[0]
    tensors[3]._raw.add_(1)
    assert found.holds()
    del held


@pytest.mark.parametrize("which", [1, 3])
def test_another_array_is_noticed_until_it_is_noted(which: int) -> None:
    found, tensors = made()
    tensors[which]._raw = tensors[which]._raw.clone()
    assert not found.holds()
    found.note()
    assert found.holds()
    tensors[which]._raw = torch.zeros(7, dtype=torch.bfloat16)
    assert not found.holds()


def test_tensors_that_native_code_does_not_know_are_looked_at_in_python() -> None:
    from pullback.compiler.calling.standing import standing

    tensor = pb.zeros((2, 3), device="torch:cpu")
    found = standing(backends.of(tensor._raw), "torch:cpu", [], [tensor])
    tensor._raw = torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False)
    found.note()
    assert not found._places
    assert found.holds()
    tensor._raw = torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False)
    assert not found.holds()
