"""Running an operation on tensors: kernel, then a node if somebody needs the gradient."""

from __future__ import annotations

from typing import Any

from .. import backends, modes
from ..errors import DeviceError, DtypeError, GradientError, PullbackError, ShapeError
from ..tensor.core import Tensor, make
from .graph import Node, next_sequence_number, record_site
from .operation import Operation, Recipe
from .tables import table_for

PYTHON_SCALARS = frozenset((float, int, bool, complex))
SCALAR_OR_ABSENT = PYTHON_SCALARS | {type(None)}


def apply(operation: Operation, inputs: tuple[Any, ...], static: tuple[Any, ...] = ()) -> Any:
    """Run `operation` on tensors (or raw arrays, Python scalars, None) and record it; a tuple for several outputs."""
    raws, nodes = [], []
    array = None
    for x in inputs:
        kind = type(x)
        if kind is Tensor:
            raws.append(x._data)
            nodes.append(x._node)
            array = x._data
        elif kind in SCALAR_OR_ABSENT:
            raws.append(x)
            nodes.append(None)
        elif isinstance(x, Tensor):
            return x._apply(operation, inputs, static)
        else:
            return apply(operation, tuple(as_operand(x, operation) for x in inputs), static)
    if array is None:
        from ..functions.creation import asarray

        return apply(operation, tuple(x if x is None else asarray(x) for x in inputs), static)
    backend = backends.of(array)
    for raw in raws:
        if type(raw) not in SCALAR_OR_ABSENT and backends.of(raw) is not backend:
            raise DeviceError(_mixed_devices(operation, raws))
    kernel = getattr(backend.xp, operation.name)
    try:
        result = kernel(raws, *static) if operation.variadic else kernel(*raws, *static)
    except Exception as error:
        raise explained(operation, raws, static, error) from error
    outputs, residuals = split(operation, result)
    outputs = tuple(map(backend.from_scalar, outputs))
    mode = modes.current()
    if mode is not None:
        if mode.check_every_operation:
            from .guard import check_outputs

            check_outputs(operation, raws, outputs)
        if not mode.recording:
            nodes = ()
    if any(nodes):
        tensors = record(backend, operation, tuple(raws), tuple(nodes), static, outputs, residuals)
    else:
        tensors = tuple([make(out, None) for out in outputs])
    return tensors if operation.many_outputs or len(outputs) > 1 else tensors[0]


def split(operation: Operation, result: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A kernel's result as (outputs, residuals)."""
    if operation.residuals:
        count = len(result) - len(operation.residuals)
        return tuple(result[:count]), tuple(result[count:])
    if operation.many_outputs or len(operation.outputs) > 1:
        return tuple(result), ()
    return (result,), ()


def record(
    backend: Any,
    operation: Operation,
    raws: tuple[Any, ...],
    nodes: tuple[Node | None, ...],
    static: tuple[Any, ...],
    outputs: tuple[Any, ...],
    residuals: tuple[Any, ...],
) -> tuple[Tensor, ...]:
    """Make the output tensors with a node that remembers what the rule needs."""
    floating = [backend.dtype_of(out).kind in ("float", "complex") for out in outputs]
    if not any(floating):
        return tuple([make(out, None) for out in outputs])
    mask = tuple([node is not None for node in nodes])
    if operation.variadic:
        check_differentiable(operation, operation.inputs[0])
    else:
        for name, tracked in zip(operation.inputs, mask):
            if tracked:
                check_differentiable(operation, name)
    recipe = table_for(backend).recipe(operation, mask)
    node = new_node(
        recipe,
        tuple([node for node in nodes if node is not None]),
        recipe.gather(raws, static, outputs, residuals),
        restoration(operation, raws, mask, outputs[0]),
    )
    if len(outputs) == 1 and not operation.many_outputs:
        return (make(outputs[0], node),)
    return tuple(
        [make(out, select(node, i, len(outputs)) if is_float else None) for i, (out, is_float) in enumerate(zip(outputs, floating))]
    )


def new_node(recipe: Any, inputs: tuple[Node, ...], saved: tuple[Any, ...], restore: Any = None) -> Node:
    node = Node()
    node.seq = next_sequence_number()
    node.recipe = recipe
    node.inputs = inputs
    node.saved = saved
    node.restore = restore
    record_site(node)
    return node


def restoration(operation: Operation, raws: tuple[Any, ...], mask: tuple[bool, ...], out: Any) -> Any:
    """What to bring the gradients back to, where broadcasting or promotion changed an input: (shape, dtype) each."""
    tracked = [raw for raw, wanted in zip(raws, mask) if wanted]
    if all(raw.dtype == out.dtype and (not operation.elementwise or raw.shape == out.shape) for raw in tracked):
        return None
    return tuple([(raw.shape, raw.dtype) for raw in tracked])


def check_differentiable(operation: Operation, name: str) -> None:
    if name not in operation.differentiable:
        raise GradientError(
            f"`{operation.name}` has no gradient with respect to `{name}`. "
            f"Pass `{name}.detach()` if it is meant to be a constant there."
        )


class Outputs(tuple):  # type: ignore[type-arg]
    """The cotangents of an operation with several outputs; None where nothing depends on one."""

    __slots__ = ()

    def __add__(self, other: Any) -> Outputs:  # type: ignore[override]
        return Outputs(b if a is None else a if b is None else a + b for a, b in zip(self, other))


def _select_backward(g: Any, index: int, count: int) -> tuple[Outputs]:
    return (Outputs(g if i == index else None for i in range(count)),)


SELECT = Recipe.of_function(
    Operation("output", "x", "index count", "", "out", ("x",), False, "x", False, False, False, True),
    (True,),
    ("index", "count"),
    _select_backward,
)


def select(node: Node, index: int, count: int) -> Node:
    """The node of one output of an operation with several."""
    return new_node(SELECT, (node,), (index, count))


def as_operand(x: Any, operation: Operation) -> Any:
    """`x` itself if an operation can take it, else a tensor of it."""
    if type(x) in SCALAR_OR_ABSENT or isinstance(x, Tensor):
        return x
    if backends.of(x) is not None or hasattr(x, "__dlpack__") or hasattr(x, "__array__"):
        from ..functions.creation import asarray

        return asarray(x)
    raise DtypeError(f"{operation.name}: expected a tensor, an array or a number, got {type(x).__name__}: {x!r:.60}")


def describe(raw: Any) -> str:
    """A raw array in an error message: shape and dtype."""
    shape = getattr(raw, "shape", None)
    return f"{raw!r}" if shape is None else f"{tuple(shape)} {getattr(raw.dtype, 'name', raw.dtype)}"


def explained(operation: Operation, raws: Any, static: Any, error: Exception) -> Exception:
    """A kernel's error as one of ours, with what was given."""
    if isinstance(error, (PullbackError, MemoryError)):
        return error
    given = ", ".join(describe(raw) for raw in raws)
    options = ", ".join(f"{n}={v!r:.80}" for n, v in zip(operation.static, static))
    text = f"{operation.name}({given}{'; ' + options if options else ''}): {error}"
    if isinstance(error, IndexError):
        return type("IndexError", (PullbackError, IndexError), {})(text)
    if isinstance(error, TypeError):
        return DtypeError(text)
    if isinstance(error, ValueError):
        return ShapeError(text)
    return error


def _mixed_devices(operation: Operation, raws: Any) -> str:
    names = dict.fromkeys(b.device_of(raw) for raw in raws if (b := backends.of(raw)) is not None)
    return f"{operation.name}: inputs are on different devices ({', '.join(names)}). Move one with `.to_device(...)`."
