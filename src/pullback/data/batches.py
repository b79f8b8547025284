"""Batches of a dataset, epoch after epoch, from any point on."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Callable, Iterator

import numpy as np

from .. import random
from ..errors import ConfigurationError, DtypeError, IndexingError, ShapeError
from ..pytorch_names import KeywordsChecked
from ..tensors.tensor import Tensor
from .arrays import ArrayDataset, as_dataset

_KEPT = ("length", "batch_size", "shuffle", "drop_last", "seed")  # what must not change between saving and resuming


class Batches(KeywordsChecked):
    """A dataset in batches, to be gone through by `for` loops, one epoch in each.

    A batch is a tuple with an array for each array of the dataset. The order of an epoch depends on `seed` and the
    number of the epoch alone, and so do the random numbers that a dataset, `collate` and `transform` take from
    `pb.random`. `state_dict` says which batch comes next. A loop left by `break` is gone on with by the next one;
    `restart` begins an epoch anew.

    Parameters
    ----------
    dataset : array, tuple of array or dataset
        An array, or a tuple of arrays, stands for an `ArrayDataset` of them. Any other dataset has `len` and takes
        an integer; one that also has `batch(indices)` is asked for whole batches.
    batch_size : int
        Samples in a batch.
    shuffle : bool
        Whether each epoch has an order of its own.
    seed : int
        It determines these orders.
    drop_last : bool
        Whether a last batch that is smaller is left out.
    prefetch : int
        How many batches a thread makes in advance.
    collate : callable, optional
        It makes a batch of a list of samples; by default array by array.
    transform : callable, optional
        It takes a batch and returns another one.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> batches = pb.data.Batches(pb.data.ArrayDataset(np.arange(5)), batch_size=2, shuffle=True, seed=1)
    >>> len(batches)
    3
    >>> [batch.tolist() for (batch,) in batches]
    [[4, 0], [1, 3], [2]]
    >>> batches.epoch
    1
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        prefetch: int = 0,
        *,
        collate: Callable[[list[Any]], Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        dataset = as_dataset(dataset)
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise ConfigurationError(f"Batches: a dataset has a length and items; {type(dataset).__name__} has not.")
        self.dataset = dataset
        self.batch_size = _count("batch_size", batch_size, 1)
        self.shuffle = bool(shuffle)
        self.seed = _count("seed", seed, 0)
        self.drop_last = bool(drop_last)
        self.prefetch = _count("prefetch", prefetch, 0)
        self.collate = collate
        self.transform = transform
        self.length = len(dataset)
        self.epoch = 0
        self.position = 0  # batches of this epoch that were handed out
        self._order: tuple[int, Any] = (-1, None)
        if not len(self):
            raise ShapeError(
                "Batches: the dataset is empty."
                if not self.length
                else f"Batches: {self.length} samples make no batch of {self.batch_size} with drop_last=True."
            )

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return self.length // self.batch_size if self.drop_last else -(-self.length // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.of_epoch(self.epoch, self.position):
            self.position += 1
            yield batch
        self.epoch, self.position = self.epoch + 1, 0

    def of_epoch(self, epoch: int, position: int = 0) -> Iterator[Any]:
        """The batches of any epoch, from any position in it on; where this object stands does not change.

        >>> import numpy as np, pullback as pb
        >>> batches = pb.data.Batches(np.arange(6), batch_size=2)
        >>> [batch.tolist() for (batch,) in batches.of_epoch(7, position=1)]
        [[2, 3], [4, 5]]
        """
        made = (self._made(epoch, number) for number in range(position, len(self)))
        if not self.prefetch:
            return made
        from .prefetching import prefetched

        return prefetched(made, self.prefetch)

    def indices(self, epoch: int, number: int) -> Any:
        """The samples of a batch: a slice where they follow each other, else an array of integers."""
        if not 0 <= number < len(self):
            raise IndexingError(f"Batches: batch {number} was asked for, an epoch has {len(self)} of them.")
        chosen = slice(number * self.batch_size, min((number + 1) * self.batch_size, self.length))
        if not self.shuffle:
            return chosen
        known, order = self._order
        if known != epoch:
            # A copy, since PyTorch's arrays cannot be indexed by one that is read-only without a warning.
            order = self._generator("order", epoch).permutation(self.length).numpy().copy()
            self._order = epoch, order
        return order[chosen]

    def restart(self, epoch: int = 0) -> None:
        """Go to the beginning of an epoch."""
        self.epoch, self.position = _count("epoch", epoch, 0), 0

    def state_dict(self) -> dict[str, Any]:
        """Which batch comes next, and what it depends on."""
        return {"epoch": self.epoch, "position": self.position, **{name: getattr(self, name) for name in _KEPT}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken by `state_dict`; refused if the batches to come would be others."""
        changed = [name for name in _KEPT if name in state and state[name] != getattr(self, name)]
        if changed:
            raise ConfigurationError(
                "Batches: this is not the data that the state was saved with: "
                + ", ".join(f"{name} was {state[name]!r} and is {getattr(self, name)!r}" for name in changed)
                + ". Use the same data to resume, or start a new run."
            )
        epoch, position = _count("epoch", state["epoch"], 0), _count("position", state["position"], 0)
        if position > len(self):
            raise ConfigurationError(f"Batches: position {position} in an epoch of {len(self)} batches.")
        self.epoch, self.position = epoch, position

    def __repr__(self) -> str:
        return f"Batches({self.dataset!r}, batch_size={self.batch_size}, shuffle={self.shuffle}, seed={self.seed})"

    def _made(self, epoch: int, number: int) -> Any:
        indices = self.indices(epoch, number)
        if self.transform is None and type(self.dataset) is ArrayDataset:
            return self.dataset.batch(indices)
        with random.using(self._generator("contents", epoch, number)):  # whatever thread makes it, and when
            if hasattr(self.dataset, "batch"):
                batch = self.dataset.batch(indices)
            else:
                if isinstance(indices, slice):
                    indices = range(indices.start, indices.stop)
                batch = (self.collate or stacked)([self.dataset[int(index)] for index in indices])
            return batch if self.transform is None else self.transform(batch)

    def _generator(self, *purpose: Any) -> random.Generator:
        """A stream of random numbers for one purpose, unlike that of any other purpose or seed."""
        digest = blake2b(repr((self.seed, *purpose)).encode(), digest_size=8, person=b"batches").digest()
        return random.Generator(int.from_bytes(digest, "little"))


def stacked(samples: list[Any]) -> tuple[Any, ...]:
    """Samples as a batch: their parts, each stacked along a new first axis.

    >>> from pullback.data.batches import stacked
    >>> stacked([(1.0, 2), (3.0, 4)])
    (array([1., 3.], dtype=float32), array([2, 4]))
    """
    if not isinstance(samples[0], (tuple, list)):
        samples = [(sample,) for sample in samples]
    parts = list(zip(*samples))
    if any(len(sample) != len(parts) for sample in samples):
        raise ShapeError(f"samples of a batch have {sorted({len(sample) for sample in samples})} parts.")
    return tuple([_stacked_part(position, part) for position, part in enumerate(parts)])


def _stacked_part(position: int, values: tuple[Any, ...]) -> Any:
    if isinstance(values[0], Tensor):
        from ..functions.manipulation import stack

        return stack(list(values))
    arrays = [np.asarray(value) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ShapeError(
            f"part {position} of the samples of a batch has shapes {' and '.join(map(str, sorted(shapes)))}. "
            "Pass `collate` to say how to put them together."
        )
    batch = np.stack(arrays)
    if batch.dtype.kind == "O":
        raise DtypeError(
            f"part {position} of the samples of a batch is a {type(values[0]).__name__}, expected an array or a "
            "number. Pass `collate` to say how to put them together."
        )
    # Python's floats are float32 here, as everywhere in the library.
    return batch.astype(np.float32) if isinstance(values[0], float) and type(values[0]) is float else batch


def _count(name: str, value: Any, least: int) -> int:
    if not hasattr(value, "__index__") or value.__index__() < least:
        raise ConfigurationError(f"Batches: {name} must be an integer of at least {least}, got {value!r}.")
    return int(value.__index__())
