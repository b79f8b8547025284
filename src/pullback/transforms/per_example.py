"""Gradients of every example of a batch, and their norms without making them."""

from __future__ import annotations

from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Literal, overload

from .. import backends
from ..autodiff.base import make, resolved
from ..autodiff.engine import in_order, walk
from ..autodiff.forward import Dual
from ..autodiff.graph import Node, saved_values
from ..autodiff.tables import TENSORS, table_for
from ..dtypes import float32
from ..operations import OPERATIONS
from ..tensors.tensor import Tensor
from .lifting import Argnums, Arguments, Function, check_argnums, check_function
from .reverse import Pass, differentiable_scalar, grad
from .vmap import vmap

if TYPE_CHECKING:
    from ..typing import Derivative, P, SameArguments, T

__all__ = ["per_example_grad", "per_example_norms"]

#: Operations that only put a matrix into another order, which its norm does not depend on.
_REORDERING = frozenset(("matrix_transpose", "permute_dims", "reshape", "expand_dims", "squeeze"))
#: Products, and the names of their factors: rows of the one are multiplied by a matrix.
_PRODUCTS = {"matmul": ("x", "y"), "linear": ("x", "weight")}


@overload
def per_example_grad(
    f: Callable[Concatenate[T, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    in_axes: Any = None,
    randomness: str = "different",
) -> Derivative[T, P]: ...
@overload
def per_example_grad(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    in_axes: Any = None,
    randomness: str = "different",
) -> SameArguments[P, Any]: ...
def per_example_grad(
    f: Function, argnums: Argnums = 0, has_aux: bool = False, in_axes: Any = None, randomness: str = "different"
) -> Function:
    """The function that gives the gradient of `f` for every example of a batch.

    Parameters
    ----------
    f : callable
        A function of parameters and of one example, which returns a scalar: a loss, usually.
    argnums : int or tuple of int
        By which positional arguments to differentiate. All examples share these; the others have the examples along
        their first axis.
    has_aux : bool
        Whether `f` returns (scalar, aux); aux is then passed on, for every example.
    in_axes : int, None, tuple or tree
        Where the examples are, if it is not so: see `pb.vmap`.
    randomness : str
        Whether random numbers are "different" for every example, or the "same".

    Returns
    -------
    callable
        A function with the same arguments. Its result is like the argument that is differentiated by, and every array
        in it has the examples along a new first axis.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> def loss(w, x, y):
    ...     return (np.dot(w, x) - y) ** 2
    >>> pb.per_example_grad(loss)(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_function("per_example_grad", f)
    check_argnums("per_example_grad", argnums)
    gradient = grad(f, argnums, has_aux)

    @wraps(f)
    def gradients(*args: Any, **kwargs: Any) -> Any:
        axes = _axes_of_examples(argnums, len(args)) if in_axes is None else in_axes
        return vmap(gradient, axes, randomness=randomness)(*args, **kwargs)

    return gradients


def per_example_norms(
    f: Callable[P, Any], argnums: Argnums = 0, in_axes: Any = None, randomness: str = "different"
) -> SameArguments[P, Any]:
    """The function that gives the norm of the gradient of `f` for every example of a batch.

    That of a matrix that rows are multiplied by follows from the rows and their cotangents: its gradient is not made,
    of which there would be one for every example. That takes about the memory of a gradient of the whole batch.

    Parameters
    ----------
    f : callable
        A function of parameters and of one example, which returns a scalar.
    argnums : int or tuple of int
        By which positional arguments to differentiate. All examples share these.
    in_axes : int, None, tuple or tree
        Where the examples are, if not along the first axis of the others: see `pb.vmap`.
    randomness : str
        Whether random numbers are "different" for every example, or the "same".

    Returns
    -------
    callable
        A function with the same arguments. It gives one number per example: the joint L2 norm of the gradients by
        everything in the arguments that are differentiated by.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> def loss(w, x, y):
    ...     return (np.dot(w, x) - y) ** 2
    >>> w, x, y = np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.0])
    >>> norms = pb.per_example_norms(loss)(w, x, y)
    >>> norms
    array([2., 4.])

    No example moves the weights further than 1, as private learning wants it:

    >>> weights = np.minimum(1, 1 / norms)
    >>> pb.grad(lambda w: (weights * pb.vmap(loss, (None, 0, 0))(w, x, y)).sum())(w)
    array([1., 1.])
    """
    check_function("per_example_norms", f)
    check_argnums("per_example_norms", argnums)

    def norm(*args: Any, **kwargs: Any) -> Any:
        done = Pass(f, Arguments("per_example_norms", args, argnums), kwargs, False)
        loss = differentiable_scalar("per_example_norms", done.output)
        if loss is None:
            size = TENSORS.abs(done.variables[0])
            return TENSORS.zeros((), size._raw.dtype, size)
        squares = _squares_together(done, loss)
        return TENSORS.sqrt(TENSORS.astype(squares, loss._raw.dtype))

    @wraps(f)
    def norms(*args: Any, **kwargs: Any) -> Any:
        axes = _axes_of_examples(argnums, len(args)) if in_axes is None else in_axes
        return vmap(norm, axes, randomness=randomness)(*args, **kwargs)

    return norms


def _axes_of_examples(argnums: Argnums, count: int) -> tuple[int | None, ...]:
    """All arguments have the examples along their first axis, but those that are differentiated by."""
    shared = {number % count for number in (argnums if isinstance(argnums, (tuple, list)) else (argnums,))}
    return tuple([None if i in shared else 0 for i in range(count)])


def _squares_together(done: Pass, loss: Tensor) -> Tensor:
    """The sum of the squares of all gradients of a loss."""
    one = TENSORS.ones_like(loss)
    if done.stays or isinstance(resolved(loss), Dual):  # somebody differentiates the norms
        return _sum([_square(gradient) for gradient in done.gradients([(loss, one)])])
    factors, others = _products_with(done, resolved(loss)._node)
    nodes = [node for products in factors for node, _, _ in products]
    leaves: list[Any] = [done.variables[k]._node for k in others]
    own = frozenset([*nodes, *leaves])
    root = resolved(loss)._node
    found = walk([(root, one._raw)] if root is not None else [], own, retain_graph=True)
    squares = []
    for products in factors:
        rows = [(x, make(found[node], None), shape) for node, x, shape in products if node in found]
        if rows:
            squares.append(_square_of_products(rows))
    squares += [_square(make(found[node], None)) for node in leaves if node in found]
    return _sum(squares) if squares else TENSORS.zeros_like(loss)


def _products_with(done: Pass, root: Node | None) -> tuple[list[list[tuple[Node, Tensor, Any]]], list[int]]:
    """For variables that are factors of products and nothing else: those products, what they multiply, and the shape of
    the matrix. They are walked no more for its gradient. And the numbers of the other variables."""
    number_of: dict[Any, tuple[int, Any]] = {v._node: (k, v._node) for k, v in enumerate(done.variables)}
    uses: list[list[tuple[Node, Any, str]]] = [[] for _ in done.variables]
    for node in reversed(in_order([root] if root is not None else [])):
        tracked = [name for name, is_tracked in zip(node.recipe.operation.inputs, node.recipe.mask) if is_tracked]
        for name, parent in zip(tracked or [""] * len(node.inputs), node.inputs):
            if parent not in number_of:
                continue
            k, _ = number_of[parent]
            if node.recipe.operation.name in _REORDERING and len(node.inputs) == 1:
                number_of[node] = k, node
            else:
                uses[k].append((node, number_of[parent][1], name))
    factors, others = [], []
    for k, used in enumerate(uses):
        are_products = used and all([_is_product(node, name) for node, _, name in used])
        if are_products and len({matrix for _, matrix, _ in used}) == 1:
            factors.append([_without(node, name) for node, _, name in used])
        else:
            others.append(k)
    return factors, others


def _is_product(node: Node, name: str) -> bool:
    """Whether a node multiplies rows by a matrix, its input `name`, and can tell the rows."""
    operation, recipe = node.recipe.operation, node.recipe
    if operation.name not in _PRODUCTS or OPERATIONS[operation.name] is not operation:
        return False
    if recipe.unpack is not None or node.unbroadcast is not None:  # kept by a strategy; of several dtypes
        return False
    rows, matrix = _PRODUCTS[operation.name]
    shape = f"{matrix}_shape"
    known = dict(zip(recipe.names, node.saved))
    if name != matrix or rows not in known or len(known.get(shape, ())) != 2:
        return False
    return make(known[rows], None).dtype.kind == "float"


def _without(node: Node, name: str) -> tuple[Node, Tensor, Any]:
    """A product that is walked for its other factors alone, its rows, and the shape of the matrix."""
    operation = node.recipe.operation
    known = dict(zip(node.recipe.names, saved_values(node)))
    rows, matrix = _PRODUCTS[operation.name]
    names = [x for x, is_tracked in zip(operation.inputs, node.recipe.mask) if is_tracked]
    kept = [x for x in names if x != name]
    parents = dict(zip(names, node.inputs))
    node.inputs = tuple([parents[x] for x in kept])
    if kept:  # else its rule is not called
        mask = tuple([x in kept for x in operation.inputs])
        node.recipe = table_for(backends.of(known[rows])).recipe(operation, mask)
        node.saved = tuple([known[x] for x in node.recipe.names])
    return node, make(known[rows], None), known[f"{matrix}_shape"]


def _square_of_products(products: list[tuple[Tensor, Tensor, Any]]) -> Tensor:
    """The sum of the squares of the gradient of a matrix, of all rows that it multiplies and their cotangents."""
    rows = _concatenated([x for x, _, _ in products])
    cotangents = _concatenated([g for _, g, _ in products])
    count, m, n = rows.shape[0], rows.shape[1], cotangents.shape[1]
    if count == 1:
        return TENSORS.multiply(_square(rows), _square(cotangents))
    if count * (m + n) < m * n:  # products of rows with each other are smaller than the gradient
        return TENSORS.sum(TENSORS.multiply(_products_of_rows(rows), _products_of_rows(cotangents)), (-1, -2), False)
    return _square(TENSORS.matmul(TENSORS.matrix_transpose(rows), cotangents))


def _concatenated(parts: list[Tensor]) -> Tensor:
    rows = [_wide(TENSORS.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))) for x in parts]
    return TENSORS.concat(rows, -2) if len(rows) > 1 else rows[0]


def _products_of_rows(x: Tensor) -> Tensor:
    return TENSORS.matmul(x, TENSORS.matrix_transpose(x))


def _wide(x: Tensor) -> Tensor:
    return TENSORS.astype(x, x._backend.raw_dtype(float32)) if x.dtype.name in ("float16", "bfloat16") else x


def _square(x: Tensor) -> Tensor:
    """The sum of the squares of all elements."""
    x = _wide(TENSORS.abs(x) if x.dtype.kind == "complex" else x)
    return TENSORS.sum(TENSORS.multiply(x, x), None, False)


def _sum(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = TENSORS.add(total, term)
    return total
