"""What a training run leaves behind in memory: its records, thinned so that a long run stays small."""

from __future__ import annotations

from typing import Any, Iterator

from .callbacks import Record
from .figures import count

LONGEST = 256  # records of one kind that are kept: they are in every checkpoint
_KINDS = ("steps", "validations", "epochs")


class Records:
    """Records in order, at most `longest` of them: when there are more, every second one is forgotten.

    `last` is always the latest.

    >>> import pullback as pb
    >>> records = pb.train.Records(longest=4)
    >>> for step in range(1, 10):
    ...     records.add({"step": step})
    >>> records.column("step")
    [1, 5, 9]
    >>> records.last
    {'step': 9}
    """

    __slots__ = ("last", "_records", "_longest", "_stride", "_count")

    def __init__(self, longest: int = LONGEST) -> None:
        self.last: Record = {}
        self._records: list[Record] = []
        self._longest = longest
        self._stride = 1  # every so many are kept
        self._count = 0

    def add(self, record: Record) -> None:
        """Take in the next record; whether it stays depends on how many there were before it."""
        self.last = record
        if self._count % self._stride == 0:
            self._records.append(record)
            if len(self._records) > self._longest:
                del self._records[1::2]
                self._stride *= 2
        self._count += 1

    def column(self, name: str) -> list[Any]:
        """The values under a name, of the records that have it."""
        return [record[name] for record in self._records if name in record]

    def __getitem__(self, index: int) -> Record:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"Records({self._records!r})"

    def state_dict(self) -> dict[str, Any]:
        """What is kept, as values that JSON can hold."""
        return {"records": self._records, "last": self.last, "stride": self._stride, "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to `state`, where `state_dict` was taken."""
        stride, seen = count(state, "stride", 1), count(state, "count")
        self._records = [dict(record) for record in state["records"]]
        self.last, self._stride, self._count = dict(state["last"]), stride, seen


class History:
    """The records of a run: `steps`, `validations` and `epochs`, and why it ended.

    Of a long run each list keeps some hundreds of records, evenly spread; logs have all of them.

    >>> import pullback as pb
    >>> history = pb.train.History()
    >>> history.epochs.add({"epoch": 1, "loss": 0.5})
    >>> history.epochs.column("loss")
    [0.5]
    """

    def __init__(self) -> None:
        self.steps = Records()
        self.validations = Records()
        self.epochs = Records()
        self.stop_reason: str | None = None  # None where the run went through to its end; else why it did not

    def __repr__(self) -> str:
        ended = f", stop_reason={self.stop_reason!r}" if self.stop_reason else ""
        return f"History({self.epochs.last or self.steps.last}{ended})"

    def state_dict(self) -> dict[str, Any]:
        """The records of all kinds, as values that JSON can hold."""
        return {kind: getattr(self, kind).state_dict() for kind in _KINDS}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to `state`, where `state_dict` was taken."""
        for kind in _KINDS:
            getattr(self, kind).load_state_dict(state[kind])
