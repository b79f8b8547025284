"""The decoder that Llama 3, Qwen2 and Qwen3 are: attention with shared keys and rotary positions, gated layers.

Modules and parameters have the names that Hugging Face's have, so that a state dict of the one is one of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..autodiff.checkpointing.strategies import checkpoint
from ..autodiff.creation import asarray
from ..backends.portable.packed import Packed
from ..errors import ShapeError
from ..functions.activations import silu
from ..functions.attention import rotary_embedding, scaled_dot_product_attention
from ..functions.filled import arange
from ..functions.manipulation import permute_dims, reshape
from ..nn.containers import ModuleList
from ..nn.linear import Embedding, Linear, project
from ..nn.module import Module
from ..nn.normalization import RMSNorm
from ..quant.layer import QuantizedLinear
from ..tensors.tensor import Tensor
from . import masks, rotary

if TYPE_CHECKING:
    from .cache import Cache, LayerCache
    from .config import DecoderConfig

#: Gives the tensor of a name and a shape: from a file, or drawn; the weight of a linear layer of the decoder in parts,
#: if these are to be quantized.
Weights = Callable[[str, tuple[int, ...]], Any]


class Attention(Module):
    """Attention of tokens to those before them, with fewer heads of key and value than of query."""

    def __init__(self, config: DecoderConfig, weights: Weights, name: str) -> None:
        self.num_heads = config.num_attention_heads
        self.num_key_value_heads = config.num_key_value_heads
        self.head_dim = config.head_dim
        inner, shared = self.num_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        self.q_proj = _linear(weights, f"{name}.q_proj", config.hidden_size, inner, config.query_bias)
        self.k_proj = _linear(weights, f"{name}.k_proj", config.hidden_size, shared, config.query_bias)
        self.v_proj = _linear(weights, f"{name}.v_proj", config.hidden_size, shared, config.query_bias)
        self.o_proj = _linear(weights, f"{name}.o_proj", inner, config.hidden_size, config.output_bias)
        if config.has_query_norm:
            self.q_norm = _norm(weights, f"{name}.q_norm", config.head_dim, config.rms_norm_eps)
            self.k_norm = _norm(weights, f"{name}.k_norm", config.head_dim, config.rms_norm_eps)
        self.has_query_norm = config.has_query_norm

    def forward(
        self, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor | None, cache: LayerCache | None = None
    ) -> Tensor:
        samples, length, _ = x.shape
        q, k, v = project(x, self.q_proj, self.k_proj, self.v_proj)
        q = self._heads(q, self.num_heads)
        k, v = (self._heads(part, self.num_key_value_heads) for part in (k, v))
        if self.has_query_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotary_embedding(q, *tables), rotary_embedding(k, *tables)
        if cache is not None:
            k, v = cache.append(k, v)
        q, k, v = (permute_dims(part, (0, 2, 1, 3)) for part in (q, k, v))
        out = scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, enable_gqa=True)
        return self.o_proj(reshape(permute_dims(out, (0, 2, 1, 3)), (samples, length, self.num_heads * self.head_dim)))

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        return reshape(x, (*x.shape[:2], heads, self.head_dim))


class GatedLayers(Module):
    """silu(gate(x)) * up(x), projected down again."""

    def __init__(self, config: DecoderConfig, weights: Weights, name: str) -> None:
        outer, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = _linear(weights, f"{name}.gate_proj", outer, inner, bias)
        self.up_proj = _linear(weights, f"{name}.up_proj", outer, inner, bias)
        self.down_proj = _linear(weights, f"{name}.down_proj", inner, outer, bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = project(x, self.gate_proj, self.up_proj)
        return self.down_proj(silu(gate) * up)


class DecoderLayer(Module):
    """Attention and gated layers, each added to its input, which is normalised before."""

    def __init__(self, config: DecoderConfig, weights: Weights, name: str) -> None:
        eps = config.rms_norm_eps
        self.self_attn = Attention(config, weights, f"{name}.self_attn")
        self.mlp = GatedLayers(config, weights, f"{name}.mlp")
        self.input_layernorm = _norm(weights, f"{name}.input_layernorm", config.hidden_size, eps)
        self.post_attention_layernorm = _norm(weights, f"{name}.post_attention_layernorm", config.hidden_size, eps)

    def forward(
        self, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor | None, cache: LayerCache | None = None
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), tables, mask, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(Module):
    """Tokens to hidden values: a table of rows, layers, and a last normalisation."""

    def __init__(self, config: DecoderConfig, weights: Weights, name: str) -> None:
        shape = (config.vocab_size, config.hidden_size)
        self.embed_tokens = Embedding.from_weight(weights(f"{name}.embed_tokens.weight", shape))
        numbers = range(config.num_hidden_layers)
        self.layers = ModuleList([DecoderLayer(config, weights, f"{name}.layers.{i}") for i in numbers])
        self.norm = _norm(weights, f"{name}.norm", config.hidden_size, config.rms_norm_eps)
        self.recomputes_layers = False  # whether of a layer its input alone is kept for the backward pass
        frequencies, self._factor = rotary.frequencies(config)
        self._frequencies = tuple(frequencies.tolist())  # no tensor: not to be converted or moved with the model

    def forward(self, tokens: Any, positions: Any = None, segments: Any = None, cache: Cache | None = None) -> Tensor:
        x = self.embed_tokens(tokens)
        if x.ndim != 3:
            raise ShapeError(f"expected tokens of the axes (samples, length), got shape {x.shape[:-1]}.")
        places = arange(x.shape[1], dtype="int32", device=x.device)
        mask = None
        if cache is not None:
            places = cache.lengths[:, None] + places
            mask = masks.of_cache(places, cache.capacity)
        elif segments is not None:
            mask = masks.of_segments(asarray(segments, device=x.device))
        if positions is not None:
            positions = asarray(positions, device=x.device)
        tables = rotary.tables(places if positions is None else positions, self._frequencies, self._factor, x.dtype)
        for number, layer in enumerate(self.layers):
            run = checkpoint(layer.__call__) if self.recomputes_layers else layer
            x = run(x, tables, mask, None if cache is None else cache.layer(number, places))
        return self.norm(x)


def _linear(weights: Weights, name: str, inputs: int, outputs: int, bias: bool) -> Linear:
    weight = weights(f"{name}.weight", (outputs, inputs))
    return layer_of(weight, weights(f"{name}.bias", (outputs,)) if bias else None)


def layer_of(weight: Tensor | Packed, bias: Tensor | None = None) -> Linear:
    """The linear layer of a weight, or of the parts of one."""
    return QuantizedLinear(weight, bias) if isinstance(weight, Packed) else Linear.from_weight(weight, bias)


def _norm(weights: Weights, name: str, features: int, eps: float) -> RMSNorm:
    return RMSNorm.from_weight(weights(f"{name}.weight", (features,)), eps)
