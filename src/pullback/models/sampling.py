"""The choice of the next token from logits: the likeliest one, or one drawn from those that are likely enough.

It is made on the host, in float64, from numbers of `pb.random`: equal logits and seeds give equal tokens on every
backend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigurationError, NumericalInstabilityError

_FIRST = 1024  # of the likeliest tokens that are put in order first: a nucleus seldom has more


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    Parameters
    ----------
    temperature : float
        What logits are divided by. 0 chooses the likeliest token, and nothing is drawn.
    top_k : int, optional
        Only the `top_k` likeliest tokens are drawn from, and those as likely as the last of them.
    top_p : float, optional
        Of these, only the likeliest ones whose probabilities together first reach `top_p`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback.models.sampling import Sampling
    >>> Sampling().choose(np.log([0.1, 0.6, 0.3]), 0.9)
    1
    >>> [Sampling(temperature=1.0, top_p=0.8).choose(np.log([0.1, 0.6, 0.3]), x) for x in (0.0, 0.6, 0.7, 0.99)]
    [1, 1, 2, 2]
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise ConfigurationError(
                f"temperature must be 0, for the likeliest token, or a positive number; got {self.temperature!r}."
            )
        if self.top_k is not None and (type(self.top_k) is not int or self.top_k < 1):
            raise ConfigurationError(f"top_k must be an integer from 1 on, or None for all; got {self.top_k!r}.")
        if self.top_p is not None and (not _is_number(self.top_p) or not 0 < self.top_p <= 1):
            raise ConfigurationError(f"top_p must be above 0 and at most 1, or None for all; got {self.top_p!r}.")

    def choose(self, logits: Any, chance: float) -> int:
        """The token that a chance from 0 to 1 falls on, for a NumPy array (vocabulary) of logits."""
        best = int(np.argmax(logits))
        if not np.isfinite(logits[best]):  # the position of a NaN, if there is one
            raise NumericalInstabilityError(
                f"the largest logit of the next token is {logits[best]}: the model's weights or their dtype overflow."
            )
        if self.temperature == 0:
            return best
        tokens, chances = self.likely(logits)
        sums = np.cumsum(chances)
        return int(tokens[min(int(np.searchsorted(sums, chance * sums[-1], side="right")), len(tokens) - 1)])

    def likely(self, logits: Any) -> tuple[Any, Any]:
        """The tokens that are drawn from, in an order of their own, and their probabilities among all `top_k`."""
        scores = np.asarray(logits, np.float64)
        tokens = np.arange(len(scores))
        if self.top_k is not None and self.top_k < len(scores):
            least = np.partition(scores, -self.top_k)[-self.top_k]
            tokens = np.flatnonzero(scores >= least)
            scores = scores[tokens]
        chances = np.exp((scores - scores.max()) / (self.temperature or 1.0))
        chances /= chances.sum()
        if self.top_p is not None and self.top_p < 1:
            nucleus = _nucleus(chances, self.top_p)
            tokens, chances = tokens[nucleus], chances[nucleus]
        return tokens, chances


def _nucleus(chances: Any, top_p: float) -> Any:
    """The positions of the largest chances that together first reach `top_p`, from the largest on."""
    count = _FIRST
    while count < len(chances):
        largest = np.sort(np.argpartition(chances, -count)[-count:])
        if chances[largest].sum() >= top_p:
            break
        count *= 8
    else:
        largest = np.arange(len(chances))
    order = largest[np.argsort(-chances[largest], kind="stable")]
    return order[: 1 + np.searchsorted(np.cumsum(chances[order]), top_p)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
