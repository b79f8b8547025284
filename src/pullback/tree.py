"""Nested containers as trees of leaves."""

from __future__ import annotations
