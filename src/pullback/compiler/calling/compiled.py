"""`pb.compile` and what it returns."""

from __future__ import annotations

import logging
import warnings
from functools import update_wrapper
from threading import RLock
from typing import Any, Callable

from ... import modes
from ...autodiff import guard
from ...errors import TraceError
from ...functions.creation import default_dtype
from .arguments import Arguments, difference
from .quick import quick_call
from .specialization import RefusedError, Specialization, specialize
from .verification import is_verifying, verified

_log = logging.getLogger("pullback.compile")
_MANY = 8  # specializations after which one should wonder
_lock = RLock()  # one trace at a time: it lends symbols to tensors that others may see


def compile(function: Callable[..., Any] | None = None, *, max_traces: int | None = None) -> Any:
    """`function` as one native call: traced at its first call, autodiff and optimizer included. Also a decorator.

    Arguments may be trees of tensors and arrays, modules and optimizers; tensors found outside the function are inputs
    too, by reference, and are updated in place. Python numbers and other objects belong to the program: a new value,
    shape or dtype makes a new one (`recompilations` says why), more than `max_traces` of them are an error.

    Needs llvmlite (`pip install pullback[compile]`).

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.SGD([w], lr=0.25)
    >>> @pb.compile
    ... def step(x):
    ...     loss = ((w * x) ** 2).sum()
    ...     optimizer.step(pb.backward(loss))
    ...     return loss
    >>> step(pb.tensor([1.0, 1.0])), step(pb.tensor([1.0, 1.0]))
    (tensor(5.), tensor(1.25))
    """
    if function is None:
        return lambda decorated: Compiled(decorated, max_traces)
    return Compiled(function, max_traces)


class Compiled:
    """A function and its programs. Calling it runs the one that fits, or makes it."""

    def __init__(self, function: Callable[..., Any], max_traces: int | None = None) -> None:
        if not callable(function):
            raise TypeError(f"compile: expected a function, got {type(function).__name__}: {function!r:.60}")
        update_wrapper(self, function)
        self.function = function
        self.max_traces = max_traces
        self.recompilations: list[str] = []  # why, each time after the first
        self._by_key: dict[Any, list[Specialization]] = {}
        self._unsteady: set[Any] = set()
        self._last: Specialization | None = None
        self._traces = 0

    def __repr__(self) -> str:
        return f"<compiled {self._name}: {self._traces} trace{'s' if self._traces != 1 else ''}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        from functools import partial

        return partial(self, instance)

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    # -- what was made -----------------------------------------------------------------------------

    def _latest(self) -> Specialization:
        if self._last is None:
            raise TraceError(f"{self._name} has not been compiled yet: call it first.")
        return self._last

    @property
    def source(self) -> str:
        """The program of the last call, as text."""
        return str(self._latest().program)

    @property
    def kernels(self) -> list[Any]:
        """What the program of the last call consists of: each kernel, how it runs, and how often."""
        return self._latest().kernels

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that the program of the last call uses: inputs, outputs, constants and its own."""
        return self._latest().memory

    @property
    def traces(self) -> int:
        """How many programs were traced."""
        return self._traces

    # -- calling -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self._last
        if last is not None and last.quick is not None:
            result = last.quick(args, kwargs)
            if result is not NotImplemented:
                return result
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mode = modes.current()
        if mode is not None and (mode.tracing is not None or mode.check_every_operation or mode.tapes):
            return self.function(*args, **kwargs)  # inside another trace, or under somebody who wants to see it all
        with _lock:
            arguments = Arguments(self._name, args, kwargs)
            key = (arguments.key, _surroundings(mode))
            found = None
            for specialization in self._by_key.get(key, ()):
                if specialization.why_not() is None:
                    found = specialization
                    break
            if found is None:
                found = self._new(key, arguments)
            if found.is_steady:
                self._last = found
            if is_verifying():
                return verified(self, found, arguments, args, kwargs)
            try:
                return found.run(arguments)
            except RefusedError:
                return self.function(*args, **kwargs)  # operation by operation, which names the culprit

    def _new(self, key: Any, arguments: Arguments) -> Specialization:
        reason = self._reason(key, arguments)
        if self.max_traces is not None and self._traces >= self.max_traces and reason is not None:
            raise TraceError(
                f"{self._name} would be traced for the {self._traces + 1}th time, and max_traces is {self.max_traces}: "
                f"{reason}."
            )
        made = specialize(self._name, self.function, arguments)
        if not made.is_steady and (key, made.state) not in self._unsteady:
            # this call makes gradients that the next one will find: compile that one
            self._unsteady.add((key, made.state))
            made.interpret()
            return made
        made.build()
        made.quick = quick_call(made, self.function, arguments)
        made.is_steady = True
        self._traces += 1
        if reason is not None:
            self.recompilations.append(reason)
            _log.info("%s recompiled: %s", self._name, reason)
            if self._traces == _MANY + 1:
                warnings.warn(
                    f"pb.compile: {self._name} has been compiled {self._traces} times, the last time because {reason}. "
                    f"See `{self._name}.recompilations`; `max_traces` makes this an error.",
                    RuntimeWarning,
                    stacklevel=4,
                )
        self._by_key.setdefault(key, []).append(made)
        return made

    def _reason(self, key: Any, arguments: Arguments) -> str | None:
        """Why none of the programs so far will do; None if there are none."""
        same = self._by_key.get(key)
        if same:
            return same[-1].why_not()
        if not self._by_key:
            return None
        before, _ = next(reversed(self._by_key))
        if before != arguments.key:
            return difference(before, arguments)
        return "it was called under other modes (no_grad, autocast, guard or default dtype)"


def _surroundings(mode: Any) -> Any:
    """What a program depends on beside its arguments."""
    return mode, guard.mode(), default_dtype()
