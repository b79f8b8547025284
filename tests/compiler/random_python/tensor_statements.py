"""Statements of Pullback: control flow over tensors, derivatives inside, optimizers."""

from __future__ import annotations

from typing import Callable

from .expressions import of_shape, scalar
from .source import Shape, Source, Value
from .writes import write_item, write_whole

Block = Callable[[Source], None]


def cond(source: Source, block: Block) -> None:
    v = _some(source)
    names = source.name("yes"), source.name("no")
    for name in names:
        with source.function(name, [Value("t", v.shape)], "tensors"):
            if source.chance(0.5):
                block(source)
            source.write(f"return {of_shape(source, v.shape)} + t * 0.5")
    predicate = source.one_of(["pb.mean({}) > 0.1", "pb.any({} > 0.5)", "({}).sum() < COUNT"]).format(v.text)
    source.define(f"pb.cond({predicate}, {names[0]}, {names[1]}, {of_shape(source, v.shape)})", v.shape)


def scan(source: Source, block: Block) -> None:
    v = _some(source, lambda s: 0 < len(s) < 3)
    name = source.name("scanned")
    row: Shape = v.shape[1:]
    with source.function(name, [Value("h", row), Value("t", row)], "tensors"):
        if source.chance(0.6):
            block(source)
        source.write(f"return pb.tanh(h * 0.5 + {of_shape(source, row)}), h * t + {of_shape(source, row, 1)}")
    start = of_shape(source, row, 1)
    reverse = source.one_of(["", ", reverse=True"])
    last, out = source.name(), source.name()
    source.write(f"{last}, {out} = pb.scan({name}, {start}, {of_shape(source, v.shape)}{reverse})")
    source.values += [Value(last, row), Value(out, v.shape)]


def while_loop(source: Source, block: Block) -> None:
    v = _some(source)
    name = source.name("body")
    with source.function(name, [Value("t", v.shape), Value("k", ())], "tensors"):
        if source.chance(0.5):
            block(source)
        source.write(f"return t * 0.6 + 0.1 * pb.tanh({of_shape(source, v.shape)}), k + 1")
    going, start = "lambda s: pb.mean(s[0] ** 2) > 0.1", of_shape(source, v.shape, 1)
    source.define(f"pb.while_loop({going}, lambda s: {name}(*s), ({start}, 0.0), max_steps=3)[0]", v.shape)


def checkpointed(source: Source, block: Block) -> None:
    v = _some(source)
    name = source.name("region")
    source.write("@pb.checkpoint")
    with source.function(name, [Value("t", v.shape)], "tensors"):
        if source.chance(0.6):
            block(source)
        source.write(f"return {of_shape(source, v.shape)} + pb.tanh(t)")
    source.define(f"{name}({of_shape(source, v.shape)})", v.shape)


def grad(source: Source, block: Block) -> None:
    v, name = _loss(source, block)
    form = source.one_of(["pb.grad({0})({1})", "pb.value_and_grad({0})({1})[1]",
                          "pb.vjp({0}, {1})[1](pb.ones((), dtype=D))[0]",
                          "pb.grad(lambda t: {0}(t) * 0.5 + {0}(t * 0.5))({1})"])  # fmt: skip
    source.define(form.format(name, of_shape(source, v.shape)), v.shape)


def grad_by_several(source: Source, block: Block) -> None:
    v, name = _loss(source, block)
    a, b = of_shape(source, v.shape), of_shape(source, v.shape, 1)
    out, other = source.name(), source.name()
    source.write(
        f"{out}, {other} = pb.grad(lambda a, b: {name}(a * b) + pb.mean(a - b) ** 2, argnums=(0, 1))({a}, {b})"
    )
    source.values += [Value(out, v.shape), Value(other, v.shape)]


def grad_with_aux(source: Source, block: Block) -> None:
    v, name = _loss(source, block)
    loss, aux, out = source.name(), source.name(), source.name()
    source.write(
        f'({loss}, {aux}), {out} = pb.value_and_grad(lambda t: ({name}(t), {{"aux": t * 0.5}}), has_aux=True)({v.text})'
    )
    source.values += [Value(loss, ()), Value(f'{aux}["aux"]', v.shape), Value(out, v.shape)]


def grad_of_a_tree(source: Source, block: Block) -> None:
    slopes = source.name("slopes")
    source.write(f"{slopes} = pb.grad(lambda p: total(p) * {source.factor()} + {scalar(source)})(tree)")
    source.values += [Value(f'{slopes}["w"]', (source.sizes["C"], source.sizes["K"])),
                      Value(f'{slopes}["layers"][0]', (source.sizes["C"],))]  # fmt: skip


def grad_of_grad(source: Source, block: Block) -> None:
    v, name = _loss(source, block)
    form = source.one_of(["pb.grad(lambda t: pb.sum(pb.grad({0})(t) ** 2))({1})",
                          "pb.hvp({0}, ({1},), ({1} * 0.5,))[0]",
                          "pb.jvp(pb.grad({0}), ({1},), (pb.ones_like({1}),))[1]"])  # fmt: skip
    source.define(form.format(name, v.text), v.shape)


def jvp(source: Source, block: Block) -> None:
    v, name = _loss(source, block)
    out, tangent = source.name(), source.name()
    source.write(f"{out}, {tangent} = pb.jvp({name}, ({v.text},), ({of_shape(source, v.shape, 1)},))")
    source.values += [Value(out, ()), Value(tangent, ())]


def backward_from_a_leaf(source: Source, block: Block) -> None:
    """A variable made inside, and its gradient by `backward`."""
    if source.inside:
        return
    v = _some(source)
    leaf = source.name("leaf")
    source.write(f"{leaf} = ({of_shape(source, v.shape, 1)}).detach().clone().set_requires_grad(True)")
    loss = source.name("loss")
    source.write(f"{loss} = {scalar(source, leaf)}")
    kind = source.number(0, 3)
    if kind == 0:
        source.write(f"{loss}.backward(retain_graph=True)")
        source.define(f"{leaf}.grad * 1.0", v.shape)
    elif kind == 1:
        source.define(f"pb.backward({loss}, retain_graph=True)[{leaf}]", v.shape)
    else:
        source.used["backward with create_graph"] += 1
        slope = source.name("slope")
        source.write(f"{slope} = pb.backward({loss}, create_graph=True)[{leaf}]")
        source.define(f"pb.backward(pb.sum({slope} ** 2), retain_graph=True)[{leaf}]", v.shape)


def backward_to_captured(source: Source, block: Block) -> None:
    if source.inside:
        return
    loss = source.name("loss")
    source.write(f"{loss} = {scalar(source, 'W')}")
    source.write(f"{loss}.backward(retain_graph=True)")
    if source.chance(0.5):
        source.define("W.grad * 0.5", (source.sizes["C"], source.sizes["K"]))
    if source.chance(0.3):
        source.write(source.one_of(["W.zero_grad()", "W.grad = None"]))


def optimizer_steps(source: Source, block: Block) -> None:
    if source.inside:
        return
    loss = source.name("loss")
    source.write(f"{loss} = {scalar(source, 'W')}")
    for line in source.one_of([
        [f"OPTIMIZER.step(pb.backward({loss}, retain_graph=True))"],
        ["OPTIMIZER.zero_grad()", f"{loss}.backward(retain_graph=True)", "OPTIMIZER.step()"],
        [f"grads = pb.backward({loss}, retain_graph=True)", "OPTIMIZER.step([grads.get(p) for p in OPTIMIZED])"],
    ]):  # fmt: skip
        source.write(line)


def variable_updated_by_hand(source: Source, block: Block) -> None:
    if source.inside:
        return
    variable = source.one_of(["W", "B", "PARAMETERS[-1]", "cell.w"])
    loss, slope = source.name("loss"), source.name("slope")
    source.write(f"{loss} = {scalar(source, variable)}")
    found = f"pb.backward({loss}, retain_graph=True).get({variable})"
    source.write(f"{slope} = {found} if {loss}.requires_grad else None")
    forms = ["{0}[...] = {0} - 0.1 * {1}", "{0}[0] *= 0.9", "{0}[...] -= 0.1 * {1}"]
    if not source.is_nested and variable in ("W", "B"):
        source.globals.add(variable)
        forms.append("{0} -= 0.1 * {1}")
    if "." in variable or "[" in variable:
        forms.append("{0} -= 0.1 * {1}")
    with source.block(f"if {slope} is not None:"), source.block("with pb.no_grad():"):
        source.write(source.one_of(forms).format(variable, slope))


def detached(source: Source, block: Block) -> None:
    v = _some(source)
    with source.block("with pb.no_grad():"):
        name = source.name()
        source.write(f"{name} = {of_shape(source, v.shape, 2)}")
    source.values.append(Value(name, v.shape))


def _some(source: Source, fits: Callable[[Shape], bool] = lambda shape: True) -> Value:
    return source.pick(fits) or Value("x", ("rows", source.sizes["C"]))


def _loss(source: Source, block: Block) -> tuple[Value, str]:
    """A nested function of one tensor that gives a number."""
    v = _some(source)
    name = source.name("loss")
    with source.function(name, [Value("t", v.shape)], "grad"):
        if source.chance(0.25):  # it is the transform's own
            source.used["argument of a transformed function written"] += 1
            (write_item if source.chance(0.7) else write_whole)(source, "t", v.shape)
        if source.chance(0.6):
            block(source)
        source.write(f"return {scalar(source, 't')}")
    return v, name


STATEMENTS = (
    cond, scan, while_loop, checkpointed, grad, grad, grad_by_several, grad_with_aux, grad_of_a_tree, grad_of_grad, jvp,
    backward_from_a_leaf, backward_from_a_leaf, backward_to_captured, optimizer_steps, variable_updated_by_hand,
    detached,
)  # fmt: skip
