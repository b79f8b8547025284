"""Losses. `reduction` is "none", "mean" or "sum".

A mean or a sum has a cotangent without axes, which broadcasts.
"""

from __future__ import annotations

from functools import partial
from typing import Any


def rules(xp: Any, op: Any) -> None:
    op = partial(op, autocast="float32", real=True, expands="always")
    wide, narrowed = xp.widened, xp.narrowed

    op(
        "cross_entropy", "x target weight", "ignore_index reduction label_smoothing", residuals="lse normalizer",
        composite=True, expands="",
        x=lambda g, x, target, weight, lse, normalizer, ignore_index, reduction, label_smoothing: (
            xp.cross_entropy_gradient(g, x, target, weight, lse, normalizer, ignore_index, reduction, label_smoothing)
        ),
    )  # fmt: skip

    def class_axis(shape: Any) -> int:
        return 1 - len(shape) if len(shape) > 1 else -1

    def class_weights(weight: Any, shape: Any) -> Any:
        return 1.0 if weight is None else xp.reshape(wide(weight), (-1,) + (1,) * (-1 - class_axis(shape)))

    def each_row(g: Any, shape: Any, reduction: str) -> Any:
        """The cotangent of each sample's loss, with an axis of length 1 for the classes."""
        axis = class_axis(shape)
        if reduction == "none":
            return xp.expand_dims(wide(g), (axis,))
        return xp.per_element(g, shape[: len(shape) + axis] + shape[len(shape) + axis + 1 :], reduction)

    def soft_x(
        g: Any, x: Any, target: Any, weight: Any, x_shape: Any, x_dtype: Any, reduction: str, label_smoothing: float
    ) -> Any:
        axis = (class_axis(x_shape),)
        wanted = wide(target)
        if label_smoothing:
            wanted = wanted * (1 - label_smoothing) + label_smoothing / x_shape[axis[0]]
        wanted = wanted * class_weights(weight, x_shape)
        grad = xp.softmax(wide(x), axis) * xp.sum(wanted, axis, True) - wanted
        return narrowed(each_row(g, x_shape, reduction) * grad, x_dtype)

    def soft_target(
        g: Any, x: Any, weight: Any, x_shape: Any, target_dtype: Any, reduction: str, label_smoothing: float
    ) -> Any:
        grad = xp.log_softmax(wide(x), (class_axis(x_shape),)) * class_weights(weight, x_shape)
        return narrowed(each_row(g, x_shape, reduction) * grad * (label_smoothing - 1), target_dtype)

    op("soft_cross_entropy", "x target weight", "reduction label_smoothing", x=soft_x, target=soft_target)

    # (1 - y) x + (1 + (p - 1) y) softplus(-x), times the weight
    def binary_x(
        g: Any, x: Any, target: Any, weight: Any, pos_weight: Any, x_shape: Any, x_dtype: Any, reduction: str
    ) -> Any:
        y = wide(target)
        positive = 1 if pos_weight is None else 1 + (wide(pos_weight) - 1) * y
        grad = (1 - y) - positive * xp.sigmoid(-wide(x))
        return narrowed(xp.per_element(g, x_shape, reduction) * weighted(grad, weight), x_dtype)

    def binary_target(
        g: Any, x: Any, weight: Any, pos_weight: Any, x_shape: Any, target_dtype: Any, reduction: str
    ) -> Any:
        grad = -wide(x)
        if pos_weight is not None:
            grad = grad + (wide(pos_weight) - 1) * xp.softplus(-wide(x), 1.0)
        return narrowed(xp.per_element(g, x_shape, reduction) * weighted(grad, weight), target_dtype)

    def binary_weight(
        g: Any, x: Any, target: Any, pos_weight: Any, x_shape: Any, weight_shape: Any, reduction: str
    ) -> Any:
        losses = wide(xp.binary_cross_entropy_with_logits(x, target, None, pos_weight, "none"))
        return xp.sum_to(xp.per_element(g, x_shape, reduction) * losses, weight_shape)

    def binary_pos_weight(
        g: Any, x: Any, target: Any, weight: Any, x_shape: Any, pos_weight_shape: Any, reduction: str
    ) -> Any:
        grad = weighted(wide(target) * xp.softplus(-wide(x), 1.0), weight)
        return xp.sum_to(xp.per_element(g, x_shape, reduction) * grad, pos_weight_shape)

    def weighted(grad: Any, weight: Any) -> Any:
        return grad if weight is None else grad * wide(weight)

    op(
        "binary_cross_entropy_with_logits", "x target weight pos_weight", "reduction",
        x=binary_x, target=binary_target, weight=binary_weight, pos_weight=binary_pos_weight,
    )  # fmt: skip

    # minus y log(p) + (1 - y) log(1 - p), times the weight; slopes are bounded as PyTorch bounds them
    def probability_x(g: Any, x: Any, target: Any, weight: Any, x_shape: Any, x_dtype: Any, reduction: str) -> Any:
        p = wide(x)
        grad = (p - wide(target)) / xp.maximum(p * (1 - p), 1e-12)
        return narrowed(xp.per_element(g, x_shape, reduction) * weighted(grad, weight), x_dtype)

    def probability_target(g: Any, x: Any, weight: Any, x_shape: Any, target_dtype: Any, reduction: str) -> Any:
        of_one, of_zero = xp.bounded_logs(wide(x))
        return narrowed(xp.per_element(g, x_shape, reduction) * weighted(of_zero - of_one, weight), target_dtype)

    def probability_weight(g: Any, x: Any, target: Any, x_shape: Any, weight_shape: Any, reduction: str) -> Any:
        losses = wide(xp.binary_cross_entropy(x, target, None, "none"))
        return xp.sum_to(xp.per_element(g, x_shape, reduction) * losses, weight_shape)

    op(
        "binary_cross_entropy", "x target weight", "reduction",
        x=probability_x, target=probability_target, weight=probability_weight,
    )  # fmt: skip

    # These depend on x - target alone.
    def mse(g: Any, x: Any, target: Any, reduction: str) -> Any:
        return xp.per_element(g, x.shape, reduction) * (2 * (wide(x) - wide(target)))

    def l1(g: Any, x: Any, target: Any, reduction: str) -> Any:
        return xp.per_element(g, x.shape, reduction) * xp.sign(wide(x) - wide(target))

    def huber(g: Any, x: Any, target: Any, reduction: str, delta: float) -> Any:
        difference = wide(x) - wide(target)
        slope = xp.where(xp.abs(difference) <= delta, difference, delta * xp.sign(difference))
        return xp.per_element(g, x.shape, reduction) * slope

    op(
        "mse_loss", "x target", "reduction",
        x=lambda g, x, target, x_dtype, reduction: narrowed(mse(g, x, target, reduction), x_dtype),
        target=lambda g, x, target, target_dtype, reduction: narrowed(-mse(g, x, target, reduction), target_dtype),
    )  # fmt: skip
    op(
        "l1_loss", "x target", "reduction",
        x=lambda g, x, target, x_dtype, reduction: narrowed(l1(g, x, target, reduction), x_dtype),
        target=lambda g, x, target, target_dtype, reduction: narrowed(-l1(g, x, target, reduction), target_dtype),
    )  # fmt: skip
    op(
        "huber_loss", "x target", "reduction delta",
        x=lambda g, x, target, x_dtype, reduction, delta: narrowed(huber(g, x, target, reduction, delta), x_dtype),
        target=lambda g, x, target, target_dtype, reduction, delta: (
            narrowed(-huber(g, x, target, reduction, delta), target_dtype)
        ),
    )  # fmt: skip
