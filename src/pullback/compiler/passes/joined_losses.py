"""Cross-entropy and the product that makes its logits, with the products of the logits' gradient, as one instruction.

Where nothing else needs the logits and their gradient, neither has to be in memory whole: see
`linear_cross_entropy.py`. The gradient is then made where the loss is, so its cotangent must be known there: it must
not depend on the loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..program import Instruction, Program, Value
from .common_subexpressions import without_common_subexpressions
from .dead_code import without_dead_code
from .linear_cross_entropy import forms, rows_at_once, wide

_INTEGERS = frozenset("iu")
_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))


class _Logits(NamedTuple):
    """A product x @ y, and what is added to its rows."""

    product: Instruction
    bias: Value | None


class _Uses(NamedTuple):
    """What is made of the gradient g of logits, with the values for it: g @ right, g^T @ left, left^T @ g, sums."""

    rights: list[tuple[Value, Value]]
    lefts: list[tuple[Value, Value]]
    turned_lefts: list[tuple[Value, Value]]
    sums: list[Value]

    def results(self) -> list[Value]:
        return [*[made for _, made in (*self.rights, *self.lefts, *self.turned_lefts)], *self.sums]

    def factors(self) -> list[Value]:
        return [factor for factor, _ in (*self.rights, *self.lefts, *self.turned_lefts)]


class _Join(NamedTuple):
    """A loss, its logits, and its gradient with the uses of that, if it has one; `earlier` is what must come before."""

    loss: Instruction
    logits: _Logits
    gradient: Instruction | None
    uses: _Uses
    earlier: list[Instruction]


def with_joined_losses(program: Program) -> Program:
    """`program` with cross-entropies of products, and their gradients, as `linear_cross_entropy`."""
    changed = program
    for loss in [one for one in program.instructions if one.op == "cross_entropy"]:
        found = _Search(changed).join(loss)
        if found is not None:
            changed = without_dead_code(_rewritten(changed, found))
    return program if changed is program else without_common_subexpressions(changed)


class _Search:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.made: dict[Value, Instruction] = {}
        self.position: dict[Instruction, int] = {}
        self.users: dict[Value, list[Instruction]] = {}
        self.wanted = set(program.wanted())
        for number, instruction in enumerate(program.instructions):
            self.position[instruction] = number
            for value in instruction.values():
                self.users.setdefault(value, []).append(instruction)
            for value in instruction.results:
                self.made[value] = instruction

    def join(self, loss: Instruction) -> _Join | None:
        """What can be joined with a loss."""
        x, target, weight, ignored, reduction, smoothing = loss.args
        if not _is_plain(x, target, weight) or type(ignored) is not int or type(smoothing) not in (int, float):
            return None
        if any(value in self.wanted for value in (x, loss.results[1])):
            return None
        others = [user for user in self.users[x] if user is not loss]
        gradient = others[0] if len(others) == 1 else None
        if len(others) != (gradient is not None) or self.users.get(loss.results[1], others) != others:
            return None
        logits = self._logits(x)
        if logits is None:
            return None
        if gradient is None:
            return _Join(loss, logits, None, _Uses([], [], [], []), [])
        options = (x, target, weight, *loss.results[1:], ignored, reduction, smoothing)
        if gradient.op != "cross_entropy_gradient" or not _same(gradient.args[1:], options):
            return None
        uses = self._uses(gradient.result, logits.product.result.dtype)
        if uses is None or type(gradient.args[0]) is not Value:
            return None
        earlier = self._earlier(loss, [gradient.args[0], *uses.factors()])
        return None if earlier is None else _Join(loss, logits, gradient, uses, earlier)

    def _logits(self, x: Value) -> _Logits | None:
        """How logits are made, if nobody else sees what they are made of."""
        classes, bias = x.shape[1], None
        dtypes = {x.dtype}
        made = self.made.get(x)
        while made is not None and made.op != "matmul":
            if made.op == "add" and bias is None:
                value, bias = self._sum(made, classes)
            elif (made.op == "reshape" and made.args[0].shape[-1:] == (classes,)) or made.op == "astype":
                value = made.args[0]
            else:
                return None
            if value is None or self.users[value] != [made] or value in self.wanted:
                return None
            dtypes.add(value.dtype)
            made = self.made.get(value)
        if made is None or not _is_product(made, classes):
            return None
        dtype = made.result.dtype  # the logits are of that one, or wider
        return _Logits(made, bias) if dtypes <= {dtype, wide(dtype)} else None

    def _sum(self, made: Instruction, classes: int) -> Any:
        """What is made by a product, and what is added to each of its rows."""
        for value, bias in (made.args, made.args[::-1]):
            if type(value) is not Value or type(bias) is not Value or value.shape != made.result.shape:
                continue
            maker = self.made.get(value)
            if bias.size == classes == (bias.shape or (0,))[-1] and maker is not None and maker.op != "add":
                return value, bias
        return None, None

    def _uses(self, gradient: Value, dtype: np.dtype[Any]) -> _Uses | None:
        """What is made of the gradient of logits, all of it; None if it is needed for anything else."""
        found = _Uses([], [], [], [])
        classes = gradient.shape[1]
        waiting = [(gradient, False, gradient.dtype == dtype)]  # value, is it turned, was it rounded to `dtype`
        while waiting:
            value, is_turned, is_rounded = waiting.pop()
            if value in self.wanted:
                return None
            for user in self.users.get(value, ()):
                if not user.results:
                    return None
                result = user.results[0]
                if user.op == "reshape" and not is_turned and result.shape[-1:] == (classes,):
                    waiting.append((result, is_turned, is_rounded))
                elif user.op == "astype" and result.dtype in (dtype, wide(dtype)):
                    waiting.append((result, is_turned, is_rounded or result.dtype == dtype))
                elif user.op == "permute_dims" and user.args[1] == (1, 0):
                    waiting.append((result, not is_turned, is_rounded))
                elif user.op == "sum" and is_rounded and not is_turned and _sums_rows(user):
                    found.sums.append(result)
                elif user.op != "matmul" or not _note_product(found, user, value, is_turned, dtype):
                    return None
        return found

    def _earlier(self, loss: Instruction, values: list[Value]) -> list[Instruction] | None:
        """The instructions after a loss that make these values, in order; None if these need the loss."""
        start = self.position[loss]
        needed: set[int] = set()
        waiting = list(values)
        while waiting:
            made = self.made.get(waiting.pop())
            if made is None or self.position[made] < start or self.position[made] in needed:
                continue
            if made is loss or made.op == "call_custom":
                return None
            needed.add(self.position[made])
            waiting.extend(made.values())
        return [self.program.instructions[number] for number in sorted(needed)]


def _is_plain(x: Value, target: Any, weight: Any) -> bool:
    """Whether logits are rows, with the number of a class for each."""
    if x.ndim != 2 or not x.size or type(target) is not Value or target.shape != x.shape[:1]:
        return False
    return target.dtype.kind in _INTEGERS and (type(weight) is Value or weight is None)


def _is_product(made: Instruction, classes: int) -> bool:
    """Whether a product is one of rows with a matrix."""
    if any(type(arg) is not Value for arg in made.args):
        return False
    (x, y), dtype = made.args, made.result.dtype
    if dtype.name not in _FLOATS or x.dtype != dtype or y.dtype != dtype:
        return False
    return x.ndim > 1 and y.ndim == 2 and y.shape[1] == classes and x.size > 0


def _note_product(found: _Uses, user: Instruction, value: Value, is_turned: bool, dtype: np.dtype[Any]) -> bool:
    """Note a product of a gradient, if it is one of those that can be made of chunks of rows."""
    x, y = user.args
    if any(type(arg) is not Value or arg.dtype != dtype for arg in (x, y)) or user.result.dtype != dtype or x is y:
        return False
    if x is value and y.ndim == 2 and y.size:
        (found.lefts if is_turned else found.rights).append((y, user.result))
        return True
    if y is value and y.ndim == x.ndim == 2 and not is_turned and x.size:
        found.turned_lefts.append((x, user.result))
        return True
    return False


def _sums_rows(user: Instruction) -> bool:
    """Whether a sum goes over all axes but that of the classes."""
    x, axis = user.args[:2]
    return axis is not None and {n % x.ndim for n in axis} == set(range(x.ndim - 1)) and x.ndim > 1


def _same(args: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether arguments are the same values and equal numbers."""
    return len(args) == len(others) and all(
        one is other or (type(one) is not Value and type(other) is not Value and one == other)
        for one, other in zip(args, others)
    )


def _rewritten(program: Program, join: _Join) -> Program:
    gone = {join.loss, *join.earlier}
    remade = {*join.loss.results, *join.uses.results()}
    instructions: list[Instruction] = []
    for one in program.instructions:
        if one is join.loss:
            instructions += [*join.earlier, *_joined(join)]
        elif one not in gone and remade.isdisjoint(one.results):
            instructions.append(one)
    return program.replaced(instructions, {})


def _joined(join: _Join) -> list[Instruction]:
    """Instructions that make the results of a loss, and all that is made of its gradient."""
    made: list[Instruction] = []
    loss, normalizer = join.loss.results[0], join.loss.results[2]
    logits, target, weight, ignored, reduction, smoothing = join.loss.args
    single = wide(logits.dtype)
    boolean = np.dtype(bool)

    def make(op: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: Any, result: Value | None = None) -> Value:
        value = Value(shape, dtype, join.loss.site) if result is None else result
        made.append(Instruction(op, args, (value,), join.loss.site))
        return value

    def cast(value: Value, dtype: np.dtype[Any]) -> Value:
        return value if value.dtype == dtype else make("astype", (value, dtype), value.shape, dtype)

    def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
        return value if value.shape == shape else make("reshape", (value, shape), shape, value.dtype)

    def become(value: Value, result: Value) -> None:
        """Let a result of the program be this value, in its shape and dtype."""
        op, form = ("reshape", result.shape) if value.dtype == result.dtype else ("astype", result.dtype)
        make(op, (reshaped(value, result.shape), form), result.shape, result.dtype, result)

    counts = make("not_equal", (target, ignored), target.shape, boolean)
    if weight is None:
        weights = cast(counts, single)
    else:
        place = make("where", (counts, target, 0), target.shape, target.dtype)
        own = make("take", (cast(weight, single), place, -1), target.shape, single)
        weights = make("where", (counts, own, 0.0), target.shape, single)
    make("sum", (weights, None, False), (), single, normalizer)
    if reduction == "mean":
        is_zero = make("equal", (normalizer, 0.0), (), boolean)
        divisor = make("where", (is_zero, 1.0, normalizer), (), single)

    scale = None
    if join.gradient is not None:
        scale = cast(join.gradient.args[0], single)
        if reduction == "mean":
            scale = make("divide", (scale, divisor), (), single)

    x, y = join.logits.product.args
    x = reshaped(x, (target.size, x.shape[-1]))
    bias = None if join.logits.bias is None else reshaped(join.logits.bias, (y.shape[1],))
    rights, lefts, turned_lefts, sums = join.uses
    turned = [make("permute_dims", (one, (1, 0)), one.shape[::-1], one.dtype) for one, _ in turned_lefts]
    factors = tuple([right for right, _ in rights])
    sides = tuple([(left, False) for left, _ in lefts] + [(left, True) for left in turned])
    chunk = rows_at_once(target.size, y.shape[1], x.dtype)
    results = [Value(*form, join.loss.site) for form in forms(x, y, factors, sides, bool(sums), chunk)]
    args = (x, y, bias, target, weight, scale, ignored, float(smoothing), factors, sides, bool(sums), chunk)
    made.append(Instruction("linear_cross_entropy", args, tuple(results), join.loss.site))

    losses, *products = results
    for value, (_, result) in zip(products, (*rights, *lefts, *turned_lefts)):
        become(value, result)
    for result in sums:
        become(products[-1], result)
    if reduction != "none":
        losses = make("sum", (losses, None, False), (), single)
    if reduction == "mean":
        losses = make("divide", (losses, divisor), (), single)
    become(losses, loss)
    return made
