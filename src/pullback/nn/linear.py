"""Layers of matrix products and rows of tables."""

from __future__ import annotations

import math
from typing import Any, Self, Sequence

from ..autodiff.creation import asarray
from ..errors import ConfigurationError
from ..functions.axes import negative_axis
from ..functions.filled import empty
from ..functions.linear import linear
from ..functions.manipulation import reshape
from ..functions.normalization import embedding
from ..modes import no_grad
from ..tensors.tensor import Tensor
from . import init
from .module import Module, Parameter


class Linear(Module):
    """A linear layer: x @ weight.T + bias, along the last axis.

    `weight` is (out_features, in_features), `bias` (out_features,). Inputs are (..., in_features), results (...,
    out_features).

    Parameters
    ----------
    in_features : int
        The length of the last axis of inputs.
    out_features : int
        That of results.
    bias : bool
        Whether there is a `bias`.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Linear(3, 2)(pb.zeros((5, 4, 3))).shape
    (5, 4, 2)
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: str | None = None, dtype: Any = None
    ) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), dtype=dtype, device=device))
        self.bias = Parameter(empty(out_features, dtype=dtype, device=device)) if bias else None
        self.reset_parameters()

    @classmethod
    def from_weight(cls, weight: Tensor, bias: Tensor | None = None) -> Self:
        """The layer of these very tensors: nothing is drawn, nothing is copied.

        >>> import pullback as pb
        >>> pb.nn.Linear.from_weight(pb.ones((2, 3)))
        Linear(in_features=3, out_features=2, bias=False)
        """
        self = cls.__new__(cls)
        self.out_features, self.in_features = weight.shape
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)
        return self

    def reset_parameters(self) -> None:
        """Draw the first values anew: uniform up to 1 / sqrt(in_features)."""
        init.uniform_by_inputs(self.weight, *([] if self.bias is None else [self.bias]), inputs=self.in_features)

    @property
    def stored_weight(self) -> Any:
        """What adapters are put beside: the weight, or its parts where it is quantized."""
        return self.weight

    def without_adapter(self, x: Any) -> Tensor:
        """What the layer makes of `x` by its own weight and bias."""
        return linear(x, self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return self.without_adapter(x)

    @classmethod
    def project_all(cls, x: Any, layers: Sequence[Self]) -> tuple[Tensor, ...]:
        """What each of several layers of this class makes of one input; a subclass may compute them together."""
        return tuple([layer(x) for layer in layers])

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def project(x: Any, *layers: Linear) -> tuple[Tensor, ...]:
    """What each of several linear layers makes of one input, as to query, key and value.

    Layers of one class compute it together if they know how, as those with adapters do (see `pb.peft`).

    Parameters
    ----------
    x : array
        (..., inputs).
    *layers : Linear
        All with as many inputs.

    Returns
    -------
    tuple of Tensor
        One for each layer, (..., outputs).

    Examples
    --------
    >>> import pullback as pb
    >>> query, key = pb.nn.Linear(3, 4), pb.nn.Linear(3, 2)
    >>> [out.shape for out in pb.nn.project(pb.zeros((5, 3)), query, key)]
    [(5, 4), (5, 2)]
    """
    results: dict[int, Tensor] = {}
    for kind in dict.fromkeys([type(layer) for layer in layers]):
        places = [i for i, layer in enumerate(layers) if type(layer) is kind]
        results.update(zip(places, kind.project_all(x, [layers[i] for i in places])))
    return tuple([results[i] for i in range(len(layers))])


class Identity(Module):
    """What it is given; the constructor's arguments are ignored, so that it can take any layer's place.

    `args` and `kwargs` may be anything.

    >>> import pullback as pb
    >>> pb.nn.Identity()(3.0)
    3.0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` made one, as before a linear layer.

    Parameters
    ----------
    start_dim : int
        The first of these axes; by default that of samples stays.
    end_dim : int
        The last of them.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Flatten()(pb.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Any) -> Tensor:
        x = asarray(x)
        first, last = (negative_axis("Flatten", axis, x.ndim) + x.ndim for axis in (self.start_dim, self.end_dim))
        return reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Embedding(Module):
    """A table of vectors: for numbers of any shape, the rows of `weight` that they name.

    Parameters
    ----------
    num_embeddings : int
        The number of rows: of words in a vocabulary, say.
    embedding_dim : int
        The length of a row.
    padding_idx : int, optional
        A row that begins as zeros and gets no gradient.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Embedding(10, 3)(pb.asarray([[1, 2], [3, 3]])).shape
    (2, 2, 3)
    """

    weight: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ConfigurationError(f"Embedding: padding_idx {padding_idx} is out of range for {num_embeddings} rows.")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(empty((num_embeddings, embedding_dim), dtype=dtype, device=device))
        self.reset_parameters()

    @classmethod
    def from_weight(cls, weight: Tensor, padding_idx: int | None = None) -> Self:
        """The layer of this very table: nothing is drawn, nothing is copied.

        >>> import pullback as pb
        >>> pb.nn.Embedding.from_weight(pb.eye(2))(pb.asarray([1]))
        tensor([[0., 1.]])
        """
        self = cls.__new__(cls)
        self.num_embeddings, self.embedding_dim = weight.shape
        self.padding_idx = padding_idx
        self.register_parameter("weight", weight)
        return self

    def reset_parameters(self) -> None:
        """Draw the first values anew, from the normal distribution."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    def forward(self, indices: Any) -> Tensor:
        """The rows of the table at `indices`, an array of integers of any shape."""
        return embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
