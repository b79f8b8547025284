"""Control flow that can be differentiated and compiled: a choice, a loop over slices, a loop until a condition fails.

On values that are known these are Python's `if`, `for` and `while`, recorded step by step. Where a value that decides
is not known yet, because a program is being traced, `traced_control_flow` takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from .. import modes, tree
from ..autodiff import base
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
from . import traced_control_flow
from .carry import Carry, Outputs, decision, is_symbolic, own, tensor_of
from .manipulation import unstack

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import A, R

__all__ = ["cond", "scan", "while_loop"]


def cond(predicate: Any, true_function: Callable[..., R], false_function: Callable[..., R], /, *operands: Any) -> R:
    """`true_function(*operands)` if the predicate holds, else `false_function(*operands)`; a tree of tensors.

    Only the chosen function is called, and gradients reach its operands and the tensors that it captured. In a compiled
    program whose predicate is not known when it is compiled, both are computed and one result is selected: they must
    then agree in structure, shapes and dtypes.

    Parameters
    ----------
    predicate : bool, number or Tensor
        What decides; a tensor has one element.
    true_function : callable
        Called with the operands if the predicate holds.
    false_function : callable
        Called with the operands otherwise.
    *operands : any
        The arguments of both functions.

    Returns
    -------
    tree of Tensor
        What the function returned.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([3.0, -4.0], requires_grad=True)
    >>> y = pb.cond(x.sum() > 0, lambda x: x * x, lambda x: -x, x)
    >>> y
    tensor([-3.,  4.], requires_grad=True)
    >>> pb.backward(y.sum())[x]
    tensor([-1., -1.])
    """
    _check_callable("cond", true_function=true_function, false_function=false_function)
    holds = decision("cond: the predicate", predicate)
    if isinstance(holds, base.Tensor):
        return traced_control_flow.select(holds, true_function, false_function, operands)
    label = "true_function" if holds else "false_function"
    result = (true_function if holds else false_function)(*own(operands))
    leaves, structure = tree.flatten_variables(result)
    found = [tensor_of(f"cond: the result of {label}", structure, i, leaf) for i, leaf in enumerate(leaves)]
    return tree.unflatten(structure, found)


def scan(
    function: Callable[[Any, Any], tuple[R, A]],
    initial: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[R, A]:
    """Call `carry, y = function(carry, x)` for every slice of `xs` along its first axis, one after the other.

    If there are no slices, the function is called once on zeros, to see what its outputs are like.

    Parameters
    ----------
    function : callable
        It takes the carry and a slice, and returns the next carry and an output. Both may be trees.
    initial : tree
        The first carry. It keeps its structure, shapes and dtypes; a Python number in it takes the dtype of the
        floats beside it.
    xs : tree of array, optional
        What to take slices of. Without it the function gets None, `length` times.
    length : int, optional
        The number of steps, where there is no `xs`.
    reverse : bool
        Whether the last slice comes first; the outputs still lie where their slices do.

    Returns
    -------
    tuple
        (last carry, outputs stacked along a new first axis).

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> last, products = pb.scan(lambda product, x: (product * x, product * x), 1.0, x)
    >>> products
    tensor([1., 2., 6.], requires_grad=True)
    >>> pb.backward(last)[x]
    tensor([6., 3., 2.])
    """
    _check_callable("scan", function=function)
    columns, structure, count = _columns(xs, length)
    carry = Carry("scan", "function", initial, columns)
    if traced_control_flow.is_rolled(count, *columns, *carry.tensors):
        return _rolled(function, carry, columns, structure, count, reverse)
    outputs = Outputs()
    if any(is_symbolic(x) for x in (*columns, *carry.tensors)):
        traced_control_flow.note_unrolled("scan", count)
    if not count:
        return carry.tree(), _outputs_of_no_steps(function, carry, columns, structure)
    # One operation reads all slices and one writes all outputs: reading them one by one would fill a gradient as large
    # as `xs` for every slice.
    slices = [unstack(column) for column in columns]
    for step in reversed(range(count)) if reverse else range(count):
        x = tree.unflatten(structure, [column[step] for column in slices])
        state, y = _pair(function(carry.tree(), x), step)
        carry.advance(state, step)
        outputs.add(y, step)
    return carry.tree(), outputs.stacked(reverse)


def _rolled(
    function: Callable[[Any, Any], tuple[Any, Any]],
    carry: Carry,
    columns: list[Tensor],
    structure: tree.Structure,
    count: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """A scan as one instruction of the program that is being traced."""
    outputs = Outputs()

    def step(state: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        nonlocal outputs
        carry.tensors, outputs = state, Outputs()
        after, y = _pair(function(carry.tree(), tree.unflatten(structure, slices)), 0)
        outputs.add(y, 0)
        return carry.checked(after, 0), [column[0] for column in outputs.columns]

    carry.tensors, stacked = modes.tracing().roll(step, (function,), carry.tensors, columns, count, reverse)
    assert outputs.structure is not None  # a step has been traced
    return carry.tree(), tree.unflatten(outputs.structure, stacked)


def while_loop(
    condition: Callable[[Any], Any], body: Callable[[Any], R], initial: Any, max_steps: int | None = None
) -> R:
    """`carry = body(carry)` while `condition(carry)` holds, at most `max_steps` times; the last carry.

    Steps are recorded one by one, so every mode of differentiation works. A compiled program whose condition is not
    known when it is compiled needs `max_steps`, and always takes so many steps; those after the condition failed change
    nothing.

    Parameters
    ----------
    condition : callable
        It takes the carry and says whether to go on: a bool, or a tensor of one element.
    body : callable
        It takes the carry and returns the next one.
    initial : tree
        The first carry. It keeps its structure, shapes and dtypes.
    max_steps : int, optional
        The most steps that are taken.

    Returns
    -------
    tree of Tensor
        The last carry.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor(1.5, requires_grad=True)
    >>> y = pb.while_loop(lambda y: y < 10, lambda y: 2 * y, x)
    >>> y
    tensor(12., requires_grad=True)
    >>> pb.backward(y)[x]
    tensor(8.)
    """
    _check_callable("while_loop", condition=condition, body=body)
    if max_steps is not None:
        max_steps = _count("while_loop", "max_steps", max_steps)
    carry = Carry("while_loop", "body", initial, [])
    step = 0
    while max_steps is None or step < max_steps:
        holds = decision("while_loop: what the condition returned", condition(carry.tree()))
        if isinstance(holds, base.Tensor):
            traced_control_flow.masked_loop(condition, body, carry, holds, step, max_steps)
            break
        if not holds:
            break
        carry.advance(body(carry.tree()), step)
        step += 1
    return carry.tree()


# -- arguments -------------------------------------------------------------------------------------


def _check_callable(name: str, **functions: Any) -> None:
    for label, function in functions.items():
        if not callable(function):
            raise DtypeError(
                f"{name}: `{label}` must be a function, got {type(function).__name__}: {function!r:.60}. "
                f"For a value that is there already write `lambda *_: value`."
            )


def _count(name: str, label: str, value: Any) -> int:
    try:
        count = int(value.__index__())
    except (AttributeError, TypeError, ValueError):
        raise DtypeError(
            f"{name}: `{label}` must be an integer that is known before the loop starts, got {type(value).__name__}: "
            f"{value!r:.60}."
        ) from None
    if count < 0:
        raise ShapeError(f"{name}: `{label}` is {count}; it cannot be negative.")
    return count


def _columns(xs: Any, length: int | None) -> tuple[list[Tensor], tree.Structure, int]:
    """The leaves of `xs` as tensors, what is left of `xs` without them, and how many slices they have."""
    leaves, structure = tree.flatten_variables(xs)
    columns = [tensor_of("scan: `xs`", structure, i, leaf) for i, leaf in enumerate(leaves)]
    count = None if length is None else _count("scan", "length", length)
    if not columns and count is None:
        raise ShapeError("scan: there is nothing to scan in `xs`. Pass arrays, or the number of steps as `length=...`.")
    origin = "`length`"
    for path, column in zip(structure._paths(), columns):
        if not column.ndim:
            raise ShapeError(
                f"scan: `xs{path}` has no axis to scan, it is a number. Capture it in the function, or write "
                "`pb.broadcast_to(x, (length,))`."
            )
        if count is None:
            count, origin = column.shape[0], f"`xs{path}`"
        elif column.shape[0] != count:
            raise ShapeError(
                f"scan: `xs{path}` of shape {column.shape} has {column.shape[0]} slices, {origin} says {count}. "
                "All arrays in `xs` need a first axis of the same size: slice or pad them."
            )
    assert count is not None  # either way above gave it
    return columns, structure, count


def _pair(result: Any, step: int) -> tuple[Any, Any]:
    if type(result) is tuple and len(result) == 2:
        return result
    given = f"a tuple of {len(result)}" if type(result) is tuple else f"{type(result).__name__}: {result!r:.60}"
    raise ShapeError(
        f"scan: at step {step} the function returned {given}; expected two things. "
        "Write `return carry, y`, or `return carry, None` where there is no output."
    )


def _outputs_of_no_steps(
    function: Callable[[Any, Any], Any], carry: Carry, columns: list[Tensor], structure: tree.Structure
) -> Any:
    """Outputs without a slice, of the shapes and dtypes that a call on zeros gives; nothing else of it stays."""
    trial = Outputs()
    with modes.changed(recording=False, check_every_operation=False), np.errstate(all="ignore"):
        zeros = [TENSORS.zeros(column.shape[1:], column._raw.dtype, column) for column in columns]
        state, y = _pair(function(carry.tree(), tree.unflatten(structure, zeros)), 0)
        carry.checked(state, 0)
        trial.add(y, 0)
        return trial.empty()
