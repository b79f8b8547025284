"""Where a run is in its data."""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterator

from ..data.batches import Batches
from ..errors import ConfigurationError
from .figures import count


class Feed:
    """The batches of a run, epoch by epoch, with the number of those used in the epoch under way.

    Data that has `len`, `state_dict` and `load_state_dict`, as `pb.data.Batches` has, is put back by them. Of anything
    else a resumed run passes over the batches that were used.

    >>> from pullback.train.feeding import Feed
    >>> feed = Feed(["a", "b", "c"])
    >>> next(feed.rest_of_epoch()), feed.position
    ('a', 1)
    >>> again = Feed(["a", "b", "c"])
    >>> again.load_state_dict(feed.state_dict())
    >>> list(again.rest_of_epoch()), again.is_at_end
    (['b', 'c'], True)
    """

    def __init__(self, data: Any = ()) -> None:
        self.data = data
        self.position = 0
        self._is_over = False  # whether the data has said that it has no more batches for this epoch
        self.length: int | None = len(self.data) if hasattr(self.data, "__len__") else None
        self._has_state = self.length is not None and hasattr(data, "state_dict") and hasattr(data, "load_state_dict")

    @property
    def is_at_end(self) -> bool:
        """Whether all batches of the epoch were used, as far as that is known."""
        return self._is_over or self.position == self.length

    @property
    def tokens_given(self) -> int | None:
        """How many tokens the data has given so far, if it says so."""
        return getattr(self.data, "tokens_given", None)

    def rest_of_epoch(self) -> Iterator[Any]:
        """The batches of the epoch that were not used yet."""
        if self._is_over:  # what has a state of its own is at the beginning of the next one by now
            return
        skipped = 0 if self._has_state else self.position
        for batch in islice(self.data, skipped, None) if skipped else self.data:
            self.position += 1
            yield batch
        self._is_over = self.position > 0

    def end_epoch(self) -> None:
        """Go to the next epoch; all batches of this one were taken."""
        self.position, self._is_over = 0, False

    def restart(self) -> None:
        """Go to the beginning of the first epoch."""
        self.position, self._is_over = 0, False
        if hasattr(self.data, "restart"):
            self.data.restart()

    def indices(self, epoch: int) -> Any:
        """Which samples of the dataset the last batch was made of, if that can be known."""
        return self.data.indices(epoch, self.position - 1) if isinstance(self.data, Batches) else None

    def state_dict(self) -> dict[str, Any]:
        data = self.data.state_dict() if self._has_state else None
        return {"position": self.position, "is_over": self._is_over, "data": data}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self._has_state != (state["data"] is not None):
            kinds = "data with a state of its own, as pb.data.Batches has", "data without a state of its own"
            was, now = kinds if self._has_state is False else kinds[::-1]
            raise ConfigurationError(f"resume: the run was on {was}; this is {now}. Use the same data to resume.")
        position = count(state, "position")
        if self._has_state:
            self.data.load_state_dict(state["data"])
        self.position, self._is_over = position, state["is_over"] is True
