"""One update of the parameters: batches forward and backward, the gradients' norm, the optimizer's step."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Callable

import numpy as np

from .. import tree
from ..autodiff.creation import asarray
from ..autodiff.gradients import Gradients, backward
from ..backends import NUMPY
from ..errors import ConfigurationError, NumericalInstabilityError
from ..functions.carry import is_symbolic
from ..modes import no_grad
from ..optim.accumulation import Accumulation
from ..tensors.tensor import Tensor
from .accumulating import CompiledAccumulation
from .compiling import CompiledStep, tell, why_not
from .weighing import total_of, weight_of

_SMALLEST_SCALE = 2.0**-24  # gradients that overflow even so are infinite for another reason


class Updater:
    """Turns batches into updates: `add` up to `accumulate` of them, then `apply`.

    An error in either leaves parameters, buffers and the optimizer as they were before the first `add`.
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[..., Any],
        optimizer: Any,
        clip_norm: float | None,
        accumulate: int,
        scaler: Any,
        autocast: Any,
        average: Any,
        compile: bool | None = False,
    ) -> None:
        if clip_norm is not None and not (isinstance(clip_norm, (int, float)) and clip_norm > 0):
            raise ConfigurationError(f"Trainer: clip_norm must be positive, got {clip_norm!r}.")
        if not hasattr(accumulate, "__index__") or accumulate < 1:
            raise ConfigurationError(f"Trainer: accumulate must be at least 1 batch, got {accumulate!r}.")
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.clip_norm = clip_norm
        self.accumulate = accumulate
        self.scaler = scaler
        self.average = average
        self._precision = _precision(autocast)
        self.accumulation: Any = None
        if accumulate > 1:
            self.accumulation = Accumulation(scaler)
        self._gradients: Gradients | None = None
        self._buffers: list[tuple[Tensor, Tensor]] = []  # with their values before the update
        self._norm: float | None = None  # of an update that is made already
        self._compile = compile
        self._compiled: Any = None
        self.why_not_compiled: str | None = None  # although nobody has said not to

    def begin(self) -> None:
        """Get ready for a run: know where the model is, and which buffers it has."""
        self.device = next((parameter.device for parameter in self.model.parameters()), None)
        self._mutable = list(self.model.buffers())
        self.forget()

    def choose(self) -> None:
        """Decide whether the steps of a run are compiled."""
        self._compiled = self.why_not_compiled = None
        if self._compile is not False:
            self.why_not_compiled = why_not(self.scaler, self.device)
            if self.why_not_compiled is None:
                kind = CompiledStep if self.accumulate == 1 else CompiledAccumulation
                self._compiled = kind(self, is_required=bool(self._compile))
            elif self._compile:
                raise ConfigurationError(f"Trainer: compile=True, but {self.why_not_compiled}.")

    def forget(self) -> None:
        """Drop what was added, after an error."""
        self._gradients = self._norm = None
        if self.accumulation is not None:
            self.accumulation.reset()
        if isinstance(self._compiled, CompiledAccumulation):
            self._compiled.forget()
        if self.scaler is not None:
            self.scaler.forget()
        with no_grad():
            for buffer, before in self._buffers:
                buffer[...] = before
        self._buffers = []

    def prepared(self, batch: Any) -> tuple[Any, ...]:
        """The parts of a batch as tensors on the model's device."""
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            what = f"{len(batch)} parts" if isinstance(batch, (tuple, list)) else f"a {type(batch).__name__}"
            raise ConfigurationError(
                f"Trainer: a batch is a tuple (inputs..., target), got {what}. "
                "Arrays are cut into batches by `pb.data.Batches((x, y), batch_size=32)`."
            )
        return tuple([asarray(part, device=self.device) for part in batch])

    def plan(self, batch: Any, device: str | None) -> dict[str, int]:
        """The memory of a compiled step, or of one batch of it."""
        if self._compiled is None:
            why = self.why_not_compiled or "compile=False says so"
            raise ConfigurationError(f"Trainer: only compiled steps are planned, and these are not: {why}.")
        plan: dict[str, int] = self._compiled.plan(self.prepared(batch), device)
        return plan

    @property
    def programs(self) -> int:
        """How many programs were made for the steps of this run."""
        return 0 if self._compiled is None else self._compiled.programs

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the model has the average of its parameters, if one is kept."""
        return nullcontext() if self.average is None else self.average.applied()

    def computed(self, batch: tuple[Any, ...]) -> tuple[Any, Any, Any, bool]:
        """The model's output, the loss and the weight of a prepared batch; whether the loss is a sum, not a mean.

        The weight is a number, or while the step is traced the tensor that the loss gave.
        """
        *inputs, target = batch
        with self._precision():
            output = self.model(*inputs)
            loss = self.loss(output, target)
        if isinstance(loss, tuple):
            is_known = not (isinstance(loss[1], Tensor) and is_symbolic(loss[1]))
            return output, loss[0], float(loss[1]) if is_known else loss[1], True
        return output, loss, weight_of(target), False

    def add(self, batch: tuple[Any, ...]) -> tuple[Any, float, float]:
        """Go through a prepared batch forward and backward; its output, detached, and its losses' sum and weight.

        A compiled step of one batch makes the update at once; `apply` then has nothing left to do about the parameters.
        """
        with np.errstate(all="ignore"):  # what becomes of an overflow is looked at below
            done = None if self._compiled is None else self._compiled.run(batch)
            if done is None:
                result = self._add(batch)
                if self._compiled is not None:  # so it can be done, but not compiled
                    self._give_up()
                return result
        output, loss, self._norm, weight, is_sum = done
        if self._norm is not None:
            self._buffers = []
        return output, total_of(loss, weight, is_sum), weight

    def _give_up(self) -> None:
        """Go on without compiling, and say why."""
        self.why_not_compiled, self._compiled = self._compiled.failure, None
        tell("Trainer", self.why_not_compiled)

    def _add(self, batch: tuple[Any, ...]) -> tuple[Any, float, float]:
        self.keep_buffers()
        output, loss, weight, is_sum = self.computed(batch)
        if self.accumulation is not None:
            self.accumulation.backward(loss if is_sum else loss * weight, weight)
        else:
            self.check_weight(weight, is_sum)
            mean = loss / weight if is_sum else loss
            self._gradients = backward(mean if self.scaler is None else self.scaler.scale(mean))
        detached = output.detach() if isinstance(output, Tensor) else tree.map(_detached, output)
        return detached, total_of(loss, weight, is_sum), weight

    def keep_buffers(self) -> None:
        """Remember the model's buffers, which `forget` then puts back."""
        if not self._buffers and self._mutable:
            self._buffers = [(buffer, buffer.detach()) for buffer in self._mutable]

    def check_weight(self, weight: float, is_sum: bool) -> None:
        """Refuse to divide a sum by this weight."""
        if is_sum and not weight > 0:
            raise ConfigurationError(f"Trainer: the loss gave a weight of {weight}; it must be positive.")

    def apply(self) -> float:
        """Update the parameters with what was added; the norm of the gradient before it was clipped."""
        with np.errstate(all="ignore"):
            norm = self._norm
            if isinstance(self._compiled, CompiledAccumulation):
                norm = self._compiled.update()
                if norm is None:
                    self._give_up()
            if norm is None:
                norm = self.update(self._gradients if self.accumulation is None else self.accumulation.gradients())
            if self.average is not None:
                self.average.update()
        self._gradients = self._norm = None
        self._buffers = []
        return norm

    def update(self, gradients: Any) -> float:
        """Update the parameters with these gradients; their norm before they were clipped."""
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer, gradients)
        norm = norm_of(gradients)
        if not math.isfinite(norm) and self.scaler is None:
            raise NumericalInstabilityError(f"the norm of the gradient is {norm}")
        if self.clip_norm is not None and self.clip_norm < norm < math.inf:
            gradients.scale(self.clip_norm / norm)
        if self.scaler is None:
            self.optimizer.step(gradients)
        else:
            taken = self.scaler.step(self.optimizer, gradients)
            self.scaler.update()
            if not taken and self.scaler.get_scale() < _SMALLEST_SCALE:
                raise NumericalInstabilityError("the gradient is not finite, however small the scale of the loss")
        return norm


def _detached(part: Any) -> Any:
    return part.detach() if isinstance(part, Tensor) else part


def norm_of(gradients: Gradients) -> float:
    """The joint L2 norm of the gradients.

    >>> import pullback as pb
    >>> from pullback.train.updating import norm_of
    >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
    >>> norm_of(pb.backward((w * w).sum() / 2))
    5.0
    """
    total = 0.0
    for gradient in gradients:
        raw = gradient._raw
        if type(raw) is not np.ndarray or raw.dtype.kind != "f":
            break
        total += float(NUMPY.xp.sum_of_squares(raw))
    else:
        if 1e-30 < total < 1e30:  # else squares have vanished or overflowed
            return math.sqrt(total)
    return float(gradients.global_norm().item())


def _precision(autocast: Any) -> Callable[[], AbstractContextManager[Any]]:
    """What the forward computation runs in."""
    if autocast is None:
        return nullcontext
    from ..autodiff.autocast import autocast as block

    dtype = autocast.dtype if isinstance(autocast, block) else autocast
    block(dtype)  # refuses what is no half precision now, not at the first step
    return lambda: block(dtype)
