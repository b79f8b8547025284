"""What holds for a stretch of code: recording, the guard's mode, the default device and dtype.

All modes that an operation must look at live in one context variable, so that an operation
in the default mode pays for one look-up.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Callable, NamedTuple, TypeVar

from .errors import TraceError

F = TypeVar("F", bound=Callable[..., Any])


class Mode(NamedTuple):
    """The modes an operation looks at; `None` in the context variable means the defaults below."""

    recording: bool = True
    check_every_operation: bool = False
    autocast: Any = None  # autodiff.autocast.Policy
    checkpointing: Any = None  # one of the strategies in autodiff.checkpointing
    tapes: tuple[Any, ...] = ()  # tape.GradientTape objects that list what is recorded
    tracing: Any = None  # compiler.tracing.Trace, while a function runs on symbols
    mapping: Any = None  # autodiff.batching.stack.Level, while a function runs on stacks
    inlining: bool = False  # compiled functions run as they are, as they do in a trace


DEFAULT = Mode()
NO_GRAD = Mode(recording=False)
_mode: ContextVar[Mode | None] = ContextVar("pullback_mode", default=None)
current = _mode.get


def _unique(mode: Mode) -> Mode | None:
    """The one object that stands for a common mode, so that operations can compare by identity."""
    if mode == DEFAULT:
        return None
    return NO_GRAD if mode == NO_GRAD else mode


def is_recording() -> bool:
    mode = _mode.get()
    return mode is None or mode.recording


def tracing() -> Any:
    """The trace that a function is running under, or None."""
    mode = _mode.get()
    return None if mode is None else mode.tracing


def mapping() -> Any:
    """The level of the `vmap` that a function is running under, or None."""
    mode = _mode.get()
    return None if mode is None else mode.mapping


def is_special() -> bool:
    """Whether tensors of plain arrays have to be made known to a trace or a `vmap`."""
    mode = _mode.get()
    return mode is not None and (mode.tracing is not None or mode.mapping is not None)


def refuse_in_trace(message: str) -> None:
    """Raise a `TraceError` if a function is being traced."""
    if tracing() is not None:
        raise TraceError(f"{message} A function that pb.compile traces cannot do it.")


def note_use(thing: Any) -> None:
    """Tell the trace that is running, if any, that an optimizer or a scaler is used: see its `traced_by`."""
    mode = _mode.get()
    if mode is not None and mode.tracing is not None:
        thing.traced_by(mode.tracing)


def enter(**fields: Any) -> Any:
    """Change some fields of the current mode; give what is returned to `leave`."""
    mode = _mode.get() or DEFAULT
    changed_mode = mode._replace(**fields)
    return None if changed_mode == mode else _mode.set(_unique(changed_mode))


def enter_again(holder: Any, **fields: Any) -> Any:
    """As `enter`; entered from the same mode, it is the same object as the last time that `holder` came here.

    Compiled functions know modes by their identity first.
    """
    before = _mode.get()
    entered = holder.entered
    if entered is not None and entered[0] is before:
        return _mode.set(entered[1])
    token = enter(**fields)
    if token is not None:
        holder.entered = before, _mode.get()
    return token


def leave(token: Any) -> None:
    if token is not None:
        _mode.reset(token)


def restore(mode: Mode | None) -> None:
    """Have a mode that was the current one before, whatever has been entered and left since."""
    if _mode.get() is not mode:
        _mode.set(mode)


class changed:
    """Run a stretch of code under the current mode with some fields changed.

    No generator: one that an interrupt has left standing would be ended at any time, and bring its old mode back.
    """

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = enter(**self._fields)

    def __exit__(self, *error: object) -> None:
        leave(self._token)


class no_grad:
    """Stop recording: nothing that is computed inside needs a gradient.

    A context manager and a decorator: `with pb.no_grad():`, `@pb.no_grad()`. Variables may be written in place inside.

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
        self._tokens.append(enter(recording=self._recording))

    def __exit__(self, *exc: object) -> None:
        leave(self._tokens.pop())

    def __call__(self, fn: F) -> F:
        from functools import wraps

        @wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return fn(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class enable_grad(no_grad):
    """Record again inside a `no_grad` block.

    A context manager and a decorator, as `no_grad` is.

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> with pb.no_grad():
    ...     with pb.enable_grad():
    ...         loss = (w * w).sum()
    >>> loss.requires_grad
    True
    """

    _recording = True
