"""`pb.compile` and what it returns."""

from __future__ import annotations

import logging
import sys
import warnings
from functools import partial, update_wrapper
from time import perf_counter
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Concatenate,
    Generic,
    Iterable,
    Never,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from ... import modes
from ...autodiff import guard
from ...autodiff.creation import default_dtype
from ...errors import DeviceError, TraceError
from ...keywords import hide_others, unexpected
from ...markup import shown_safely
from ...targets import target_for
from ...targets.locking import lock as _lock
from ...transforms.lifting import nesting
from ..deferral import signals_later
from ..tracing.rolling import UnrollError
from ..tracing.trace import OtherDeviceError
from .arguments import Arguments, difference, on_device
from .audits import Schedule, difference as difference_of_programs, digest, refusal
from .building import PROCESSOR
from .collection import collecting_later
from .specialization import RefusedError, Specialization
from .specialize import specialize
from .stability import Stability
from .verification import is_verifying, verified

if TYPE_CHECKING:
    from ...typing import HasForward

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")

_log = logging.getLogger("pullback.compile")
_MANY = 8  # specializations after which one should wonder
_MOST_PROGRAMS = 64  # of a function; those used last are kept
_RECENT = 4  # of them are tried the short way
_MOST_RENEWALS = 8  # of the native guards of a program


@overload
def compile(
    function: HasForward[P, R], *, max_traces: int | None = None, ignore: Iterable[str] = ()
) -> CompiledModule[P, R]: ...
@overload
def compile(
    function: Callable[P, R], *, max_traces: int | None = None, ignore: Iterable[str] = ()
) -> Compiled[P, R]: ...
@overload
def compile(function: None = None, *, max_traces: int | None = None, ignore: Iterable[str] = ()) -> Compiling: ...
@hide_others
def compile(function: Any = None, *, max_traces: int | None = None, ignore: Iterable[str] = (), **other: Never) -> Any:
    """`function` as one native call: traced at its first call, autodiff and optimizer included. Also a decorator.

    Arguments may be trees of tensors and arrays, modules and optimizers; tensors found outside the function are inputs
    too, by reference, and are updated in place. Whatever else it reads of Python's state is guarded: when that has
    changed, another program is made (`recompilations` says why), more than `max_traces` of them are an error. Effects
    on the world outside are refused with the line. `ignore` names what is neither guarded nor minded. A module is
    compiled by `pb.compile(model)`, and keeps its attributes and methods.

    Tensors are on NumPy or on PyTorch's processor, where programs work on their memory as it is; on one of PyTorch's
    GPUs, where a step is one CUDA graph; or on one of JAX's devices: the program is XLA's then, as `jax.jit` makes it.

    What was made can be looked at: `source`, `kernels`, `memory`, `guards`, `traces`, `recompilations`.

    Needs llvmlite (`pip install pullback[compile]`).

    Parameters
    ----------
    function : callable or Module, optional
        What to compile. Without it, a decorator with the other arguments: `@pb.compile(max_traces=1)`.
    max_traces : int, optional
        The most programs that may be made; one more is an error. By default there is no limit.
    ignore : iterable of str
        Names of variables and attributes whose changes are neither guarded nor minded.

    Returns
    -------
    callable
        A function with the same arguments and results, or a module.

    Raises
    ------
    TraceError
        By the first call, if the function cannot be compiled; it says where and what to write.

    Examples
    --------
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
    if other:
        raise unexpected("compile", other)
    if function is None:
        return lambda decorated: Compiled(decorated, max_traces, ignore)
    return Compiled(function, max_traces, ignore)


class Compiled(Generic[P, R]):
    """A function and its programs. Calling it runs the one that fits, or makes it."""

    def __init__(
        self,
        function: Callable[P, R],
        max_traces: int | None = None,
        ignore: Iterable[str] = (),
        name: str | None = None,
        reads: dict[str, Any] | None = None,
    ) -> None:
        _require_target()
        if not callable(function):
            raise TypeError(f"compile: expected a function, got {type(function).__name__}: {function!r:.60}")
        if isinstance(function, type):
            name = function.__name__
            raise TypeError(
                f"compile: expected a function, got the class {name}. Compile an object: compile({name}(...))."
            )
        if max_traces is not None and (type(max_traces) is not int or max_traces < 1):
            raise ValueError(f"compile: max_traces is how many programs may be made, 1 or more, not {max_traces!r}.")
        # the attributes of an object, which change, stay where they are: see __getattr__
        update_wrapper(self, function, updated=("__dict__",) if isinstance(function, FunctionType) else ())
        if isinstance(ignore, str) or not all(isinstance(name, str) for name in ignore):
            raise TypeError(f"compile: ignore takes a list of names, such as ['history'], not {ignore!r:.60}.")
        self.function = function
        self.max_traces = max_traces
        self.ignore = tuple(ignore)
        self._given_name = name
        self._reads = reads or {}  # what a function of the library's reads, of which nobody else can know
        self.recompilations: list[str] = []  # why, each time after the first
        self._programs: list[Specialization] = []  # the one used last comes first
        self._fast_path: Any = None  # the short way of the first one
        self._unsteady: set[Any] = set()
        self._stability = Stability(self._name)
        self._device = "numpy"  # of the tensors that the function found outside
        self._rolls = True  # whether its long loops can be one instruction each
        self._traces = 0
        self.audits = 0  # how often a program was traced again and compared
        self._calls = 0  # the long way, and of programs that are gone

    def __repr__(self) -> str:
        return f"<compiled {self._name}: {self._traces} trace{'s' if self._traces != 1 else ''}>"

    @shown_safely
    def _repr_html_(self) -> str:
        """What a notebook shows: programs, memory, kernels, guards."""
        from .notebook import html

        return html(self)

    def __reduce__(self) -> Any:
        """Copied and pickled as the function is, without its programs."""
        name = getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Compiled, (self.function, self.max_traces, self.ignore))

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: Compiled[Concatenate[T, Q], R], instance: T, owner: Any = None) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    if not TYPE_CHECKING:  # which know the attributes of a function, and let a compiled module have any

        def __getattr__(self, name: str) -> Any:
            function = self.__dict__.get("function")
            if name.startswith("__") or function is None or not hasattr(function, name):
                raise AttributeError(
                    f"a compiled function has no attribute {name!r}, and neither has {function!r:.60}."
                )
            return getattr(function, name)  # a compiled module's `parameters`, `eval`, ...

    def _guarded_parts(self) -> tuple[Any, ...]:
        """For another function that is traced and calls this one."""
        return (self.function,)

    @property
    def _name(self) -> str:
        if self._given_name is not None:
            return self._given_name
        function = self.function.func if isinstance(self.function, partial) else self.function
        return getattr(function, "__name__", type(function).__name__)

    # -- what was made -----------------------------------------------------------------------------

    def _latest(self) -> Specialization:
        if not self._programs:
            raise TraceError(f"{self._name} has not been compiled yet: call it first.")
        return self._programs[0]

    @property
    def source(self) -> str:
        """The program of the last call, as text."""
        return str(self._latest().program)

    @property
    def kernels(self) -> list[Any]:
        """What the program of the last call consists of: each kernel, how it runs ("native" or "numpy"), how often,
        and for which lines of yours. Printed, it is a line for each.
        """
        return self._latest().kernels

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that the program of the last call uses: inputs, outputs, constants and its own."""
        return self._latest().memory

    @property
    def guards(self) -> list[str]:
        """What the program of the last call depends on, beside its inputs: a line for each value that was read."""
        return list(self._latest().guards)

    @property
    def traces(self) -> int:
        """How many programs were traced."""
        return self._traces

    def plan(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """The `memory` that a call with these arguments would need, without compiling or running anything.

        The function is traced once, and what that does is undone. Values of tensors are not looked at: arrays of zeros
        that the system has not given memory to yet will do, for a model larger than the memory of this machine too.

        >>> import numpy as np, pullback as pb
        >>> step = pb.compile(lambda x, w: (x @ w).sum())
        >>> step.plan(np.zeros((4, 1 << 18), np.float32), np.zeros((1 << 18, 1024), np.float32))["inputs"] >> 20
        1028
        """
        return self.plan_on(None, *args, **kwargs)

    def plan_on(self, device: str | None, /, *args: Any, **kwargs: Any) -> dict[str, int]:
        """What `plan` says, for a device that need not be there, from arguments that are elsewhere."""
        from .planning import planned

        with _lock:
            made = self._specialized(Arguments(self._name, args, kwargs))
        return planned(made.program, device or made.device)

    # -- calling -----------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        fast_path = self._fast_path
        if fast_path is not None:
            result = fast_path(args, kwargs)
            if result is not NotImplemented:
                return result
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mode = modes.current()
        try:
            return self._long_way(args, kwargs, mode)
        except BaseException:
            modes.restore(mode)  # Ctrl-C may have come while another one was being left
            raise

    def _long_way(self, args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        if mode is not None and (mode.tracing or mode.inlining or mode.check_every_operation or mode.tapes):
            return self.function(*args, **kwargs)  # inside another trace, or under somebody who wants to see it all
        self._calls -= self._fast_path is not None  # the short way has counted this call, and the others count it again
        for made in self._programs[1:_RECENT]:
            if made.fast_path is not None:
                result = made.fast_path(args, kwargs)
                if result is not NotImplemented:
                    self._use(made)
                    return result
                self._calls -= 1
        with _lock:
            arguments = Arguments(self._name, args, kwargs, frozenset(self._stability.paths.values()))
            if arguments.carry_tangents or nesting.get() > 1 or arguments.is_abstract:
                # a program has no tangents, and no second derivatives; what another library traces it shall see
                return self.function(*args, **kwargs)
            self._calls += 1
            device = "numpy"
            try:
                found, arguments = self._fitting(arguments, _surroundings(mode))
                device = found.device
                if is_verifying():
                    return verified(self, found, arguments)
                if found.new_inputs:
                    return self._tried(found, arguments)
                with found.turn:  # while another thread runs it, what it updates would seem to be shared, and be copied
                    inputs = found.gathered(arguments)
                    if inputs is not None and found.program.updates:
                        return _timed(found, arguments, inputs)
            except RefusedError:  # operation by operation, which names the culprit
                return on_device(self.function, args, kwargs, device)
        if inputs is None:
            return self._general(args, kwargs)  # a tensor was given another array just now
        try:
            return _timed(found, arguments, inputs)
        except RefusedError:
            return on_device(self.function, args, kwargs, device)

    def _fitting(self, arguments: Arguments, modes_now: Any) -> tuple[Specialization, Arguments]:
        """The program for a call, a new one if there is none; and the arguments as it takes them."""
        changes: list[Any] = []
        for made in self._programs:
            if made.key == (arguments.key, modes_now):
                change = made.why_not(arguments.given)
                if change is None:
                    if not made.schedule.is_reached:
                        self._renew(made, arguments)
                    elif made.schedule.is_due():
                        self._audit(made, arguments)
                    self._use(made)
                    return made, arguments
                changes = changes or [change, *made.guards.changes(arguments.given)]
        made, arguments = self._new(arguments, modes_now, changes)
        if made.is_steady:
            self._use(made)
        return made, arguments

    def _tried(self, made: Specialization, arguments: Arguments) -> Any:
        """The first call of a program in which numbers have become inputs: the function itself runs beside."""

        def tell(error: TraceError) -> None:
            for name in made.new_inputs:
                self._stability.give_up(name, str(error))
            self._drop(made)

        with signals_later():
            result = verified(self, made, arguments, tell)
        made.new_inputs = []
        self._fast_path = made.fast_path if made in self._programs else None
        return result

    def _drop(self, made: Specialization) -> None:
        """Forget a program that is not right."""
        self._programs = [other for other in self._programs if other is not made]
        self._fast_path = None

    def _use(self, made: Specialization) -> None:
        """Have a program first among those that are tried."""
        programs = [made, *(other for other in self._programs if other is not made)]
        for other in programs[_MOST_PROGRAMS:]:
            self._calls += int(other.calls[0])
        self._programs = programs[:_MOST_PROGRAMS]
        self._fast_path = None if made.new_inputs else made.fast_path

    def _audit(self, made: Specialization, arguments: Arguments) -> None:
        """Trace once more, and see whether the program is the same."""
        schedule = made.schedule
        if made.left or made.new_inputs:  # a function with effects is not called for nothing
            schedule.stop()
            return
        began = perf_counter()
        again = self._specialized(arguments)
        line = difference_of_programs(made.digest, digest(again))
        if line is not None and difference_of_programs(made.digest, digest(self._specialized(arguments))) is not None:
            self._drop(made)
            raise refusal(self._name, line)
        self.audits += 1
        schedule.audited(perf_counter() - began)
        if line is not None:
            schedule.stop()  # no two traces are alike: its order depends on addresses, or on chance

    def _renew(self, made: Specialization, arguments: Arguments) -> None:
        """Write the native guards again: all is well, and yet they have said no."""
        if made.fast_path is not None and made.renewals < _MOST_RENEWALS:
            made.renewals += 1
            self._make_fast_path(made, arguments)

    def _make_fast_path(self, made: Specialization, arguments: Arguments) -> None:
        from .fast_path import fast_call, fast_check  # needs llvmlite, unlike all else here

        with signals_later():
            made.fast_path = fast_call(made, self.function, arguments)
            made.holds = fast_check(made) if made.fast_path is None else None

    @collecting_later
    def _new(self, arguments: Arguments, modes_now: Any, changes: list[Any]) -> tuple[Specialization, Arguments]:
        reason = self._reason(arguments, changes)
        if self.max_traces is not None and self._traces >= self.max_traces and reason is not None:
            raise TraceError(
                f"{self._name} has {self._traces} program{'s' if self._traces != 1 else ''} and needs another one, and "
                f"max_traces is {self.max_traces}: {reason}."
            )
        made, arguments = self._traced(arguments, changes)
        key = made.key = (arguments.key, modes_now)
        if not made.is_steady and (key, made.state) not in self._unsteady:
            # this call makes gradients that the next one will find: compile that one
            self._unsteady.add((key, made.state))
            made.interpret()
            return made, arguments
        made.schedule = Schedule(made.calls, made.trace_seconds)
        made.digest = digest(made)
        made.build()
        self._make_fast_path(made, arguments)
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
                    stacklevel=6,
                )
        return made, arguments

    def _traced(self, arguments: Arguments, changes: list[Any]) -> tuple[Specialization, Arguments]:
        """A new trace; numbers that keep changing become inputs of it, if that can be."""
        stability = self._stability
        calls = self._calls + sum(int(made.calls[0]) for made in self._programs)
        names = [stability.note(change, calls) for change in {change.guard: change for change in changes}.values()]
        if self._programs and not changes:
            for path, name in arguments.changed_numbers(self._programs[0].key[0]):
                names.append(stability.note_argument(path, name, calls))
        promoted = [name for name in names if name is not None]
        try:
            given = arguments
            if stability.paths:
                given = Arguments(self._name, *arguments.given, frozenset(stability.paths.values()))
            made = self._specialized(given)
            made.new_inputs = promoted
            return made, given
        except Exception as error:
            if not promoted:
                raise
            for name in promoted:
                stability.give_up(name, str(error))
        for change in changes:
            stability.refuse(change)
        return self._specialized(arguments), arguments

    def _specialized(self, arguments: Arguments) -> Specialization:
        def traced(device: str, is_open: bool) -> Specialization:
            places = list(self._stability.places.values())
            known = self._name, self.function, arguments, self.ignore, self._reads, places, device, is_open
            try:
                return specialize(*known, rolls=self._rolls)
            except UnrollError:
                pass
            unrolled = specialize(*known, rolls=False)
            self._rolls = False
            return unrolled

        try:
            return traced(arguments.device or self._device, arguments.device is None)
        except OtherDeviceError as found:
            other, site = found.device, found.site
        if other is None:
            raise RefusedError  # another library traces: it shall see the operations
        if target_for(other) is None:
            raise DeviceError(
                f"{site}: pb.compile compiles for 'numpy', PyTorch's and JAX's devices so far, and found a tensor on "
                f"{other!r}. Move it with `.to_device('numpy')`, or call the function without pb.compile."
            )
        self._device = other
        return traced(other, False)

    def _reason(self, arguments: Arguments, changes: list[Any]) -> str | None:
        """Why none of the programs so far will do; None if there are none."""
        if changes:
            return changes[0].text
        if not self._programs:
            return None
        before, _ = self._programs[0].key
        if before != arguments.key:
            return difference(before, arguments)
        return "it was called under other modes (no_grad, autocast, checkpointing, guard or default dtype)"


if TYPE_CHECKING:

    class CompiledModule(Compiled[P, R]):
        """A compiled module, which has the module's attributes too."""

        def __getattr__(self, name: str) -> Any: ...

    class Compiling(Protocol):
        """`compile` with options, as a decorator."""

        @overload
        def __call__(self, function: HasForward[P, R], /) -> CompiledModule[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> Compiled[P, R]: ...


def _timed(made: Specialization, arguments: Arguments, inputs: list[Any]) -> Any:
    """Run a program, and see how long it takes, to know when it is to be audited."""
    result = made.run(arguments, inputs)
    if made.schedule is not None:
        if made.fast_path is None:
            made.calls[0] += 1
        made.schedule.note(made.run_seconds)
    return result


def _require_target() -> None:
    missing = PROCESSOR.missing()
    if missing is not None:
        raise ImportError(f"pb.compile needs {missing}. Without pb.compile the same code runs operation by operation.")


def _surroundings(mode: Any) -> Any:
    """What a program depends on beside its arguments."""
    if mode is not None and mode.checkpointing is not None:
        mode = mode._replace(checkpointing=mode.checkpointing.key)
    return mode, guard.mode(), default_dtype()
