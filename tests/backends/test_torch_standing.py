"""Whether tensors stand as they did is seen without looking at each."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any, Callable

import pytest

from .installed import optional

torch = optional("torch")
pytestmark = pytest.mark.skipif(torch is None, reason="needs PyTorch")


def standing() -> tuple[Any, list[Any]]:
    from pullback.backends.torch_standing import Standing

    holders = [SimpleNamespace(_raw=torch.zeros(2, 3)) for _ in range(4)]
    found = Standing(holders[:2], holders[2:])
    assert not found.holds()
    found.note()
    assert found.holds()
    return found, holders


WAYS_TO_SEE: dict[str, Callable[[Any], Any]] = {
    "reference": lambda raw: raw,
    "view": lambda raw: raw[:1],
    "detached": lambda raw: raw.detach(),
    "storage": lambda raw: raw.untyped_storage(),
    "numpy": lambda raw: raw.numpy(),
    "dlpack": lambda raw: raw.__dlpack__(),
}


@pytest.mark.parametrize("way", WAYS_TO_SEE)
def test_who_sees_a_tensor_that_is_owned_is_noticed_while_he_does(way: str) -> None:
    found, holders = standing()
    other = WAYS_TO_SEE[way](holders[1]._raw)
    assert not found.holds()
    del other
    gc.collect()
    assert found.holds()


@pytest.mark.parametrize("way", WAYS_TO_SEE)
def test_others_may_be_seen_by_anybody(way: str) -> None:
    found, holders = standing()
    other = WAYS_TO_SEE[way](holders[3]._raw)
    assert found.holds()
    del other


@pytest.mark.parametrize("which", [0, 3])
def test_a_change_is_noticed_until_it_is_noted(which: int) -> None:
    def replaced(holder: Any) -> None:
        holder._raw = torch.zeros(2, 3)

    def written(holder: Any) -> None:
        holder._raw.add_(1)

    def turned(holder: Any) -> None:
        holder._raw.t_()

    def moved(holder: Any) -> None:
        holder._raw.data = torch.zeros(2, 3)

    for change in (replaced, written, turned, moved):
        found, holders = standing()
        change(holders[which])
        assert not found.holds(), change.__name__
        found.note()
        assert found.holds(), change.__name__


def test_nothing_is_held() -> None:
    found, holders = standing()
    gone = torch._C._storage_Use_Count(holders[0]._raw.untyped_storage()._cdata)
    fresh = torch.zeros(2, 3)
    assert gone == torch._C._storage_Use_Count(fresh.untyped_storage()._cdata)
    del holders
    gc.collect()
    assert not any(reference() is not None for reference in found._references) or found.holds()


def test_tensors_of_inference_mode_are_looked_at_every_time() -> None:
    from pullback.backends.torch_standing import Standing

    with torch.inference_mode():
        holder = SimpleNamespace(_raw=torch.zeros(2))
    found = Standing([holder], [])
    found.note()
    assert not found.holds()
