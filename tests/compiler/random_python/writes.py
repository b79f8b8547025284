"""Statements that write in place: to what was made inside, to what was found outside, to arguments."""

from __future__ import annotations

from .expressions import new_shape, of_shape
from .source import Shape, Source, Value, written


def _places(source: Source, shape: Shape) -> tuple[str, Shape]:
    """An index into a tensor, and the shape of what is there."""
    if not shape:
        return "...", ()
    first, rest = shape[0], shape[1:]
    options: list[tuple[str, Shape]] = [("...", shape), (":", shape)]
    if first != 1:
        options += [("0", rest), ("-1", rest), ("1", rest), (":1", (1, *rest)), ("-1:", (1, *rest)), ("::-1", shape)]
    if len(shape) > 1 and shape[-1] != 1:
        options += [("..., 0", shape[:-1]), (":, -1", (first, *shape[2:])) if shape[1] != 1 else ("...", shape)]
    if first not in ("rows", 1):
        options += [("np.array([1, 0])", (2, *rest)), ("PAIR_OF_ROWS", (2, *rest)), (f"masked({first})", (1, *rest)),
                    ("[0, -1]", (2, *rest))]  # fmt: skip
        if rest and rest[0] not in ("rows", 1):
            options += [("np.array([0, 1]), np.array([1, 0])", (2, *rest[1:])), ("0, 1", rest[1:])]
    if first == "rows":
        options += [("np.arange(rows) % 2 == 0", ()), ("rows - 1", rest), ("min(n, rows - 1)", rest)]
    return source.one_of(options)


def write_item(source: Source, target: str, shape: Shape, plain: bool = False) -> None:
    """`target[...] = ...`, or `+=` and the like on it."""
    index, part = _places(source, shape)
    source.used["index array written" if "np.array" in index or "[" in index else "item written"] += 1
    if "masked" in index or "% 2" in index:
        source.used["mask written"] += 1
    value = source.factor() if source.chance(0.25) else _changed(source, part, plain)
    form = source.one_of(["{}[{}] = {}", "{}[{}] = {}", "{}[{}] += {}", "{}[{}] *= {}", "{}[{}] -= {}"])
    source.write(form.format(target, index, value))


def _changed(source: Source, shape: Shape, plain: bool) -> str:
    """What is written; `plain`: without a gradient."""
    value = of_shape(source, shape)
    return f"pb.tanh({value}).detach()" if plain else value


def write_whole(source: Source, target: str, shape: Shape, plain: bool = False) -> None:
    """`target += ...` and the like."""
    value = _changed(source, shape, plain)
    other = source.pick(lambda s: s == shape[len(shape) - len(s) :]) if not plain and source.chance(0.3) else None
    value = value if other is None else other.text
    form = source.one_of(["{} += {}", "{} -= 0.5 * {}", "{} *= {} * 0.5", "{} /= 2.0 + {} ** 2"])
    source.used["whole written"] += 1
    source.write(form.format(target, f"({value})"))


def _some_writes(source: Source, target: str, shape: Shape) -> None:
    for _ in range(source.number(1, 3)):
        (write_item if shape and source.chance(0.7) else write_whole)(source, target, shape)


def buffer_made(source: Source) -> None:
    like = source.pick(lambda s: len(s) > 0)
    shape = like.shape if like else ("rows", 2)
    made = source.one_of(["pb.zeros({}, dtype=D)", "pb.ones({}, dtype=D)", "pb.full({}, 0.3, dtype=D)",
                          "pb.tensor(np.zeros({}), dtype=D)", "pb.empty({}, dtype=D) * 0.0 + 0.1"])  # fmt: skip
    target = source.define(made.format(written(shape)), shape)
    _some_writes(source, target.text, shape)
    if source.chance(0.4) and shape[0] == "rows":
        source.used["buffer filled in a loop"] += 1
        source.write("for i in range(rows):")
        source.write(f"    {target.text}[i] = {target.text}[i - 1] * 0.5 + x[i].mean() * i")


def clone_written(source: Source) -> None:
    like = source.pick()
    assert like is not None
    form = source.one_of(["{}.clone()", "pb.asarray({}, copy=True)", "{} * 1.0", "{}.copy()", "pb.zeros_like({})"])
    # a clone of a variable is a variable, which cannot be written
    target = source.define(form.format(like.text if like.text[0] == "v" else f"({like.text} + 0.0)"), like.shape)
    _some_writes(source, target.text, like.shape)


def view_written(source: Source) -> None:
    made = new_shape(source)
    target = source.define(made.text, made.shape)
    _some_writes(source, target.text, made.shape)


def intermediate_written(source: Source) -> None:
    target = source.assignable()
    if target is not None:
        _some_writes(source, target.text, target.shape)


def alias_written(source: Source) -> None:
    target = source.assignable()
    if target is not None:
        alias = source.define(target.text, target.shape)
        _some_writes(source, alias.text, alias.shape)


def written_without_grad(source: Source) -> None:
    target = source.assignable()
    if target is not None:
        with source.block("with pb.no_grad():"):
            _some_writes(source, target.text, target.shape)


def captured_written(source: Source) -> None:
    """A tensor from outside that has no gradient: state from call to call."""
    if not source.may_change_state:
        return
    target = source.one_of([Value("S", ("C",)), Value('STATE["total"]', ("C",)), Value("MEMORY[0]", ("C", "K")),
                            Value("COUNT", ()), Value("cell.h", ("C",)), Value("MEMORY[-1]", ("K",))])  # fmt: skip
    shape = tuple(source.sizes[name] for name in target.shape)
    writer = write_item if source.chance(0.6) or target.text in ("S", "COUNT") else write_whole
    if target.text in ("S", "COUNT") and not source.is_nested and source.chance(0.4):
        source.used["global bound again by an in-place operator"] += 1
        source.globals.add(target.text)
        writer = write_whole
    if source.chance(0.3):
        with source.block("with pb.no_grad():"):
            writer(source, target.text, shape, plain=True)
    else:
        writer(source, target.text, shape, plain=True)


def argument_written(source: Source) -> None:
    if source.inside or not source.plain_arguments:
        return
    target = source.one_of(source.arguments)
    if not source.is_nested and target.text.isidentifier() and source.chance(0.3):
        write_whole(source, target.text, target.shape, plain=True)
    else:
        write_item(source, target.text, target.shape, plain=True)


def written_by_a_function(source: Source) -> None:
    """A nested function that writes to what it is given, which belongs to its caller."""
    target = source.assignable()
    if target is not None:
        name = source.name("write")
        with source.function(name, [Value("t", target.shape)]):
            _some_writes(source, "t", target.shape)
        source.write(f"{name}({target.text})")


WRITES = (written_by_a_function, buffer_made, clone_written, view_written, intermediate_written, alias_written,
          written_without_grad,
          captured_written, captured_written, argument_written)  # fmt: skip
