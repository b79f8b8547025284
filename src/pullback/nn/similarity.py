"""How alike vectors are, as modules."""

from __future__ import annotations

from typing import Any

from ..functions import normalization as functions
from ..tensors.tensor import Tensor
from .module import Module


class CosineSimilarity(Module):
    """`pb.cosine_similarity` as a module, along `dim`.

    >>> import pullback as pb
    >>> pb.nn.CosineSimilarity()(pb.tensor([[3.0, 4.0]]), pb.tensor([[0.0, 2.0]]))
    tensor([0.8])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Any, x2: Any) -> Tensor:
        return functions.cosine_similarity(x1, x2, self.dim, self.eps)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, eps={self.eps}"
