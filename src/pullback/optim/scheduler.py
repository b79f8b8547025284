"""The learning rates of an optimizer, set by a schedule."""

from __future__ import annotations

import math
from typing import Any, Mapping

from ..errors import ConfigurationError
from ..pytorch_names import KeywordsChecked
from .optimizer import Optimizer
from .schedules import Plateau, Schedule

__all__ = ["Scheduler"]


class Scheduler(KeywordsChecked):
    """Sets the rates of all groups to their own base rate times the schedule's factor; call `step` after each step.

    The base rate is the "lr" that a group has when it is first seen, kept in the group as "initial_lr".

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates to set.
    schedule : Schedule or callable
        One of `pb.optim.schedules`, or any function from the number of steps to a factor.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0], requires_grad=True)
    >>> optimizer = pb.optim.SGD([w], lr=0.1)
    >>> scheduler = pb.optim.Scheduler(optimizer, pb.optim.schedules.Exponential(gamma=0.5))
    >>> scheduler.step()
    >>> scheduler.last_lr, optimizer.param_groups[0]["lr"]
    ([0.05], 0.05)
    """

    def __init__(self, optimizer: Optimizer, schedule: Schedule | Any) -> None:
        if not hasattr(optimizer, "param_groups"):
            raise ConfigurationError(
                f"Scheduler: the first argument is an optimizer of pb.optim, got {type(optimizer).__name__}."
            )
        if not callable(schedule):
            raise ConfigurationError(
                f"Scheduler: a schedule is one of pb.optim.schedules or a function, got {type(schedule).__name__}."
            )
        self.optimizer = optimizer
        self.schedule = schedule
        self.steps = 0  # taken so far
        self._set_rates()

    @property
    def last_lr(self) -> list[float]:
        """The learning rates of the groups as they are now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The same as `last_lr`, by PyTorch's name."""
        return self.last_lr

    def step(self, metric: Any = None) -> None:
        """Count a step and set the rates for the next one; a `Plateau` is shown `metric` if there is one.

        A `Plateau` lowers the rate by what it has observed: give it the metric whenever there is a new one.
        """
        if metric is not None:
            if not isinstance(self.schedule, Plateau):
                name = type(self.schedule).__name__
                raise ConfigurationError(f"Scheduler.step: {name} depends on no metric. Call `step()`.")
            self.schedule.observe(metric)
        self.steps += 1
        self._set_rates()

    def state_dict(self) -> dict[str, Any]:
        """The steps so far, the base rates, and the schedule's state, fit for JSON."""
        base = [group["initial_lr"] for group in self.optimizer.param_groups]
        state = self.schedule.state_dict() if isinstance(self.schedule, Schedule) else {}
        return {"steps": self.steps, "base_lrs": base, "schedule": state}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from `state_dict`, what the method of this name gave: the rates are what they were then."""
        groups = self.optimizer.param_groups
        if set(state_dict) != {"steps", "base_lrs", "schedule"}:
            raise ConfigurationError(f"Scheduler: the state has {sorted(state_dict)}, not base_lrs, schedule, steps.")
        if len(state_dict["base_lrs"]) != len(groups):
            raise ConfigurationError(
                f"Scheduler: the state is of {len(state_dict['base_lrs'])} groups, the optimizer has {len(groups)}."
            )
        for rate in state_dict["base_lrs"]:
            if not (isinstance(rate, (int, float)) and 0 <= rate < math.inf):
                raise ConfigurationError(f"Scheduler: the base rate {rate!r:.40} is no learning rate.")
        if isinstance(self.schedule, Schedule):
            self.schedule.load_state_dict(state_dict["schedule"])
        self.steps = int(state_dict["steps"])
        for group, rate in zip(groups, state_dict["base_lrs"]):
            group["initial_lr"] = rate
        self._set_rates()

    def _set_rates(self) -> None:
        factor = self.schedule(self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor
