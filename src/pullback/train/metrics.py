"""Metrics: figures over a whole data set that is given batch by batch.

Every metric has a `name`, `update(output, target)`, `compute() -> float` and `reset()`. Outputs and targets are
tensors of any device, or arrays. Sums are kept in float64, and buffers are kept from batch to batch.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

import numpy as np

from ..errors import ConfigurationError, DtypeError, ShapeError
from .metric import Metric, as_array
from .number_metrics import mae, mse, r2

__all__ = ["Metric", "accuracy", "collect", "f1", "mae", "mse", "r2", "top_k_accuracy"]


def __dir__() -> list[str]:
    return __all__


# -- classes ----------------------------------------------------------------------------------------


class _OfClasses(Metric):
    """Metrics of class scores (samples, classes, ...) and class numbers (samples, ...).

    Targets may be one-hot, or probabilities, in the shape of the scores. A single output (samples,) or (samples, 1)
    is a score for class 1, chosen above `threshold`: 0 is right for logits, 0.5 for probabilities. Targets of -100
    are not counted.
    """

    _IGNORED = -100

    def __init__(self, threshold: float = 0.0) -> None:
        self.threshold = float(threshold)
        super().__init__()

    def _scores_and_classes(self, output: Any, target: Any) -> tuple[Any, Any]:
        """Scores as rows and class numbers as a vector; the scores of a single output are one column."""
        scores, classes = as_array(self.name, output), as_array(self.name, target)
        if scores.ndim == 1:
            scores = scores.reshape(-1, 1)
        if scores.ndim < 2 or scores.shape[1] == 0:
            raise ShapeError(
                f"{self.name}: outputs have shape {scores.shape}, expected (samples,) or (samples, classes)."
            )
        count = scores.shape[1]
        if scores.ndim > 2:
            scores = np.moveaxis(scores, 1, -1)
            if count > 1 and classes.ndim == scores.ndim:
                classes = np.moveaxis(classes, 1, -1)
        if classes.shape == scores.shape and count > 1:
            classes = np.argmax(classes, -1, out=self._room("classes", scores.shape[:-1], np.intp))
        elif classes.shape not in (scores.shape[:-1], scores.shape if count == 1 else None):
            raise ShapeError(
                f"{self.name}: targets have shape {classes.shape}, expected {scores.shape[:-1]} (class numbers), or "
                "one-hot ones in the shape of the outputs. Classes are along axis 1 of the outputs."
            )
        elif classes.dtype.kind not in "iub" and count > 1:
            raise DtypeError(f"{self.name}: class numbers must be integers, got {classes.dtype.name}.")
        return scores.reshape(-1, count), classes.reshape(-1)

    def _chosen(self, scores: Any) -> Any:
        """The class of each row."""
        chosen = self._room("chosen", (len(scores),), np.intp)
        if scores.shape[1] == 1:
            above = self._room("above", (len(scores),), np.bool_)
            np.greater(scores[:, 0], self.threshold, out=above)
            np.copyto(chosen, above)
        else:
            np.argmax(scores, -1, out=chosen)
        return chosen

    def _checked(self, scores: Any, classes: Any) -> tuple[Any, Any, int]:
        """Class numbers as integers, which of them count (None: all), and the number of classes."""
        limit = max(scores.shape[1], 2)
        wanted = self._room("wanted", classes.shape, np.intp)
        if classes.dtype.kind == "f":  # of a single output: 0.9 is class 1, and not the 0 that a cast gives
            if not np.isfinite(classes).all():
                raise ShapeError(f"{self.name}: targets must be finite, got {classes[~np.isfinite(classes)][0]}.")
            classes = np.rint(classes, out=self._room("rounded", classes.shape, classes.dtype))
        np.copyto(wanted, classes, casting="unsafe")
        if not len(wanted):
            return wanted, None, limit
        lowest, highest = int(np.minimum.reduce(wanted)), int(np.maximum.reduce(wanted))
        counts = None
        if lowest == self._IGNORED:
            counts = np.not_equal(wanted, self._IGNORED, out=self._room("counts", wanted.shape, np.bool_))
            lowest = int(np.minimum.reduce(wanted, where=counts, initial=limit))
        if lowest < 0 or highest >= limit:
            raise ShapeError(f"{self.name}: targets from {lowest} to {highest} for {limit} classes.")
        return wanted, counts, limit


class accuracy(_OfClasses):
    """The part of the samples whose class is the one with the highest score.

    >>> import numpy as np
    >>> from pullback.train import metrics
    >>> metric = metrics.accuracy()
    >>> metric.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    >>> metric.compute()
    0.5
    """

    name = "accuracy"

    def reset(self) -> None:
        self._right = self._count = 0

    def update(self, output: Any, target: Any) -> None:
        scores, classes = self._scores_and_classes(output, target)
        wanted, counts, _ = self._checked(scores, classes)
        right = np.equal(self._chosen(scores), wanted, out=self._room("right", wanted.shape, np.bool_))
        self._right += int(np.count_nonzero(right))  # an ignored target is no class, so never the one chosen
        self._count += len(wanted) if counts is None else int(np.count_nonzero(counts))

    def compute(self) -> float:
        return self._right / self._counted(self._count)


class top_k_accuracy(_OfClasses):
    """The part of the samples whose class is among the `k` with the highest scores.

    >>> import numpy as np
    >>> from pullback.train import metrics
    >>> metric = metrics.top_k_accuracy(2)
    >>> metric.update(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([1, 2]))
    >>> metric.name, metric.compute()
    ('top_2_accuracy', 0.5)
    """

    def __init__(self, k: int = 5) -> None:
        if not (isinstance(k, (int, np.integer)) and k >= 1):
            raise ConfigurationError(f"top_k_accuracy: k must be a positive integer, got {k!r}.")
        self.k = int(k)
        self.name = f"top_{self.k}_accuracy"
        super().__init__()

    def reset(self) -> None:
        self._right = self._count = 0

    def update(self, output: Any, target: Any) -> None:
        scores, classes = self._scores_and_classes(output, target)
        if scores.shape[1] == 1:
            raise ShapeError(f"{self.name}: a single output has no {self.k} classes. Use `accuracy`.")
        wanted, counts, limit = self._checked(scores, classes)
        shape = scores.shape
        if counts is not None:
            np.copyto(wanted, 0, where=np.logical_not(counts))
        own = np.take_along_axis(scores, wanted[:, None], 1)
        # Arrays of one shape throughout: for two shapes NumPy would allocate a buffer.
        limits, classes = self._room("limits", shape, scores.dtype), self._room("class", shape, np.intp)
        np.copyto(limits, own)
        np.copyto(classes, wanted[:, None])
        position = self._room("position", shape, np.intp)
        np.copyto(position, self._counting(limit))
        # Of equal scores the first class comes first, as with `argmax`.
        before = np.less(position, classes, out=self._room("before", shape, np.bool_))
        equal = np.equal(scores, limits, out=self._room("equal", shape, np.bool_))
        np.logical_and(before, equal, out=before)
        np.logical_or(before, np.greater(scores, limits, out=equal), out=before)
        np.copyto(position, before)
        ranks = np.add.reduce(position, 1, out=self._room("ranks", shape[:1], np.intp))
        right = np.less(ranks, self.k, out=self._room("right", shape[:1], np.bool_))
        np.logical_and(right, np.equal(own, own)[:, 0], out=right)  # NaN is not among the highest
        if counts is not None:
            np.logical_and(right, counts, out=right)
        self._right += int(np.count_nonzero(right))
        self._count += len(wanted) if counts is None else int(np.count_nonzero(counts))

    def _counting(self, limit: int) -> Any:
        counting = self._rooms.get("counting")
        if counting is None or len(counting) != limit:
            counting = self._rooms["counting"] = np.arange(limit)
        return counting

    def compute(self) -> float:
        return self._right / self._counted(self._count)


class f1(_OfClasses):
    """The harmonic mean of precision and recall: of class 1 for a single output, else the mean over the classes.

    Classes that were neither asked for nor chosen are left out of the mean, as scikit-learn's "macro" has it.

    >>> import numpy as np
    >>> from pullback.train import metrics
    >>> metric = metrics.f1()
    >>> metric.update(np.array([3.0, -1.0, 2.0]), np.array([1, 1, 0]))
    >>> metric.compute()
    0.5
    """

    name = "f1"

    def reset(self) -> None:
        self._counts: Any = None  # rows: chosen rightly, chosen, asked for
        self._is_single = False

    def update(self, output: Any, target: Any) -> None:
        scores, classes = self._scores_and_classes(output, target)
        wanted, counts, limit = self._checked(scores, classes)
        if self._counts is None:
            self._counts, self._is_single = np.zeros((3, limit), np.int64), scores.shape[1] == 1
        elif self._counts.shape[1] != limit:
            raise ShapeError(f"f1: outputs for {limit} classes after some for {self._counts.shape[1]}.")
        chosen = self._chosen(scores)
        if counts is not None:  # a class of their own, beyond the others, is not counted
            ignored = np.logical_not(counts)
            np.copyto(chosen, limit, where=ignored)
            np.copyto(wanted, limit, where=ignored)
        right = np.equal(chosen, wanted, out=self._room("right", wanted.shape, np.bool_))
        both = self._room("both", wanted.shape, np.intp)
        both.fill(limit)
        np.copyto(both, wanted, where=right)
        for row, numbers in zip(self._counts, (both, chosen, wanted)):
            row += np.bincount(numbers, minlength=limit + 1)[:limit]

    def compute(self) -> float:
        counts = self._counts
        self._counted(0 if counts is None else int(counts[2].sum()))
        right, asked = counts[0], counts[1] + counts[2]
        if self._is_single:
            return 2 * int(right[1]) / int(asked[1]) if asked[1] else 0.0
        present = asked > 0
        return float(np.mean(2 * right[present] / asked[present]))


# -- choosing ---------------------------------------------------------------------------------------

_BY_NAME: dict[str, type[Metric]] = {
    "accuracy": accuracy, "top_k_accuracy": top_k_accuracy, "mse": mse, "mae": mae, "r2": r2, "f1": f1,
}  # fmt: skip

Wanted = str | Metric | type[Metric]


def collect(metrics: Wanted | Iterable[Wanted] | Mapping[str, Wanted] | None) -> dict[str, Metric]:
    """Metrics by name, from names, metrics, or several of them; reset.

    >>> from pullback.train import metrics
    >>> list(metrics.collect(["accuracy", metrics.top_k_accuracy(3)]))
    ['accuracy', 'top_3_accuracy']
    """
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        found = [(name, _made(wanted)) for name, wanted in metrics.items()]
    else:
        several = [metrics] if isinstance(metrics, (str, type)) or hasattr(metrics, "compute") else metrics
        if not isinstance(several, Iterable):
            raise ConfigurationError(f"expected names or metrics, got {type(metrics).__name__}: {metrics!r:.60}")
        found = [(_name(metric), metric) for metric in map(_made, several)]
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"two metrics are called {name!r}. Pass them as a dictionary with other names.")
    for _, metric in found:
        metric.reset()
    return dict(found)


def _name(metric: Any) -> str:
    name = getattr(metric, "name", None)
    if not isinstance(name, str):
        kind = type(metric).__name__
        raise ConfigurationError(f'the metric {kind} has no name. Write `metrics={{"name": {kind}()}}`.')
    return name


def _made(wanted: Any) -> Metric:
    if isinstance(wanted, str):
        if wanted not in _BY_NAME:
            raise ConfigurationError(f"there is no metric {wanted!r}; there are {', '.join(sorted(_BY_NAME))}.")
        wanted = _BY_NAME[wanted]
    metric = wanted() if isinstance(wanted, type) else wanted
    if not all(callable(getattr(metric, method, None)) for method in ("update", "compute", "reset")):
        raise ConfigurationError(f"a metric has update, compute and reset; got {type(metric).__name__}.")
    return metric
