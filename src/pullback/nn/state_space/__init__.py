"""Layers of state-space models: whole sequences at once, or one step after the other with a state."""

from .diagonal import S4D, S5
from .gated import MinGRU
from .mamba import Mamba, Mamba2
from .rwkv import RWKV, RWKVChannelMixing, RWKVTimeMixing
from .streaming import CausalConv1d, StateSpaceLayer, StateSpaceModel

__all__ = [
    "RWKV", "S4D", "S5", "CausalConv1d", "Mamba", "Mamba2", "MinGRU", "RWKVChannelMixing", "RWKVTimeMixing",
    "StateSpaceLayer", "StateSpaceModel",
]  # fmt: skip
