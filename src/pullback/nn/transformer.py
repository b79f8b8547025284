"""Transformer encoders and decoders; with `is_causal` an encoder is a decoder without memory, as of language models."""

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


def _activation(caller: str, activation: str | Callable[[Any], Any]) -> Callable[..., Any]:
    if not isinstance(activation, str):
        return activation
    if activation not in _ACTIVATIONS:
        raise ConfigurationError(f'{caller}: activation must be "relu", "gelu" or a function, got {activation!r}.')
    return _ACTIVATIONS[activation]


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
        function = _activation("TransformerEncoderLayer", activation)
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
        self.activation = function

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

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Tensor:
        """What all layers make of `src`, in its shape. Calling the module calls this.

        `mask` (queries, keys) and `src_key_padding_mask` (samples, keys) hide where they are True; `is_causal` hides
        the future.
        """
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(Module):
    """Attention to the targets, attention to a memory, and a network of two layers, each added to its input.

    What is added to is normalised after it, with `norm_first` before. As in `MultiheadAttention`, True in a mask hides.

    Parameters
    ----------
    d_model : int
        The width of targets and memory.
    nhead : int
        The number of heads, by which `d_model` can be divided.
    dim_feedforward : int
        The width between the two linear layers.
    dropout : float
        The share of numbers that are set to zero in training, in the attentions and behind every part.
    activation : str or callable
        "relu", "gelu" or a function: what is between the two linear layers.
    layer_norm_eps : float
        What the normalisations add to the variance.
    batch_first : bool
        Whether inputs are (samples, length, width) instead of (length, samples, width).
    norm_first : bool
        Whether the input of every part is normalised, instead of the sum behind it.
    bias : bool
        Whether linear layers and normalisations have biases.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(pb.random.normal((3, 5, 8)), pb.random.normal((3, 7, 8)), tgt_is_causal=True).shape
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
        function = _activation("TransformerDecoderLayer", activation)
        options: Any = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = function

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer's result for `tgt` beside `memory`, in the shape of `tgt`. Calling the module calls this.

        `tgt_mask` and `memory_mask` (queries, keys), `tgt_key_padding_mask` and `memory_key_padding_mask` (samples,
        keys) hide where they are True; `tgt_is_causal` and `memory_is_causal` hide what comes later.
        """
        targets = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        memories = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._attention(self.norm1(tgt), *targets)
            x = x + self._look_up(self.norm2(x), memory, *memories)
            return x + self._feedforward(self.norm3(x))
        x = self.norm1(tgt + self._attention(tgt, *targets))
        x = self.norm2(x + self._look_up(x, memory, *memories))
        return self.norm3(x + self._feedforward(x))

    def _attention(self, x: Any, mask: Any, padding: Any, is_causal: bool) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _look_up(self, x: Any, memory: Any, mask: Any, padding: Any, is_causal: bool) -> Tensor:
        found = self.multihead_attn(x, memory, memory, padding, False, mask, is_causal=is_causal)[0]
        return self.dropout2(found)

    def _feedforward(self, x: Any) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """`num_layers` independent copies of a decoder layer, one after the other, and a normalisation at the end if given.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        What is copied, usually a `TransformerDecoderLayer`.
    num_layers : int
        How many copies there are.
    norm : Module, optional
        What the result goes through at the end, such as a `LayerNorm`; None for nothing.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> decoder = pb.nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(pb.random.normal((3, 5, 8)), pb.random.normal((3, 7, 8)), tgt_is_causal=True).shape
    (3, 5, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """What all layers make of `tgt` beside `memory`, in the shape of `tgt`. Calling the module calls this.

        `tgt_mask` and `memory_mask` (queries, keys), `tgt_key_padding_mask` and `memory_key_padding_mask` (samples,
        keys) hide where they are True; `tgt_is_causal` and `memory_is_causal` hide what comes later.
        """
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, tgt_is_causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)
