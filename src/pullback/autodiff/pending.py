"""What devices have not said yet: whether the gradients that they compute are finite.

`backward` on a device starts the check and goes on. The answer is looked at where somebody waits for the device anyway
(a value is read), and at the latest before the next `backward` and before an optimizer changes parameters: neither
waits for more than the walk that the answer is about.
"""

from __future__ import annotations

from collections import deque
from typing import Callable

checks: deque[Callable[[], None]] = deque()  # in the order of the walks; each raises or warns if something is wrong


def look() -> None:
    """Wait for what is not known yet, and raise what is to be raised."""
    while True:
        try:
            check = checks.popleft()
        except IndexError:  # also where another thread was faster
            return
        check()
