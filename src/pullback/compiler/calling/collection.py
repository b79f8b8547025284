"""Keeping Python's garbage collector from looking, again and again, through the many objects that compiling makes."""

from __future__ import annotations

import gc
from functools import wraps
from typing import Callable, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def collecting_later(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, during which nothing is collected: it makes many objects, of which hardly any are garbage."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
