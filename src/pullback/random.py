"""Counter-based random numbers, the same on every backend."""

from __future__ import annotations
