"""`pb.deterministic` holds inside its block, and leaves PyTorch's settings as they were."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as pb

from .installed import optional

torch = optional("torch")
pytestmark = pytest.mark.skipif(torch is None, reason="needs PyTorch")


def settings() -> tuple[Any, ...]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )


def test_it_holds_inside_and_is_undone() -> None:
    before = settings()
    with pb.deterministic():
        assert settings() == (True, False, False)
        with pb.deterministic():
            pass
        assert settings() == (True, False, False)
    assert settings() == before


def test_it_is_undone_after_an_error_and_keeps_what_the_user_has_set() -> None:
    before = settings()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with pytest.raises(ZeroDivisionError), pb.deterministic():
            1 / 0  # noqa: B018
        assert settings() == (True, True, before[2])
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def test_attention_takes_a_kernel_that_repeats() -> None:
    from pullback.backends import torch_attention

    class OnGpu:
        """What `_library` looks at."""

        is_cuda, device = True, "cuda"
        shape = (2, 3, 16, 64)
        dtype = torch.bfloat16 if torch else None

    class Single(OnGpu):
        dtype = torch.float32 if torch else None

    def library(of: Any) -> Any:
        return torch_attention._library(of, of, of, None, True, 0.0)

    with pb.deterministic():
        assert library(OnGpu()) == "flash"
        assert library(Single()) is None
    assert library(Single()) == "efficient"
