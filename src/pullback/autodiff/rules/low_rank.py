"""Linear layers with products of two thin matrices beside their weights: adapters."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from ...backends.portable.core import raw_dtype
from ...backends.portable.low_rank import (
    LowRank,
    as_matrix,
    dropped,
    first_parts,
    hidden_values,
    low_rank_parts,
    ranks,
    seen_inputs,
    share_input,
    stacked_downs,
)
from ...backends.portable.packed import expanded


def rules(xp: Any, op: Any) -> None:
    mT = xp.matrix_transpose

    def through_weights(
        pairs: Any, weight: Any, want: LowRank, matrix: Any, needs_x: bool, chance: float, place: Any
    ) -> tuple[Any, Any]:
        """The gradients of x and of a weight from pairs of what it was multiplied with and the product's cotangent."""
        x_total = weight_total = None
        for factor, g in pairs:
            if needs_x:
                grad = xp.matmul(g, weight)
                grad = grad if factor is matrix else dropped(xp, grad, chance, place)
                x_total = grad if x_total is None else x_total + grad
            if want.weight:
                grad = xp.matmul(mT(g), factor)
                weight_total = grad if weight_total is None else weight_total + grad
        return x_total, weight_total

    def through_downs(thin: Any, parts: Any, seen: Any, needs_x: bool, wanted: bool, masks: Any) -> tuple[Any, Any]:
        """The gradient of x and those of all `down`, given the cotangents of x down^T."""
        if share_input(seen):
            thin, wide = xp.concat(thin, -1), stacked_downs(xp, parts)
            downs = xp.split(xp.matmul(mT(thin), seen[0]), ranks(parts), -2) if wanted else None
            return xp.matmul(thin, wide) if needs_x else None, downs
        total = None
        for g, part, mask in zip(thin, parts, masks) if needs_x else ():
            grad = dropped(xp, xp.matmul(g, part.down), *mask)
            total = grad if total is None else total + grad
        return total, [xp.matmul(mT(g), x) for g, x in zip(thin, seen)] if wanted else None

    def low_rank_linear_xs(
        g: Any, xs: Any, xs_dtype: Any, scales: Any, chances: Any, places: Any, forms: Any, needs: Any
    ) -> list[Any]:
        """The gradients of x and of each projection's arrays.

        Nothing that the products made is kept, only their input: what is needed of them is computed again.
        Every product has a thin matrix as a factor, but for those with the weights: for the gradient of `x`, and for
        that of `factor`, which is a sum over the projection before it.
        """
        live = [i for i, part in enumerate(g) if part is not None]
        x, parts = low_rank_parts(xs, forms)
        needs_x, wants = low_rank_parts(needs, (None,) * len(forms))
        parts, wants, scales = ([values[i] for i in live] for values in (parts, wants, scales))
        masks = [(chances[i], places[i]) for i in live]
        matrix = as_matrix(xp, x)
        seen = seen_inputs(xp, matrix, *zip(*masks))
        thin_needed = needs_x or any(want.down for want in wants)
        hidden_needed = any(want.up or want.factor for want in wants)
        hidden = hidden_values(xp, seen, parts) if hidden_needed else seen
        thin, x_total = [], None
        found: dict[int, LowRank] = {}
        for i, part, want, own, h, scale, mask in zip(live, parts, wants, seen, hidden, scales, masks):
            rows = as_matrix(xp, g[i])
            values = expanded(xp, part.weight, raw_dtype(x)) if needs_x or want.factor else None
            inner = rows if part.factor is None else xp.narrowed(rows * part.factor, raw_dtype(rows))
            if part.factor is not None and own is not matrix:
                pairs = [(matrix, rows), (own, inner - rows)]  # x weight^T + (factor - 1) * own weight^T
            else:
                pairs = [(matrix, inner)]
            grad, weight = through_weights(pairs, values, want, matrix, needs_x, *mask)
            x_total = grad if x_total is None else x_total + grad
            if thin_needed:
                thin.append(xp.matmul(inner, part.up) * scale)
            up = xp.matmul(mT(inner), h * scale) if want.up else None
            factor = None
            if want.factor:
                product = xp.matmul(own, mT(values)) + xp.matmul(h * scale, mT(part.up))
                factor = xp.sum(rows * product, (-2,), False)
            found[i] = LowRank(weight, xp.sum(rows, (-2,), False) if want.bias else None, None, up, factor)
        if thin_needed:
            wanted = any(want.down for want in wants)
            grad, downs = through_downs(thin, parts, seen, needs_x, wanted, masks)
            x_total = xp.reshape(x_total + grad, x.shape) if needs_x else None
            for i, down in zip(live, downs or ()):
                found[i] = found[i]._replace(down=down)
        nothing = LowRank(None, None, None, None, None)
        gradients = [x_total]
        for i in range(len(g)):
            gradients.extend(found.get(i, nothing))
        all_of = zip_longest(gradients, xs_dtype)  # the other parts of packed weights have none
        return [None if grad is None else xp.narrowed(grad, dtype) for grad, dtype in all_of]

    # x, and (weight, bias, down, up, factor) of each projection, then the other parts of packed weights, which have
    # forms; the mask of one without dropout is at no place
    op(
        "low_rank_linear", "*xs", "scales chances places forms", outputs="*outs", autocast="half",
        converts=first_parts, real=True, expands="always", xs=low_rank_linear_xs,
    )  # fmt: skip
