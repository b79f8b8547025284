"""Operations and their gradient rules.

An operation is declared once, in one of the modules of `rules/`, with its gradient next to it:

    op("multiply", "x y", elementwise=True, x=lambda g, y: g * y, y=lambda g, x: g * x)

The names of a rule's arguments say what is kept for it. `g` is the cotangent; the other names are
  - an input (`x`), an output (`out`, or the names in `outputs`), a residual of the kernel,
  - a static argument (`axis`),
  - `x_shape` or `x_dtype` of an input, which keep nothing alive,
  - `needs`: a tuple that says which inputs want a gradient.

Inputs are arrays, passed by position; static arguments follow and may have defaults ("axis=None").
"*xs" declares an operation on a list of arrays: its rule gets and gives lists. With several outputs
`g` is a tuple with None for the outputs that nothing depends on; "*outs" declares any number of them.
A kernel with residuals returns `(out, *residuals)`.

Rules are written against a namespace `xp` that has every operation under its name, so one rule
serves raw arrays of every backend, tensors (for higher orders) and traced programs.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Callable, Iterable

from ..errors import GradientError

Rule = Callable[..., Any]
RulesModule = Callable[[Any, "Table"], None]

OPERATIONS: dict[str, Operation] = {}
_LITERALS = {"None": None, "True": True, "False": False, "0": 0, "1": 1, "-1": -1, "()": ()}


class Operation:
    """What is known of an operation apart from its kernels and its rules."""

    __slots__ = (
        "name", "inputs", "static", "defaults", "residuals", "outputs", "variadic", "many_outputs",
        "has_several_outputs", "is_simple", "differentiable",
        "elementwise", "linear", "composite", "masking", "singular", "cheap",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        inputs: str,
        static: str,
        residuals: str,
        outputs: str,
        differentiable: Iterable[str],
        elementwise: bool,
        linear: str,
        composite: bool,
        masking: bool,
        singular: bool,
        cheap: bool,
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
        self.differentiable = frozenset(differentiable)
        self.elementwise = elementwise  # broadcasts; its tangent is the rule applied to the inputs' tangents
        self.linear = tuple(linear.split())  # inputs it is linear in, each by itself ("*" for all of them jointly)
        self.composite = composite  # higher orders differentiate its portable form instead of its rule
        self.masking = masking  # its rule makes exact zeros in cotangents
        self.singular = singular  # it multiplies by a local factor, which can be infinite or NaN
        self.cheap = cheap  # cheaper to compute again than to keep

    def __repr__(self) -> str:
        return f"<operation {self.name}({', '.join(self.inputs + self.static)})>"

    def kernel_for(self, backend: Any) -> Callable[..., Any]:
        return getattr(backend.xp, self.name)

    def recipe_for(self, table: Table, mask: tuple[bool, ...]) -> Recipe:
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


class Table:
    """The rules of every operation, instantiated for one namespace."""

    def __init__(self, xp: Any, modules: Iterable[RulesModule]) -> None:
        self.xp = xp
        self.rules: dict[str, dict[str, Rule]] = {}
        self.accumulating: dict[str, Rule] = {}
        self.recipes: dict[tuple[str, tuple[bool, ...]], Recipe] = {}
        for module in modules:
            module(xp, self)

    def __call__(
        self,
        name: str,
        inputs: str,
        static: str = "",
        *,
        residuals: str = "",
        outputs: str = "out",
        joint: Rule | None = None,
        accumulate: Rule | None = None,
        elementwise: bool = False,
        linear: str = "",
        composite: bool = False,
        masking: bool = False,
        cheap: bool | None = None,
        **rules: Rule,
    ) -> None:
        """Declare an operation and its rules.

        `joint` gives the gradients of all inputs at once, as a tuple. `accumulate(total, g, ...)`, for an operation
        on one array that reads a part of it, adds the gradient into a NumPy buffer of the array's shape.
        """
        if joint is not None:
            rules["joint"] = joint
        self.rules[name] = rules
        if accumulate is not None:
            self.accumulating[name] = accumulate
        if name not in OPERATIONS:
            every_input = inputs.lstrip("*").split()
            OPERATIONS[name] = Operation(
                name, inputs, static, residuals, outputs, every_input if joint else rules,
                elementwise, linear, composite, masking,
                elementwise and not masking, elementwise if cheap is None else cheap,
            )  # fmt: skip

    def recipe(self, operation: Operation, mask: tuple[bool, ...]) -> Recipe:
        """The recipe for the case that exactly the inputs in `mask` are tracked."""
        key = (operation.name, mask)
        found = self.recipes.get(key)
        if found is None:
            operation.check_differentiable(mask)
            found = Recipe(operation, self.rules[operation.name], mask)
            accumulate = self.accumulating.get(operation.name)
            if accumulate is not None:
                found.accumulate = _with_saved(accumulate, found.names)
            self.recipes[key] = found
        return found


@cache
def compiled(source: str) -> Any:
    """The code of a template; many operations share one, and compiling is what takes time at import."""
    return compile(source, "<pullback>", "exec")


def argument_names(rule: Rule) -> tuple[str, ...]:
    """The names of a rule's arguments after the cotangent."""
    code = rule.__code__
    return code.co_varnames[1 : code.co_argcount]


class Recipe:
    """How an operation is walked when a given subset of its inputs is tracked."""

    __slots__ = (
        "operation",
        "mask",
        "names",
        "sources",
        "backward",
        "gather",
        "on_tensors",
        "masking",
        "singular",
        "accumulate",
        "keeps_like_cotangent",
        "keeps_arrays",
        "bytes_kept",
        "unpack",
    )

    def __init__(self, operation: Operation, rules: dict[str, Rule], mask: tuple[bool, ...]) -> None:
        self.operation = operation
        self.mask = mask
        self.backward, self.names = _backward_function(operation, rules, mask)
        self.sources = tuple(operation.source_of(name) for name in self.names)
        self.on_tensors = False  # whether `backward` may be called with tensors as it is
        self._set_marks()

    @classmethod
    def of_function(
        cls, operation: Operation, mask: tuple[bool, ...], names: tuple[str, ...], backward: Rule
    ) -> Recipe:
        """A recipe with a given `backward(g, *saved)`, which must work on raw arrays and on tensors."""
        recipe = cls.__new__(cls)
        recipe.operation = operation
        recipe.mask = mask
        recipe.names = names
        recipe.sources = tuple(operation.source_of(name) for name in names)
        recipe.backward = backward
        recipe.on_tensors = True
        recipe._set_marks()
        return recipe

    def _set_marks(self) -> None:
        """What the walk asks of every node, at hand."""
        self.masking = self.operation.masking
        self.accumulate: Rule | None = None
        self.unpack: Callable[[tuple[Any, ...], bool], list[Any]] | None = (
            None  # of a node's saved values, if they are packed
        )
        self.keeps_arrays = any(kind in ("input", "output", "residual") for kind, _ in self.sources)
        self.singular = self.operation.singular and self.keeps_arrays  # without arrays its factor is a number
        self.keeps_like_cotangent = (  # arrays no larger than that
            self.keeps_arrays and self.operation.elementwise and not self.operation.has_several_outputs
        )
        self.bytes_kept = _bytes_function(self)
        self.gather = _gather_function(self)


def _backward_function(
    operation: Operation, rules: dict[str, Rule], mask: tuple[bool, ...]
) -> tuple[Rule, tuple[str, ...]]:
    """Compile `backward(g, *saved)`, which gives the tracked inputs' gradients, and the names of what it needs saved.

    It calls the rules directly: no loop and no look-up per node.
    """
    wanted = [i for i, tracked in enumerate(mask) if tracked]
    if operation.variadic:
        called = [rules[operation.inputs[0]]]
    elif any(operation.inputs[i] not in rules for i in wanted):
        called = [rules["joint"]]
    else:
        called = [rules[operation.inputs[i]] for i in wanted]
    calls = [
        "g" if _passes_on(rule) else f"rule{i}({', '.join(('g', *argument_names(rule)))})"
        for i, rule in enumerate(called)
    ]
    if operation.variadic or (wanted and called[0] is rules.get("joint")):
        body = f"r = {calls[0]}\n    return ({''.join(f'r[{i}], ' for i in wanted)})"
    else:
        body = f"return ({', '.join(calls)},)"
    names = tuple(dict.fromkeys(name for rule in called for name in argument_names(rule)))
    names += tuple(name for name in _portable_form_needs(operation) if name not in names)
    scope: dict[str, Any] = {f"rule{i}": rule for i, rule in enumerate(called)}
    exec(compiled(f"def backward({', '.join(('g', *names))}):\n    {body}"), scope)  # made of argument names alone
    return scope["backward"], names


def _with_saved(accumulate: Rule, names: tuple[str, ...]) -> Rule:
    """`accumulate` as a function of the buffer, the cotangent and everything that is kept."""
    arguments = ", ".join(argument_names(accumulate))  # the first is the buffer
    return eval(f"lambda total, {', '.join(('g', *names))}: rule(total, {arguments})", {"rule": accumulate})


_PASSES_ON = (lambda g: g).__code__.co_code


def _passes_on(rule: Rule) -> bool:
    """Whether a rule is `lambda g: g`, which needs no call."""
    code = rule.__code__
    return code.co_code == _PASSES_ON and code.co_varnames == ("g",)


def _portable_form_needs(operation: Operation) -> tuple[str, ...]:
    """What differentiating the portable form needs beside the inputs that the rule keeps: shapes, static arguments."""
    if not operation.composite:
        return ()
    return tuple(f"{x}_{meta}" for x in operation.inputs for meta in ("shape", "dtype")) + operation.static


def _bytes_function(recipe: Recipe) -> Callable[..., int]:
    """Compile `bytes_kept(*saved)`: the bytes of the arrays among what is kept."""
    arrays = [n for n, (kind, _) in zip(recipe.names, recipe.sources) if kind in ("input", "output", "residual")]
    if recipe.operation.variadic or recipe.operation.many_outputs:  # numbers and lists of arrays among them
        parts = f"for value in ({', '.join(arrays)},) for part in (value if type(value) is tuple else (value,))"
        source = f"sum([getattr(part, 'nbytes', 0) {parts}])" if arrays else "0"
    else:
        source = " + ".join(f"getattr({name}, 'nbytes', 0)" for name in arrays) or "0"
    return eval(f"lambda {', '.join(recipe.names)}: {source}")  # made of argument names alone


def _gather_function(recipe: Recipe) -> Callable[..., tuple[Any, ...]]:
    """Compile `gather(inputs, static, outputs, residuals)`, which gives the values to keep, in the order of `names`."""
    operation = recipe.operation
    parts = []
    for kind, index in recipe.sources:
        if kind in ("shape", "dtype"):
            absent = "()" if kind == "shape" else "None"
            if operation.variadic:
                parts.append(f"tuple([getattr(x, {kind!r}, {absent}) for x in inputs])")
            else:
                parts.append(f"None if inputs[{index}] is None else getattr(inputs[{index}], {kind!r}, {absent})")
        elif kind == "needs":
            parts.append("mask")
        elif (kind == "input" and operation.variadic) or (kind == "output" and operation.many_outputs):
            parts.append(f"{kind}s")
        else:
            parts.append(f"static[{index}]" if kind == "static" else f"{kind}s[{index}]")
    scope = {"mask": recipe.mask}
    source = f"lambda inputs, static, outputs, residuals: ({''.join(part + ', ' for part in parts)})"
    return eval(source, scope)  # made of the kinds above alone
