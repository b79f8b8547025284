"""Saying where a NaN came from: which step, which batch, and, if it was in the data, which sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import NumericalInstabilityError
from ..files.tensors import as_numpy


def located(error: Exception, place: str, batch: tuple[Any, ...], indices: Any = None) -> NumericalInstabilityError:
    """An error with its place in the run in front, and what is wrong with the data, if anything, behind.

    `indices` are those of the batch's samples in the dataset, if they are known.

    >>> import numpy as np
    >>> from pullback.train.locating import located
    >>> inputs = np.array([[1.0, 2.0], [3.0, np.inf]])
    >>> print(located(ValueError("the loss is nan"), "step 4, epoch 1, batch 4", (inputs, [0, 1]), slice(6, 8)))
    step 4, epoch 1, batch 4: the loss is nan. The data is to blame: array 0 of the batch, shape (2, 2), has inf in
    sample 1 (sample 7 of the dataset), at (1, 1).
    """
    found = _first_bad_value(batch)
    if found is None:
        data = "The batch's data is finite."
    else:
        position, array, where = found
        sample = ""
        if where:
            number = where[0]
            known = "" if indices is None else f" (sample {_in_dataset(indices, number)} of the dataset)"
            sample = f" in sample {number}{known}, at {where}"
        data = (
            f"The data is to blame: array {position} of the batch, shape {array.shape}, has {array[where]!s}{sample}."
        )
    return NumericalInstabilityError(f"{place}: {str(error).rstrip('.')}. {data}")


def _first_bad_value(batch: tuple[Any, ...]) -> tuple[int, Any, tuple[int, ...]] | None:
    """The array of the batch with a value that is not finite, its place among them, and where the value is."""
    for position, part in enumerate(batch):
        array = as_numpy("", part) if hasattr(part, "shape") else np.asarray(part)
        if array.dtype.kind in "fcV":  # V: the half precision of other libraries
            bad = ~np.isfinite(array.astype(np.float32) if array.dtype.kind == "V" else array)
            if bad.any():
                return position, array, tuple([int(i) for i in np.argwhere(bad)[0]])
    return None


def _in_dataset(indices: Any, number: int) -> int:
    return int(indices.start + number if isinstance(indices, slice) else indices[number])
