"""Linear layers with products of two thin matrices beside their weights, for `peft`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..backends import portable
from ..backends.portable.packed import Packed
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS
from .packed import check_constant

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor


class Projection(NamedTuple):
    """A weight (outputs, inputs) with `up` (outputs, rank) times `down` (rank, inputs) beside it.

    A packed weight is a constant. `bias` and `factor` are (outputs,) or None; `chance` is that of dropout.
    """

    weight: Tensor | Packed
    bias: Tensor | None
    down: Tensor
    up: Tensor
    factor: Tensor | None = None
    scale: float = 1.0
    chance: float = 0.0


def low_rank_linear(x: Any, projections: Sequence[Projection]) -> tuple[Tensor, ...]:
    """factor * (x weight^T + scale * (x down^T) up^T) + bias of each projection, as one operation.

    It keeps `x` for the gradients, and nothing else but the parameters. With a chance of dropout each projection has a
    mask of its own on `x`, for all of the above but x weight^T + bias.

    >>> import pullback as pb
    >>> from pullback.functions.low_rank import Projection, low_rank_linear
    >>> one = Projection(pb.eye(2), None, down=pb.asarray([[1.0, 1.0]]), up=pb.asarray([[10.0], [20.0]]))
    >>> low_rank_linear(pb.asarray([1.0, 2.0]), [one])
    (tensor([31., 62.]),)
    """
    x = asarray(x)
    tensors: list[Any] = [x]
    rest: list[Any] = []
    forms: list[Any] = []
    for one in projections:
        _check(x, one)
        weight, form = one.weight, None
        if isinstance(weight, Packed):
            check_constant("low_rank_linear", weight)
            (weight, *more), form = weight
            rest += more
        forms.append(form)
        tensors += [weight, *one[1:5]]
    tensors += rest
    places = tuple([_place(x, one.chance) for one in projections])
    scales, chances = tuple([one.scale for one in projections]), tuple([one.chance for one in projections])
    static = scales, chances, places, tuple(forms)
    is_moving = any(type(tensor) is base.DualTensor for tensor in tensors)
    learned = any(tensor is not None and tensor.requires_grad for tensor in tensors[1:])
    if is_moving or (x.requires_grad and not learned and not rest):  # whose parts would not even keep x
        return portable.bind("low_rank_linear", TENSORS)(tensors, *static)
    return apply(OPERATIONS["low_rank_linear"], tuple(tensors), static)


def row_norms(weight: Tensor, down: Tensor, up: Tensor, scale: float) -> Tensor:
    """The lengths of the rows of weight + scale * up down, which is not formed; a constant, in float32 or wider.

    >>> import pullback as pb
    >>> from pullback.functions.low_rank import row_norms
    >>> row_norms(pb.asarray([[3.0, 1.0]]), down=pb.asarray([[0.0, 1.0]]), up=pb.asarray([[1.0]]), scale=3.0)
    tensor([5.])
    """
    weight, down, up = (TENSORS.widened(tensor.detach()) for tensor in (weight, down, up))
    up = up * scale
    transposed = TENSORS.matrix_transpose(down)
    crossed = 2.0 * TENSORS.matmul(weight, transposed) + TENSORS.matmul(up, TENSORS.matmul(down, transposed))
    squares = TENSORS.vecdot(weight, weight, -1) + TENSORS.vecdot(up, crossed, -1)
    return TENSORS.sqrt(TENSORS.maximum(squares, 0.0))


def _place(x: Tensor, chance: float) -> Any:
    """Where in the random stream a projection's mask begins."""
    from ..random import next_key

    return next_key(x.size) if chance else None


def _check(x: Tensor, one: Projection) -> None:
    if x.dtype.kind != "float":
        raise DtypeError(f"low_rank_linear: expected floating-point numbers, got {x.dtype.name}.")
    shapes = [None if tensor is None else tensor.shape for tensor in one[:5]]
    outputs, inputs = one.weight.shape if len(one.weight.shape) == 2 else (-1, -1)
    rank = one.down.shape[0] if one.down.ndim else -1
    expected = [(outputs, inputs), (outputs,), (rank, inputs), (outputs, rank), (outputs,)]
    is_fitting = all(shape is None or shape == wanted for shape, wanted in zip(shapes, expected))
    if not x.ndim or x.shape[-1] != inputs or not is_fitting:
        raise ShapeError(
            f"low_rank_linear: x {x.shape}, weight {shapes[0]}, bias {shapes[1]}, down {shapes[2]}, up {shapes[3]} "
            f"and factor {shapes[4]} do not fit: expected (..., inputs), (outputs, inputs), (outputs,), "
            f"(rank, inputs), (outputs, rank) and (outputs,)."
        )
