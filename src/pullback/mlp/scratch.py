"""`Scratch`: the buffers of a forward pass, and the calls that fill them, decided once for each shape of input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ..errors import DtypeError, ShapeError
from .arrays import aligned_zeros
from .layout import Layout, positive
from .straight import Input, Step, in_a_row, sample_of

if TYPE_CHECKING:
    from .network import Mlp

__all__ = ["Rows", "Scratch", "product"]


class Scratch:
    """The buffers for forward passes of `mlp` with up to `batch` samples; also made by `mlp.scratch(batch)`.

    Allocate it once and use it for every step. One thread at a time may use it.

    >>> import numpy as np, pullback as pb
    >>> mlp = pb.Mlp([3, 8, 2], seed=0)
    >>> scratch = pb.Scratch(mlp, batch=4)
    >>> mlp.forward(np.ones((4, 3), np.float32), scratch).shape
    (4, 2)
    """

    __slots__ = ("batch", "_mlp", "_plans", "_current", "_buffers")

    def __init__(self, mlp: Mlp, batch: int = 1) -> None:
        layout = mlp._layout
        self.batch = positive("batch", batch)
        self._mlp = mlp
        self._plans: dict[tuple[int, ...], ForwardPlan] = {}
        self._current: ForwardPlan | None = None
        self._buffers = Buffers(layout, self.batch)

    def _plan(self, x: Any, name: str) -> ForwardPlan:
        """The plan for inputs like `x`, made if there is none yet."""
        layout = self._mlp._layout
        if not isinstance(x, np.ndarray):
            raise DtypeError(f"{name}: x must be a NumPy array, got {type(x).__name__}. Write `np.asarray(x)`.")
        if x.dtype != layout.dtype:
            raise DtypeError(
                f"{name}: x is {x.dtype.name}, this Mlp is {layout.dtype.name}. "
                f"Write `x.astype(np.{layout.dtype.name})`."
            )
        width = layout.sizes[0]
        if x.ndim not in (1, 2) or x.shape[-1] != width:
            raise ShapeError(f"{name}: x has shape {x.shape}, expected ({width},) or (samples, {width}).")
        samples = 1 if x.ndim == 1 else len(x)
        if not 1 <= samples <= self.batch:
            raise ShapeError(
                f"{name}: x has {samples} samples; this scratch takes from 1 to {self.batch}. "
                f"Write `mlp.scratch(batch={max(samples, 1)})`."
            )
        plan = self._plans.get(x.shape)
        if plan is None:
            plan = self._plans[x.shape] = ForwardPlan(self._mlp, self._buffers, x.shape)
        return plan

    def __repr__(self) -> str:
        return f"Scratch({self._mlp._layout!r}, batch={self.batch})"


class Rows:
    """Cuts a flat buffer into the outputs of each layer, `samples` rows each, with nothing in between.

    Neighbouring layers of one activation are then one array to NumPy, whatever the number of samples. A single sample
    has a row of zeros below it: a product of two rows is faster than one of a single row.
    """

    __slots__ = ("_flat", "_ends", "samples", "rows")

    def __init__(self, layout: Layout, samples: int, flat: Any = None) -> None:
        self.samples = samples
        self.rows = max(samples, 2)
        self._flat = aligned_zeros(2 * layout.width, layout.dtype) if samples == 1 else flat
        self._ends = [0]
        for outputs in layout.sizes[1:]:
            self._ends.append(self._ends[-1] + self.rows * outputs)

    def matrix(self, layer: int) -> Any:
        """All rows of a layer, for products; with the row of zeros."""
        return self.stretch(layer, layer + 1).reshape(self.rows, -1)

    def values(self, layer: int) -> Any:
        """What counts of a layer: (samples, out), or (out,) of a single sample."""
        matrix = self.matrix(layer)
        return matrix[0] if self.samples == 1 else matrix

    def stretch(self, first: int, end: int) -> Any:
        """Several layers as one vector."""
        return self._flat[self._ends[first] : self._ends[end]]


class Buffers:
    """The memory that the plans of a scratch share."""

    __slots__ = ("outputs", "inputs", "kept", "work", "turned_input", "turned_output")

    def __init__(self, layout: Layout, batch: int) -> None:
        keeps = any(activation.keeps_input for activation in layout.activations)
        size = batch * layout.width
        self.outputs = aligned_zeros(size, layout.dtype)
        self.inputs = aligned_zeros(size, layout.dtype) if keeps else self.outputs
        self.kept = aligned_zeros(size, layout.dtype) if keeps else self.outputs
        self.work = aligned_zeros((3, batch * max(layout.sizes)), layout.dtype)
        turned = any(_is_turned(min(batch, _MOST_TURNED), *pair) for pair in zip(layout.sizes, layout.sizes[1:]))
        most = min(batch, _MOST_TURNED) * max(layout.sizes) if turned else 0
        self.turned_input = aligned_zeros(most, layout.dtype)
        self.turned_output = aligned_zeros(most, layout.dtype)


# `x @ weights.T`, both row-major, is what BLAS libraries are slowest at for some samples and larger layers: up to four
# times slower than `weights @ x.T` with `x.T` copied. The choice depends on shapes alone, so that results repeat.
_FEWEST_TURNED, _MOST_TURNED = 5, 48

# Up to so many multiplications BLAS libraries have a faster way; results of few columns are computed in such parts.
_SMALL, _NARROW = 1 << 18, 16


def _is_turned(samples: int, inputs: int, outputs: int) -> bool:
    return _FEWEST_TURNED <= samples <= _MOST_TURNED and inputs >= 64 and outputs >= 128


def _parts(samples: int, inputs: int, outputs: int) -> list[slice]:
    """The rows that are multiplied at once."""
    rows = _SMALL // (inputs * outputs)
    if outputs > _NARROW or rows < 32:
        return [slice(None)]
    return [slice(start, start + rows) for start in range(0, samples, rows)]


def product(size: int) -> Callable[..., Any]:
    """The faster of NumPy's products for a result of `size` elements: `dot` starts sooner, but clears the result."""
    return np.matmul if size >= 1 << 13 else np.dot


class ForwardPlan:
    """The calls of a forward pass for one shape of input: `run(x)` returns the output."""

    __slots__ = ("shape", "dtype", "samples", "activations", "outputs", "inputs", "kept", "first_input", "run")

    def __init__(self, mlp: Mlp, buffers: Buffers, shape: tuple[int, ...]) -> None:
        layout = mlp._layout
        self.shape = shape
        self.dtype = layout.dtype
        self.activations = layout.activations
        self.samples = samples = 1 if len(shape) == 1 else shape[0]
        self.outputs = Rows(layout, samples, buffers.outputs)
        separate = any(activation.keeps_input for activation in layout.activations)
        self.inputs = Rows(layout, samples, buffers.inputs) if separate else self.outputs
        self.kept = Rows(layout, samples, buffers.kept) if separate else self.outputs
        self.first_input = aligned_zeros((2, layout.sizes[0]), layout.dtype) if samples == 1 else None
        steps: list[Step] = []
        for layer, activation in enumerate(layout.activations):
            weights, biases = layout.weights(mlp.parameters, layer), layout.biases(mlp.parameters, layer)
            out = self.outputs.values(layer)
            z = self.inputs.values(layer) if activation.keeps_input else out
            if layer:
                previous = self.outputs.values(layer - 1)
            else:
                previous = sample_of(shape) if samples == 1 else Input()
            steps += _linear(weights, biases, previous, z, buffers, samples)
            work = [buffer[: z.size].reshape(z.shape) for buffer in buffers.work]
            steps += activation.forward(z, out, self.kept.values(layer), work)
        out = self.outputs.values(len(layout) - 1)
        result = out.reshape(*shape[:-1], layout.sizes[-1])
        self.run = in_a_row(steps, result)


def _linear(weights: Any, biases: Any, x: Any, z: Any, buffers: Buffers, samples: int) -> list[Step]:
    """z = x @ weights.T + biases"""
    outputs, inputs = weights.shape
    if samples == 1:
        return [(np.dot, (weights, x, z)), (np.add, (z, biases, z))]
    # A sum of two shapes would go through a buffer that NumPy allocates.
    repeated = buffers.work[0, : z.size].reshape(z.shape)
    adding: list[Step] = [(np.copyto, (repeated, biases)), (np.add, (z, repeated, z))]
    multiply = product(samples * outputs)
    if _is_turned(samples, inputs, outputs):
        turned = buffers.turned_input[: samples * inputs].reshape(inputs, samples)
        result = buffers.turned_output[: samples * outputs].reshape(outputs, samples)
        return [(np.copyto, (turned, x.T)), (multiply, (weights, turned, result)), (np.copyto, (z, result.T)), *adding]
    if isinstance(x, Input):
        return [(multiply, (x, weights.T, z)), *adding]
    parts = _parts(samples, inputs, outputs)
    return [*[(multiply, (x[part], weights.T, z[part])) for part in parts], *adding]
