"""Portable kernels: linear algebra: decompositions, solvers, determinants."""

from __future__ import annotations

from typing import Any
