"""A model's loss and metrics over a whole data set."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterable, Iterator, Mapping

import numpy as np

from .. import random
from ..data.batches import Batches
from ..errors import ConfigurationError, NumericalInstabilityError
from ..modes import no_grad
from .locating import located
from .updating import Updater
from .weighing import total_of


def evaluated(
    updater: Updater, data: Iterable[Any], metrics: Mapping[str, Any], seed: int, place: str
) -> dict[str, float]:
    """The mean loss and the metrics by name. The data's position, the model's mode and the random numbers stay.

    `place` is what errors call it.
    """
    for metric in metrics.values():
        metric.reset()
    total = weights = 0.0
    quiet = np.errstate(all="ignore")  # the losses are looked at below
    with evaluating(updater.model), no_grad(), random.using(seed), updater.averaged(), quiet:
        # Always the same order, so that sums are rounded equally each time.
        for number, batch in enumerate(data.of_epoch(0) if hasattr(data, "of_epoch") else data):
            batch = updater.prepared(batch)
            output, *result = updater.computed(batch)
            try:
                total += total_of(*result)
            except NumericalInstabilityError as error:
                indices = data.indices(0, number) if isinstance(data, Batches) else None
                raise located(error, f"{place}, batch {number + 1}", batch, indices) from error
            weights += result[1]
            for metric in metrics.values():
                metric.update(output, batch[-1])
    if not weights:
        raise ConfigurationError(f"{place}: there were no batches. Is the data a generator that was used up?")
    return {"loss": total / weights, **{name: float(metric.compute()) for name, metric in metrics.items()}}


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside, the model is in evaluation mode; afterwards each of its modules is in the mode it was in."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode
