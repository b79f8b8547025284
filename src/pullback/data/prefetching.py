"""Making the next items in a thread while the last ones are being used."""

from __future__ import annotations

import sys
from collections import deque
from contextvars import copy_context
from threading import Condition, Thread, current_thread
from typing import Any, Iterable, Iterator


def prefetched(items: Iterable[Any], ahead: int) -> Iterator[Any]:
    """`items`, of which up to `ahead` are made in advance by a thread.

    An error in the thread is raised here, with its own traceback, in place of the item. The thread ends when the
    items do, or when this iterator is closed or dropped.

    >>> from pullback.data.prefetching import prefetched
    >>> list(prefetched(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    shelf = _Shelf(ahead)
    # The thread sees the consumer's modes (device, random generator), as if it were not there.
    thread = Thread(target=copy_context().run, args=(_fill, shelf, items), name="pullback-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = shelf.take()
            if kind is _ITEM:
                yield value
                del value
            elif kind is _END:
                return
            else:
                raise value
    finally:
        if not sys.is_finalizing():  # then the thread is frozen already, and waiting for it would never end
            shelf.close()
            if thread is not current_thread():  # which may be where the garbage collector finds this iterator
                thread.join()


_ITEM, _END, _ERROR = "item", "end", "error"


def _fill(shelf: _Shelf, items: Iterable[Any]) -> None:
    try:
        for item in items:
            if not shelf.put((_ITEM, item)):
                return
            del item
        shelf.put((_END, None))
    except BaseException as error:
        shelf.put((_ERROR, error))


class _Shelf:
    """A queue of bounded length with a way to say that nobody will take from it any more."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._entries: deque[tuple[str, Any]] = deque()
        self._changed = Condition()
        self._is_closed = False

    def put(self, entry: tuple[str, Any]) -> bool:
        """Wait for room; whether the entry is still wanted."""
        with self._changed:
            while len(self._entries) >= self._length and not self._is_closed:
                self._changed.wait()
            if not self._is_closed:
                self._entries.append(entry)
                self._changed.notify_all()
            return not self._is_closed

    def take(self) -> tuple[str, Any]:
        with self._changed:
            while not self._entries:
                self._changed.wait()
            self._changed.notify_all()
            return self._entries.popleft()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._entries.clear()
            self._changed.notify_all()
