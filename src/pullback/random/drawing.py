"""Methods of a generator that draw: as they are called, while checkpointing, a trace or `vmap` looks on."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, TypeVar

from .. import modes

Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def drawn_again(method: Drawing) -> Drawing:
    """Let a checkpointing strategy draw the method's numbers again instead of keeping them."""

    @wraps(method)
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        mode = modes.current()
        if mode is not None and mode.mapping is not None:
            return mode.mapping.draw(self, method, args, named)
        if mode is not None and mode.tracing is not None:
            return mode.tracing.draw(self, method, args, named)
        if mode is None or not mode.recording or mode.checkpointing is None:
            return method(self, *args, **named)
        from ..autodiff.checkpointing.drawing import drawn

        return drawn(mode.checkpointing, self, method, args, named)

    return draw  # type: ignore[return-value]


def drawn_by_programs(method: Drawing) -> Drawing:
    """Let a compiled program draw the method's numbers anew in every call."""

    @wraps(method)
    def draw(self: Any, *args: Any) -> Any:
        mapping = modes.mapping()
        if mapping is not None:
            return mapping.draw(self, method, args, {})
        trace = modes.tracing()
        return method(self, *args) if trace is None else trace.draw(self, method, args, {})

    return draw  # type: ignore[return-value]
