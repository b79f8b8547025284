"""Forward mode: Jacobian-vector products, Jacobians by columns; and second derivatives."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Literal, Never, overload

from .. import tree
from ..autodiff.base import resolved
from ..autodiff.creation import asarray
from ..autodiff.forward import dual, next_level, primal_at, tangent_at, variable
from ..autodiff.graph import Leaf
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError, VmapError
from ..keywords import hide_others, unexpected
from ..tensors.tensor import Tensor
from . import directions
from .directions import unit_vectors
from .lifting import (
    Argnums,
    Arguments,
    Function,
    check_argnums,
    check_function,
    explain,
    fitting,
    lowered,
    lowered_like,
    matched,
    must_stay,
    one_hot,
    recording,
    refuse_nothing,
    separated,
    unrecorded,
)
from .reverse import grad, jacrev, vjp

if TYPE_CHECKING:
    from ..typing import A, Derivative, NumPyFunction, OneArray, P, R, SameArguments, X

__all__ = ["hessian", "hvp", "jacfwd", "jvp"]


class Push:
    """A function run on its arguments with a tangent on some of them."""

    def __init__(
        self, f: Function, arguments: Arguments, tangents: list[Tensor | None], kwargs: dict[str, Any], has_aux: bool
    ) -> None:
        level = next_level()
        with recording():
            # `f` may write to its arguments, which it could not if they were the caller's variables
            fixed = [variable(x) if isinstance(resolved(x)._node, Leaf) else x for x in arguments.tensors]
            moving = [x if t is None else dual(x, t, level) for x, t in zip(fixed, tangents)]
            try:
                result = f(*arguments.filled([x.clone() for x in moving]), **kwargs)
            except Exception as error:
                explain(error, arguments)
                raise
            output, aux = separated(arguments.transform, result, has_aux)
            leaves, self.structure = tree.flatten(output)
            self.primals = [primal_at(x, level) for x in leaves]
            self.tangents = [_tangent(x, level) for x in leaves]
        self.aux = tree.map(lambda x: primal_at(x, level), aux)
        self.has_tensors = arguments.has_tensors
        results = [*self.primals, *self.tangents, *tree.leaves(self.aux)]
        self.stays = must_stay(results, self.has_tensors)

    def lowered(self, result: Any) -> Any:
        return lowered(result, self.stays, self.has_tensors)


def _tangent(x: Any, level: int) -> Any:
    """The tangent of an output; zeros for one that does not depend on the arguments."""
    tangent = tangent_at(x, level)
    if tangent is not None:
        return tangent
    if isinstance(x, (int, float, complex)):
        return type(x)(0)
    return TENSORS.zeros_like(x if isinstance(x, Tensor) else asarray(x))


@overload
def jvp(f: Callable[..., R], primals: Any, tangents: Any, has_aux: Literal[False] = False) -> tuple[R, R]: ...
@overload
def jvp(f: Callable[..., tuple[R, A]], primals: Any, tangents: Any, has_aux: Literal[True]) -> tuple[R, R, A]: ...
def jvp(f: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The output of `f` at `primals`, and how it changes in the direction of `tangents`: (output, tangent).

    This is forward mode: the derivative is computed along with the output.

    Parameters
    ----------
    f : callable
        A function of arrays, numbers and trees of them.
    primals : tuple
        The arguments of `f`.
    tangents : tuple
        The direction: for each argument something of the same structure and shapes.
    has_aux : bool
        Whether `f` returns (output, aux), where aux is anything to pass on.

    Returns
    -------
    tuple
        (output, tangent), or (output, tangent, aux).

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.jvp(np.sin, (np.array([0.0, np.pi]),), (np.array([1.0, 2.0]),))
    (array([0.0000000e+00, 1.2246468e-16]), array([ 1., -2.]))
    """
    check_function("jvp", f)
    return _pushed("jvp", f, primals, tangents, has_aux)


def _pushed(transform: str, f: Function, primals: Any, tangents: Any, has_aux: bool) -> Any:
    arguments, moving = _directions(transform, primals, tangents)
    done = Push(f, arguments, moving, {}, has_aux)
    output = done.lowered(tree.unflatten(done.structure, done.primals))
    tangent = done.lowered(tree.unflatten(done.structure, done.tangents))
    return (output, tangent, done.lowered(done.aux)) if has_aux else (output, tangent)


def _directions(transform: str, primals: Any, tangents: Any) -> tuple[Arguments, list[Tensor | None]]:
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ShapeError(
                f"{transform}: {name} must be a tuple with an entry for every argument, got "
                f"{type(given).__name__}. Write ({name[:-1]},) for a function of one argument."
            )
    arguments = Arguments(transform, tuple(primals), tuple(range(len(primals))))
    leaves = matched(transform, "tangents", tuple(tangents), arguments.structure, "the primals have")
    moving: list[Tensor | None] = [
        fitting(transform, f"the tangent of {arguments.name_of(i)}", leaf, x)
        for i, (leaf, x) in enumerate(zip(leaves, arguments.tensors))
    ]
    return arguments, moving


@overload
def jacfwd(f: NumPyFunction, argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[..., Any]: ...
@overload
def jacfwd(
    f: Callable[Concatenate[X, P], OneArray], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Derivative[X, P]: ...
@overload
def jacfwd(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[P, Any]: ...
@hide_others
def jacfwd(f: Function, argnums: Argnums = 0, has_aux: bool = False, **other: Never) -> Function:
    """The function that gives the Jacobian of `f`, column by column, by forward mode: best for few arguments.

    `f` runs once, and once more for every few million numbers of all columns: `vmap` takes many together. Where that
    cannot be, or would be no faster, it runs once per number in the arguments.

    Parameters
    ----------
    f : callable
        A function of arrays, numbers and trees of them.
    argnums : int or tuple of int
        By which positional arguments to differentiate, counted from 0.
    has_aux : bool
        Whether `f` returns (output, aux), where aux is anything to pass on.

    Returns
    -------
    callable
        It takes the arguments of `f`; shapes, trees and complex numbers are as in `jacrev`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if other:
        raise unexpected("jacfwd", other)
    check_function("jacfwd", f)
    if type(argnums) is not int:
        check_argnums("jacfwd", argnums)

    @wraps(f)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        arguments = Arguments("jacfwd", args, argnums)
        count = len(arguments.tensors)

        def push(i: int, tangent: Tensor | None) -> Push:
            tangents = [tangent if j == i else None for j in range(count)]
            return Push(f, arguments, tangents, kwargs, has_aux)

        sizes = [x.size for x in arguments.tensors]
        plain = push(0, None) if max(sizes, default=0) >= directions.LEAST or not any(sizes) else None
        found = [_columns(partial(push, i), x, plain) for i, x in enumerate(arguments.tensors)]
        columns = [column for column, _ in found]
        done = plain or next(last for _, last in found if last is not None)
        entries = []
        for k in range(len(done.primals)):
            parts = [
                _assembled(x, column[k] if column else None, done, k) for x, column in zip(arguments.tensors, columns)
            ]
            if not done.stays:
                parts = [unrecorded(part) for part in parts]
            pairs = zip(arguments.leaves, parts)
            entries.append(arguments.result([lowered_like(leaf, part, done.stays) for leaf, part in pairs]))
        result = tree.unflatten(done.structure, entries)
        if not entries:
            refuse_nothing("jacfwd", result)
        return (result, done.lowered(done.aux)) if has_aux else result

    return jacobian


def _columns(push: Callable[[Tensor], Push], x: Tensor, plain: Push | None) -> tuple[list[Tensor], Push | None]:
    """For every output its tangents for a unit tangent at each place of `x`, along a first axis; and the last run.

    Many tangents go together where the sizes of the outputs are known, from a run without any.
    """
    with recording():
        if plain is not None and x.size >= directions.LEAST:
            sizes = [asarray(out).size for out in plain.primals]
            places = directions.parts(x.size, max(x.size, *sizes) if sizes else x.size)
            try:
                if len(places[0]) >= directions.LEAST:
                    units = [unit_vectors(x, part) for part in places]
                    found = [directions.at_once(lambda t: list(map(asarray, push(t).tangents)), unit) for unit in units]
                    return [directions.joined(column) for column in zip(*found)], None
            except VmapError:  # the function does what it can do for one tangent only
                pass
        pushed = [push(one_hot(x, place)) for place in range(x.size)]
        columns = zip(*[done.tangents for done in pushed])
        return [TENSORS.stack(list(map(asarray, column)), 0) for column in columns], pushed[-1] if pushed else None


def _assembled(x: Tensor, tangents: Tensor | None, done: Push, k: int) -> Tensor:
    """The derivatives of output `k` by `x`: the output's axes, then those of `x`."""
    out = asarray(done.primals[k])
    if x.dtype.kind == "complex" and out.dtype.kind == "float":
        raise DtypeError(
            "jacfwd: a real function of complex arguments has no complex Jacobian. Use pb.grad or pb.jvp, or "
            "differentiate by the real and the imaginary part."
        )
    if tangents is None:
        return TENSORS.zeros(out.shape + x.shape, out._raw.dtype, out)
    with recording():
        axes = (*range(1, tangents.ndim), 0)
        moved = TENSORS.permute_dims(tangents, tuple([axis - tangents.ndim for axis in axes]))
        return TENSORS.reshape(moved, out.shape + x.shape)


@overload
def hessian(f: NumPyFunction, argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[..., Any]: ...
@overload
def hessian(
    f: Callable[Concatenate[X, P], OneArray], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Derivative[X, P]: ...
@overload
def hessian(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[P, Any]: ...
@hide_others
def hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False, **other: Never) -> Function:
    """The function that gives the second derivatives of `f`.

    Parameters
    ----------
    f : callable
        A function of arrays, numbers and trees of them, as a rule with a scalar result.
    argnums : int or tuple of int
        By which positional arguments to differentiate, counted from 0.
    has_aux : bool
        Whether `f` returns (output, aux), where aux is anything to pass on.

    Returns
    -------
    callable
        It takes the arguments of `f`. An entry has the shape of the output, then twice that of the argument; trees
        nest in the same way. (Hessian, aux) with `has_aux`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    if other:
        raise unexpected("hessian", other)
    check_function("hessian", f)
    if type(argnums) is not int:
        check_argnums("hessian", argnums)
    return jacrev(jacrev(f, argnums, has_aux), argnums, has_aux)


@overload
def hvp(f: Function, primals: Any, tangents: Any, has_aux: Literal[False] = False) -> tuple[Any, ...]: ...
@overload
def hvp(
    f: Callable[..., tuple[Any, A]], primals: Any, tangents: Any, has_aux: Literal[True]
) -> tuple[tuple[Any, ...], A]: ...
def hvp(f: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The Hessian of the scalar function `f` at `primals` times `tangents`, without making the Hessian.

    It costs a few evaluations of `f`, whatever the number of arguments.

    Parameters
    ----------
    f : callable
        A function with a real scalar result.
    primals : tuple
        The arguments of `f`.
    tangents : tuple
        What to multiply by: for each argument something of the same structure and shapes.
    has_aux : bool
        Whether `f` returns (scalar, aux), where aux is anything to pass on.

    Returns
    -------
    tuple
        One entry per primal; (products, aux) with `has_aux`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    (array([ 6., 12.]),)
    """
    check_function("hvp", f)
    arguments, _ = _directions("hvp", primals, tangents)
    gradient = grad(f, arguments.positions, has_aux)
    if any(x.dtype.kind == "complex" for x in arguments.tensors):
        done = _pushed("hvp", gradient, primals, tangents, has_aux)
        return done[1:] if has_aux else done[1]
    # what is real is symmetric: a pullback of the gradient, which costs half of pushing tangents through it
    _, pullback, *aux = vjp(gradient, *primals, has_aux=has_aux)
    product = pullback(tuple(tangents))
    return (product, *aux) if has_aux else product
