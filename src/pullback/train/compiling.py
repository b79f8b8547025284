"""A training step as one compiled call, and the decision whether there is one."""

from __future__ import annotations

import sys
import warnings
from os.path import basename
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from .. import modes, tree
from ..autodiff import guard
from ..autodiff.creation import asarray
from ..autodiff.gradients import Gradients, backward
from ..autodiff.graph import is_library
from ..errors import NumericalInstabilityError, TraceError
from ..functions.elementwise import maximum, minimum, sqrt, square
from ..functions.sorting import where
from ..targets import target_for
from ..tensors.tensor import Tensor
from .weighing import finite_value, weight_of

if TYPE_CHECKING:
    from .updating import Updater

_RANGE = 1e-30, 1e30  # of a sum of squares, so that none of them has vanished or overflowed


class NotCompiledWarning(UserWarning):
    """A step could not be compiled and runs operation by operation. It says why; `compile=False` silences it."""


def tell(caller: str, reason: str) -> None:
    """Warn, at the user's line, that what could not be compiled runs all the same."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{caller}: steps run without being compiled: {reason.rstrip('.')}. Pass compile=False to have it so without "
        "this notice.",
        NotCompiledWarning,
        stacklevel=level,
    )


def described(error: Exception) -> str:
    """Why tracing or compiling failed: a trace tells the user; anything else is to be reported, with its place."""
    if isinstance(error, TraceError):
        return str(error)
    place = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {basename(place.filename)}:{place.lineno}, {place.name}: {error}".rstrip(": ")


def why_not(scaler: Any, device: Any) -> str | None:
    """Why steps with these settings are not compiled, or None."""
    target = target_for(device)
    if target is None:
        return f"the model is on {device!r}, and programs are for 'numpy', PyTorch's and JAX's devices"
    if (missing := target.missing()) is not None:
        return f"compiling needs {missing}"
    if scaler is not None:
        return "a loss scaler decides about each step (scaler)"
    if guard.mode()[0] == "trace":
        return 'guard("trace") looks at every operation'
    return None


class CompiledStep:
    """`run(batch)` does all of a step in one call: forward, backward, clipping and the optimizer's update.

    A step whose loss or gradients are not finite changes nothing, and is made again operation by operation, which
    raises what an eager step would raise.
    """

    def __init__(self, updater: Updater, is_required: bool) -> None:
        from ..compiler.calling import Compiled

        self._updater = updater
        self._is_required = is_required
        self.failure = ""
        self._compiled = Compiled(
            lambda *batch: self._step(*batch), name="the step", reads={"model": updater.model, "loss": updater.loss}
        )

    def run(self, batch: tuple[Any, ...]) -> tuple[Any, Any, float, float, bool] | None:
        """The output, the loss, the gradient's norm, the loss's weight, whether it is a sum; None if not compiled."""
        try:
            output, loss, norm, *weight = self._compiled(*batch)
            return output, loss, float(norm), float(weight[0]) if weight else weight_of(batch[-1]), bool(weight)
        except (NumericalInstabilityError, MemoryError):
            raise
        except Exception as error:
            if self._is_required:
                raise
            self.failure = described(error)
        return None

    @property
    def programs(self) -> int:
        """How many were made."""
        return self._compiled.traces

    def plan(self, batch: tuple[Any, ...], device: str | None) -> dict[str, int]:
        """The memory that a step will need."""
        return self._compiled.plan_on(device, *batch)

    # -- the step ----------------------------------------------------------------------------------

    def _step(self, *batch: Any) -> tuple[Any, ...]:
        """The output, the loss and the norm; and the weight if the loss gave one."""
        updater = self._updater
        trace = modes.tracing()
        if trace is None:
            updater.keep_buffers()
        output, loss, weight, is_sum = updater.computed(batch)
        mean = loss / weight if is_sum else loss
        if trace is None:
            updater.check_weight(weight, is_sum)
        gradients = backward(mean)
        if trace is None:
            finite_value(loss)
            norm = updater.update(gradients)
            return tree.map(detached, output), loss.detach(), norm, *([weight] if is_sum else [])
        norm, is_right = norm_and_check(gradients)
        # Looked at whatever the guard's mode: an alarm leaves everything as it was, and runs the step eagerly.
        trace.check([loss._raw, is_right._raw])
        if isinstance(weight, Tensor):
            trace.check([alarm_unless(weight > 0)._raw])
        if updater.clip_norm is not None:
            clip(gradients, norm, updater.clip_norm)
        updater.optimizer.step(gradients)
        result = tree.map(detached, output), loss.detach(), norm
        return (*result, asarray(weight).detach().astype(trace.widest_float)) if is_sum else result


def norm_and_check(gradients: Gradients) -> tuple[Any, Any]:
    """The joint L2 norm of traced gradients, and an alarm if it is wrong: a sum of squares may vanish or overflow."""
    total: Any = None
    for gradient in gradients:
        wide = gradient.astype("float32") if gradient.dtype.itemsize < 4 else gradient
        part = square(wide).sum()
        total = part if total is None else total + part
    if total is None:
        raise TraceError("the loss depends on no parameter")
    lowest, highest = _RANGE
    return sqrt(total), alarm_unless((total > lowest) & (total < highest))


def alarm_unless(condition: Any) -> Any:
    """Something that is finite if the condition holds, for a trace to check."""
    return where(condition, 0.0, float("inf"))


def clip(gradients: Gradients, norm: Any, limit: float) -> None:
    """Scale traced gradients of this norm so that it is at most `limit`."""
    factor = minimum(float(limit) / maximum(norm, float(limit)), 1.0)
    for gradient in gradients:
        gradient *= factor.astype(gradient.dtype)


def detached(part: Any) -> Any:
    """A part of an output without its graph."""
    return part.detach() if isinstance(part, Tensor) else part
