"""What control flow passes on: decisions, trees of tensors that go from step to step, outputs that pile up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import backends, modes, tree
from ..autodiff import base
from ..autodiff.base import PYTHON_SCALARS
from ..autodiff.creation import asarray, result_type
from ..autodiff.tables import TENSORS
from ..dtypes import DType
from ..errors import DtypeError, ShapeError
from .manipulation import stack

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor


def is_symbolic(x: Tensor) -> bool:
    """Whether a tensor stands for values that will be known only when the program that is being traced runs.

    While Pullback traces, that is every tensor: one from outside becomes an input of the program when it is used.
    """
    return modes.tracing() is not None or not x._backend.is_concrete(x._raw)


def decision(what: str, value: Any) -> bool | Tensor:
    """Whether a predicate holds; a boolean tensor without axes if that is not known yet."""
    if isinstance(value, (bool, int, float, complex)):
        return bool(value)
    if not _is_array(value):
        raise DtypeError(
            f"{what} is of type {type(value).__name__}: {value!r:.60}; expected a bool, a number or a tensor of one "
            "element. Compare or reduce tensors to make one: `x > 0`, `(x > 0).all()`."
        )
    tensor = asarray(value)
    if tensor.size != 1:
        raise ShapeError(
            f"{what} has shape {tensor.shape}; expected one element. Write `.all()` or `.any()` of it, or choose "
            "element by element with `pb.where`."
        )
    if not is_symbolic(tensor):
        return bool(tensor.item())
    if tensor.shape:
        tensor = TENSORS.reshape(tensor, ())
    return tensor if tensor.dtype.kind == "bool" else TENSORS.not_equal(tensor, 0)


def _is_array(x: Any) -> bool:
    return (
        isinstance(x, base.Tensor) or backends.of(x) is not None or hasattr(x, "__dlpack__") or hasattr(x, "__array__")
    )


def tensor_of(what: str, structure: tree.Structure, i: int, leaf: Any) -> Tensor:
    """Leaf `i` of a tree as a tensor."""
    if isinstance(leaf, base.Tensor):
        return leaf
    if type(leaf) in PYTHON_SCALARS or _is_array(leaf):
        return asarray(leaf)
    path = structure._paths()[i]
    raise DtypeError(
        f"{what}{f' at `{path}`' if path else ''} is of type {type(leaf).__name__}: {leaf!r:.60}; expected a tensor, "
        "an array or a number. Let the function capture what is no array, or make a type of your own a container with "
        "`pb.tree.register`."
    )


def own(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands with tensors of their own, in O(1) each: what is written to them does not show in the given ones.

    Objects, such as modules, stay the same objects: a layer may note in itself what it has seen.
    """
    return tree.map(_own, operands, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)))


def _own(x: Any) -> Any:
    if not isinstance(x, base.Tensor):
        return x
    copy = x.clone()
    origin = getattr(x, "_origin", None)
    if origin is not None:  # under a checkpointing strategy it is the same step's result
        copy._origin = origin
    return copy


def number_like(value: Any, dtype: DType, device: str) -> Tensor:
    """A Python number as a tensor, in `dtype` if that can hold numbers of its kind."""
    fits = result_type(dtype, value) == dtype
    return asarray(value, dtype=dtype if fits else None, device=device)


class Carry:
    """The tree that goes from step to step, as a list of tensors that keep their shapes and dtypes."""

    def __init__(self, loop: str, function: str, initial: Any, beside: list[Tensor]) -> None:
        self.loop = loop
        self.function = function  # what the user calls the function that makes the next carry
        leaves, self.structure = tree.flatten_variables(initial)
        self.numbers = {i: leaf for i, leaf in enumerate(leaves) if type(leaf) in PYTHON_SCALARS}
        label = f"{loop}: `initial`"
        tensors = {i: tensor_of(label, self.structure, i, x) for i, x in enumerate(leaves) if i not in self.numbers}
        others = [*tensors.values(), *beside]
        self.tensors = [tensors[i] if i in tensors else _initial_number(x, others) for i, x in enumerate(leaves)]

    def tree(self) -> Any:
        """The carry as a tree of tensors that its receiver may write to."""
        return tree.unflatten(self.structure, [_own(x) for x in self.tensors])

    def advance(self, given: Any, step: int) -> None:
        """Take what a step returned as the next carry."""
        self.tensors = self.checked(given, step)

    def checked(self, given: Any, step: int) -> list[Tensor]:
        """The tensors of what a step returned, which must be like those before it."""
        leaves, structure = tree.flatten_variables(given)
        if structure != self.structure:
            raise ShapeError(
                f"{self.loop}: at step {step} `{self.function}` returned a carry like {_shown(structure)}, `initial` "
                f"is like {_shown(self.structure)}. Return a carry with the structure of `initial`."
            )
        return [
            leaf if isinstance(leaf, base.Tensor) and _has_form(leaf, x) else self._checked_one(i, leaf, x, step)
            for i, (leaf, x) in enumerate(zip(leaves, self.tensors))
        ]

    def _checked_one(self, i: int, leaf: Any, before: Tensor, step: int) -> Tensor:
        dtype = before.dtype
        if type(leaf) in PYTHON_SCALARS:
            found = number_like(leaf, dtype, before.device)
        else:
            found = tensor_of(f"{self.loop}: at step {step} the carry of `{self.function}`", self.structure, i, leaf)
        if found.shape != before.shape:
            raise ShapeError(
                f"{self._differs(i, step)} of shape {found.shape}, it was {before.shape} before. The carry keeps its "
                f"shape: return one of shape {before.shape}, or start with {self._named(i)} of shape {found.shape}."
            )
        if found.dtype == dtype:
            return found
        mode = modes.current()
        if mode is not None and mode.autocast is not None and found.dtype.kind == dtype.kind == "float":
            return TENSORS.astype(found, before._backend.raw_dtype(dtype))  # the step computed in half precision
        was = f"it was {dtype.name} before"
        instead = f"start with {self._named(i)} of that dtype: `.astype(pb.{found.dtype.name})`"
        if i in self.numbers:
            number = self.numbers[i]
            was = f"the number {number} that it started from is {dtype.name}"
            if type(number) is int and found.dtype.kind == "float":  # which adapts to the floats beside it
                instead = f"start from {float(number)}"
            else:
                instead = f"start from `pb.asarray({number}, dtype=pb.{found.dtype.name})`"
        raise DtypeError(
            f"{self._differs(i, step)} of dtype {found.dtype.name}, {was}. The carry keeps its dtype: {instead}, or "
            f"return `.astype(pb.{dtype.name})` of it."
        )

    def _differs(self, i: int, step: int) -> str:
        path = self.structure._paths()[i]
        return f"{self.loop}: at step {step} `{self.function}` returned a carry{f' with `{path}`' if path else ''}"

    def _named(self, i: int) -> str:
        return f"`initial{self.structure._paths()[i]}`"


def _has_form(x: Tensor, like: Tensor) -> bool:
    """Whether `x` surely has the shape and dtype of `like`: the quick look before the one that makes messages."""
    a, b = x._raw, like._raw
    return a.shape == b.shape and a.dtype == b.dtype


def _initial_number(value: Any, others: list[Tensor]) -> Tensor:
    """A Python number that a carry starts from: of the dtype that it would have beside the other arrays' floats."""
    device = others[0].device if others else None
    kinds = ("float", "complex") if type(value) is complex else ("float",)
    beside = [x.dtype for x in others if x.dtype.kind in kinds]
    if type(value) in (float, complex) and beside:
        return asarray(value, dtype=result_type(*beside, value), device=device)
    return asarray(value, device=device)


class Outputs:
    """What the steps of a scan give beside the carry, leaf by leaf."""

    def __init__(self) -> None:
        self.structure: tree.Structure | None = None
        self.columns: list[list[Tensor]] = []

    def add(self, y: Any, step: int) -> None:
        """Put the outputs of a step behind those of the steps before."""
        leaves, structure = tree.flatten_variables(y)
        if self.structure is None:
            self.structure = structure
            self.columns = [[] for _ in leaves]
        elif structure != self.structure:
            raise ShapeError(
                f"scan: at step {step} the output is like {_shown(structure)}, at the steps before it was like "
                f"{_shown(self.structure)}. Return outputs of one structure at every step."
            )
        for i, (leaf, column) in enumerate(zip(leaves, self.columns)):
            known = isinstance(leaf, base.Tensor) and column and _has_form(leaf, column[0])
            column.append(leaf if known else self._checked_one(i, leaf, column, step))

    def _checked_one(self, i: int, leaf: Any, column: list[Tensor], step: int) -> Tensor:
        assert self.structure is not None
        what = f"scan: at step {step} the output"
        tensor = tensor_of(what, self.structure, i, leaf)
        if column and (tensor.shape != column[0].shape or tensor.dtype != column[0].dtype):
            path = self.structure._paths()[i]
            error = ShapeError if tensor.shape != column[0].shape else DtypeError
            raise error(
                f"{what}{f' at `{path}`' if path else ''} has shape {tensor.shape} and dtype {tensor.dtype.name}, "
                f"at the steps before it had {column[0].shape} and {column[0].dtype.name}. Outputs are stacked: "
                "return the same shape and dtype at every step."
            )
        return tensor

    def stacked(self, reverse: bool) -> Any:
        """The outputs along a new first axis; those of a reversed scan in the order of the slices."""
        assert self.structure is not None
        return tree.unflatten(self.structure, [stack(column[::-1] if reverse else column) for column in self.columns])

    def empty(self) -> Any:
        """No outputs, in the form of those that were added."""
        assert self.structure is not None
        firsts = [column[0] for column in self.columns]
        return tree.unflatten(self.structure, [TENSORS.zeros((0, *x.shape), x._raw.dtype, x) for x in firsts])


def _shown(structure: tree.Structure) -> str:
    return f"`{repr(structure).removeprefix('Structure(').removesuffix(')'):.300}`"
