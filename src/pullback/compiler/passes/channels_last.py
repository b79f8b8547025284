"""Images with their channels last in memory, for libraries that convolve and pool them fastest so.

Programs have images as (samples, channels, rows, columns). What a convolution or a pooling makes lies in memory as
(samples, rows, columns, channels) where the target says so (see `lies_last`, which lowering asks, too). Here all that
is computed from it element by element, and its sums, are written as computations of arrays of that shape: they go
through memory in order, sums over each channel are sums of columns, and what the next convolution reads lies as it
should. Permutations stand at the borders. Of what a convolution made, and for one, they are views.
"""

from __future__ import annotations

from typing import Any

from ..program import PLAIN, Instruction, Program, Value, mapped
from .common_subexpressions import without_common_subexpressions
from .dead_code import without_dead_code
from .layout import RULES
from .operations import ELEMENTWISE
from .rewriting import Walk, merged, rewritten

#: What is given images and makes images. The gradient of a convolution's weights lies so, too, but goes to the weights.
CONVOLUTIONS = frozenset(("convolution", "biased_convolution", "convolution_input_gradient"))
POOLING = frozenset(("max_pool", "max_pool_indices", "pool_gather", "pool_scatter", "max_pool_gradient"))
IMAGES = CONVOLUTIONS | POOLING

TO_LAST = (0, 2, 3, 1)
FROM_LAST = (0, 3, 1, 2)
_REDUCTIONS = frozenset(("sum", "prod", "max", "min", "any", "all"))


def lies_last(instruction: Instruction, dtypes: frozenset[str]) -> bool:
    """Whether an instruction is run on images with their channels last in memory, by a library fast in `dtypes`."""
    if instruction.op not in IMAGES and instruction.op != "convolution_weight_gradient":
        return False
    image = instruction.args[0]
    return bool(type(image) is Value and image.ndim == 4 and image.dtype.name in dtypes)


def with_channels_last(program: Program, dtypes: frozenset[str]) -> Program:
    """`program` with what is computed from images written for channels last in memory; itself if it has none."""
    if not any(one.op in IMAGES and lies_last(one, dtypes) for one in program.instructions):
        return program
    made = rewritten(_Rewriting(dtypes).run(program), _RULES)
    return without_dead_code(without_common_subexpressions(made))


def _without_factor(walk: Walk, instruction: Instruction) -> Any:
    """The sum of y * w, or of y * w * z, is w times that of y, or y * z, where w is the same all along a sum.

    The gradient of a normalised batch has four sums for each channel; two of them are the others times the weight.
    """
    x, axis, keepdims = instruction.args
    product = walk.definition(x, "multiply")
    if axis is None or product is None or x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return None  # in half precision the sum could overflow before it is multiplied
    gone = {a % x.ndim for a in axis}
    found = _factor(walk, product.args, x, gone)
    if found is None:
        return None
    rest, factor = found
    result = instruction.result
    total = walk.make("sum", (rest, axis, keepdims), result.shape, x.dtype)
    shape = (1,) * (x.ndim - factor.ndim) + factor.shape
    kept = shape if keepdims else tuple([n for a, n in enumerate(shape) if a not in gone])
    return walk.make("multiply", (total, walk.reshaped(factor, kept)), result.shape, result.dtype)


def _factor(walk: Walk, operands: Any, x: Value, gone: set[int]) -> tuple[Value, Value] | None:
    """A factor of `x`, the product of `operands`, that is the same along the axes `gone`, after what is left of it."""
    for one, other in (operands, operands[::-1]):
        if not _is_whole(one, x):
            continue
        if _is_constant_along(other, x, gone):
            return one, other
        inner = walk.definition(one, "multiply")
        if inner is None or not _is_whole(other, x):
            continue
        for rest, factor in (inner.args, inner.args[::-1]):
            if _is_whole(rest, x) and _is_constant_along(factor, x, gone):
                return walk.make("multiply", (rest, other), x.shape, x.dtype), factor
    return None


def _is_constant_along(factor: Any, x: Value, axes: set[int]) -> bool:
    """Whether an operand of `x` is the same all along some axes."""
    if type(factor) is not Value or factor.dtype.kind not in "fV":
        return False
    return all(axis < x.ndim - factor.ndim or factor.shape[axis - x.ndim] == 1 for axis in axes)


def _is_whole(value: Any, x: Value) -> bool:
    return type(value) is Value and value.shape == x.shape and bool(value.dtype == x.dtype)


_RULES = merged(RULES, {"sum": [_without_factor]})


class _Rewriting:
    """The program that is being written.

    Of a value that lies so in memory, or is computed so, `_last` has the value with its channels last.
    """

    def __init__(self, dtypes: frozenset[str]) -> None:
        self._dtypes = dtypes
        self._instructions: list[Instruction] = []
        self._last: dict[Value, Value] = {}
        self._computed_last: set[Value] = set()
        self._permuted: dict[Value, Value] = {}  # the same of others
        self._substitutes: dict[Value, Value] = {}  # for what is not computed as it was
        self._site, self._mark = "", PLAIN

    def run(self, program: Program) -> Program:
        windows: dict[Value, Any] = {}  # that maxima at these places were found in
        for one in program.instructions:
            self._site, self._mark = one.site, one.mark
            if one.op == "max_pool":
                windows[one.results[1]] = one.args[1]
            elif one.op == "pool_scatter" and one.args[1] in windows:
                image, indices, _ = one.args
                args = image, indices, windows[indices]
                one = Instruction("max_pool_gradient", args, one.results, one.site, one.mark)
            if self._rewrite(one):
                continue
            self._instructions.append(one.with_args(mapped(one.args, self._as_before)))
            if one.op in IMAGES and lies_last(one, self._dtypes):
                for value in one.results:
                    self._last[value] = self._permute(value, TO_LAST)
        wanted = {value: self._as_before(value) for value in program.wanted()}
        return program.replaced(self._instructions, wanted)

    def _rewrite(self, one: Instruction) -> bool:
        """Write an instruction for channels last, if what it reads is known so; else say no."""
        if len(one.results) != 1:
            return False
        if one.op in ELEMENTWISE and one.result.ndim == 4:
            if any(value in self._last for value in one.values() if value.shape == one.result.shape):
                self._put_last(one, mapped(one.args, self._broadcast_last))
                return True
        elif one.op in _REDUCTIONS and one.args[0] in self._last:
            self._reduce(one)
            return True
        elif one.op == "concat" and one.result.ndim == 4 and one.args[1] is not None:
            if any(value in self._last for value in one.args[0]):
                self._put_last(one, (mapped(tuple(one.args[0]), self._with_last), TO_LAST.index(one.args[1] % 4)))
                return True
        elif one.op == "pad" and one.args[0] in self._last:
            widths = tuple([one.args[1][axis] for axis in TO_LAST])
            self._put_last(one, (self._last[one.args[0]], widths, *mapped(one.args[2:], self._as_before)))
            return True
        return False

    def _reduce(self, one: Instruction) -> None:
        image, axis, keepdims = one.args
        axes = set(range(4)) if axis is None else {a % 4 for a in axis}
        args = (self._last[image], tuple([place - 4 for place, a in enumerate(TO_LAST) if a in axes]), keepdims)
        if keepdims:
            self._put_last(one, args)
            return
        kept = [a for a in TO_LAST if a not in axes]
        made = self._make(one.op, args, tuple([image.shape[a] for a in kept]), one.result.dtype)
        self._substitutes[one.result] = self._permute(made, tuple([kept.index(a) for a in sorted(kept)]))

    # -- values ------------------------------------------------------------------------------------

    def _with_last(self, value: Value) -> Value:
        """A value of four axes with its channels last."""
        if value in self._last:
            return self._last[value]
        if value not in self._permuted:
            self._permuted[value] = self._permute(self._as_before(value), TO_LAST)
        return self._permuted[value]

    def _broadcast_last(self, value: Value) -> Value:
        """The same of an operand that is broadcast to four axes."""
        if not value.ndim:
            return self._as_before(value)
        if value.ndim == 4:
            return self._with_last(value)
        shape = (1,) * (4 - value.ndim) + value.shape
        return self._permute(self._make("reshape", (self._as_before(value), shape), shape, value.dtype), TO_LAST)

    def _as_before(self, value: Value) -> Value:
        """A value with its axes in the order that the program has them in."""
        if value in self._computed_last and value not in self._substitutes:
            self._substitutes[value] = self._permute(self._last[value], FROM_LAST)
        return self._substitutes.get(value, value)

    def _put_last(self, one: Instruction, args: tuple[Any, ...]) -> None:
        """Have an instruction make its result with the channels last."""
        shape = tuple([one.result.shape[axis] for axis in TO_LAST])
        self._last[one.result] = self._make(one.op, args, shape, one.result.dtype)
        self._computed_last.add(one.result)

    def _permute(self, value: Value, axes: tuple[int, ...]) -> Value:
        return self._make("permute_dims", (value, axes), tuple([value.shape[axis] for axis in axes]), value.dtype)

    def _make(self, op: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: Any) -> Value:
        value = Value(shape, dtype, self._site)
        self._instructions.append(Instruction(op, args, (value,), self._site, self._mark))
        return value
