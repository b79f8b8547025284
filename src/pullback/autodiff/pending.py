"""What devices have not said yet: whether the gradients that they compute are finite.

`backward` on a device starts the check and goes on. The answer is looked at where somebody waits for the device anyway
(a value is read), and at the latest before the next `backward` and before an optimizer changes parameters: neither
waits for more than the walk that the answer is about. Each thread hears of its own walks.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import Callable, Iterator


class _Checks(threading.local):
    """Has the checks of a thread's walks, in their order; each raises or warns if something is wrong.

    With `at_once` there are none: walks wait for what they look at.
    """

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.at_once = False

    def __bool__(self) -> bool:
        return bool(self.waiting)


checks = _Checks()


@contextmanager
def looking_at_once() -> Iterator[None]:
    """Inside, walks on devices are looked at as those on the host are: what is wrong is named while it is there."""
    before, checks.at_once = checks.at_once, True
    try:
        yield
    finally:
        checks.at_once = before


def look() -> None:
    """Wait for what is not known yet, and raise what is to be raised."""
    waiting = checks.waiting
    while waiting:
        waiting.popleft()()
