"""Flip the sign of every term of every rule, one at a time, and see whether the suite notices.

`python -m tests.operations.mutate [family ...]` reads the modules of `pullback/autodiff/rules`, changes one thing
(`a + b` to `a - b` or `-a + b`, `-a` to `a`, a returned gradient to its negative, the branches of a `where`), puts
the changed rules in place of the right ones, and walks the graphs of the samples that run them once more. A mutant
that gives the same gradients everywhere survives: a term that no test guards, or one that cannot matter (EQUIVALENT).
"""

from __future__ import annotations

import ast
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pullback.autodiff.recipe import Recipe, Table
from pullback.autodiff.rules import MODULES
from pullback.autodiff.tables import NUMPY_TABLE, tensor_table
from pullback.errors import DtypeError
from pullback.operations import OPERATIONS

from . import harness, harness_checks
from .harness_blocks import smallest_blocks
from .harness_boundaries import BOUNDARIES, check_boundary
from .harness_derived import complex_versions
from .harness_samples import SAMPLES
from .mutate_equivalent import EQUIVALENT
from .sample import Sample, rng

FAMILIES = tuple(rules.__module__.rpartition(".")[2] for rules in MODULES)
SECONDS_PER_MUTANT = 20  # a changed loop may not end


# -- mutants -------------------------------------------------------------------------------------


class Site(NamedTuple):
    """One change: put `replacement` at `holder.field` (or `holder.field[index]`)."""

    holder: Any
    field: str
    index: int | None
    replacement: ast.AST

    def current(self) -> ast.AST:
        value = getattr(self.holder, self.field)
        return value if self.index is None else value[self.index]

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.holder, self.field, node)
        else:
            getattr(self.holder, self.field)[self.index] = node


class Mutant(NamedTuple):
    family: str
    line: int
    before: str
    after: str
    operations: tuple[str, ...]
    code: Any

    def __str__(self) -> str:
        names = ", ".join(self.operations[:4]) + (", ..." if len(self.operations) > 4 else "")
        return f"rules/{self.family}.py:{self.line} ({names or 'nothing uses it'}): {self.before}  ->  {self.after}"


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            for i, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield field, i, item


def _negative(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), node)


def _is_sign(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_axis(node: ast.AST) -> bool:
    """A literal such as -1, which says where and not what."""
    return _is_sign(node) and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int)


_SEQUENCES = (ast.Tuple, ast.List, ast.ListComp, ast.JoinedStr)


def _is_sum(node: ast.AST) -> bool:
    if not (isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Sub))):
        return False
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return not any(
        isinstance(p, _SEQUENCES) or (isinstance(p, ast.Constant) and isinstance(p.value, str)) for p in parts
    )


def _is_zero(node: ast.AST) -> bool:
    """An array of zeros, whose sign does not matter."""
    return isinstance(node, ast.Call) and _called(node) in ("zero", "zeros", "zeros_like")


def _other(operator: ast.operator) -> ast.operator:
    return ast.Sub() if isinstance(operator, ast.Add) else ast.Add()


def _gradient_sites(holder: ast.AST, field: str, index: int | None, node: ast.AST, count: int) -> Iterator[Site]:
    """The negative of each gradient in a returned expression, which gives `count` of them at run time."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for i, element in enumerate(node.elts):
            yield from _gradient_sites(node, "elts", i, element, 1)
    elif isinstance(node, ast.IfExp):
        yield from _gradient_sites(node, "body", None, node.body, count)
        yield from _gradient_sites(node, "orelse", None, node.orelse, count)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield from _gradient_sites(node, "elt", None, node.elt, 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list"):
        for i, element in enumerate(node.args):
            yield from _gradient_sites(node, "args", i, element, count)
    elif isinstance(node, (ast.Constant, ast.Starred, ast.Compare, ast.BoolOp, ast.Lambda)) or _is_sign(node):
        return  # no gradient; signs are dropped elsewhere
    elif _is_zero(node):
        return
    elif not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        for i in range(count):
            call = ast.Call(ast.Name(NEGATED, ast.Load()), [node, ast.Constant(i)], [])
            yield Site(holder, field, index, call)


def negated(value: Any, index: int) -> Any:
    """The negative of a gradient, or of one of several."""
    if isinstance(value, (tuple, list)):
        return type(value)(-x if i == index and x is not None else x for i, x in enumerate(value))
    return -value


NEGATED = negated.__name__


def _counts(tree: ast.Module) -> dict[str | ast.AST, int]:
    """The rules that give several gradients at once, by name or as lambdas, with their number."""
    counts: dict[str | ast.AST, int] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
            inputs = str(call.args[1].value)
            for keyword in call.keywords:
                if inputs.startswith("*") or keyword.arg == "joint":
                    rule = keyword.value.id if isinstance(keyword.value, ast.Name) else keyword.value
                    counts[rule] = 2 if inputs.startswith("*") else len(inputs.split())
    return counts


def _sites(holder: ast.AST, counts: dict[str | ast.AST, int], count: int = 1) -> Iterator[Site]:
    """Every single change inside `holder`, which is part of a rule that gives `count` gradients."""
    if isinstance(holder, (ast.Lambda, ast.FunctionDef)):
        count = counts.get(holder, counts.get(getattr(holder, "name", ""), 1))
    if isinstance(holder, (ast.Lambda, ast.Return)):
        field = "body" if isinstance(holder, ast.Lambda) else "value"
        value = getattr(holder, field)
        if value is not None:
            yield from _gradient_sites(holder, field, None, value, count)
    for field, index, node in _children(holder):
        if field in ("annotation", "returns"):
            continue
        if isinstance(node, ast.BinOp) and _is_sum(node):
            if not _is_zero(node.right):
                yield Site(holder, field, index, ast.BinOp(node.left, _other(node.op), node.right))
            if not _is_sign(node.left):  # else it is dropped when the walk comes to it
                yield Site(holder, field, index, ast.BinOp(_negative(node.left), node.op, node.right))
        elif isinstance(node, ast.AugAssign) and _is_sum(node):
            yield Site(holder, field, index, ast.AugAssign(node.target, _other(node.op), node.value))
        elif _is_sign(node) and (isinstance(holder, ast.BinOp) or not _is_axis(node)):
            yield Site(holder, field, index, node.operand)
        elif isinstance(node, ast.Call) and len(node.args) == 3 and _called(node) == "where":
            condition, a, b = node.args
            yield Site(holder, field, index, ast.Call(node.func, [condition, b, a], node.keywords))
        yield from _sites(node, counts, count)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


# -- which operations a statement of a rules module is about ----------------------------------------


class _RecordingTable(Table):
    """Notes for each declared operation the lines of the rules module that were running."""

    def __init__(self, xp: Any, rules: Any, file: str) -> None:
        self.lines: dict[str, set[int]] = {}
        self.file = file
        super().__init__(xp, (rules,))

    def __call__(self, name: str, *args: Any, **named: Any) -> None:
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                self.lines.setdefault(name, set()).add(frame.f_lineno)
            frame = frame.f_back
        super().__call__(name, *args, **named)


def _source(family: str) -> Path:
    return Path(str(import_module(f"pullback.autodiff.rules.{family}").__file__))


def _rules(family: str, code: Any) -> Any:
    """The function that declares the rules of a family, from its code."""
    package = "pullback.autodiff.rules"
    scope: dict[str, Any] = {"__name__": f"{package}.{family}", "__package__": package, NEGATED: negated}
    exec(code, scope)
    return scope["rules"]


def _declarations(family: str, tree: ast.Module) -> dict[str, set[int]]:
    """The operations that a module declares, each with the lines at which it does."""
    file = str(_source(family))
    return _RecordingTable(NUMPY_TABLE.xp, _rules(family, compile(tree, file, "exec")), file).lines


def _statements(tree: ast.Module) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "rules":
            found.extend(statement.body)
        elif not isinstance(statement, (ast.Import, ast.ImportFrom)):
            found.append(statement)
    return found


def _defined_by(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return set()


def _operations_by_statement(family: str, tree: ast.Module) -> list[tuple[ast.stmt, tuple[str, ...]]]:
    """Each statement with the operations whose rules it is part of, directly or through the names it defines."""
    lines = _declarations(family, tree)
    statements = _statements(tree)
    uses = [{n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} for s in statements]
    definitions = [_defined_by(s) for s in statements]
    result = []
    for i, statement in enumerate(statements):
        reached = {i}
        frontier = set(definitions[i])
        while frontier:
            new = {j for j, names in enumerate(uses) if j not in reached and names & frontier}
            reached |= new
            frontier = set().union(*(definitions[j] for j in new)) if new else set()
        spans = [(statements[j].lineno, statements[j].end_lineno or 0) for j in reached if not definitions[j]]
        operations = tuple(n for n, seen in lines.items() if any(a <= line <= b for line in seen for a, b in spans))
        result.append((statement, operations))
    return result


def mutants(family: str) -> Iterator[Mutant]:
    """All mutants of a family's rules."""
    file = str(_source(family))
    tree = ast.parse(_source(family).read_text())
    counts = _counts(tree)
    for statement, operations in _operations_by_statement(family, tree):
        for site in list(_sites(statement, counts)):
            original = site.current()
            line = getattr(original, "lineno", statement.lineno)
            before, after = ast.unparse(original), ast.unparse(ast.fix_missing_locations(site.replacement))
            ast.copy_location(site.replacement, original)
            ast.fix_missing_locations(site.replacement)
            site.put(site.replacement)
            try:
                code = compile(tree, file, "exec")
            finally:
                site.put(original)
            yield Mutant(family, line, before, after, operations, code)


def unchanged(family: str) -> list[Mutant]:
    """One "mutant" per operation that is the right rules: whatever notices it notices too much."""
    tree = ast.parse(_source(family).read_text())
    code = compile(tree, str(_source(family)), "exec")
    names = [name for name in _declarations(family, tree) if OPERATIONS[name].differentiable]
    return [Mutant(family, 0, "", "", (name,), code) for name in names]


# -- putting changed rules in place ----------------------------------------------------------------


@contextmanager
def in_place(mutant: Mutant, on_tensors: bool = False) -> Iterator[None]:
    """Run with the mutant's rules; existing graphs and the compiled short ways see them too."""
    rules = _rules(mutant.family, mutant.code)
    tables = [NUMPY_TABLE, tensor_table()] if on_tensors else [NUMPY_TABLE]
    changed = [(table, Table(table.xp, (rules,))) for table in tables]
    undo: list[Any] = []
    try:
        for table, new in changed:
            known = dict(table.recipes)
            undo.append(lambda table=table, known=known: (table.recipes.clear(), table.recipes.update(known)))
            for name in mutant.operations:
                undo.append(lambda table=table, name=name, rules=table.rules[name]: table.rules.update({name: rules}))
                table.rules[name] = new.rules[name]
            for (name, mask), recipe in known.items():
                if name in mutant.operations:
                    undo.append(lambda recipe=recipe, right=recipe.backward: setattr(recipe, "backward", right))
                    recipe.backward = Recipe(recipe.operation, new.rules[name], mask).backward
        yield
    finally:
        for step in reversed(undo):
            step()


# -- judging ---------------------------------------------------------------------------------------


class Subject(NamedTuple):
    """A sample's graph, kept to be walked again, and the right gradients."""

    sample: Sample
    tensors: list[Any]
    outputs: list[Any]
    cotangents: list[np.ndarray]
    expected: list[np.ndarray]

    def notices(self) -> bool:
        found = harness.pulled(self.outputs, self.cotangents, self.tensors, retain_graph=True)
        floor = 1e-9 * harness.size_of(self.expected)
        try:
            harness.assert_close(
                [x for x in found if x is not None], self.expected, self.sample.tolerance[1], "gradient", floor
            )
        except AssertionError:
            return True
        return False


def _masks(count: int) -> list[tuple[bool, ...]]:
    """All inputs tracked, and each by itself: an operation may have another rule for that."""
    singles = [tuple(i == j for j in range(count)) for i in range(count)]
    return [(True,) * count] + (singles if count > 1 else [])


@cache
def subjects() -> dict[str, list[Subject]]:
    """The subjects of each operation, those of its own samples first."""
    found: dict[str, list[tuple[bool, Subject]]] = {}
    for sample in [*SAMPLES, *_accepted(complex_versions())]:
        for mask in _masks(len(sample.arguments)):
            tensors = harness.variables(sample.arguments, mask)
            outputs = harness.outputs_of(sample.function, tensors)
            cotangents = harness.cotangents_for(rng(sample.name), [harness.raw(out) for out in outputs])
            gradients = harness.pulled(outputs, cotangents, tensors, retain_graph=True)
            expected = [np.array(g) for g in gradients if g is not None]
            subject = Subject(sample, tensors, outputs, cotangents, expected)
            for name in {node.recipe.operation.name for node in harness.nodes_of(outputs)}:
                found.setdefault(name, []).append((name != sample.operation, subject))
    return {name: [s for _, s in sorted(pairs, key=lambda pair: pair[0])] for name, pairs in found.items()}


def _accepted(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Those whose operation takes such arguments."""
    for sample in samples:
        try:
            harness.values(sample.function, sample.arguments)
        except DtypeError:
            continue
        yield sample


class _TooLongError(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _TooLongError


@contextmanager
def _time_limit() -> Iterator[None]:
    previous = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_MUTANT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def survives(mutant: Mutant) -> bool:
    """Whether no sample's gradient, and no derivative at a boundary, changes."""
    try:
        with np.errstate(all="ignore"), _time_limit():
            return not noticed_by_walks(mutant) and not _noticed_elsewhere(mutant)
    except Exception:  # whatever a wrong rule runs into is noticed
        return False


def noticed_by_walks(mutant: Mutant) -> bool:
    walked = [subject for name in mutant.operations for subject in subjects().get(name, ())]  # made by the right rules
    with in_place(mutant):
        if any(subject.notices() for subject in walked):
            return True
        with smallest_blocks():
            return any(subject.notices() for subject in walked)


def _noticed_elsewhere(mutant: Mutant) -> bool:
    """What the walks over the samples' graphs do not see: boundaries, second order, forward mode."""
    samples = {s.sample.name: s.sample for name in mutant.operations for s in subjects().get(name, ())}
    with in_place(mutant, on_tensors=True):
        for boundary in BOUNDARIES:
            if boundary.operation in mutant.operations:
                check_boundary(boundary)
        for sample in samples.values():
            harness_checks.forward_mode(sample)
            if sample.orders >= 2:
                harness_checks.second_order(sample)
    return False


def is_equivalent(mutant: Mutant) -> bool:
    return (mutant.family, mutant.before, mutant.after) in EQUIVALENT


def survivors(family: str) -> tuple[int, list[Mutant]]:
    """The number of mutants of a family, and those that survive although they are not known to be equivalent."""
    count, alive = 0, []
    for mutant in mutants(family):
        count += 1
        if not is_equivalent(mutant) and survives(mutant):
            alive.append(mutant)
    return count, alive


def main(families: list[str]) -> int:
    total = 0
    for family in families or FAMILIES:
        count, alive = survivors(family)
        total += len(alive)
        print(f"{family:15} {count:5} mutants, {len(alive)} survive", flush=True)
        for mutant in alive:
            print(f"    {mutant}", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
