"""A step of several batches as compiled calls: one that adds up gradients, for each batch, and one that updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import modes, tree
from ..autodiff.creation import asarray
from ..autodiff.gradients import Gradients, backward
from ..autodiff.graph import Node
from ..backends import NUMPY, for_device
from ..dtypes import float64
from ..errors import NumericalInstabilityError
from ..functions.filled import zeros
from ..optim.accumulation import checked_weight
from ..tensors.tensor import Tensor
from .compiling import alarm_unless, clip, described, detached, norm_and_check
from .weighing import weight_of

if TYPE_CHECKING:
    from .updating import Updater


class CompiledAccumulation:
    """`run(batch)` adds a batch's gradients to sums that stay where they are; `update()` makes the step of these.

    A batch whose loss or gradients are not finite changes nothing, and is made again operation by operation, which
    raises what an eager one would raise. So does an update.
    """

    def __init__(self, updater: Updater, is_required: bool) -> None:
        from ..compiler.calling import Compiled

        self._updater = updater
        self._is_required = is_required
        self.failure = ""
        self._sums: dict[Node, Tensor] = {}  # by the variable that they are gradients of
        self._reached: set[int] = set()  # the numbers of those that the batches so far have a gradient for
        reads = {"model": updater.model, "loss": updater.loss}
        self._add = Compiled(lambda *batch: self._added(*batch), name="the step's batch", reads=reads)
        self._update = Compiled(lambda *given: self._updated(*given), name="the step's update")

    def run(self, batch: tuple[Any, ...]) -> tuple[Any, Any, None, float, bool] | None:
        """The output, the loss, no norm yet, the loss's weight, whether it is a sum; None if not compiled."""
        self._updater.keep_buffers()
        try:
            output, loss, reached, *weight = self._add(*batch)
        except (NumericalInstabilityError, MemoryError):
            raise
        except Exception as error:
            self._fail(error)
            return None
        ledger = self._updater.accumulation
        found = checked_weight(weight[0] if weight else weight_of(batch[-1]))
        ledger.weight += found
        ledger.micro_batches += 1
        self._reached.update(reached)
        return output, loss, None, found, bool(weight)

    def update(self) -> float | None:
        """Update the parameters with what was added up; the norm of the gradient, or None if not compiled."""
        ledger = self._updater.accumulation
        ledger.check_weight()
        backend: Any = for_device(self._updater.device)[0]
        dtype = float64 if backend is NUMPY else backend.widest_float()
        factor = asarray(1.0 / ledger.weight, dtype=dtype, device=self._updater.device)
        try:
            norm = float(self._update(factor, tuple(sorted(self._reached))))
        except (NumericalInstabilityError, MemoryError):
            raise
        except Exception as error:
            self._fail(error)
            return None
        self._reached.clear()
        ledger.reset()
        return norm

    @property
    def programs(self) -> int:
        """How many were made, of both kinds."""
        return self._add.traces + self._update.traces

    def plan(self, batch: tuple[Any, ...], device: str | None) -> dict[str, int]:
        """The memory that a batch will need."""
        return self._add.plan_on(device, *batch)

    def forget(self) -> None:
        """Drop what was added up."""
        self._reached.clear()
        for total in self._sums.values():
            total[...] = 0.0

    def _fail(self, error: Exception) -> None:
        """Have the rest done without being compiled, with what was added up so far."""
        if self._is_required:
            raise error
        self.failure = described(error)
        sums = list(self._sums.items())
        gradients = Gradients()
        gradients._by_node.update([sums[number] for number in sorted(self._reached)])
        self._updater.accumulation.resume(gradients)

    # -- what is compiled --------------------------------------------------------------------------

    def _added(self, *batch: Any) -> tuple[Any, ...]:
        """The output, the loss, which of the sums were added to, and the weight if the loss gave one."""
        trace = modes.tracing()
        output, loss, weight, is_sum = self._updater.computed(batch)
        if trace is None:
            checked_weight(weight)
        else:
            trace.check([loss._raw])  # whatever the guard's mode
        if isinstance(weight, Tensor):
            trace.check([alarm_unless((weight >= 0) & (weight < float("inf")))._raw])
        reached = []
        for node, gradient in backward(loss if is_sum else loss * weight)._by_node.items():
            total = self._sum_for(node, gradient)
            total += gradient
            reached.append(list(self._sums).index(node))
        result = tree.map(detached, output), loss.detach(), tuple(reached)
        return (*result, detached(weight)) if is_sum else result

    def _sum_for(self, node: Node, gradient: Tensor) -> Tensor:
        """Where the gradients of a variable are added up."""
        if node not in self._sums:
            with modes.changed(tracing=None):
                self._sums[node] = zeros(gradient.shape, dtype=gradient.dtype, device=self._updater.device)
        return self._sums[node]

    def _updated(self, factor: Any, reached: tuple[int, ...]) -> Any:
        """The norm; `factor` is one over the weight of all batches."""
        updater, trace = self._updater, modes.tracing()
        sums = list(self._sums.items())
        gradients = Gradients()
        for number in reached:
            node, total = sums[number]
            gradients._by_node[node] = total * factor.astype(total.dtype)
        if trace is None:
            norm: Any = updater.update(gradients)
        else:
            norm, is_right = norm_and_check(gradients)
            trace.check([is_right._raw])
            if updater.clip_norm is not None:
                clip(gradients, norm, updater.clip_norm)
            updater.optimizer.step(gradients)
        for number in reached:
            sums[number][1][...] = 0.0
        return norm
