"""Gradients at zeros, ties and boundaries."""

from __future__ import annotations

import pytest

from .harness_boundaries import BOUNDARIES, Boundary, check_boundary


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda boundary: boundary.name)
def test_gradient_at_a_boundary(boundary: Boundary) -> None:
    check_boundary(boundary)
