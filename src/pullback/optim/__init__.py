"""Optimizers, schedules of the learning rate, and what belongs around them."""

import typing as _typing

from . import schedules
from .accumulation import Accumulation
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .averaging import ExponentialMovingAverage
from .clipping import clip_global_norm, clip_value
from .lamb import LAMB
from .lbfgs import LBFGS
from .lion import Lion
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .scaling import LossScaler
from .scheduler import Scheduler
from .sgd import SGD

__all__ = [
    "Accumulation", "Adafactor", "Adagrad", "Adam", "AdamW", "ExponentialMovingAverage", "LAMB", "LBFGS", "Lion",
    "LossScaler", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "SGD", "Scheduler", "clip_global_norm",
    "clip_value", "schedules",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # type checkers know the names without it

    def __getattr__(name: str) -> object:
        from ..pytorch_names import missing

        raise missing(__name__, name)


def __dir__() -> list[str]:
    return __all__
