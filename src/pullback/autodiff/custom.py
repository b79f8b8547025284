"""Operations of one's own: `custom_op` for functions, `BackwardOp` for objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Literal, overload

from .. import backends, modes
from ..errors import DtypeError, GradientError, ShapeError
from ..operations import Operation
from . import base
from .apply import apply, new_node
from .base import TensorBase, make, resolved
from .batching.stack import Stack
from .engine import visit_alone
from .forward import Dual, adopt, dual, primal_at, tangent_at, variable, vjp_of
from .graph import Leaf
from .recipe import Recipe, Rule, Table
from .tables import TENSORS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

# -- functions -----------------------------------------------------------------------------------


class CustomOperation(Operation):
    """An operation with a kernel and rules given by the user; the rules are written on tensors."""

    __slots__ = ("kernel", "rules", "tangent_rule", "shape_rule", "recipes")

    kernel: Callable[..., Any]
    rules: dict[str, Rule]
    tangent_rule: Any
    shape_rule: Any
    recipes: dict[tuple[bool, ...], Recipe]

    def kernel_for(self, backend: Any) -> Callable[..., Any]:
        return backend.custom_kernel(self)

    def recipe_for(self, table: Table, mask: tuple[bool, ...]) -> Recipe:
        recipe = self.recipes.get(mask)
        if recipe is None:
            self.check_differentiable(mask)
            tracked = [name for name, wanted in zip(self.inputs, mask) if wanted]
            ruled = Recipe(self, self.rules, mask)
            shapes = tuple(f"{name}_shape" for name in tracked)
            names = ruled.names + tuple(name for name in shapes if name not in ruled.names)
            backward = _checked_rules(self.name, tracked, ruled, [names.index(name) for name in shapes])
            recipe = Recipe.of_function(self, mask, names, backward)
            self.recipes[mask] = recipe
        return recipe


def _checked_rules(operation: str, tracked: list[str], ruled: Recipe, shapes: list[int]) -> Rule:
    """Rules written on tensors, for raw arrays as well: wraps what they are given, unwraps and checks what they return.

    `shapes` says where among the saved values the shapes of the tracked inputs are.
    """
    backward, count = ruled.backward, len(ruled.names)

    def wrapped(g: Any, *saved: Any) -> Any:
        if _holds_tensors(g):
            gradients = backward(g, *saved[:count])
        else:
            with modes.changed(recording=_may_be_tracked_below(g)):
                gradients = backward(_wrap(g), *map(_wrap, saved[:count]))
            gradients = tuple([resolved(grad)._raw if isinstance(grad, base.Tensor) else grad for grad in gradients])
        if any([gradient is None for gradient in gradients]):  # no gradient at all
            gradients = tuple([_zeros(saved[place], g) if x is None else x for place, x in zip(shapes, gradients)])
        for name, place, gradient in zip(tracked, shapes, gradients):
            if not hasattr(gradient, "shape"):
                raise DtypeError(
                    f"the rule of `{operation}` for `{name}` returned {type(gradient).__name__}: {gradient!r:.60}; "
                    f"expected a tensor of shape {tuple(saved[place])}."
                )
            if tuple(gradient.shape) != tuple(saved[place]):
                raise ShapeError(
                    f"the rule of `{operation}` for `{name}` returned a gradient of shape {tuple(gradient.shape)}, "
                    f"but `{name}` has shape {tuple(saved[place])}. Sum it over the axes that were broadcast."
                )
        return gradients

    return wrapped


def _may_be_tracked_below(g: Any) -> bool:
    """Whether a cotangent is of examples, so that what is computed from it may be needed further out."""
    return any([type(part) is Stack for part in (g if isinstance(g, tuple) else (g,))]) and modes.is_recording()


def _zeros(shape: Any, g: Any) -> Any:
    """Zeros of the kind of a cotangent, which of several outputs has a part for each that matters."""
    like = next(part for part in g if part is not None) if isinstance(g, tuple) else g
    if isinstance(like, base.Tensor):
        return TENSORS.zeros(shape, like._raw.dtype, like)
    return backends.of(like).xp.zeros(shape, like.dtype, like)


def _holds_tensors(g: Any) -> bool:
    return isinstance(g, base.Tensor) or (isinstance(g, tuple) and any(isinstance(part, base.Tensor) for part in g))


def _wrap(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_wrap, value))
    return make(value, None) if backends.of(value) is not None else value


@overload
def custom_op(
    forward: Callable[..., Any],
    *,
    name: str | None = None,
    outputs: Literal["out"] = "out",
    residuals: str = "",
    jvp: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    joint: Rule | None = None,
    **rules: Rule,
) -> Callable[..., Tensor]: ...
@overload
def custom_op(
    forward: Callable[..., Any],
    *,
    name: str | None = None,
    outputs: str,
    residuals: str = "",
    jvp: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    joint: Rule | None = None,
    **rules: Rule,
) -> Callable[..., Any]: ...
def custom_op(
    forward: Callable[..., Any],
    *,
    name: str | None = None,
    outputs: str = "out",
    residuals: str = "",
    jvp: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    joint: Rule | None = None,
    **rules: Rule,
) -> Callable[..., Any]:
    """A differentiable function of a kernel `forward` on raw arrays and its gradient rules.

    `forward` takes arrays by position and static arguments by keyword. There is a rule for each array
    that has a gradient, under the array's name; the names of a rule's arguments after the cotangent
    say what is kept for it: an array, `out`, `x_shape`, a static argument. Rules are written on
    tensors, so they are differentiated in turn. `joint` gives the gradients of all arrays at once.
    `jvp(primals, tangents)`, of two tuples of tensors and the static arguments by keyword, gives the tangent of
    the result; without it forward mode uses the rules. On complex numbers a rule is the plain transpose of the
    derivative, with nothing conjugated: that of `a * x` is `g * a`.

    Inside `pb.compile`, `forward` runs on symbols that take Pullback's functions, operators and indexing. With `shape`
    it is called as it is when the program runs, so it may use NumPy, SciPy or Numba: `shape` is given the shapes of the
    arrays, and the static arguments by keyword, and returns that of the result, or (shape, dtype) where the dtype is
    not that of the first array; a list of these for several outputs and residuals.

    Inside `pb.vmap` it runs example by example, and a notice says so. With `batch` it runs once: `batch(stacked,
    *arrays, **static)` is given tensors, those for which the tuple `stacked` says True with the examples along a first
    axis more, and returns the result with the examples along its first axis. It may call the operation itself.

    `forward` must not write to its arrays. It may return more for the rules than its result, under the names in
    `residuals`. Second derivatives take these for constants: what depends on the arrays, other than by jumps as a mask
    does, belongs into the rule, or into `outputs`.

    Parameters
    ----------
    forward : callable
        It takes raw arrays by position and static arguments by keyword, and must not write to the arrays.
    name : str, optional
        The operation's name in errors and graphs, by default that of `forward`.
    outputs : str
        The names of its results, with spaces between.
    residuals : str
        The names of what `forward` returns behind the results, for the rules alone.
    jvp : callable, optional
        `jvp(primals, tangents)`: the tangent of the result, for forward mode.
    shape : callable, optional
        The shape of the result from those of the arrays, for `pb.compile`.
    batch : callable, optional
        `batch(stacked, *arrays)`: many examples at once, for `pb.vmap`.
    joint : callable, optional
        One rule for all arrays; it returns their gradients as a tuple.
    **rules : callable
        A rule for each array that has a gradient, under the array's name: `x=lambda g, x: ...`.

    Returns
    -------
    callable
        A function on tensors, differentiable to any order.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> cube = pb.custom_op(lambda x: x * x * x, name="cube", x=lambda g, x: 3 * g * x * x)
    >>> w = pb.tensor([2.0], requires_grad=True)
    >>> cube(w).sum().backward()
    >>> w.grad
    tensor([12.])
    """
    for label, given in {"forward": forward, **rules, **({} if joint is None else {"joint": joint})}.items():
        if not hasattr(given, "__code__") or hasattr(given, "__self__"):
            raise TypeError(
                f"custom_op: {label} must be a function written in Python, whose arguments have names, got "
                f"{type(given).__name__}. Wrap it: `lambda x: f(x)`."
            )
    code = forward.__code__
    arrays = code.co_varnames[: code.co_argcount]
    static = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = forward.__kwdefaults__ or {}
    for rule in rules:
        if rule not in arrays:
            raise TypeError(f"custom_op: rule for {rule!r}, but the arrays of `forward` are {', '.join(arrays)}.")
    if joint is not None:
        rules["joint"] = joint
    operation = CustomOperation(
        name or forward.__name__,
        " ".join(arrays),
        " ".join(static),
        residuals=residuals,
        outputs=outputs,
        differentiable=arrays if joint else rules,
        autocast="given",
        batch=batch,
    )
    operation.kernel = lambda *args: forward(*args[: len(arrays)], **dict(zip(static, args[len(arrays) :])))
    operation.rules = rules
    operation.tangent_rule = jvp
    operation.shape_rule = shape
    operation.recipes = {}

    def function(*args: Any, **options: Any) -> Any:
        if len(args) != len(arrays):
            raise TypeError(
                f"{operation.name}: expected the arrays {', '.join(arrays)} by position, got {len(args)} of them. "
                "(Arguments after a `*` in `forward` are static and passed by keyword.)"
            )
        unknown = set(options) - set(static)
        if unknown:
            raise TypeError(f"{operation.name}: unknown argument {', '.join(sorted(unknown))}.")
        missing = [n for n in static if n not in options and n not in defaults]
        if missing:
            raise TypeError(f"{operation.name}: missing argument {', '.join(missing)}.")
        return apply(operation, args, tuple(options.get(n, defaults.get(n)) for n in static))

    function.__name__ = function.__qualname__ = operation.name
    function.__module__ = forward.__module__
    function.__doc__ = forward.__doc__
    function.__wrapped__ = forward  # type: ignore[attr-defined]  # which `help` takes the signature from
    return function


# -- objects -------------------------------------------------------------------------------------


class BackwardOp:
    """An operation as an object: the tensors it was applied to, and how a gradient passes through it.

    Subclass it, or pass `inputs` and `backward` to the constructor, and give it to `Tensor.set_backward_op`. On complex
    numbers `backward` is the plain transpose of the derivative, as the rules of `custom_op` are.

    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> y = pb.tensor([1.0, 4.0])
    >>> y.set_backward_op(pb.BackwardOp([x], lambda g: (2 * x * g,)))
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    name = "custom"

    def __init__(self, inputs: Any = (), backward: Callable[[Tensor], Any] | None = None) -> None:
        self.inputs = tuple(inputs)
        if backward is not None:
            self.backward = backward  # type: ignore[method-assign, assignment]

    def backward(self, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of `inputs`, in their order, given that of the result; None for no gradient."""
        raise NotImplementedError(f"{type(self).__name__} has no `backward`.")

    def __repr__(self) -> str:
        return f"<{self.name}>"


_OBJECT = Operation("custom", "*xs", "op", autocast="given")


def _object_backward(g: Any, op: BackwardOp, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    if isinstance(g, base.Tensor):
        return _checked(op, op.backward(g), needs)
    with modes.changed(recording=_may_be_tracked_below(g)):
        return tuple([resolved(x)._raw for x in _checked(op, op.backward(make(g, None)), needs)])


def _checked(op: BackwardOp, gradients: Any, needs: tuple[bool, ...]) -> tuple[Tensor, ...]:
    """The gradients of the inputs that were tracked when `op` was attached, after checking their number and shapes."""
    gradients = _as_tuple(op, gradients)
    if len(gradients) != len(op.inputs):
        raise ShapeError(f"{op!r}: backward returned {len(gradients)} gradients for {len(op.inputs)} inputs.")
    result = []
    for x, gradient, needed in zip(op.inputs, gradients, needs):
        if not needed:
            continue
        if gradient is None:
            from .tables import TENSORS

            gradient = TENSORS.zeros_like(x.detach())
        if not isinstance(gradient, base.Tensor):
            raise DtypeError(
                f"{op!r}: backward returned {type(gradient).__name__}: {gradient!r:.60}; "
                f"expected a tensor of shape {x.shape}."
            )
        if gradient.shape != x.shape:
            raise ShapeError(f"{op!r}: backward returned shape {gradient.shape} for an input of shape {x.shape}.")
        result.append(gradient)
    return tuple(result)


def _as_tuple(op: BackwardOp, gradients: Any) -> tuple[Any, ...]:
    if isinstance(gradients, base.Tensor):
        return (gradients,)
    if not isinstance(gradients, (tuple, list)):
        raise DtypeError(f"{op!r}: backward must return a tuple of gradients, it returned {type(gradients).__name__}.")
    return tuple(gradients)


def attach(tensor: TensorBase, op: BackwardOp) -> None:
    """Make `tensor` the result of `op`."""
    tensor = resolved(tensor)
    if isinstance(tensor._node, Leaf):
        raise GradientError("set_backward_op: a variable is not the result of an operation; use `.detach()` of it.")
    for x in op.inputs:
        if not isinstance(x, base.Tensor):
            raise DtypeError(f"set_backward_op: the inputs must be tensors, got {type(x).__name__}: {x!r:.60}.")
    if any(isinstance(x, Dual) for x in (tensor, *op.inputs)):
        _attach_to_dual(tensor, op)
        return
    nodes = tuple(resolved(x)._node for x in op.inputs)
    mask = tuple(node is not None for node in nodes)
    recipe = Recipe.of_function(_OBJECT, mask, ("op", "needs"), _object_backward)
    tensor._node = new_node(recipe, tuple(node for node in nodes if node is not None), (op, mask))


def _attach_to_dual(tensor: TensorBase, op: BackwardOp) -> None:
    """`attach` in forward mode: `op.backward` is linear in the gradient, so its transpose gives the tangent."""
    level = max((x.level for x in op.inputs if isinstance(x, Dual)), default=0)
    below = BackwardOp(
        [primal_at(x, level) for x in op.inputs],
        lambda g: tuple([primal_at(x, level) for x in _as_tuple(op, op.backward(g))]),
    )
    below.name = op.name
    primal = make(tensor._raw, None)
    attach(primal, below if level else op)
    if level:
        tangents = [tangent_at(x, level) for x in op.inputs]
        with modes.changed(recording=True):
            cotangent = variable(TENSORS.zeros_like(primal))
            gradients = _checked(below, below.backward(cotangent), tuple([t is not None for t in tangents]))
            (tangent,) = vjp_of(list(gradients), [t for t in tangents if t is not None], [cotangent])
        primal = dual(primal, TENSORS.zeros_like(primal) if tangent is None else tangent, level)
    adopt(tensor, primal)


class RecordedOp(BackwardOp):
    """A built-in operation in the graph, seen as an object."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self.name = node.recipe.operation.name

    @property
    def inputs(self) -> tuple[BackwardOp | None, ...]:  # type: ignore[override]
        """The operations behind the inputs that need a gradient; None for variables."""
        return tuple(None if parent.recipe is None else RecordedOp(parent) for parent in self._node.inputs)

    def backward(self, gradient: Tensor) -> tuple[Tensor, ...]:
        """The gradients of the inputs that need one."""
        return visit_alone(self._node, gradient)


def operation_behind(tensor: TensorBase) -> BackwardOp | None:
    """The operation that `tensor` is the result of."""
    node = resolved(tensor)._node
    if node is None or isinstance(node, Leaf):
        return None
    if node.recipe.operation is _OBJECT and node.saved is not None:
        return node.saved[0]
    return RecordedOp(node)
