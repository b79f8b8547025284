"""Schedules of the learning rate: functions from the number of steps taken to a factor on the base rate.

>>> from pullback.optim import schedules
>>> schedule = schedules.Cosine(total=100, warmup=10)
>>> [round(schedule(step), 3) for step in (0, 9, 10, 55, 100)]
[0.091, 0.909, 1.0, 0.5, 0.0]

They hold no state but for `Plateau`; compare, print and save as what they were made from. Each can begin with a
`warmup`: its factor then rises linearly for so many steps, and the rest of the schedule follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, inf, pi
from typing import TYPE_CHECKING, Any, Mapping

from ..errors import ConfigurationError
from ..pytorch_names import ScheduleChecked, missing

__all__ = ["Constant", "Cosine", "Exponential", "Linear", "OneCycle", "Plateau", "Schedule", "Step"]

if not TYPE_CHECKING:  # type checkers know the names without it

    def __getattr__(name: str) -> object:
        raise missing(__name__, name)


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True, kw_only=True)
class Schedule(ScheduleChecked):
    """The base of all schedules: a subclass gives `factor(step)`, counted from the end of the `warmup`.

    >>> from dataclasses import dataclass
    >>> from pullback.optim import schedules
    >>> @dataclass(frozen=True)
    ... class Inverse(schedules.Schedule):
    ...     def factor(self, step):
    ...         return 1 / (1 + step)
    >>> [Inverse(warmup=1)(step) for step in range(4)]
    [0.5, 1.0, 0.5, 0.3333333333333333]
    """

    warmup: int = 0

    def __post_init__(self) -> None:
        self._require(self.warmup >= 0, "warmup", "not be negative")

    def __call__(self, step: int) -> float:
        """The factor on the base learning rate after `step` steps."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        return self.factor(step - self.warmup)

    def factor(self, step: int) -> float:
        """The factor `step` steps after the warm-up."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """What the factor depends on beside the step, fit for JSON: nothing, but for a `Plateau`."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go back to `state_dict`, what the method of this name gave."""
        if state_dict:
            raise ConfigurationError(f"{type(self).__name__}: has no state, got {sorted(state_dict)}.")

    def _require(self, right: bool, name: str, how: str) -> None:
        if not right:
            raise ConfigurationError(f"{type(self).__name__}: {name} is {getattr(self, name)!r}; it must {how}.")


@dataclass(frozen=True)
class Constant(Schedule):
    """The base rate all the time (after the warm-up).

    Parameters
    ----------
    warmup : int
        The steps in which the rate rises to what it is then.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> schedules.Constant()(1000)
    1.0
    """

    def factor(self, step: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear(Schedule):
    """From factor `start` to factor `end` in a line, reached after `total` steps, warm-up included; then `end`.

    PyTorch's LinearLR with total_iters=total, start_factor=start, end_factor=end.

    Parameters
    ----------
    total : int
        The number of steps, warm-up included.
    start : float
        The factor at the beginning.
    end : float
        The factor at the end.
    warmup : int
        The steps in which the rate rises to the base rate.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> [schedules.Linear(total=4, start=1.0, end=0.0)(step) for step in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    total: int
    start: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.total > self.warmup, "total", "be more than the warm-up")

    def factor(self, step: int) -> float:
        return self.start + (self.end - self.start) * min(1.0, step / (self.total - self.warmup))


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine wave from 1 to `minimum`, reached after `total` steps, warm-up included; then `minimum`.

    PyTorch's CosineAnnealingLR with T_max=total and eta_min=minimum * base rate (which rises again after T_max).

    Parameters
    ----------
    total : int
        The number of steps, warm-up included.
    minimum : float
        The factor at the end.
    warmup : int
        The steps in which the rate rises to the base rate.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> [round(schedules.Cosine(total=4, minimum=0.1)(step), 3) for step in range(6)]
    [1.0, 0.868, 0.55, 0.232, 0.1, 0.1]
    """

    total: int
    minimum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.total > self.warmup, "total", "be more than the warm-up")

    def factor(self, step: int) -> float:
        done = min(1.0, step / (self.total - self.warmup))
        return self.minimum + (1.0 - self.minimum) * 0.5 * (1.0 + cos(pi * done))


@dataclass(frozen=True)
class Step(Schedule):
    """Times `gamma` after every `every` steps: PyTorch's StepLR.

    Parameters
    ----------
    every : int
        How many steps the rate stays the same.
    gamma : float
        What it is multiplied by then.
    warmup : int
        The steps in which the rate rises to the base rate.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> [schedules.Step(every=2, gamma=0.5)(step) for step in range(6)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    every: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.every > 0, "every", "be positive")

    def factor(self, step: int) -> float:
        return self.gamma ** (step // self.every)


@dataclass(frozen=True)
class Exponential(Schedule):
    """Times `gamma` after every step: PyTorch's ExponentialLR.

    Parameters
    ----------
    gamma : float
        The factor of one step.
    warmup : int
        The steps in which the rate rises to the base rate.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> [schedules.Exponential(gamma=0.5)(step) for step in range(4)]
    [1.0, 0.5, 0.25, 0.125]
    """

    gamma: float

    def factor(self, step: int) -> float:
        return self.gamma**step


@dataclass(frozen=True)
class OneCycle(Schedule):
    """Up from 1 / `initial` to 1 in the first `rise` of `total` steps, then down to 1 / (`initial` * `final`).

    PyTorch's OneCycleLR with max_lr the base rate, total_steps=total, pct_start=rise, div_factor=initial,
    final_div_factor=final; momentum is left alone.

    Parameters
    ----------
    total : int
        The number of steps, warm-up included.
    rise : float
        The share of them in which the rate rises.
    initial : float
        What the base rate is divided by at the beginning.
    final : float
        What the rate at the beginning is divided by at the end.
    linear : bool
        Whether both ways are lines, not half cosine waves.
    warmup : int
        The steps in which the rate rises to the base rate.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> [round(schedules.OneCycle(total=5, rise=0.4)(step), 3) for step in range(5)]
    [0.04, 1.0, 0.75, 0.25, 0.0]
    """

    total: int
    rise: float = 0.3
    initial: float = 25.0
    final: float = 1e4
    linear: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.total > self.warmup, "total", "be more than the warm-up")
        self._require(0.0 <= self.rise <= 1.0, "rise", "lie between 0 and 1")
        self._require(self.initial > 0, "initial", "be positive")
        self._require(self.final > 0, "final", "be positive")

    def factor(self, step: int) -> float:
        last = self.total - self.warmup - 1.0
        top = self.rise * (last + 1.0) - 1.0  # where the rate is highest; it need not be a whole number
        if step <= top or top >= last:
            return self._between(1.0 / self.initial, 1.0, step / top if top > 0 else 1.0)
        return self._between(1.0, 1.0 / self.initial / self.final, min(1.0, (step - top) / (last - top)))

    def _between(self, start: float, end: float, done: float) -> float:
        if self.linear:
            return start + (end - start) * done
        return end + (start - end) / 2.0 * (1.0 + cos(pi * done))


@dataclass(frozen=True)
class Plateau(Schedule):
    """Times `decay` whenever `observe` has seen no better metric for more than `patience` times.

    PyTorch's ReduceLROnPlateau with the same defaults; `decay` is its factor, and `minimum` (its min_lr) a factor on
    the base rate.

    Parameters
    ----------
    mode : str
        "min" where smaller is better, "max" where larger is.
    decay : float
        What the factor is multiplied by.
    patience : int
        How many metrics in a row may be no better.
    threshold : float
        By how much a metric must be better than the best one.
    threshold_mode : str
        Whether `threshold` is relative ("rel") or absolute ("abs").
    cooldown : int
        How many metrics are not counted after a decay.
    minimum : float
        The smallest factor.
    eps : float
        A smaller change of the factor is not made.
    warmup : int
        The steps in which the rate rises to the base rate.

    Examples
    --------
    >>> from pullback.optim import schedules
    >>> schedule = schedules.Plateau(patience=1, decay=0.5)
    >>> for loss in (1.0, 0.8, 0.9, 0.9, 0.9):
    ...     schedule.observe(loss)
    >>> schedule(5)
    0.5
    """

    mode: str = "min"
    decay: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: str = "rel"
    cooldown: int = 0
    minimum: float = 0.0
    eps: float = 1e-8  # smaller changes are not made
    _progress: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.mode in ("min", "max"), "mode", 'be "min" or "max"')
        self._require(self.threshold_mode in ("rel", "abs"), "threshold_mode", 'be "rel" or "abs"')
        self._require(0.0 <= self.decay < 1.0, "decay", "be below 1")
        self._progress.update(factor=1.0, best=None, waited=0, cooling=0)

    def observe(self, metric: Any) -> None:
        """Take note of a validation metric, a number."""
        value, progress = float(metric), self._progress
        if self._is_better(value, progress["best"]):
            progress.update(best=value, waited=0)
        else:
            progress["waited"] += 1
        if progress["cooling"]:
            progress["cooling"] -= 1
            progress["waited"] = 0
        if progress["waited"] > self.patience:
            lower = max(progress["factor"] * self.decay, self.minimum)
            if progress["factor"] - lower > self.eps:
                progress["factor"] = lower
            progress.update(waited=0, cooling=self.cooldown)

    def _is_better(self, value: float, best: float | None) -> bool:
        if best is None:
            return value < inf if self.mode == "min" else value > -inf
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1.0)
        return value < best - margin if self.mode == "min" else value > best + margin

    def factor(self, step: int) -> float:
        return self._progress["factor"]

    def state_dict(self) -> dict[str, Any]:
        return dict(self._progress)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        if set(state_dict) != set(self._progress):
            raise ConfigurationError(f"Plateau: the state has {sorted(state_dict)}, not {sorted(self._progress)}.")
        for name, value in state_dict.items():
            if not (isinstance(value, (int, float)) or (name == "best" and value is None)):
                raise ConfigurationError(f"Plateau: {name} must be a number, got {value!r:.40}.")
        self._progress.update(state_dict)
