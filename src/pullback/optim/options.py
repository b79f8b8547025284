"""The options of optimizers: which there are, and in what range."""

from __future__ import annotations

from math import inf, isfinite, nextafter
from typing import Any, Mapping

from ..errors import ConfigurationError

_BELOW_ONE = nextafter(1.0, 0.0)
#: The smallest and largest value of an option, whichever optimizer has it; of each entry where it is several.
_RANGES = {
    "lr": (0.0, inf),
    "weight_decay": (0.0, inf),
    "momentum": (0.0, inf),
    "dampening": (-inf, inf),
    "betas": (0.0, _BELOW_ONE),
    "alpha": (0.0, inf),
    "eps": (0.0, inf),
    "lr_decay": (0.0, inf),
    "momentum_decay": (0.0, inf),
    "initial_accumulator_value": (0.0, inf),
    "beta2_decay": (-inf, 0.0),
    "d": (1.0, inf),
    "ns_steps": (1, 99),
    "max_iter": (1, inf),
    "max_eval": (1, inf),
    "tolerance_grad": (0.0, inf),
    "tolerance_change": (0.0, inf),
    "history_size": (1, inf),
}
_COUNTS = {"betas": 2, "ns_coefficients": 3}
_PER_GROUP = ("param_names", "initial_lr", "name")  # what a group may have beside an optimizer's options


def check_options(caller: str, known: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the optimizer does not have, and values out of range."""
    for name, value in options.items():
        if name not in known:
            if name in _PER_GROUP:
                continue
            raise ConfigurationError(f"{caller}: no option {name!r}; the options are {', '.join(known)}.")
        count = _COUNTS.get(name) or (len(known[name]) if isinstance(known[name], tuple) else None)
        if count and (not isinstance(value, (tuple, list)) or len(value) != count):
            raise ConfigurationError(f"{caller}: {name} must be {count} numbers, got {value!r}.")
        if name not in _RANGES:
            continue
        low, high = _RANGES[name]
        for number in value if count else (value,):
            if number is None and count and None in known[name]:  # chosen by the optimizer
                continue
            try:
                right = low <= number <= high and isfinite(number)
            except TypeError:
                raise ConfigurationError(f"{caller}: {name} must be a number, got {number!r:.60}") from None
            if not right:
                raise ConfigurationError(f"{caller}: {name} is {number!r}; it must be {_spoken(low, high)}.")


def _spoken(low: float, high: float) -> str:
    parts = [f"at least {low:g}"] if low > -inf else []
    if high == _BELOW_ONE:
        parts.append("below 1")
    elif high < inf:
        parts.append(f"at most {high:g}")
    return " and ".join([*parts, "finite"] if high == inf else parts)
