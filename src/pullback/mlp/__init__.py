"""A multilayer perceptron that allocates nothing per step."""

from . import losses
from .gradients import MlpGradients
from .network import Mlp
from .scratch import Scratch

__all__ = ["Mlp", "MlpGradients", "Scratch", "losses"]


def __dir__() -> list[str]:
    return __all__
