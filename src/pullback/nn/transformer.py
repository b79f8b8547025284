"""Transformer encoders; with `is_causal` they are decoders without a memory, as language models are."""

from __future__ import annotations

import copy
from typing import Any, Callable

from ..errors import ConfigurationError
from ..functions.activations import gelu, relu
from ..tensors.tensor import Tensor
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

_ACTIVATIONS: dict[str, Callable[..., Tensor]] = {"relu": relu, "gelu": gelu}


class TransformerEncoderLayer(Module):
    """Attention and a network of two layers, each added to its input and normalised.

    It is called as `layer(src)` for inputs (length, samples, d_model). `src_mask`, `src_key_padding_mask` and
    `is_causal` are as in `MultiheadAttention`: True hides.

    Parameters
    ----------
    d_model : int
        The width of inputs and outputs.
    nhead : int
        The number of heads, which divides `d_model`.
    dim_feedforward : int
        The width inside the network of two layers.
    dropout : float
        The probability of zeros in all places, in training.
    activation : str or callable
        "relu", "gelu" or a function.
    layer_norm_eps : float
        That of the normalisations.
    batch_first : bool
        Whether inputs and outputs are (samples, length, d_model) instead.
    norm_first : bool
        Whether normalisation comes before the parts, not after.
    bias : bool
        Whether linear layers and normalisations have biases.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(pb.random.normal((3, 5, 8)), is_causal=True).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise ConfigurationError(
                f'TransformerEncoderLayer: activation must be "relu", "gelu" or a function, got {activation!r}.'
            )
        options: Any = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Tensor:
        """The layer's result for `src`, in its shape. Calling the module calls this.

        `src_mask` (queries, keys) and `src_key_padding_mask` (samples, keys) hide where they are True; `is_causal`
        hides the future.
        """
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._attention(self.norm1(src), *masks)
            return x + self._feedforward(self.norm2(x))
        x = self.norm1(src + self._attention(src, *masks))
        return self.norm2(x + self._feedforward(x))

    def _attention(self, x: Any, mask: Any, padding: Any, is_causal: bool) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _feedforward(self, x: Any) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Independent copies of a layer, one after the other.

    It is called as `encoder(src)`, with the masks of `TransformerEncoderLayer`: `mask`, `src_key_padding_mask`,
    `is_causal`.

    Parameters
    ----------
    encoder_layer : Module
        What to copy, such as a `TransformerEncoderLayer`.
    num_layers : int
        How many copies.
    norm : Module, optional
        A normalisation at the end.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> encoder = pb.nn.TransformerEncoder(layer, num_layers=2, norm=pb.nn.LayerNorm(8))
    >>> encoder(pb.random.normal((3, 5, 8)), is_causal=True).shape
    (3, 5, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        """What all layers make of `src`, in its shape. Calling the module calls this.

        `mask` (queries, keys) and `src_key_padding_mask` (samples, keys) hide where they are True; `is_causal` hides
        the future.
        """
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)
