"""How many threads the user asks for: read here, so that a wrong wish is the same error everywhere."""

from __future__ import annotations

import os

from ..errors import ConfigurationError

VARIABLE = "PULLBACK_NUM_THREADS"
LIMIT = 128  #: The most threads that can be asked for.


def asked_threads() -> int | None:
    """$PULLBACK_NUM_THREADS, or None where it is not set."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        return None
    digits = asked.lstrip("0") if asked.isascii() and asked.isdecimal() else ""
    if not digits:
        raise ConfigurationError(
            f"{VARIABLE} is {asked!r:.40}; it must be a number of threads, 1 or more. Write `{VARIABLE}=2`, or "
            "unset it."
        )
    return LIMIT if len(digits) > len(str(LIMIT)) else min(int(digits), LIMIT)
