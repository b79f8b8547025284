"""What a tape holds: values in slots, and the steps that lead from one to the next.

A step is one use of an operation of the rule table: its recipe, and what the recipe's rule needs. One call of
`record_*` adds one step or several; the values between them have no slot.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from ..autodiff.apply import split
from ..autodiff.base import resolved
from ..autodiff.creation import asarray
from ..autodiff.explanation import explained
from ..autodiff.graph import user_frame
from ..autodiff.tables import NUMPY_TABLE
from ..backends import NUMPY
from ..errors import DeviceError, DtypeError, GradientError, IndexingError, ShapeError
from ..operations import OPERATIONS
from ..tensors.tensor import Tensor

Shape = tuple[int, ...]


class Value:
    """One array of the recorded computation. Its shape and dtype are None until data or a declaration tells them."""

    __slots__ = ("slot", "shape", "dtype")

    def __init__(self, slot: int | None, shape: Shape | None, dtype: Any) -> None:
        self.slot = slot
        self.shape = shape
        self.dtype = dtype


class Recorded:
    """One call of `record_*`: what it was, and where."""

    __slots__ = ("name", "slots", "output", "code", "lasti")

    def __init__(self, name: str) -> None:
        self.name = name
        self.slots: list[int | None] = []
        frame = user_frame(sys._getframe(1))
        self.code = None if frame is None else frame.f_code
        self.lasti = -1 if frame is None else frame.f_lasti
        self.output: Value

    def __str__(self) -> str:
        inputs = ", ".join("constant" if slot is None else str(slot) for slot in self.slots)
        shape = "unknown shape" if self.output.shape is None else str(self.output.shape)
        dtype = "" if self.output.dtype is None else f" {self.output.dtype.name}"
        return f"{self.output.slot} = {self.name}({inputs}): {shape}{dtype}"


class Step:
    """One node to be: the recipe, the tracked operands, the result, and what the rule needs."""

    __slots__ = ("recipe", "operands", "result", "saved", "recorded")

    def __init__(self, recipe: Any, operands: list[Value], result: Value, saved: Any, recorded: Recorded) -> None:
        self.recipe = recipe
        self.operands = operands
        self.result = result
        self.saved = saved
        self.recorded = recorded


class Operand:
    """What a step is applied to: a value, or a constant; its data where they were given."""

    __slots__ = ("value", "array", "shape", "dtype", "is_borrowed")

    def __init__(self, value: Value | None, array: Any, shape: Any, dtype: Any, is_borrowed: bool = False) -> None:
        self.value = value
        self.array = array
        self.shape = shape
        self.dtype = dtype
        self.is_borrowed = is_borrowed  # from the caller, who may write to it later

    @property
    def size(self) -> int:
        return prod(self.shape)


class Tape:
    """Slots and steps, and how they are listed."""

    def __init__(self) -> None:
        self._slots: list[Value] = []
        self._steps: list[Step] = []
        self._recorded: list[Recorded | str] = []

    def leaf(self, shape: int | tuple[int, ...] | None = None, dtype: Any = None) -> int:
        """A new slot for an input: a weight, or data. Its shape is learnt from the first data given for it.

        >>> import pullback as pb
        >>> tape = pb.GradientTape()
        >>> tape.leaf(), tape.leaf((2, 3)), tape.num_tensors
        (0, 1, 2)
        """
        if dtype is not None:
            dtype = np.dtype(getattr(dtype, "name", dtype))
            if dtype.kind not in "fc":
                raise DtypeError(f"leaf: only floating-point and complex numbers have a gradient, got {dtype.name}.")
        if shape is not None:
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape):
                raise ShapeError(f"leaf: a shape is made of non-negative integers, got {shape!r}.")
        return self._add_slot(Value(None, shape, dtype))

    def _add_slot(self, value: Value) -> int:
        value.slot = len(self._slots)
        self._slots.append(value)
        return value.slot

    def _value(self, caller: str, slot: Any) -> Value:
        if not isinstance(slot, (int, np.integer)) or isinstance(slot, bool):
            raise DtypeError(f"{caller}: a slot is a number that the tape gave out, got {type(slot).__name__}.")
        if not 0 <= slot < len(self._slots):
            count = len(self._slots)
            raise IndexingError(
                f"{caller}: there is no slot {slot}; the tape has {count}. Make inputs with `tape.leaf()`."
            )
        return self._slots[slot]

    @property
    def num_tensors(self) -> int:
        """The number of slots, which is the number of buffers that `backward` needs."""
        return len(self._slots)

    @property
    def ops(self) -> list[str]:
        """What was recorded, one line for each operation.

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> x, y = tape.leaf(), tape.leaf(3)
        >>> _ = tape.record_add(tape.record_exp(x, np.zeros(3)), y)
        >>> tape.ops
        ['2 = exp(0): (3,) float64', '3 = add(2, 1): (3,) float64']
        """
        return [str(recorded) for recorded in self._recorded]

    def __len__(self) -> int:
        """The number of recorded operations."""
        return len(self._recorded)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} operations, {self.num_tensors} slots)"

    def clear(self) -> None:
        """Forget all slots and operations, and the data kept for them."""
        self._slots.clear()
        self._steps.clear()
        self._recorded.clear()


class Call:
    """What one call of `record_*` is about to add. Only `commit` changes the tape: a call that fails adds nothing."""

    __slots__ = ("tape", "caller", "recorded", "steps", "learnt")

    def __init__(self, tape: Tape, name: str) -> None:
        self.tape = tape
        self.caller = f"record_{name}"
        self.recorded = Recorded(name)
        self.steps: list[Step] = []
        self.learnt: dict[Value, tuple[Shape, Any]] = {}

    def data_operand(self, label: str, slot: Any, data: Any) -> Operand:
        """The operand in `slot`, None for a constant, with its data."""
        if data is None:
            raise DtypeError(f"{self.caller}: {label} is missing: the gradient needs its values.")
        value = self._in_slot(slot)
        array, is_borrowed = data_for(f"{self.caller}: {label}", data)
        if value is not None:
            value = self._fitted(label, value, array.shape, array.dtype)
        return Operand(value, array, array.shape, array.dtype, is_borrowed)

    def operand(self, label: str, slot: int, shape: Shape | None = None, dtype: Any = None) -> Operand:
        """The operand in `slot` where its values are not needed; `shape` is the one that it must have."""
        if slot is None:
            raise GradientError(f"{self.caller}: {label} is no slot; a constant has no influence on the gradients.")
        value = self._in_slot(slot)
        assert value is not None
        if shape is None:
            return Operand(value, None, *self.learnt.get(value, (value.shape, value.dtype)))
        return Operand(self._fitted(label, value, shape, dtype), None, shape, dtype)

    def shaped_operand(self, label: str, slot: int) -> Operand:
        """The operand in `slot` where nothing but its shape is needed."""
        operand = self.operand(label, slot)
        if operand.shape is None:
            raise ShapeError(
                f"{self.caller}: the shape of slot {slot} is not known yet. Give it to `tape.leaf(shape)` where the "
                "slot, or the one that it was made from, was made."
            )
        return operand

    def told(self, operand: Operand, shape: Shape) -> Operand:
        """An operand without data whose shape has turned out to be `shape`."""
        assert operand.value is not None
        return Operand(self._fitted("input", operand.value, shape, operand.dtype), None, shape, operand.dtype)

    def _in_slot(self, slot: int | None) -> Value | None:
        value = None if slot is None else self.tape._value(self.caller, slot)
        self.recorded.slots.append(None if value is None else value.slot)
        return value

    def _fitted(self, label: str, value: Value, shape: Shape, dtype: Any) -> Value:
        """`value` as an array of the given shape and dtype: they are learnt if unknown; another shape is converted."""
        known, known_dtype = self.learnt.get(value, (value.shape, value.dtype))
        if known is None or known_dtype is None:
            known = shape if known is None else known
            known_dtype = dtype if known_dtype is None else known_dtype
            self.learnt[value] = (known, known_dtype)
        if known == shape:
            return value
        if prod(known) != prod(shape):
            raise ShapeError(f"{self.caller}: {label} has shape {shape}, but slot {value.slot} has shape {known}.")
        reshaped = self.step("reshape", (Operand(value, None, known, known_dtype),), (shape,), shape).value
        assert reshaped is not None
        return reshaped

    def step(
        self,
        name: str,
        operands: tuple[Operand | None, ...],
        static: tuple[Any, ...],
        shape: Shape | None,
        dtype: Any = None,
        outputs: tuple[Any, ...] | None = None,
        residuals: tuple[Any, ...] | None = None,
    ) -> Operand:
        """Apply an operation; its result, without data. What its rule needs and nobody gave is computed here."""
        operation = OPERATIONS[name]
        tracked = [o.value for o in operands if o is not None and o.value is not None]
        if not tracked:
            raise GradientError(f"{self.caller}: no operand has a slot, so there is nothing to record.")
        recipe = NUMPY_TABLE.recipe(operation, tuple([o is not None and o.value is not None for o in operands]))
        inputs = [o if o is None or o.array is None else o.array for o in operands]
        kinds = [kind for kind, _ in recipe.sources]
        if (outputs is None and "output" in kinds) or (residuals is None and "residual" in kinds):
            try:
                with np.errstate(all="ignore"):
                    outputs, residuals = split(operation, operation.kernel_for(NUMPY)(*inputs, *static))
            except Exception as error:
                raise explained(operation, inputs, static, error) from error
        saved = recipe.gather(inputs, static, outputs, residuals)
        borrowed = {id(o.array): o.array for o in operands if o is not None and o.is_borrowed}
        if borrowed:
            copies = {key: array.copy() for key, array in borrowed.items() if any([array is kept for kept in saved])}
            saved = tuple([copies.get(id(kept), kept) for kept in saved])
        if dtype is None:
            dtypes = [o.dtype for o in operands if o is not None and o.dtype is not None]
            dtype = np.result_type(*dtypes) if dtypes else None
        result = Value(None, shape, dtype)
        self.steps.append(Step(recipe, tracked, result, saved, self.recorded))
        return Operand(result, None, shape, dtype)

    def commit(self, result: Operand) -> int:
        """Put what was prepared on the tape; the slot of the result."""
        assert result.value is not None
        for value, (shape, dtype) in self.learnt.items():
            value.shape, value.dtype = shape, dtype
        self.tape._steps += self.steps
        self.recorded.output = result.value
        self.tape._recorded.append(self.recorded)
        return self.tape._add_slot(result.value)


def data_for(label: str, data: Any) -> tuple[Any, bool]:
    """Given data as a NumPy array, and whether its memory is the caller's to write to."""
    if type(data) is not np.ndarray:
        is_tensor = isinstance(data, Tensor)
        tensor = asarray(data)
        if tensor.requires_grad:
            raise GradientError(
                f"{label} is a tensor that requires a gradient, which the slots of a tape do not carry on. "
                "Pass `.detach()` of it, or use the tape as a context manager."
            )
        array, is_borrowed = resolved(tensor)._raw, not is_tensor  # a write to a tensor copies: its memory can be held
        if type(array) is not np.ndarray:
            raise DeviceError(f"{label}: a tape works on NumPy arrays, this is on {tensor.device!r}.")
    else:
        array, is_borrowed = data, True
    if array.dtype.kind not in "fc":
        raise DtypeError(f"{label}: expected floating-point numbers, got {array.dtype.name}.")
    return array, is_borrowed
