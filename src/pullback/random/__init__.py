"""Counter-based random numbers: the same on every backend, eager, compiled and recomputed.

Every number is a function of a key, an offset into the key's stream of 32-bit words and its own index, and of nothing
else. It is made from the words by exactly rounded arithmetic alone (addition, multiplication, division, square root),
so that no backend's own logarithm or cosine has a say in it.
"""

import typing as _typing

from .default import (
    bernoulli,
    categorical,
    choice,
    default_generator,
    exponential,
    get_state,
    gumbel,
    integers,
    multinomial,
    next_key,
    normal,
    permutation,
    seed,
    set_state,
    split,
    uniform,
    using,
)
from .generator import Generator, at_state as at_state
from .stream import State

__all__ = [
    "Generator", "State", "bernoulli", "categorical", "choice", "default_generator", "exponential", "get_state",
    "gumbel", "integers", "multinomial", "next_key", "normal", "permutation", "seed", "set_state", "split", "uniform",
    "using",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # type checkers know the names without it

    def __getattr__(name: str) -> object:
        from ..pytorch_names import missing

        raise missing(__name__, name)


def __dir__() -> list[str]:
    return __all__
