"""The lock for who traces or compiles, and what a fork must wait for."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading
from contextlib import AbstractContextManager
from typing import Any

#: One thread at a time: a trace lends symbols to tensors that other threads may see, and linking is for one alone.
lock = threading.RLock()
_inner: list[AbstractContextManager[Any]] = []


def wait_for(inner: AbstractContextManager[Any]) -> None:
    """Have forks wait for another lock too, one that is taken by who has `lock` but never the other way round."""
    _inner.append(inner)


def _before() -> None:
    lock.acquire()
    for inner in _inner:
        inner.__enter__()


def _after() -> None:
    for inner in reversed(_inner):
        inner.__exit__(None, None, None)
    lock.release()


# A child made while another thread has a lock would wait for it for ever. What is registered last is taken first: who
# compiles takes locks of the libraries that are imported above, so these must have registered theirs before.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
