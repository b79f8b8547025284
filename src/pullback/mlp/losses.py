"""Losses that write their gradient into `grads.d_output` and return their mean, without allocating.

`loss(output, target, grads)`: `output` is what `mlp.forward` returned, of one sample or of several. The means are
those of Pullback's functions: `mse`, `mae`, `huber` and `binary_cross_entropy` over all elements, `cross_entropy` over
the samples. The two cross-entropies take logits, and refuse a network that ends in softmax or sigmoid: they apply it
themselves, exactly also where a probability is too small to be represented.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from ..errors import ConfigurationError, DtypeError, ShapeError
from .activations import sigmoid_steps
from .gradients import MlpGradients

__all__ = ["LOSSES", "Loss", "binary_cross_entropy", "cross_entropy", "huber", "loss_named", "mae", "mse"]


_ndarray = np.ndarray


class Loss(NamedTuple):
    """How a loss is computed once its arguments are known to be right."""

    name: str
    #: (output, target, d_output, grads) -> the mean loss. All are (samples, out), class numbers (samples,).
    run: Callable[[Any, Any, Any, MlpGradients], float]
    takes_classes: bool = False
    refuses: str = ""  # the activation that the loss applies itself


def loss_named(name: str) -> Loss:
    if name not in LOSSES:
        raise ConfigurationError(f"there is no loss {name!r}; there are {', '.join(LOSSES)}.")
    return LOSSES[name]


def check_output(loss: Loss, activation: str) -> None:
    """Refuse a network whose last activation is part of the loss already."""
    if activation == loss.refuses:
        raise ConfigurationError(
            f"{loss.name} takes logits and applies {activation} itself, but this Mlp ends in {activation}. "
            f'Build it with output="identity", and apply {activation} to what it predicts.'
        )


def check_classes(name: str, target: Any, classes: int) -> None:
    """Refuse class numbers that are none."""
    if target.size:
        lowest, highest = int(np.minimum.reduce(target, None)), int(np.maximum.reduce(target, None))
        if lowest < 0 or highest >= classes:
            raise ShapeError(f"{name}: targets from {lowest} to {highest} for {classes} classes.")


def _checked(name: str, output: Any, target: Any, grads: MlpGradients) -> float:
    loss = LOSSES[name]
    layout = grads._layout
    if type(output) is _ndarray and type(target) is _ndarray and grads._fitting == (name, output.shape, target.shape):
        if output.dtype is layout.dtype and target.dtype is layout.dtype:  # like the pair that was checked last
            rows = output.reshape(-1, layout.sizes[-1])
            return loss.run(rows, target.reshape(rows.shape), grads._d_output[: len(rows)], grads)
    check_output(loss, layout.activations[-1].name)
    width = layout.sizes[-1]
    if not isinstance(output, np.ndarray) or output.dtype != layout.dtype:
        raise DtypeError(f"{name}: output must be a {layout.dtype.name} array, as `mlp.forward` returns it.")
    if output.ndim not in (1, 2) or output.shape[-1] != width:
        raise ShapeError(f"{name}: output has shape {output.shape}, expected ({width},) or (samples, {width}).")
    rows = output.reshape(-1, width)
    if not 1 <= len(rows) <= grads.batch:
        raise ShapeError(f"{name}: output has {len(rows)} samples; these gradients take from 1 to {grads.batch}.")
    target = np.asarray(target)
    if loss.takes_classes and target.dtype.kind in "iu" and target.shape == output.shape[:-1]:
        check_classes(name, target, width)
        wanted = grads._room("classes", (len(rows),), np.dtype(np.intp))
    elif target.shape != output.shape:
        raise ShapeError(f"{name}: target has shape {target.shape}, output has shape {output.shape}.")
    elif target.dtype.kind not in "fiub":
        raise DtypeError(f"{name}: target must be real numbers, got {target.dtype.name}.")
    elif target.dtype == layout.dtype:
        grads._fitting = (name, output.shape, target.shape)
        return loss.run(rows, target.reshape(-1, width), grads._d_output[: len(rows)], grads)
    else:
        wanted = grads._room("target", rows.shape, layout.dtype)
    np.copyto(wanted, target.reshape(wanted.shape), casting="unsafe")
    return loss.run(rows, wanted, grads._d_output[: len(rows)], grads)


def mse(output: Any, target: Any, grads: MlpGradients) -> float:
    """The mean of the squares of output - target.

    >>> import numpy as np, pullback as pb
    >>> from pullback.mlp import losses
    >>> grads = pb.Mlp([3, 2]).gradients()
    >>> losses.mse(np.array([1.0, 2.0], np.float32), np.array([1.0, 4.0]), grads)
    2.0
    >>> grads.d_output
    array([[ 0., -2.]], dtype=float32)
    """
    return _checked("mse", output, target, grads)


def mae(output: Any, target: Any, grads: MlpGradients) -> float:
    """The mean of the sizes of output - target; the gradient where they are equal is 0.

    >>> import numpy as np, pullback as pb
    >>> from pullback.mlp import losses
    >>> losses.mae(np.array([1.0, 2.0], np.float32), np.array([1.0, 4.0]), pb.Mlp([3, 2]).gradients())
    1.0
    """
    return _checked("mae", output, target, grads)


def huber(output: Any, target: Any, grads: MlpGradients) -> float:
    """The mean of d**2 / 2 for differences d = output - target up to 1, and of |d| - 1 / 2 beyond.

    >>> import numpy as np, pullback as pb
    >>> from pullback.mlp import losses
    >>> losses.huber(np.array([1.0, 2.0], np.float32), np.array([1.0, 4.0]), pb.Mlp([3, 2]).gradients())
    0.75
    """
    return _checked("huber", output, target, grads)


def cross_entropy(output: Any, target: Any, grads: MlpGradients) -> float:
    """The mean over the samples of minus the logarithm of the softmax of the logits `output` at the right class.

    `target` has class numbers, or a probability for each class (one-hot).

    >>> import numpy as np, pullback as pb
    >>> from pullback.mlp import losses
    >>> grads = pb.Mlp([3, 2]).gradients()
    >>> round(losses.cross_entropy(np.zeros(2, np.float32), 1, grads), 4)
    0.6931
    >>> grads.d_output
    array([[ 0.5, -0.5]], dtype=float32)
    """
    return _checked("cross_entropy", output, target, grads)


def binary_cross_entropy(output: Any, target: Any, grads: MlpGradients) -> float:
    """The mean of the cross-entropy of sigmoid(output) and `target` (0, 1 or a probability).

    >>> import numpy as np, pullback as pb
    >>> from pullback.mlp import losses
    >>> round(losses.binary_cross_entropy(np.zeros(2, np.float32), [0, 1], pb.Mlp([3, 2]).gradients()), 4)
    0.6931
    """
    return _checked("binary_cross_entropy", output, target, grads)


# -- computed -------------------------------------------------------------------------------------------


def _mse(output: Any, target: Any, d_output: Any, grads: MlpGradients) -> float:
    np.subtract(output, target, d_output)
    flat = d_output.reshape(-1)
    total = float(np.dot(flat, flat))
    np.multiply(d_output, 2 / d_output.size, d_output)
    return total / d_output.size


def _mae(output: Any, target: Any, d_output: Any, grads: MlpGradients) -> float:
    difference = np.subtract(output, target, grads._room("difference", output.shape, output.dtype))
    np.sign(difference, d_output)
    total = float(np.dot(difference.reshape(-1), d_output.reshape(-1)))
    np.multiply(d_output, 1 / d_output.size, d_output)
    return total / d_output.size


def _huber(output: Any, target: Any, d_output: Any, grads: MlpGradients) -> float:
    difference = np.subtract(output, target, grads._room("difference", output.shape, output.dtype))
    np.minimum(difference, 1.0, out=d_output)
    np.maximum(d_output, -1.0, out=d_output)
    # c (d - c / 2) with the difference d and c, which is d cut off
    cut = d_output.reshape(-1)
    total = float(np.dot(cut, difference.reshape(-1))) - 0.5 * float(np.dot(cut, cut))
    np.multiply(d_output, 1 / d_output.size, d_output)
    return total / d_output.size


def _cross_entropy(output: Any, target: Any, d_output: Any, grads: MlpGradients) -> float:
    samples, classes = output.shape
    column = grads._room("column", (samples, 1), output.dtype)
    repeated = grads._room("difference", output.shape, output.dtype)  # for two shapes NumPy would allocate a buffer
    np.maximum.reduce(output, axis=1, keepdims=True, out=column)
    np.copyto(repeated, column)
    np.subtract(output, repeated, d_output)
    logits = d_output.reshape(-1)
    if target.ndim == 2:
        total = -float(np.dot(target.reshape(-1), logits))
    else:
        at = grads._room("at", (samples,), np.dtype(np.intp))  # where each sample's class is among all logits
        np.multiply(grads._counting()[:samples], classes, at)
        np.add(at, target, at)
        own = grads._room("own", (samples,), output.dtype)
        np.take(logits, at, out=own, mode="clip")
        total = -float(np.add.reduce(own))
    np.exp(d_output, d_output)
    np.add.reduce(d_output, axis=1, keepdims=True, out=column)
    np.copyto(repeated, column)
    np.divide(d_output, repeated, d_output)
    np.log(column, column)
    if target.ndim == 2:
        mass = grads._room("mass", (samples, 1), output.dtype)  # a target's probabilities need not add up to one
        np.add.reduce(target, axis=1, keepdims=True, out=mass)
        np.copyto(repeated, mass)
        np.multiply(d_output, repeated, d_output)
        np.subtract(d_output, target, d_output)
        total += float(np.dot(mass.reshape(-1), column.reshape(-1)))
    else:
        np.take(logits, at, out=own, mode="clip")
        np.subtract(own, 1.0, own)
        np.put(logits, at, own, mode="clip")
        total += float(np.add.reduce(column, None))
    np.multiply(d_output, 1 / samples, d_output)
    return total / samples


def _binary_cross_entropy(output: Any, target: Any, d_output: Any, grads: MlpGradients) -> float:
    first = grads._room("difference", output.shape, output.dtype)
    second = grads._room("second", output.shape, output.dtype)
    # max(x, 0) - x t + log(1 + exp(-|x|)): what cancels comes first
    np.maximum(output, 0.0, out=first)
    np.multiply(output, target, second)
    np.subtract(first, second, first)
    np.absolute(output, second)
    np.negative(second, second)
    np.exp(second, second)
    np.log1p(second, second)
    np.add(first, second, first)
    total = float(np.add.reduce(first, None))
    for call, arguments in sigmoid_steps(output, d_output):
        call(*arguments)
    np.subtract(d_output, target, d_output)
    np.multiply(d_output, 1 / d_output.size, d_output)
    return total / d_output.size


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("mse", _mse),
        Loss("mae", _mae),
        Loss("huber", _huber),
        Loss("cross_entropy", _cross_entropy, takes_classes=True, refuses="softmax"),
        Loss("binary_cross_entropy", _binary_cross_entropy, refuses="sigmoid"),
    )
}
