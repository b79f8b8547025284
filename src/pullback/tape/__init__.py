"""The explicit recorder: operations by slot number, or a stretch of tensor code."""

from .gradient_tape import GradientTape

__all__ = ["GradientTape"]


def __dir__() -> list[str]:
    return __all__
