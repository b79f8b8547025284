"""Reverse mode: gradients, vector-Jacobian products, Jacobians by rows."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Literal, Never, overload

from .. import backends, modes, tree
from ..autodiff import guard
from ..autodiff.base import make, resolved
from ..autodiff.batching.stack import Stack
from ..autodiff.creation import asarray
from ..autodiff.engine import walk
from ..autodiff.forward import Dual, variable, vjp_of
from ..autodiff.gradients import _conj
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
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
    owned,
    recording,
    refuse_nothing,
    running,
    separated,
)

if TYPE_CHECKING:
    from ..typing import (
        A,
        Derivative,
        NumPyFunction,
        OneArray,
        P,
        R,
        SameArguments,
        T,
        ValueAndDerivative,
        X,
    )

__all__ = ["grad", "jacrev", "stop_gradient", "value_and_grad", "vjp"]


class Pass:
    """A function run on variables of its own, ready to be pulled back through."""

    def __init__(self, f: Function, arguments: Arguments, kwargs: dict[str, Any], has_aux: bool) -> None:
        self.arguments = arguments
        self.variables = [variable(t) for t in arguments.tensors]
        own = frozenset([v._node for v in self.variables if v._node is not None])
        with running(own):  # clones, because `f` may write to its arguments
            try:
                result = f(*arguments.filled([v.clone() for v in self.variables]), **kwargs)
            except Exception as error:
                explain(error, arguments)
                raise
        self.output, self.aux = separated(arguments.transform, result, has_aux)
        self.outputs, self.structure = tree.flatten(self.output)
        self.stays = must_stay([*self.outputs, *tree.leaves(self.aux)], arguments.has_tensors)

    def lowered(self, result: Any) -> Any:
        return lowered(result, self.stays, self.arguments.has_tensors)

    def gradients(
        self, pairs: list[tuple[Tensor, Tensor]], retain: bool = False, guarded: bool = False
    ) -> list[Tensor]:
        """One gradient per variable, given (output, cotangent) pairs. Plain transposes: nothing is conjugated."""
        if not modes.is_recording():
            with recording():
                return self.gradients(pairs, retain, guarded)
        pairs = [(resolved(out), resolved(c)) for out, c in pairs]
        if self.stays or any([c._node is not None or isinstance(c, Dual) for _, c in pairs]):
            found = vjp_of([out for out, _ in pairs], [c for _, c in pairs], self.variables) if pairs else []
            return [
                TENSORS.zeros_like(v) if g is None else g
                for v, g in zip(self.variables, found or [None] * len(self.variables))
            ]
        own: Any = frozenset([v._node for v in self.variables])
        if any([_level(c) is not _level(out) for out, c in pairs]):  # many cotangents of one result, inside of vmap
            many = walk([(out._node, c) for out, c in pairs if out._node is not None], own, True, on_tensors=True)
            return [many[v._node] if v._node in many else TENSORS.zeros_like(v) for v in self.variables]
        seeds = [(out._node, c._raw) for out, c in pairs if out._node is not None]
        cotangents = walk(seeds, own, retain, guarded=guarded)
        del seeds, pairs
        return [
            make(v._backend.from_scalar(cotangents.pop(v._node)), None)
            if v._node in cotangents
            else TENSORS.zeros_like(v)
            for v in self.variables
        ]

    def results(self, gradients: list[Tensor]) -> Any:
        """Gradients as the caller wants them: like the arguments, and owned."""
        stays = self.stays or any([g._node is not None or isinstance(g, Dual) for g in gradients])
        gradients = gradients if stays else [owned(g) for g in gradients]
        pairs = zip(self.arguments.leaves, gradients)
        return self.arguments.result([lowered_like(leaf, gradient, stays) for leaf, gradient in pairs])


def _level(x: Tensor) -> Any:
    """The `vmap` that a tensor belongs to, or None."""
    return x._raw.level if type(x._raw) is Stack else None


@overload
def grad(f: Derivative[T, P], argnums: Literal[0] = 0, has_aux: Literal[False] = False) -> Derivative[T, P]: ...
@overload
def grad(
    f: Callable[Concatenate[T, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Derivative[T, P]: ...
@overload
def grad(
    f: Callable[Concatenate[T, P], tuple[Any, A]], argnums: Literal[0] = 0, *, has_aux: Literal[True]
) -> SameArguments[Concatenate[T, P], tuple[T, A]]: ...
@overload
def grad(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[P, Any]: ...
@hide_others
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, **other: Never) -> Function:
    """The function that gives the gradient of `f`, which must return a real scalar.

    Parameters
    ----------
    f : callable
        A function of arrays of any library, Python floats, tensors and trees of them. Inside it they are tensors,
        on which NumPy's functions work too.
    argnums : int or tuple of int
        By which positional arguments to differentiate, counted from 0.
    has_aux : bool
        Whether `f` returns (scalar, aux), where aux is anything to pass on.

    Returns
    -------
    callable
        It takes the arguments of `f` and gives a gradient like the argument (same library, same tree); a tuple of
        them for several `argnums`; (gradient, aux) with `has_aux`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: np.sum(np.tanh(x) ** 2))(np.array([0.0, 1.0]))
    array([0.        , 0.63970001])
    >>> pb.grad(pb.grad(lambda x: x**3))(2.0)
    12.0
    """
    if other:
        raise unexpected("grad", other)
    check_function("grad", f)
    if type(argnums) is not int:
        check_argnums("grad", argnums)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        done, gradients = _differentiated("grad", f, argnums, has_aux, args, kwargs)
        found = done.results(gradients)
        return (found, done.lowered(done.aux)) if has_aux else found

    return gradient


@overload
def value_and_grad(
    f: Callable[Concatenate[T, P], R], argnums: Literal[0] = 0, has_aux: bool = False
) -> ValueAndDerivative[T, P, R]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False
) -> SameArguments[P, tuple[R, Any]]: ...
@hide_others
def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, **other: Never) -> Function:
    """The function that gives the value of `f` and its gradient together.

    Parameters
    ----------
    f : callable
        A function that returns a real scalar, as for `grad`.
    argnums : int or tuple of int
        By which positional arguments to differentiate, counted from 0.
    has_aux : bool
        Whether `f` returns (scalar, aux), where aux is anything to pass on.

    Returns
    -------
    callable
        It takes the arguments of `f` and gives (value, gradient), or ((value, aux), gradient) with `has_aux`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.value_and_grad(lambda w: w["a"] * w["b"])({"a": 2.0, "b": 3.0})
    (np.float64(6.0), {'a': 3.0, 'b': 2.0})
    """
    if other:
        raise unexpected("value_and_grad", other)
    check_function("value_and_grad", f)
    if type(argnums) is not int:
        check_argnums("value_and_grad", argnums)

    @wraps(f)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        done, gradients = _differentiated("value_and_grad", f, argnums, has_aux, args, kwargs)
        value = done.lowered(done.output)
        return (value, done.lowered(done.aux)) if has_aux else value, done.results(gradients)

    return value_and_gradient


def _differentiated(
    transform: str, f: Function, argnums: Argnums, has_aux: bool, args: Any, kwargs: Any
) -> tuple[Pass, list[Tensor]]:
    """A scalar function run on its arguments, and its gradients."""
    done = Pass(f, Arguments(transform, args, argnums), kwargs, has_aux)
    loss = differentiable_scalar(transform, done.output)
    pairs = [(loss, TENSORS.ones_like(loss))] if loss is not None else []
    guarded = guard.is_asked_for() and loss is not None and loss.requires_grad
    if guarded:
        root = resolved(loss)
        guard.check_root(root, root._node, waiting=True)
    return done, [_conj(g) for g in done.gradients(pairs, guarded=guarded)]


def differentiable_scalar(transform: str, output: Any) -> Tensor | None:
    """The loss to differentiate, or None for a constant that no argument went into."""
    if not isinstance(output, Tensor):
        if isinstance(output, (int, float)):
            return None
        refuse_nothing(transform, output)
        if backends.of(output) is None:
            raise DtypeError(
                f"{transform}: the function must return a scalar, it returned {type(output).__name__}. "
                "Return (scalar, the rest) with has_aux=True, or use pb.jacrev or pb.vjp, which take trees."
            )
        constant = asarray(output)
        _check_scalar(transform, constant)
        return None
    _check_scalar(transform, output)
    return output


def _check_scalar(transform: str, output: Tensor) -> None:
    if output.size != 1:
        raise ShapeError(
            f"{transform}: the function must return a scalar, it returned shape {output.shape}. "
            "Reduce it, for example with `.sum()`, or use pb.jacrev for all derivatives, pb.vjp for a combination."
        )
    kind = output.dtype.kind
    if kind == "complex":
        raise DtypeError(
            f"{transform}: the function must return a real scalar, it returned {output.dtype.name}. "
            "Take its `.real` or `abs`, or use pb.vjp or pb.jacrev."
        )
    if kind != "float":
        raise DtypeError(
            f"{transform}: the function must return a floating-point scalar, it returned {output.dtype.name}, "
            "which has no derivative."
        )


@overload
def vjp(
    f: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], A]: ...
@overload
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The output of `f` at `primals`, and a function that pulls gradients back through it: (output, pullback).

    Parameters
    ----------
    f : callable
        A function of arrays, numbers and trees of them.
    *primals : array or tree
        The arguments of `f`.
    has_aux : bool
        Whether `f` returns (output, aux), where aux is anything to pass on.

    Returns
    -------
    tuple
        (output, pullback), or (output, pullback, aux). `pullback(cotangent)`, of something in the shape of the
        output, gives a tuple with an entry per primal: the gradient of sum(cotangent * output). It may be called
        any number of times.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> out, pullback = pb.vjp(np.sin, np.array([0.0, np.pi]))
    >>> pullback(np.array([1.0, 1.0]))
    (array([ 1., -1.]),)
    """
    check_function("vjp", f)
    arguments = Arguments("vjp", primals, tuple(range(len(primals))))
    done = Pass(f, arguments, {}, has_aux)

    def pullback(cotangent: Any) -> Any:
        leaves = matched("vjp", "cotangents", cotangent, done.structure, "the output has")
        pairs = []
        for number, (out, given) in enumerate(zip(done.outputs, leaves)):
            if isinstance(out, Tensor) and out.dtype.kind in ("float", "complex"):
                what = f"cotangent{done.structure._paths()[number]}"
                pairs.append((out, _conj(fitting("vjp", what, given, out))))
        return done.results([_conj(g) for g in done.gradients(pairs, retain=True)])

    output = done.lowered(done.output)
    return (output, pullback, done.lowered(done.aux)) if has_aux else (output, pullback)


@overload
def jacrev(f: NumPyFunction, argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[..., Any]: ...
@overload
def jacrev(
    f: Callable[Concatenate[X, P], OneArray], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Derivative[X, P]: ...
@overload
def jacrev(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> SameArguments[P, Any]: ...
@hide_others
def jacrev(f: Function, argnums: Argnums = 0, has_aux: bool = False, **other: Never) -> Function:
    """The function that gives the Jacobian of `f`, row by row, by reverse mode: best for few outputs.

    A function of complex arguments must be holomorphic.

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
        It takes the arguments of `f`. An entry has the shape of the output followed by that of the argument; for
        trees there is a tree of arguments in the place of every output. (Jacobian, aux) with `has_aux`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if other:
        raise unexpected("jacrev", other)
    check_function("jacrev", f)
    if type(argnums) is not int:
        check_argnums("jacrev", argnums)

    @wraps(f)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        arguments = Arguments("jacrev", args, argnums)
        done = Pass(f, arguments, kwargs, has_aux)
        rows = [done.results(_rows(done, out)) for out in done.outputs]
        if not rows:
            refuse_nothing("jacrev", done.output)
        result = tree.unflatten(done.structure, rows)
        return (result, done.lowered(done.aux)) if has_aux else result

    return jacobian


def _rows(done: Pass, output: Any) -> list[Tensor]:
    """The derivatives of one output by every variable: the output's axes, then the variable's."""
    out = output if isinstance(output, Tensor) else asarray(output)
    if not isinstance(output, Tensor) or out.dtype.kind not in ("float", "complex"):
        return [TENSORS.zeros(out.shape + v.shape, v._raw.dtype, v) for v in done.variables]
    is_complex = out.dtype.kind == "complex"
    if not is_complex and any(v.dtype.kind == "complex" for v in done.variables):
        raise DtypeError(
            "jacrev: a real function of complex arguments has no complex Jacobian. Use pb.grad or pb.vjp, or "
            "differentiate by the real and the imaginary part."
        )
    parts = [1, -1j] if is_complex and any(v.dtype.kind == "float" for v in done.variables) else [1]
    found = _rows_at_once(done, out, parts) or _rows_one_by_one(done, out, parts)
    if len(parts) == 1:
        return found[0]
    # what came back to real variables is the real part
    return [re if v.dtype.kind == "complex" else _complex(re, im, out) for v, re, im in zip(done.variables, *found)]


def _rows_one_by_one(done: Pass, out: Tensor, parts: list[Any]) -> list[list[Tensor]]:
    """For each part of a unit cotangent: for each variable, the gradients for all of these."""
    if not out.size:
        return [[TENSORS.zeros(out.shape + v.shape, v._raw.dtype, v) for v in done.variables] for _ in parts]
    found = []
    for part in parts:
        rows = [done.gradients([(out, one_hot(out, place, part))], retain=True) for place in range(out.size)]
        with recording():
            columns = zip(zip(*rows), done.variables)
            found.append(
                [TENSORS.reshape(TENSORS.stack(list(column), 0), out.shape + v.shape) for column, v in columns]
            )
    return found


def _rows_at_once(done: Pass, out: Tensor, parts: list[Any]) -> list[list[Tensor]] | None:
    """The same by walks with many cotangents each; None where these would be no faster, or cannot be."""
    elements = max([v.size for v in done.variables], default=0)
    if out.size < directions.LEAST or not directions.are_walked_at_once([out]):
        return None
    together = directions.parts(out.size, max(elements, out.size))
    if len(together[0]) < directions.LEAST:
        return None
    found = []
    with recording():
        for part in parts:
            walked = [
                directions.at_once(lambda c: done.gradients([(out, c)], retain=True), unit_vectors(out, places, part))
                for places in together
            ]
            rows = [directions.joined(column) for column in zip(*walked)]
            found.append([TENSORS.reshape(x, out.shape + v.shape) for x, v in zip(rows, done.variables)])
    return found


def _complex(real: Tensor, imaginary: Tensor, like: Tensor) -> Tensor:
    with recording():
        dtype = like._raw.dtype
        return TENSORS.add(TENSORS.astype(real, dtype), TENSORS.multiply(TENSORS.astype(imaginary, dtype), 1j))


def stop_gradient(x: T) -> T:
    """`x`, an array or a tree, as a constant: no derivative flows through it, in any mode.

    Parameters
    ----------
    x : array or tree
        Any arrays, numbers or tensors.

    Returns
    -------
    array or tree
        The same values.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.grad(lambda x: x * pb.stop_gradient(x))(3.0)
    3.0
    """
    return tree.map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, x)
