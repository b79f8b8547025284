"""What devices have not said yet: whether the gradients that they compute are finite.

`backward` on a device starts the check and goes on. The answer is looked at where somebody waits for the device anyway
(a value is read), and at the latest before the next `backward` and before an optimizer changes parameters: neither
waits for more than the walk that the answer is about. Each thread hears of its own walks.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable


class _Checks(threading.local):
    """Has the checks of a thread's walks, in their order; each raises or warns if something is wrong."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def __bool__(self) -> bool:
        return bool(self.waiting)


checks = _Checks()


def look() -> None:
    """Wait for what is not known yet, and raise what is to be raised."""
    waiting = checks.waiting
    while waiting:
        waiting.popleft()()
