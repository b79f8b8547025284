"""Linear algebra: the array API extension `linalg`."""

from __future__ import annotations
