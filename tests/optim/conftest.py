"""What tests of optimizers have in common."""

from __future__ import annotations

from typing import Iterator

import pytest

from ..backends.installed import optional

torch = optional("torch")


@pytest.fixture
def pytorchs_numbers_in_float64() -> Iterator[None]:
    """PyTorch keeps what it counts per parameter in its default dtype: NAdam's product of momenta would be rounded."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
