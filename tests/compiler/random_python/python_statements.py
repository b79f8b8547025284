"""Statements of Python: containers, loops, choices, functions, generators, objects."""

from __future__ import annotations

from typing import Callable

from .expressions import new_shape, of_shape, scalar
from .source import Source, Value

Block = Callable[[Source], None]  # writes a few statements


def assigned(source: Source, block: Block) -> None:
    like = source.pick()
    assert like is not None
    source.define(of_shape(source, like.shape, source.number(1, 3)), like.shape)


def reshaped(source: Source, block: Block) -> None:
    made = new_shape(source)
    source.define(made.text, made.shape)


def bound_again(source: Source, block: Block) -> None:
    target = source.assignable()
    if target is not None:
        source.write(f"{target.text} = {of_shape(source, target.shape, 2)}")


def list_filled(source: Source, block: Block) -> None:
    v = source.pick()
    assert v is not None
    parts = source.name("parts")
    source.write(f"{parts} = [{of_shape(source, v.shape)}]")
    with source.block(f"for j in range({source.count()}):"):
        source.write(f"{parts}.append(pb.tanh({parts}[-1] + j * 0.1) * {of_shape(source, v.shape)})")
    form = source.one_of([
        "sum({0}) * 0.3", "pb.mean(pb.stack({0}), axis=0)", "reduce(lambda a, b: a * 0.5 + b, {0})",
        "{0}[-1] * len({0})",
        "sum(t * 0.2 for t in {0} if t.ndim < 9)", "[pb.sin(t) for t in {0}][0] + {0}.pop()",
        "sum([a * b for a, b in zip({0}, reversed({0}))]) * 0.2",
    ])  # fmt: skip
    source.define(form.format(parts), v.shape)


def dict_filled(source: Source, block: Block) -> None:
    v = source.pick()
    assert v is not None
    d = source.name("table")
    source.write(f'{d} = {{"a": {of_shape(source, v.shape)}, "b": {{"c": {of_shape(source, v.shape)} * 1.0}}}}')
    source.write(source.one_of([
        f'{d}["d"] = {d}["a"] * {d}["b"]["c"]',
        f'{d}.update({{name: {d}["a"] * 0.5 for name in "de"}})',
        f'{d}.setdefault("d", []).append({d}["a"] + 0.1)',
        f'{d} = {{**{d}, "d": {d}.pop("a"), "a": 1.5}}',
        f'{d}["b"]["c"] *= 0.7',
    ]))  # fmt: skip
    source.define(f"sum(pb.tree.leaves({d})) * 0.3", v.shape)


def record_made(source: Source, block: Block) -> None:
    v = source.pick()
    assert v is not None
    kind = source.one_of(["Pair", "Bundle", "SimpleNamespace"])
    first, second = {"Pair": ("left", "right"), "Bundle": ("first", "second")}.get(kind, ("a", "b"))
    record = source.name("record")
    source.write(f"{record} = {kind}({first}={of_shape(source, v.shape)}, {second}={of_shape(source, v.shape)} * 1.0)")
    if kind == "Pair":
        source.write(f"{record} = {record}._replace(left={record}.right * 0.5)")
    else:
        source.write(source.one_of([f"{record}.{second} += 0.1", f"{record}.{first} = {record}.{second} * 0.5"]))
    source.define(f"{record}.{first} - pb.tanh({record}.{second})", v.shape)


def chosen(source: Source, block: Block) -> None:
    with source.block(f"if {source.condition()}:"):
        block(source)
        source.write("pass")
    if source.chance(0.3):
        with source.block(f"elif {source.condition()}:"):
            block(source)
            source.write("pass")
    if source.chance(0.6):
        with source.block("else:"):
            block(source)
            source.write("pass")


def repeated(source: Source, block: Block) -> None:
    head = source.one_of([f"for i in range({source.count()}):", "for i, limit in enumerate(LIMITS[:3]):",
                          f"for i in reversed(range({source.count()})):"])  # fmt: skip
    with source.block(head):
        if source.chance(0.2):
            source.write(source.one_of(["if i == 2:\n{0}    break", "if i == 1 and flag:\n{0}    continue"]).format(
                "    " * (source.depth + 1)))  # fmt: skip
        block(source)
        target = source.assignable()
        source.write(f"{target.text} = pb.tanh({target.text} + i * 0.1)" if target else "pass")


def looped_while(source: Source, block: Block) -> None:
    k = source.name("k")
    source.write(f"{k} = {source.one_of(['n', '0', 'rows'])}")
    with source.block(f"while {k} < {source.one_of(['3', 'n + 1'])}:"):
        source.write(f"{k} += 1")
        block(source)


def over_layers(source: Source, block: Block) -> None:
    v = source.pick(lambda s: len(s) > 0 and s[-1] == source.sizes["C"])
    if v is None:
        return
    h = source.define(of_shape(source, v.shape, 1), v.shape)
    head, term = source.one_of([('for layer in tree["layers"]:', "layer"), ("for bias in PARAMETERS:", "bias"),
                                ('for j, layer in enumerate(tree["layers"]):', "layer * j"),
                                ('for a, b in zip(tree["layers"], PARAMETERS):', "(a - b)")])  # fmt: skip
    with source.block(head):
        source.write(f"{h.text} = pb.tanh({h.text} + {term})")


def called_function(source: Source, block: Block) -> None:
    """A nested function, which reads what is around it, called once or twice."""
    v = source.pick()
    assert v is not None
    name = source.name("inner")
    with source.function(name, [Value("t", v.shape)]):
        block(source)
        if source.chance(0.2):
            source.write(f"if {source.condition()}:")
            source.write(f"    return {of_shape(source, v.shape, 1)}")
        source.write(f"return {of_shape(source, v.shape, 2)} + t * 0.5")
    a = of_shape(source, v.shape)
    source.define(source.one_of([
        f"{name}({a})", f"{name}({name}({a}))", f"{name}(t={a})", f"partial({name}, {a})()",
        f"list(map({name}, [{a}]))[0]",
        f"(lambda u, g={name}: g(u * 0.5))({a})", f"applied({name}, {a}, times=n)", f"compose({name}, pb.sin)({a})",
    ]), v.shape)  # fmt: skip


def closure_reads_later(source: Source, block: Block) -> None:
    v = source.pick()
    assert v is not None
    name, kept = source.name("push"), source.name("kept")
    source.write(f"{kept} = {of_shape(source, v.shape)} * 0.5")
    with source.block(f"def {name}(t):"):
        source.write(f"return {kept} * t + {source.factor()}")
    source.write(f"{kept} = {name}({kept})")
    source.define(f"{name}({of_shape(source, v.shape)})", v.shape)


def nonlocal_bound(source: Source, block: Block) -> None:
    v = source.pick()
    assert v is not None
    name, kept = source.name("accumulate"), source.name("kept")
    source.write(f"{kept} = {of_shape(source, v.shape)} * 0.5")
    with source.block(f"def {name}(t):"):
        source.write(f"nonlocal {kept}")
        source.write(f"{kept} = {kept} * 0.5 + t")
        source.write(f"return {kept}")
    source.write(f"{name}({of_shape(source, v.shape)})")
    source.define(f"{name}({of_shape(source, v.shape)}) + {kept}", v.shape)


def generator_used(source: Source, block: Block) -> None:
    v = source.pick(lambda s: len(s) > 0)
    if v is not None:
        form = source.one_of(["sum(rows_of({})) * 0.3", "pb.stack(list(rows_of({}))).sum(axis=0) * 0.2",
                              "last(rows_of({}))",
                              "next(t * i for i, t in enumerate(rows_of({}), 1))"])  # fmt: skip
        source.define(form.format(of_shape(source, v.shape)), v.shape[1:])


def helper_called(source: Source, block: Block) -> None:
    v = source.pick()
    assert v is not None
    a, b = of_shape(source, v.shape), of_shape(source, v.shape)
    source.define(source.one_of([
        f"power({a}, {source.count()})", f"smooth({a}, n)", f"blend({a}, {b})",
        f"blend(*[{a}, {b}], **{{'alpha': SCALE}})",
        f"collected({a}, {b}, scale=0.3)", f"COMPILED({a})", f"HELPERS[n % 2]({a})",
        f'HELPERS_BY_NAME[CONFIG["mode"]]({a})',
        f"cell({a})", f"Cell.twice({a})", f"cell.damped({a})", f"tree_sum({{'a': {a}, 'b': [{b}]}})",
    ]), v.shape)  # fmt: skip


def method_updates_state(source: Source, block: Block) -> None:
    if source.may_change_state:
        size = source.sizes["C"]
        source.define(f"cell.step({of_shape(source, (size,))})", (size,))


def attribute_assigned(source: Source, block: Block) -> None:
    if source.may_change_state:
        value = of_shape(source, (source.sizes["C"],))
        source.write(source.one_of([
            f"cell.h = pb.tanh(cell.h * 0.5 + {value}).detach()", f"cell.last = pb.sin({value})",
            f"cell.inner.h = ({value} * 0.5).detach()", f'setattr(cell, "last", {value} * 1.0)',
            f"cell.h, cell.last = (cell.h * 0.5).detach(), pb.tanh({value})",
        ]))  # fmt: skip


def argument_taken_apart(source: Source, block: Block) -> None:
    c, k = source.sizes["C"], source.sizes["K"]
    v = source.define('tree["w"] * 1.0', (c, k))
    source.write('first, *others = tree["layers"]')
    source.define("first + sum(others) * 0.5", (c,))
    source.write("match tree:")
    source.write('    case {"pair": Pair(left, right)} if n > 0:')
    source.write(f"        {v.text} = {v.text} + left * right")
    source.write("    case _:")
    source.write(f"        {v.text} = {v.text} * 0.5")


def tried(source: Source, block: Block) -> None:
    with source.block("try:"):
        block(source)
        source.write(source.one_of(['CONFIG["missing"]', "pass", "[][n]", "assert flag"]))
    with source.block("except (KeyError, IndexError, AssertionError):"):
        target = source.assignable()
        source.write(f"{target.text} = {target.text} * 0.5" if target else "pass")
    if source.chance(0.4):
        source.write("finally:")
        source.write(f"    {source.name('done')} = True")


def summed_up(source: Source, block: Block) -> None:
    source.define(scalar(source), ())


STATEMENTS = (
    assigned, assigned, reshaped, reshaped, bound_again, list_filled, dict_filled, record_made, chosen, chosen,
    repeated, repeated, looped_while, over_layers, called_function, called_function, closure_reads_later,
    nonlocal_bound, generator_used,
    helper_called, helper_called, method_updates_state, attribute_assigned, argument_taken_apart, tried, summed_up,
)  # fmt: skip
