"""Steps of `Mlp.fit` as one native call each, which reads and writes the network's own memory.

The network, its loss and its optimizer are traced with tensors that borrow the weights and biases; the program that
comes of it is given their addresses once. Nothing is allocated per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from .. import modes
from ..autodiff.base import make
from ..autodiff.gradients import backward
from ..autodiff.graph import GradCell, Leaf
from ..autodiff.guard import guard
from ..errors import ConfigurationError
from ..functions import activations, losses, trigonometry
from ..functions.linear import linear
from ..targets import target_for
from ..train.compiling import clip, described, norm_and_check, tell

if TYPE_CHECKING:
    from .fitting import Samples
    from .network import Mlp

__all__ = ["CompiledSteps", "compiled_steps"]

_PROCESSOR: Any = target_for("numpy")

# What compiling costs the first time in a process, and what it saves per step: measured, with a margin.
_COST = 0.2
_SAVED_PER_STEP = 20e-6
_SAVED_PER_PRODUCT = 3e-11

_ACTIVATIONS: dict[str, Callable[..., Any]] = {"identity": lambda x: x, "tanh": trigonometry.tanh, **vars(activations)}
_LOSSES: dict[str, Callable[..., Any]] = {
    "mse": losses.mse_loss,
    "mae": losses.l1_loss,
    "huber": losses.huber_loss,
    "cross_entropy": losses.cross_entropy,
    "binary_cross_entropy": losses.binary_cross_entropy_with_logits,
}


def compiled_steps(
    mlp: Mlp, samples: Samples, optimizer: Any, clip_norm: float | None, epochs: int, compile: bool | None
) -> tuple[CompiledSteps, Any] | None:
    """The steps of a `fit`, with their optimizer, which `optimizer(parameters)` makes; None if not to be compiled."""
    if compile is False or (compile is None and not _pays(mlp, samples, epochs)):
        return None
    reason = None
    if (missing := _PROCESSOR.missing()) is not None:
        reason = f"compiling needs {missing}"
    elif optimizer is None:
        reason = "the optimizer is not one of `pb.optim` by its name"
    if reason is None:
        steps = CompiledSteps(mlp, samples, clip_norm)
        made = optimizer(steps.parameters)
        try:
            steps.prepare(made)
            return steps, made
        except MemoryError:
            raise
        except Exception as error:
            if compile:
                raise
            tell("fit", described(error))
    elif compile:
        raise ConfigurationError(f"fit: compile=True, but {reason}.")
    return None


def _pays(mlp: Mlp, samples: Samples, epochs: int) -> bool:
    """Whether what compiled steps save is more than what compiling costs."""
    steps = epochs * -(-samples.count // samples.batch)
    return steps * (_SAVED_PER_STEP + _SAVED_PER_PRODUCT * mlp.parameters.size * samples.batch) > _COST


class CompiledSteps:
    """The programs of a `fit`: one for full batches, and one for a last batch that is shorter.

    `parameters` are tensors whose arrays are the network's weights and biases themselves; an optimizer of them comes
    with `prepare`, which compiles.
    """

    def __init__(self, mlp: Mlp, samples: Samples, clip_norm: float | None) -> None:
        self._mlp, self._samples, self._clip_norm = mlp, samples, clip_norm
        self._loss = _LOSSES[samples.loss.name]
        self._views = mlp._layout.views(mlp.parameters)
        self.parameters = [make(view, Leaf(view.shape, view.dtype, GradCell())) for view in self._views]
        self.rooms = samples._inputs, samples._targets
        self._optimizer: Any = None
        self._programs: dict[int, _Program] = {}

    def prepare(self, optimizer: Any) -> None:
        """Compile the steps that this optimizer makes. An error changes nothing."""
        self._optimizer = optimizer
        samples = self._samples
        for rows in {samples.batch, samples.count % samples.batch or samples.batch}:
            self._programs[rows] = _Program(self, samples.x[:rows], samples.y[:rows])

    def run(self, inputs: Any, targets: Any) -> _Program:
        """Make a step; its program has the outputs, the loss, the norm, and whether the step was made."""
        program = self._programs[len(inputs)]
        program.run(inputs, targets)
        return program

    def settle(self) -> None:
        """After an update that was made elsewhere: bring it to the network's memory, and borrow that again."""
        for tensor, view in zip(self.parameters, self._views):
            if tensor._raw is not view:
                view[...] = tensor._raw
                tensor._raw = view

    def step(self, inputs: Any, targets: Any) -> tuple[Any, Any, Any]:
        """What is traced: outputs, loss and norm; the parameters are updated."""
        x = inputs
        parts = iter(self.parameters)
        for activation in self._mlp._layout.activations:
            x = _ACTIVATIONS[activation.name](linear(x, next(parts), next(parts)))
        loss = self._loss(x, targets)
        gradients = backward(loss)
        norm, is_right = norm_and_check(gradients)
        modes.tracing().check([loss._raw, is_right._raw])
        if self._clip_norm is not None:
            clip(gradients, norm, self._clip_norm)
        self._optimizer.step(gradients)
        return x.detach(), loss.detach(), norm


class _Program:
    """A compiled step for batches of one size, and the memory it works on."""

    def __init__(self, steps: CompiledSteps, x: Any, y: Any) -> None:
        from ..compiler.calling.arguments import Arguments
        from ..compiler.calling.specialize import specialize

        plain = modes.changed(recording=True, autocast=None, checkpointing=None, tapes=())
        with guard("off"), plain:  # whatever is around: a step is guarded by `fit` itself
            arguments = Arguments("Mlp.fit", (x, y), {})
            self._made = made = specialize("Mlp.fit", lambda x, y: steps.step(x, y), arguments)
        made.build()
        self._executable = made.built.executable
        if not self._executable.is_native:
            raise NotImplementedError("a part of the step has no native form")
        arrays = [np.zeros(value.shape, value.dtype) for value in made.program.outputs]
        self.outputs, self._loss, self._norm = (arrays[leaf.number] for leaf in made.leaves)
        self._is_made = arrays[-1]  # the guard's
        self._kept = arrays
        self._given = {entry.argument: i for i, entry in enumerate(made.inputs) if entry.argument >= 0}
        self._bases = np.zeros(len(made.inputs) + made.built.folded + len(arrays), np.int64)
        self._bases[len(made.inputs) + made.built.folded :] = [array.ctypes.data for array in arrays]
        self._pointer = self._bases.ctypes.data
        self._room, targets = steps.rooms  # where batches are put together, always at the same place
        self._take_batch(self._room, targets)
        for i, entry in enumerate(made.inputs):
            if entry.argument < 0:  # everything but the batch stays where it is: nobody else has these tensors
                array = entry.array if entry.tensor is None else entry.tensor._raw
                assert array.flags.c_contiguous
                self._bases[i] = array.ctypes.data

    def _take_batch(self, inputs: Any, targets: Any) -> None:
        self._bases[self._given[0]] = inputs.ctypes.data
        self._bases[self._given[1]] = targets.ctypes.data

    def run(self, inputs: Any, targets: Any) -> None:
        if inputs.base is not self._room:
            self._take_batch(inputs, targets)
        made = self._made
        for numbers in made.numbers:
            numbers.refresh()
        for slot in made.slots:  # before the run, so that Ctrl-C finds both of them done or none
            slot.step += 1
        if self._executable.run_native(self._pointer):
            self._executable.start_threads()
        if not self._is_made:
            for slot in made.slots:
                slot.step -= 1

    @property
    def is_made(self) -> bool:
        """Whether loss and gradients were finite, so that the parameters were updated."""
        return bool(self._is_made)

    @property
    def loss(self) -> float:
        return float(self._loss)

    @property
    def norm(self) -> float:
        return float(self._norm)
