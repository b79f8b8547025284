"""Datasets held in memory, and parts of datasets."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

import numpy as np

from .. import backends
from ..autodiff.creation import asarray
from ..errors import ConfigurationError, DtypeError, IndexingError, ShapeError
from ..random import Generator
from ..tensors.tensor import Tensor


class ArrayDataset:
    """Arrays, tensors or lists of one length, taken together along their first axis.

    An integer gives one sample, a slice or an array of integers a batch: a tuple with an entry for each array.

    Parameters
    ----------
    *arrays : array
        Arrays, tensors or lists, all as long along the first axis: inputs and targets, say.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> dataset = pb.data.ArrayDataset(np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0]))
    >>> len(dataset)
    3
    >>> dataset[np.array([2, 0])]
    (array([[3.],
           [1.]]), array([0, 0]))
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays:
            raise ConfigurationError("ArrayDataset: no arrays were given. Write `ArrayDataset(inputs, targets)`.")
        self.arrays = tuple(_checked(position, array) for position, array in enumerate(arrays))
        lengths = [array.shape[0] for array in self.arrays]
        if len(set(lengths)) > 1:
            raise ShapeError(
                f"ArrayDataset: arrays of one length were expected, these have {_listed(lengths)} samples "
                f"(shapes {_listed([array.shape for array in self.arrays])})."
            )
        if not lengths[0]:
            raise ShapeError(
                f"ArrayDataset: the arrays have no samples (shapes {_listed([array.shape for array in self.arrays])})."
            )
        self._length = lengths[0]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([array[index] for array in self.arrays])

    def batch(self, indices: Any) -> tuple[Any, ...]:
        """The samples at `indices`, a slice or an array of integers, as a batch."""
        return self[indices]

    def __repr__(self) -> str:
        parts = [f"{array.dtype}{list(array.shape)}" for array in self.arrays]
        return f"ArrayDataset({', '.join(parts)})"


class Subset:
    """Some of the samples of a dataset, in the order of `indices`.

    >>> import pullback as pb
    >>> subset = pb.data.Subset(["zero", "one", "two"], [2, 0])
    >>> len(subset), subset[0]
    (2, 'two')
    """

    def __init__(self, dataset: Any, indices: Any) -> None:
        chosen = np.asarray(indices if not isinstance(indices, Tensor) else indices.numpy())
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise DtypeError(
                f"Subset: indices must be integers along one axis, got {chosen.dtype} of shape {chosen.shape}."
            )
        length = len(dataset)
        outside = chosen[(chosen < -length) | (chosen >= length)]
        if outside.size:
            raise IndexingError(f"Subset: index {outside[0]} is outside a dataset of {length} samples.")
        self.dataset = dataset
        self.indices = np.where(chosen < 0, chosen + length, chosen)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        chosen = self.indices[index]
        return self.dataset[int(chosen) if np.ndim(chosen) == 0 else chosen]

    @property
    def batch(self) -> Callable[[Any], Any]:
        """`batch(indices)` of the dataset, where it has that; otherwise neither has the subset."""
        batch = self.dataset.batch
        return lambda indices: batch(self.indices[indices])

    def __repr__(self) -> str:
        return f"Subset({len(self)} of {self.dataset!r})"


def random_split(dataset: Any, fractions: Sequence[float], seed: int = 0) -> list[Subset]:
    """Parts of a dataset that share no sample, together all of it, drawn at random; equal seeds give equal parts.

    A sample that rounding leaves over goes to the earliest part that lacks most.

    Parameters
    ----------
    dataset : dataset
        Anything with `len` that takes an integer.
    fractions : sequence of float
        The share of each part; together they are 1.
    seed : int
        Equal seeds give equal parts.

    Returns
    -------
    list of Subset
        Datasets themselves.

    Examples
    --------
    >>> import pullback as pb
    >>> training, validation = pb.data.random_split(list("abcdefghij"), [0.8, 0.2], seed=1)
    >>> len(training), len(validation)
    (8, 2)
    """
    if not isinstance(fractions, Iterable):
        raise ConfigurationError(f"random_split: fractions is a list, such as [0.8, 0.2], got {fractions!r:.60}.")
    if isinstance(dataset, tuple):
        dataset = as_dataset(dataset)
    shares = [float(fraction) for fraction in fractions]
    if not shares or any(not share > 0 for share in shares) or abs(sum(shares) - 1.0) > 1e-6:
        raise ConfigurationError(
            f"random_split: fractions must be positive and add up to 1, got {list(fractions)} (sum {sum(shares):g})."
        )
    length = len(dataset)
    sizes = [int(length * share + 1e-9) for share in shares]
    lacking = sorted(range(len(sizes)), key=lambda part: sizes[part] - length * shares[part])
    for part in lacking[: length - sum(sizes)]:
        sizes[part] += 1
    if 0 in sizes:
        raise ConfigurationError(
            f"random_split: {length} samples split into {_listed(sizes)}; a part would be empty. "
            "Give it a larger fraction."
        )
    order = Generator(seed).permutation(length).numpy()
    ends = np.cumsum(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]


def as_dataset(given: Any) -> Any:
    """An array, or a tuple of arrays, as a dataset; everything else is one or is not.

    A tuple always holds arrays. Samples come in a list.
    """
    if isinstance(given, (np.ndarray, Tensor)):
        return ArrayDataset(given)
    return ArrayDataset(*given) if isinstance(given, tuple) else given


def _checked(position: int, array: Any) -> Any:
    """`array` if its samples can be taken; a list, or a table of pandas, becomes an array."""
    if isinstance(array, (list, tuple)):
        values = np.asarray(array)
        array = asarray(array).numpy() if values.dtype == np.float64 else values  # Python's floats are float32 here
    elif hasattr(array, "to_numpy") and not isinstance(array, Tensor):
        array = array.to_numpy()
    if isinstance(array, Tensor):
        if array.requires_grad:
            raise DtypeError(
                f"ArrayDataset: array {position} requires a gradient, which batches would lose. Pass `.detach()` of it."
            )
    elif backends.of(array) is None:
        raise DtypeError(f"ArrayDataset: array {position} is a {type(array).__name__}, expected an array or a tensor.")
    if not array.shape:
        raise ShapeError(f"ArrayDataset: array {position} has shape (), it needs a first axis: that of the samples.")
    return array


def _listed(values: Sequence[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last
