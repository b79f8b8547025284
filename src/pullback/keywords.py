"""Keywords that a function does not have: where PyTorch's has them, the error says what to write (`dim=`: `axis=`).

A function takes them as `**other` and raises `unexpected` if there are any. That costs a call some ten nanoseconds, a
function around it several times as much.
"""

from __future__ import annotations

from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, Callable, TypeVar

from .pytorch_names import one_shape, unexpected

__all__ = ["hide_others", "one_shape", "unexpected"]

F = TypeVar("F", bound=Callable[..., Any])


def hide_others(function: F) -> F:
    """Leave `**other`, and `*more` of sizes or axes, out of the signature that `help` and `inspect.signature` show.

    >>> import inspect, pullback as pb
    >>> "other" in inspect.signature(pb.sum).parameters
    False
    """
    plain: Any = function
    code = plain.__code__.replace(co_flags=plain.__code__.co_flags & ~CO_VARARGS & ~CO_VARKEYWORDS)
    shown = FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__)
    shown.__kwdefaults__, shown.__doc__, shown.__qualname__ = plain.__kwdefaults__, plain.__doc__, plain.__qualname__
    shown.__annotations__ = {
        name: kind for name, kind in plain.__annotations__.items() if name not in ("more", "other")
    }
    plain.__wrapped__ = shown  # what is shown in place of a function, as of one that `functools.wraps` has wrapped
    return function
