"""Metrics of outputs that are numbers: how far they are from the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .metric import Metric, as_array


class _OfNumbers(Metric):
    """Metrics of outputs and targets of one shape."""

    def _pair(self, output: Any, target: Any) -> tuple[Any, Any]:
        """Both in float64, in memory of our own. A column of outputs may have a vector of targets."""
        values, wanted = as_array(self.name, output), as_array(self.name, target)
        shapes = ((*wanted.shape, 1), wanted.shape[:-1], wanted.shape)
        if values.shape not in shapes or values.size != wanted.size:
            raise ShapeError(
                f"{self.name}: outputs have shape {values.shape}, targets {wanted.shape}: they must be equal."
            )
        shape = (len(values), -1) if values.ndim > 1 and len(values) else (-1, 1)
        first, second = values.reshape(shape), wanted.reshape(shape)
        ours = self._room("output", first.shape, np.float64), self._room("target", second.shape, np.float64)
        np.copyto(ours[0], first)
        np.copyto(ours[1], second, casting="unsafe")
        return ours


class mse(_OfNumbers):
    """The mean of the squares of the differences, over all elements.

    >>> from pullback.train import metrics
    >>> import numpy as np
    >>> metric = metrics.mse()
    >>> metric.update(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]))
    >>> metric.compute()
    2.0
    """

    name = "mse"

    def reset(self) -> None:
        self._total, self._count = 0.0, 0

    def update(self, output: Any, target: Any) -> None:
        values, wanted = self._pair(output, target)
        values -= wanted
        self._total += self._sum(values.reshape(-1))
        self._count += values.size

    def _sum(self, differences: Any) -> float:
        return float(np.dot(differences, differences))

    def compute(self) -> float:
        return self._total / self._counted(self._count)


class mae(mse):
    """The mean of the sizes of the differences, over all elements.

    >>> from pullback.train import metrics
    >>> import numpy as np
    >>> metric = metrics.mae()
    >>> metric.update(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]))
    >>> metric.compute()
    1.0
    """

    name = "mae"

    def _sum(self, differences: Any) -> float:
        return float(np.add.reduce(np.abs(differences, out=differences)))


class r2(_OfNumbers):
    """The part of the targets' variance that the outputs explain; of several outputs, the mean.

    1 is perfect, 0 as good as the targets' mean. For a constant target it is 1 if the outputs are right and 0 if not.

    >>> from pullback.train import metrics
    >>> import numpy as np
    >>> metric = metrics.r2()
    >>> metric.update(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    >>> metric.compute()
    0.5
    """

    name = "r2"

    def reset(self) -> None:
        self._count = 0
        self._mean: Any = None  # of the targets, and the sums of squares around it and of the differences
        self._spread: Any = None
        self._residual: Any = None

    def update(self, output: Any, target: Any) -> None:
        values, wanted = self._pair(output, target)
        count, columns = wanted.shape
        if not count:
            return
        if self._mean is None:
            self._mean, self._spread, self._residual = np.zeros((3, columns))
        elif len(self._mean) != columns:
            raise ShapeError(f"r2: {columns} outputs after batches of {len(self._mean)}.")
        values -= wanted
        np.multiply(values, values, out=values)
        self._residual += np.add.reduce(values, 0)
        mean = np.add.reduce(wanted, 0) / count
        np.copyto(values, mean)  # a difference of two shapes would allocate a buffer
        wanted -= values
        np.multiply(wanted, wanted, out=wanted)
        # Chan's formula: the squares around the joint mean, without the cancellation of a difference of sums.
        total = self._count + count
        step = mean - self._mean
        self._spread += np.add.reduce(wanted, 0) + step * step * (self._count * count / total)
        self._mean += step * (count / total)
        self._count = total

    def compute(self) -> float:
        self._counted(self._count)
        constant = self._spread == 0
        explained = 1.0 - self._residual / np.where(constant, 1.0, self._spread)
        return float(np.mean(np.where(constant, self._residual == 0, explained)))
