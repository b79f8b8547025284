"""The explicit recorder: operations by slot number, or a stretch of tensor code."""

from .gradient_tape import GradientTape

__all__ = ["GradientTape"]
