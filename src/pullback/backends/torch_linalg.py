"""PyTorch's own solvers and decompositions beside those of the array API standard."""

from __future__ import annotations

from typing import Any

import torch

_OF_LAPACK = frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))


def linear_algebra_kernels(general: Any) -> dict[str, Any]:
    """Kernels by operation; `general` has the portable ones for what these leave out."""

    def solve_triangular(x: Any, y: Any, lower: bool, unit: bool) -> Any:
        if x.dtype is y.dtype and x.dtype in _OF_LAPACK:
            return torch.linalg.solve_triangular(x, y, upper=not lower, unitriangular=unit)
        return general("solve_triangular")(x, y, lower, unit)

    return {
        "solve_triangular": solve_triangular,
        "matrix_exp": torch.linalg.matrix_exp,
        "lu": lambda x: tuple(torch.linalg.lu(x)),
    }
