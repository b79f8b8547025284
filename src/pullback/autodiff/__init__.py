"""Gradients on top of any backend."""
