"""`MlpGradients`: the buffers of a backward pass, and the calls that fill them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DtypeError, NumericalInstabilityError, ShapeError
from .activations import softmax_backward
from .arrays import aligned_zeros
from .layout import Layout, positive
from .scratch import ForwardPlan, Rows, Scratch, product
from .straight import Input, Step, in_a_row, sample_of

if TYPE_CHECKING:
    from .network import Mlp

__all__ = ["MlpGradients"]

_FUSED = 1 << 15  # elements up to which derivatives of several layers are computed at once, while they fit a cache
_CHUNK = 1 << 12


class MlpGradients:
    """The gradients of an `Mlp` for batches of up to `batch` samples; also made by `mlp.gradients(batch)`.

    Allocate them once and use them for every step. The loss writes dL/d(output) into the first rows of `d_output`,
    then `mlp.backward` overwrites the rest. Without `input_gradient` the gradient of the input is not computed.

    >>> import numpy as np, pullback as pb
    >>> mlp = pb.Mlp([3, 8, 2], seed=0)
    >>> scratch, grads = mlp.scratch(), mlp.gradients()
    >>> x = np.ones(3, np.float32)
    >>> y = mlp.forward(x, scratch)
    >>> grads.d_output[...] = y - 1.0
    >>> mlp.backward(x, scratch, grads)
    >>> grads.d_weights(0).shape, grads.d_biases(0).shape, grads.d_input.shape
    ((8, 3), (8,), (3,))
    """

    __slots__ = (
        "batch", "_layout", "_flat", "_fresh", "_d_output", "_d_input", "_shown", "_work", "_plans", "_adding",
        "_rooms", "_fitting",
    )  # fmt: skip

    def __init__(self, mlp: Mlp, batch: int = 1, input_gradient: bool = True) -> None:
        self._allocate(mlp._layout, positive("batch", batch), input_gradient)

    def _allocate(self, layout: Layout, batch: int, input_gradient: bool) -> None:
        self.batch = batch
        self._layout = layout
        self._flat = aligned_zeros(layout.size, layout.dtype)
        self._fresh: Any = None  # what `backward_accumulate` adds; allocated when first needed
        self._d_output = aligned_zeros((batch, layout.sizes[-1]), layout.dtype)
        self._d_input = aligned_zeros((batch, layout.sizes[0]), layout.dtype) if input_gradient else None
        self._shown: Any = self._d_input
        self._work = aligned_zeros(
            (2, batch * layout.width), layout.dtype
        )  # gradients at, and derivatives of, activations
        self._plans: dict[ForwardPlan, BackwardPlan] = {}
        self._adding: dict[ForwardPlan, BackwardPlan] = {}
        self._rooms: dict[str, Any] = {}
        self._fitting: Any = None  # the loss and the shapes that were checked last

    # -- what users read and write ------------------------------------------------------------------

    @property
    def d_output(self) -> np.ndarray[Any, Any]:
        """The (batch, out) array that the loss writes dL/d(output) into, a row per sample."""
        return self._d_output

    @property
    def d_input(self) -> np.ndarray[Any, Any]:
        """dL/d(input) as of the most recent backward, in the shape of its input."""
        if self._shown is None:
            raise ShapeError("d_input: these gradients were made with `input_gradient=False`.")
        return self._shown

    @property
    def parameters(self) -> np.ndarray[Any, Any]:
        """The gradients of all parameters as one vector, in the order of `mlp.parameters`."""
        return self._flat

    def d_weights(self, layer: int) -> np.ndarray[Any, Any]:
        """The gradient of a layer's weights, (out, in); a view that can be written to."""
        return self._layout.weights(self._flat, layer)

    def d_biases(self, layer: int) -> np.ndarray[Any, Any]:
        """The gradient of a layer's biases, (out,); a view that can be written to."""
        return self._layout.biases(self._flat, layer)

    def zero_params(self) -> None:
        """Set the gradients of all parameters to zero."""
        self._flat.fill(0)

    def scale_params(self, scale: float) -> None:
        """Multiply the gradients of all parameters by the finite number `scale`."""
        if not math.isfinite(scale):
            raise ValueError(f"scale_params: the factor must be finite, got {scale!r}.")
        np.multiply(self._flat, float(scale), self._flat)

    def global_l2_norm_params(self) -> float:
        """The L2 norm of the gradients of all parameters together, whatever their size.

        >>> import pullback as pb
        >>> grads = pb.Mlp([2, 1]).gradients()
        >>> grads.d_weights(0)[...] = [3e30, 4e30]
        >>> round(grads.global_l2_norm_params() / 1e30, 6)
        5.0
        """
        flat = self._flat
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.dot(flat, flat))
        if 1e-25 < total < 1e35:
            return math.sqrt(total)
        largest = max(float(np.maximum.reduce(flat)), -float(np.minimum.reduce(flat)))
        if largest == 0 or not math.isfinite(largest):
            return largest if total == total else math.nan
        chunk = self._room("chunk", (_CHUNK,), np.dtype(np.float64))
        total = 0.0
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            scaled = chunk[: part.size]
            np.copyto(scaled, part)
            np.divide(scaled, largest, scaled)
            total += float(np.dot(scaled, scaled))
        return largest * math.sqrt(total)

    def clip_global_norm_params(self, max_norm: float) -> float:
        """Scale the gradients of all parameters so that their joint norm is at most `max_norm`; return the norm before.

        A norm that is not finite is an error, and leaves the gradients as they are.

        >>> import pullback as pb
        >>> grads = pb.Mlp([2, 1]).gradients()
        >>> grads.d_weights(0)[...] = [3.0, 4.0]
        >>> grads.clip_global_norm_params(1.0)
        5.0
        >>> round(grads.global_l2_norm_params(), 6)
        1.0
        """
        if not max_norm > 0:
            raise ValueError(f"clip_global_norm_params: max_norm must be positive, got {max_norm!r}.")
        norm = self.global_l2_norm_params()
        if not math.isfinite(norm):
            raise NumericalInstabilityError(f"clip_global_norm_params: the norm of the gradients is {norm}.")
        self._shrink(norm, max_norm)
        return norm

    # -- copies -------------------------------------------------------------------------------------

    def copy_from(self, other: MlpGradients) -> None:
        """Take over all values of `other`, which must be of the same sizes and batch, without allocating anything."""
        if not isinstance(other, MlpGradients):
            raise DtypeError(f"copy_from: expected MlpGradients, got {type(other).__name__}.")
        if other._kind() != self._kind():
            raise ShapeError(f"copy_from: cannot copy {other!r} to {self!r}.")
        np.copyto(self._flat, other._flat)
        np.copyto(self._d_output, other._d_output)
        if self._d_input is not None:
            np.copyto(self._d_input, other._d_input)
            self._show(other._shown.shape)

    def __copy__(self) -> MlpGradients:
        copied = object.__new__(MlpGradients)
        copied._allocate(self._layout, self.batch, self._d_input is not None)
        copied.copy_from(self)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> MlpGradients:
        return self.__copy__()

    def _kind(self) -> tuple[Any, ...]:
        return (*self._layout.description, self.batch, self._d_input is not None)

    def __repr__(self) -> str:
        norm = self.global_l2_norm_params()
        return f"MlpGradients({self._layout!r}, batch={self.batch}, norm={norm:.6g})"

    def _shrink(self, norm: float, max_norm: float) -> None:
        """Bring gradients of this norm down to `max_norm`; a factor too small for the dtype is applied in turns."""
        if norm > max_norm:
            factor = max_norm / norm
            turns = 1 + int(-math.log10(factor) / 30)
            for _ in range(turns):
                np.multiply(self._flat, factor ** (1 / turns), self._flat)

    # -- for backward and the losses ------------------------------------------------------------------

    def _room(self, role: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array to work in, of memory that is kept; no role asks for more than its first caller's batch allows."""
        size = math.prod(shape)
        room = self._rooms.get(role)
        if room is None or room.size < size or room.dtype != dtype:
            room = self._rooms[role] = np.empty(size, dtype)
        return room[:size].reshape(shape)

    def _counting(self) -> Any:
        """The numbers from 0 to the batch."""
        if "counting" not in self._rooms:
            self._rooms["counting"] = np.arange(self.batch, dtype=np.intp)
        return self._rooms["counting"]

    def _show(self, shape: tuple[int, ...]) -> None:
        """Let `d_input` have this shape."""
        if self._d_input is not None and self._shown.shape != shape:
            samples = 1 if len(shape) == 1 else shape[0]
            self._shown = self._d_input[:samples].reshape(shape)

    def _plan(self, plan: ForwardPlan, scratch: Scratch, accumulate: bool) -> BackwardPlan:
        """The backward plan that belongs to a forward plan, made if there is none yet."""
        if self._layout.description != scratch._mlp._layout.description:
            raise ShapeError(f"backward: these gradients are for {self._layout!r}, not for {scratch._mlp._layout!r}.")
        if plan.samples > self.batch:
            raise ShapeError(
                f"backward: x has {plan.samples} samples; these gradients take up to {self.batch}. "
                f"Write `mlp.gradients(batch={plan.samples})`."
            )
        if accumulate and self._fresh is None:
            self._fresh = aligned_zeros(self._flat.size, self._flat.dtype)
        target = self._fresh if accumulate else self._flat
        plans = self._adding if accumulate else self._plans
        made = plans[plan] = BackwardPlan(scratch._mlp, plan, self, target)
        return made


class BackwardPlan:
    """The calls of a backward pass for one shape of input: `run(x)` fills the gradients."""

    __slots__ = ("run",)

    def __init__(self, mlp: Mlp, plan: ForwardPlan, grads: MlpGradients, target: Any) -> None:
        layout, samples = mlp._layout, plan.samples
        deltas = Rows(layout, samples, grads._work[0])
        factors = Rows(layout, samples, grads._work[1])
        ones = np.ones(samples, layout.dtype)
        d_output = grads._d_output[0] if samples == 1 else grads._d_output[:samples]
        groups = {group.stop - 1: group for group in _groups(mlp, samples)}
        steps: list[Step] = []
        for layer in reversed(range(len(layout))):
            if layer in groups:
                steps += _factors(groups[layer], plan, factors)
            activation = layout.activations[layer]
            is_last = layer == len(layout) - 1
            delta, matrix = deltas.values(layer), deltas.matrix(layer)
            cotangent = d_output if is_last else delta
            if activation.factor is None:
                steps += softmax_backward(plan.outputs.values(layer), cotangent, delta, factors.values(layer))
            elif activation.name != "identity":
                steps.append((np.multiply, (cotangent, factors.values(layer), delta)))
            elif is_last and samples == 1:
                steps.append((np.copyto, (delta, cotangent)))
            elif is_last:
                delta = matrix = cotangent
            biases = layout.biases(target, layer)
            steps.append((np.copyto, (biases, delta)) if samples == 1 else (np.dot, (ones, delta, biases)))
            weights = layout.weights(mlp.parameters, layer)
            outputs, inputs = weights.shape
            d_weights = layout.weights(target, layer)
            if layer:
                steps.append((product(outputs * inputs), (matrix.T, plan.outputs.matrix(layer - 1), d_weights)))
                steps.append((product(samples * inputs), (delta, weights, deltas.values(layer - 1))))
            elif grads._d_input is not None:
                d_input = grads._d_input[0] if samples == 1 else grads._d_input[:samples]
                steps.append((product(samples * inputs), (delta, weights, d_input)))
        x: Any = Input()
        if plan.first_input is not None:
            steps.append((np.copyto, (plan.first_input[0], sample_of(plan.shape))))
            x = plan.first_input
        steps.append((product(d_weights.size), (matrix.T, x, d_weights)))
        self.run = in_a_row(steps)


def _groups(mlp: Mlp, samples: int) -> list[range]:
    """Runs of layers whose derivatives are computed together: neighbours of one activation, while they are small."""
    layout = mlp._layout
    groups: list[range] = []
    for layer, activation in enumerate(layout.activations):
        if groups and layout.activations[groups[-1].start] is activation:
            width = sum(layout.sizes[groups[-1].start + 1 : layer + 2])
            if width * samples <= _FUSED:
                groups[-1] = range(groups[-1].start, layer + 1)
                continue
        groups.append(range(layer, layer + 1))
    return [group for group in groups if layout.activations[group.start].factor is not None]


def _factors(group: range, plan: ForwardPlan, factors: Rows) -> list[Step]:
    """The steps that compute the derivatives of a group's activations from what the forward pass left."""
    activation: Any = plan.activations[group.start]
    first, end = group.start, group.stop
    stretches = [rows.stretch(first, end) for rows in (plan.inputs, plan.outputs, plan.kept, factors)]
    steps: list[Step] = activation.factor(*stretches)
    return steps
