"""What holds for a stretch of code: recording, the guard's mode, the default device and dtype.

All modes that an operation must look at live in one context variable, so that an operation
in the default mode pays for one look-up.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator, NamedTuple


class Mode(NamedTuple):
    """The modes an operation looks at; `None` in the context variable means the defaults below."""

    recording: bool = True
    check_every_operation: bool = False


DEFAULT = Mode()
_mode: ContextVar[Mode | None] = ContextVar("pullback_mode", default=None)
current = _mode.get


def is_recording() -> bool:
    mode = _mode.get()
    return mode is None or mode.recording


@contextmanager
def changed(**fields: Any) -> Iterator[None]:
    """Run a stretch of code under the current mode with some fields changed."""
    mode = (_mode.get() or DEFAULT)._replace(**fields)
    token = _mode.set(None if mode == DEFAULT else mode)
    try:
        yield
    finally:
        _mode.reset(token)


class no_grad:
    """Stop recording: nothing computed inside needs a gradient. A context manager and a decorator.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> with pb.no_grad():
    ...     w -= 0.5 * w
    >>> w.requires_grad
    True
    """

    _recording = False

    def __init__(self) -> None:
        self._tokens: list[Any] = []

    def __enter__(self) -> None:
        mode = (_mode.get() or DEFAULT)._replace(recording=self._recording)
        self._tokens.append(_mode.set(None if mode == DEFAULT else mode))

    def __exit__(self, *exc: object) -> None:
        _mode.reset(self._tokens.pop())

    def __call__(self, fn: Any) -> Any:
        from functools import wraps

        @wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return fn(*args, **kwargs)

        return wrapped


class enable_grad(no_grad):
    """Record again inside a `no_grad` block."""

    _recording = True
