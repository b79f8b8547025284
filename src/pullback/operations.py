"""What an operation is, apart from its kernels and its gradient: everything that anyone asks about it by name.

An operation is declared once, in one of the modules of `autodiff/rules/`, with its gradient next to it:

    op(
        "multiply", "x y", elementwise=True, dtypes="promoted", commutes=True, scalar=True, standard="main",
        x=lambda g, y: g * y, y=lambda g, x: g * x,
    )

Mixed precision, NumPy's and SciPy's functions on tensors, the kernels of other array libraries and the compiler take
what they know about operations from here.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

import numpy as np

from .errors import GradientError

OPERATIONS: dict[str, Operation] = {}

#: How the dtypes of an operation's arrays go together.
DTYPES = (
    "",            # it says so itself
    "promoted",    # they are converted to a common dtype, which the result has
    "floating",    # so, and integers become floats
    "complex",     # so, and floats become complex numbers
    "numbers",     # booleans become integers
    "ordered",     # so, and the result is one of them again
    "bitwise",     # integers and booleans, converted to a common dtype
    "comparison",  # converted to a common dtype; the result is boolean
    "logical",     # of truth values
    "test",        # of each number by itself; the result is boolean
)  # fmt: skip
#: In which precision an operation computes under `pb.autocast`.
AUTOCAST = (
    "half",     # the lower one: it is made of products
    "float32",  # it loses digits or overflows in half precision
    "widest",   # the widest among its inputs
    "given",    # as it is called
)  # fmt: skip
#: That `np.broadcast_shapes` takes; arrays can have more.
MOST_AXES = 32
_LITERALS = {"None": None, "True": True, "False": False, "0": 0, "1": 1, "-1": -1, "()": ()}


class Operation:
    """An operation's declaration. The arguments are described in `autodiff/rules/__init__.py`."""

    __slots__ = (
        "name", "inputs", "static", "defaults", "residuals", "outputs", "variadic", "many_outputs",
        "has_several_outputs", "is_simple", "differentiable",
        "elementwise", "linear", "composite", "masking", "singular", "cheap",
        "autocast", "converts", "dtypes", "real", "scalar", "commutes", "reduces", "moves", "expands", "standard",
        "numpy", "scipy", "shape", "instead", "walks", "batch",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        inputs: str,
        static: str = "",
        *,
        residuals: str = "",
        outputs: str = "out",
        differentiable: Iterable[str] | None = None,
        elementwise: bool = False,
        linear: str = "",
        composite: bool = False,
        masking: bool = False,
        cheap: bool | None = None,
        autocast: str = "widest",
        converts: Callable[..., int] | None = None,
        dtypes: str = "",
        real: bool = False,
        scalar: bool = False,
        commutes: bool = False,
        reduces: bool = False,
        moves: bool = False,
        expands: str = "",
        standard: str = "",
        numpy: str = "",
        scipy: str = "",
        shape: Callable[..., Any] | None = None,
        instead: str = "",
        walks: bool = False,
        batch: Any = None,
    ) -> None:
        self.name = name
        self.variadic = inputs.startswith("*")
        self.inputs = tuple(inputs.lstrip("*").split())
        pairs = [entry.partition("=") for entry in static.split()]
        self.static = tuple(name for name, _, _ in pairs)
        self.defaults = {name: _LITERALS[value] for name, _, value in pairs if value}
        self.residuals = tuple(residuals.split())
        self.outputs = tuple(outputs.lstrip("*").split())
        self.many_outputs = outputs.startswith("*")
        self.has_several_outputs = self.many_outputs or len(self.outputs) > 1
        self.is_simple = not (self.has_several_outputs or self.residuals)  # its kernel returns its one output
        self.differentiable = frozenset(self.inputs if differentiable is None else differentiable)
        self.elementwise = elementwise
        self.linear = tuple(linear.split())
        self.composite = composite
        self.masking = masking
        self.singular = elementwise and not masking  # it multiplies by a local factor, which can be infinite or NaN
        self.cheap = elementwise if cheap is None else cheap
        if autocast not in AUTOCAST or dtypes not in DTYPES:
            raise TypeError(f"operation {name!r}: autocast={autocast!r}, dtypes={dtypes!r}.")
        self.autocast = autocast
        self.converts = converts
        self.dtypes = dtypes
        self.real = real
        self.scalar = scalar
        self.commutes = commutes
        self.reduces = reduces
        self.moves = moves
        self.expands = expands
        self.standard = standard
        self.numpy = tuple(numpy.split())
        self.scipy = tuple(scipy.split())
        self.shape = shape
        self.instead = instead
        self.walks = walks
        self.batch = batch

    def __repr__(self) -> str:
        return f"<operation {self.name}({', '.join(self.inputs + self.static)})>"

    @property
    def arity(self) -> int:
        """How many arguments of its kernel come before the static ones."""
        return 1 if self.variadic else len(self.inputs)

    def arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments of a call of its kernel as (inputs, static arguments), with the defaults."""
        arity = self.arity
        inputs = list(args[:arity])
        inputs += [named.get(name) for name in self.inputs[len(inputs) :]]
        static = list(args[arity:])
        static += [named[n] if n in named else self.defaults[n] for n in self.static[len(static) :]]
        return tuple(inputs[0]) if self.variadic else tuple(inputs), tuple(static)

    def kernel_for(self, backend: Any) -> Callable[..., Any]:
        return getattr(backend.xp, self.name)

    def recipe_for(self, table: Any, mask: tuple[bool, ...]) -> Any:
        return table.recipe(self, mask)

    def check_differentiable(self, mask: tuple[bool, ...]) -> None:
        """Refuse to drop a gradient: every tracked input needs a rule."""
        for name, tracked in zip(self.inputs * len(mask) if self.variadic else self.inputs, mask):
            if tracked and name not in self.differentiable:
                raise GradientError(
                    f"`{self.name}` has no gradient with respect to `{name}`. "
                    f"Pass `{name}.detach()` if it is meant to be a constant there."
                )

    def source_of(self, name: str) -> tuple[str, int]:
        """Where the value for a rule's argument comes from: (kind, index)."""
        for kind, names in (
            ("input", self.inputs),
            ("output", self.outputs),
            ("residual", self.residuals),
            ("static", self.static),
        ):
            if name in names:
                return kind, names.index(name)
        owner, _, meta = name.rpartition("_")
        if meta in ("shape", "dtype") and owner in self.inputs:
            return meta, self.inputs.index(owner)
        if name == "needs":
            return "needs", 0
        raise TypeError(f"rule of `{self.name}`: {name!r} is no input, output, residual or static argument of it.")


def names(holds: Callable[[Operation], Any]) -> frozenset[str]:
    """The names of the operations that something holds for."""
    return frozenset(name for name, operation in OPERATIONS.items() if holds(operation))


def product_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a matrix product; None where there is none, or NumPy does not tell."""
    if not x or not y or x[-1] != y[-2 if len(y) > 1 else 0] or max(len(x), len(y)) > MOST_AXES:
        return None
    return np.broadcast_shapes(x[:-2], y[:-2]) + (x[-2:-1] if len(x) > 1 else ()) + (y[-1:] if len(y) > 1 else ())
