"""Gradient rules: the table of them for a namespace of kernels, and what the walk does with one of them.

The names of a rule's arguments say what is kept for it. `g` is the cotangent; the other names are
  - an input (`x`), an output (`out`, or the names in `outputs`), a residual of the kernel,
  - a static argument (`axis`),
  - `x_shape` or `x_dtype` of an input, which keep nothing alive,
  - `needs`: a tuple that says which inputs want a gradient.

Rules are written against a namespace `xp` that has every operation under its name, so one rule
serves raw arrays of every backend, tensors (for higher orders) and traced programs.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Callable, Iterable, Mapping

from ..operations import OPERATIONS, Operation

Rule = Callable[..., Any]
RulesModule = Callable[[Any, "Table"], None]


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
        joint: Rule | None = None,
        accumulate: Rule | None = None,
        **marks_and_rules: Any,
    ) -> None:
        """Declare an operation and its rules, which are under the names of its inputs.

        `joint` gives the gradients of all inputs at once, as a tuple. `accumulate(total, g, ...)`, for an operation
        on one array that reads a part of it and whose rule makes an array of its own, adds the gradient into such a
        buffer. For the marks see `rules/__init__.py`.
        """
        every_input = inputs.lstrip("*").split()
        rules = {key: marks_and_rules.pop(key) for key in every_input if key in marks_and_rules}
        if joint is not None:
            rules["joint"] = joint
        self.rules[name] = rules
        if accumulate is not None:
            self.accumulating[name] = accumulate
        if name not in OPERATIONS:
            OPERATIONS[name] = Operation(
                name, inputs, static, differentiable=every_input if joint else rules, **marks_and_rules
            )

    def replace(self, rules: Mapping[str, Mapping[str, Rule]]) -> None:
        """Use these rules in place of those for the same inputs; what is kept for them must be the same."""
        for name, own in rules.items():
            for key, rule in own.items():
                if argument_names(rule) != argument_names(self.rules[name][key]):
                    raise TypeError(f"the rule of {name} for {key} must have the arguments of the table's rule.")
            self.rules[name] = {**self.rules[name], **own}

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
