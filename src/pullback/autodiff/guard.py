"""The numerics guard: a NaN or an infinity in a loss or in a gradient is an error that names its origin.

`backward` looks at the root's value first, then at the gradients it made: a square sum, and an exact look
only if that alarms. To name the operation where it began, a guarded walk keeps what it passes for a window
of `WINDOW_BYTES` and computes it again, node by node, on alarm.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from math import isfinite
from typing import Any, Callable, Iterable

import numpy as np

from .. import backends, modes
from ..errors import NumericalInstabilityError
from . import pending
from .apply import Outputs
from .graph import Node, is_library
from .provenance import born_forward, describe_backward, describe_outputs, kind_of_bad, place

WINDOW_BYTES = 32 * 2**20
_ndarray = np.ndarray
_sum_of_squares = backends.NUMPY.xp.sum_of_squares
_MODES = ("raise", "warn", "trace", "off")
_guard_mode: ContextVar[str] = ContextVar("pullback_guard", default="raise")
unguarded: set[Any] = set()  # recipes of results that may overflow (scaled losses): looked at only if asked for


class guard:
    """What to do about NaN and infinity, inside a `with` block.

    `pb.grad` and `pb.value_and_grad` pass NaN on as NumPy does, and look only inside such a block.

    On a GPU nobody waits for `backward`: what is wrong is raised when a value is read (`loss.item()`, printing), at the
    end of such a block, before an optimizer changes parameters, or by the next `backward`.

    Parameters
    ----------
    mode : str
        "raise" (what holds outside of such blocks) and "warn" look at losses and gradients in `backward`; "trace"
        looks at the result of every operation as well, as it runs; "off" looks at nothing.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([0.0], requires_grad=True)
    >>> with pb.guard("off"):
    ...     (1 / w).sum().backward()
    >>> w.grad
    tensor([-inf])
    """

    def __init__(self, mode: str) -> None:
        if mode not in _MODES:
            raise ValueError(f"guard: unknown mode {mode!r}; use one of {', '.join(map(repr, _MODES))}.")
        self.mode = mode
        self._tokens: list[Any] = []

    def __enter__(self) -> None:
        tracing = modes.enter(check_every_operation=self.mode == "trace")
        self._tokens.append((_guard_mode.set(self.mode), tracing))

    def __exit__(self, *exc: Any) -> None:
        token, tracing = self._tokens.pop()
        _guard_mode.reset(token)
        modes.leave(tracing)
        if exc[0] is None:
            pending.look()


def report(message: str, mode: str = "") -> None:
    """Raise, or warn, as the mode says: that of now, or a given one."""
    if (mode or _guard_mode.get()) == "warn":
        level, frame = 2, sys._getframe(1)
        while frame.f_back is not None and is_library(frame.f_code):
            level, frame = level + 1, frame.f_back
        warnings.warn(message, RuntimeWarning, stacklevel=level)
    else:
        raise NumericalInstabilityError(message)


def mode() -> tuple[str, bool]:
    """The mode, and whether a block says so."""
    return _guard_mode.get(), is_asked_for()


def is_asked_for() -> bool:
    """Whether a `guard` block, not the default, says to look."""
    return _guard_mode.get(None) not in (None, "off")


def all_finite(cotangents: Iterable[Any]) -> bool:
    """Whether every element of every array is finite.

    NumPy arrays are looked at through a dot product, and element by element only if that overflows. Small ones are
    put together first: a call for each would take longer. To be called under `np.errstate`.
    """
    small = []
    dtype = None
    others: dict[Any, list[Any]] = {}
    for g in cotangents:
        if type(g) is _ndarray:
            if g.nbytes <= 2048 and (g.dtype is dtype or (dtype is None and g.dtype.char in _MOST)):
                dtype = g.dtype
                small.append(g.tobytes())
            elif not _finite_array(g):
                return False
        elif type(g) is Outputs:
            if not all_finite([link.g for link in g.links()]):
                return False
        elif isinstance(g, tuple):
            if not all_finite([part for part in g if part is not None]):
                return False
        else:
            raw, backend = _with_values(getattr(g, "_raw", g))
            if not backend.is_concrete(raw):  # nobody can tell yet
                return False
            others.setdefault(backend, []).append(raw)
    if dtype is not None and not _finite_array(np.frombuffer(b"".join(small), dtype)):
        return False
    return not others or all([flag for backend, raws in others.items() for flag in backend.finite(raws)])


def _with_values(raw: Any) -> tuple[Any, Any]:
    """The array that has the values of one, and its backend."""
    backend: Any = backends.of(raw)
    raw = backend.values_in(raw)
    return raw, backends.of(raw)


_MOST = {"f": 2.0**98, "d": 2.0**994}  # sums of squares of moderate numbers: an optimizer's state has room for these


class Large:
    """Whether gradients were seen whose squares may overflow: optimizers look closely from then on."""

    was_seen = False


def _finite_array(array: Any) -> bool:
    """Whether a NumPy array is finite."""
    if array.dtype.kind != "c":
        squares = _sum_of_squares(array)
        if squares < _MOST.get(array.dtype.char, 0.0) or (array.dtype.itemsize == 2 and isfinite(squares)):
            return True
    Large.was_seen = True
    return bool(np.isfinite(array).all())


def note_size(raw: Any) -> None:
    """Look at a gradient that no guarded walk has made."""
    if type(raw) is _ndarray and not Large.was_seen:
        is_finite(raw)
    elif type(raw) is not _ndarray:
        Large.was_seen = True


def is_finite(raw: Any) -> bool:
    """Whether every element of one array is finite."""
    with np.errstate(all="ignore"):
        return all_finite((raw,))


def is_on(node: Any) -> bool:
    """Whether a walk from `node` is to be guarded."""
    return _guard_mode.get() != "off" and (node.recipe not in unguarded or is_asked_for())


def check_when_run(raws: Iterable[Any]) -> bool:
    """While a function is traced, have its program look at these when it has run; whether one is."""
    trace = modes.tracing()
    if trace is not None:
        trace.check([_with_values(raw)[0] for raw in raws])
    return trace is not None


def check_root(loss: Any, node: Node, waiting: bool = False) -> Any:
    """Look at the value that a walk starts from; whether the walk is to be guarded.

    For a value on a device the answer is that value, for the walk to look at in the end, unless `waiting`.
    """
    if pending.checks:
        pending.look()
    if not is_on(node):
        return False
    raw = loss._raw
    if check_when_run([raw]):
        return False
    if type(raw) is _ndarray and raw.size == 1:
        value = complex(raw.item())
        fine = isfinite(value.real) and isfinite(value.imag)
    else:
        raw, backend = _with_values(raw)
        if not backend.is_concrete(raw):
            return False
        if backend.is_on_device(raw) and not (waiting or pending.checks.at_once):
            return (raw,)
        fine = is_finite(raw)
    if not fine:
        report(born_forward(node, loss._raw, is_finite))
    return True


def check_outputs(operation: Any, inputs: Any, outputs: Any, static: Any) -> None:
    """In "trace" mode: look at an operation's results as it runs."""
    if any(_is_floating(out) and not is_finite(out) for out in outputs):
        report(describe_outputs(operation, inputs, outputs, static))


def _is_floating(raw: Any) -> bool:
    return backends.of(raw).dtype_of(raw).kind in ("float", "complex")


def is_on_device(seeds: dict[Node, Any]) -> bool:
    """Whether a walk from these cotangents is computed elsewhere: looking at anything on its way would wait for it."""
    if pending.checks.at_once:
        return False
    for g in seeds.values():
        raw = getattr(g, "_raw", g)
        if backends.of(raw) is None:
            return False
        raw, backend = _with_values(raw)
        return backend.is_on_device(raw)
    return False


def check_on_device(order: list[Node], cotangents: dict[Node, Any], roots: tuple[Any, ...]) -> None:
    """Have a device look once at all that a walk has come to, and where it came from; nobody waits for the answer."""
    raws = [_with_values(raw)[0] for raw in (*roots, *cotangents.values())]
    if not raws:
        return
    backend = backends.of(raws[0])
    answer = backend.finite_later(raws)
    nodes = tuple(cotangents)
    count = len(roots)
    kinds = roots if count and backend.bytes_of(roots[0]) <= 64 else ()  # the gradients themselves are not held
    mode = _guard_mode.get()

    def check() -> None:
        flags = answer()
        if all(flags):
            return
        if not all(flags[:count]):
            kind = kind_of_bad(kinds[0]) if kinds else "not finite"
            report(
                f"the result is {kind}. On a device it is looked at in the end, when the values before it are gone: "
                'compute it again under `pb.guard("trace")` to have the operation named.',
                mode,
            )
            return
        bad = {node for node, fine in zip(nodes, flags[count:]) if not fine}
        last = next((node for node in order if not bad.isdisjoint(node.inputs)), None)
        where = "" if last is None else f"; the first is what `{last.recipe.operation.name}` passes on: {place(last)}"
        report(
            f"the gradients of {len(bad)} of {len(nodes)} variables are not finite{where}. To have the operation "
            "named where it began, call it again with retain_graph=True.",
            mode,
        )

    pending.checks.waiting.append(check)


class Window:
    """The stretch of a walk that can still be computed again: from `order[start]`, where `cotangents` were known."""

    __slots__ = ("order", "visit", "release", "useful", "start", "cotangents", "checked")

    def __init__(
        self,
        order: list[Node],
        seeds: dict[Node, Any],
        visit: Callable[[Node, Any], Any],
        release: bool,
        useful: set[Node] | None,
    ) -> None:
        self.order = order
        self.visit = visit
        self.release = release
        self.useful = useful  # nodes without an input in here are not walked, and so not released; None for all
        self.start = 0
        self.cotangents = seeds
        self.checked: dict[Node, Any] = {}  # what was found to be finite when the window began

    def close(self, last: Node, cotangents: dict[Node, Any]) -> None:
        """Check what the walk has come to, release the window, begin the next one."""
        self.check(cotangents)
        stop = self.order.index(last, self.start) + 1
        self._release(stop)
        self.start = stop
        self.cotangents = self.checked = dict(cotangents)

    def end(self, cotangents: dict[Node, Any]) -> None:
        """Check the result of the walk and release the rest."""
        self.check(cotangents)
        self._release(len(self.order))

    def _release(self, stop: int) -> None:
        if self.release:
            for node in self.order[self.start : stop]:
                if self.useful is None or not self.useful.isdisjoint(node.inputs):
                    node.saved = None

    def check(self, cotangents: dict[Node, Any]) -> None:
        """Raise (or warn) if a cotangent is not finite, naming where that began."""
        checked = self.checked
        if all_finite(
            [g for node, g in cotangents.items() if checked.get(node) is not g or type(g) is Outputs]
        ):  # `Outputs` grow
            return
        try:
            report(self._find())
        except NumericalInstabilityError:
            self._release(len(self.order))
            raise

    def _find(self) -> str:
        """Walk the window again, looking at everything, up to the first bad value."""
        cotangents = dict(self.cotangents)
        for node in self.order[self.start :]:
            g = cotangents.pop(node, None)
            if g is None or (self.useful is not None and self.useful.isdisjoint(node.inputs)):
                continue
            if not is_finite(g):
                return describe_backward(node, None, "the sum of its cotangents")
            for parent, gradient in zip(node.inputs, self.visit(node, g)):
                if gradient is None:
                    continue
                if not is_finite(gradient):
                    return describe_backward(node, gradient, None)
                cotangents[parent] = cotangents[parent] + gradient if parent in cotangents else gradient
        return "a gradient is not finite: the sum of contributions to a variable overflows."
