"""Batches of rows of tokens, epoch after epoch, from any point on."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from ..data.batches import Batches
from ..errors import ConfigurationError
from ..train.arguments import check_count
from ..train.figures import count
from .description import fingerprint
from .packing import NO_SEGMENT, TokenBatch, fitted, laid_out
from .samples import Sample

# What must not change between saving and resuming, and what to call it.
_KEPT = {
    "fingerprint": "the samples",
    "batch_size": "batch_size",
    "length": "length",
    "pack": "pack",
    "shuffle": "shuffle",
    "seed": "seed",
}


class PackedBatches:
    """Samples as batches of `batch_size` rows of `length` tokens; with `pack`, a row holds as many as fit in it.

    Samples of a row do not see each other (see `pb.models.LanguageModel` about segments), so what is learnt does not
    depend on `pack`, only the time it takes. All batches have one shape: the last one of an epoch may have rows without
    a sample, in which nothing has a loss. As with `pb.data.Batches` one pass of a `for` loop is (the rest of) one
    epoch, and `state_dict` says which batch comes next.

    With `shuffle`, each epoch has the rows in another order, and in their places other samples of the same lengths;
    both depend on `seed` and the number of the epoch alone.

    Parameters
    ----------
    samples : list of Sample
        Of at most `length` tokens each, some of which have a loss.
    batch_size, length : int
        The shape of a batch.
    pack : bool
        Whether rows hold several samples.
    shuffle : bool
    seed : int
    padding : int
        The token that fills rows up; it changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback.finetune import PackedBatches, Sample
    >>> samples = [Sample(np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32), "") for n in (3, 5, 2, 4)]
    >>> batches = PackedBatches(samples, batch_size=2, length=8)
    >>> len(batches), batches.rows, batches.fill_rate
    (1, 2, 0.875)
    >>> [batch.counts.sum() for batch in batches]
    [np.int64(10)]
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        batch_size: int,
        length: int,
        *,
        pack: bool = True,
        shuffle: bool = True,
        seed: int = 0,
        padding: int = 0,
    ) -> None:
        check_count("PackedBatches", "batch_size", batch_size, 1)
        check_count("PackedBatches", "length", length, 2)
        check_count("PackedBatches", "seed", seed, 0)
        check_count("PackedBatches", "padding", padding, 0)
        self.samples = list(samples)
        if not self.samples:
            raise ConfigurationError("PackedBatches: no samples were given.")
        longest = max(self.samples, key=lambda sample: len(sample.tokens))
        if len(longest.tokens) > length:
            raise ConfigurationError(
                f"PackedBatches: {longest.place} has {len(longest.tokens)} tokens, a row {length}. "
                "Make samples of that length with `make_samples`."
            )
        empty = next((sample.place for sample in self.samples if not sample.loss_tokens), None)
        if empty is not None:
            raise ConfigurationError(f"PackedBatches: no token of {empty} has a loss; a batch of such has no mean.")
        self.batch_size, self.length, self.pack = int(batch_size), int(length), bool(pack)
        self.shuffle, self.seed, self.padding = bool(shuffle), int(seed), int(padding)
        self._lengths = np.array([len(sample.tokens) for sample in self.samples])
        # Of each row, the places of its samples when all are sorted by descending length.
        descending = np.sort(self._lengths)[::-1].tolist()
        self._rows = fitted(descending, self.length) if self.pack else [[place] for place in range(len(descending))]
        # Orders of rows and of samples, drawn from streams of their own.
        self._row_numbers = Batches(np.arange(len(self._rows)), self.batch_size, self.shuffle, 2 * self.seed)
        self.tokens_given = 0  # in the batches that a `for` loop was given, padding not counted
        self._sample_numbers = Batches(np.arange(len(descending)), len(descending), self.shuffle, 2 * self.seed + 1)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self._row_numbers)

    @property
    def rows(self) -> int:
        """How many rows the samples fill."""
        return len(self._rows)

    @property
    def fill_rate(self) -> float:
        """Which part of these rows is tokens of samples."""
        return float(self._lengths.sum() / (self.rows * self.length))

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the samples, in their order."""
        return fingerprint(self.samples)

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of."""
        return self._row_numbers.epoch

    @property
    def position(self) -> int:
        """How many batches of this epoch were handed out."""
        return self._row_numbers.position

    def __iter__(self) -> Iterator[TokenBatch]:
        placed = self._placed(self.epoch)
        for (numbers,) in self._row_numbers:
            batch = self._batch(numbers, placed)
            self.tokens_given += int((batch.segments != NO_SEGMENT).sum())
            yield batch

    def of_epoch(self, epoch: int, position: int = 0) -> Iterator[TokenBatch]:
        """The batches of any epoch, from any position in it on; where this object stands does not change."""
        placed = self._placed(epoch)
        for (numbers,) in self._row_numbers.of_epoch(epoch, position):
            yield self._batch(numbers, placed)

    def restart(self, epoch: int = 0) -> None:
        """Go to the beginning of an epoch."""
        self._row_numbers.restart(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Which batch comes next, and what it depends on."""
        return {"epoch": self.epoch, "position": self.position, **{name: getattr(self, name) for name in _KEPT}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state_dict` was taken; refused if the batches to come would be others."""
        changed = [
            f"{name} were others"
            if key == "fingerprint"
            else f"{name} was {state.get(key)!r:.40} and is {getattr(self, key)!r}"
            for key, name in _KEPT.items()
            if state.get(key) != getattr(self, key)
        ]
        if changed:
            raise ConfigurationError(
                f"PackedBatches: this is not the data that the state was saved with: {', '.join(changed)}. "
                "Use the same data to resume, or start a new run."
            )
        epoch, position = count(state, "epoch"), count(state, "position")
        self._row_numbers.load_state_dict({"epoch": epoch, "position": position})

    def __repr__(self) -> str:
        return (
            f"PackedBatches({len(self.samples)} samples in {self.rows} rows of {self.length}, "
            f"batch_size={self.batch_size}, pack={self.pack}, shuffle={self.shuffle}, seed={self.seed})"
        )

    def _placed(self, epoch: int) -> Any:
        """The numbers of the samples by descending length; those of one length in the order of the epoch."""
        order = np.arange(len(self.samples))[self._sample_numbers.indices(epoch, 0)]
        return order[np.argsort(-self._lengths[order], kind="stable")]

    def _batch(self, numbers: Any, placed: Any) -> TokenBatch:
        rows = [[self.samples[placed[place]] for place in self._rows[number]] for number in numbers]
        rows += [[]] * (self.batch_size - len(rows))
        return laid_out(rows, self.length, self.padding)
