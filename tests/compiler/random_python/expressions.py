"""Expressions: tensors of a wanted shape, or of a new one, from the values that have names."""

from __future__ import annotations

from .source import Shape, Source, Value, broadcast, written

_UNARY = (
    "pb.tanh({})", "pb.sin({})", "pb.cos({})", "pb.sigmoid({})", "pb.exp(-({}) ** 2)", "pb.log1p(({}) ** 2)",
    "pb.sqrt(({}) ** 2 + 0.5)", "-({})", "({}) * 0.5", "pb.softplus({})", "pb.gelu({})", "1 / (2.0 + ({}) ** 2)",
    "pb.relu({})", "abs({})", "({}).tanh()", "pb.clip({}, -1.1, 1.1)", "np.tanh({})", "squash({})",
    "({}) - 0.1", "2 - ({})", "({}) ** 3 * 0.1", "pb.erf({})", "pb.atan({})", "smooth({}, 2)", "power({}, n % 3)",
)  # fmt: skip
_BINARY = (
    "{} + {}", "{} - 0.5 * {}", "{} * pb.tanh({})", "{} / (1.5 + {} ** 2)", "pb.maximum({}, {})", "pb.minimum({}, {})",
    "pb.hypot({}, {} + 3.0)", "pb.logaddexp({}, {})", "blend({}, {}, alpha=0.3)", "({}).multiply(pb.sin({}))",
)  # fmt: skip


def of_shape(source: Source, shape: Shape, depth: int | None = None) -> str:
    """An expression of exactly this shape."""
    depth = source.number(0, 3) if depth is None else depth
    if depth == 0:
        return _leaf(source, shape)
    kind = source.rng.random()
    if kind < 0.35:
        return source.one_of(_UNARY).format(of_shape(source, shape, depth - 1))
    if kind < 0.7:
        other = source.pick(lambda s: broadcast(s, shape) == shape)
        if other is not None:
            return "(" + source.one_of(_BINARY).format(of_shape(source, shape, depth - 1), other.text) + ")"
    if kind < 0.8:
        source.used["numbers of Python"] += 1
        return f"({of_shape(source, shape, depth - 1)} {source.one_of(['*', '+', '-'])} {source.factor()})"
    if kind < 0.86:
        source.used["where"] += 1
        a, b = of_shape(source, shape, depth - 1), _leaf(source, shape)
        return f"pb.where({a} > {round(float(source.rng.uniform(-0.4, 0.4)), 2)}, {b} * 1.5, {a} - 0.2)"
    if kind < 0.9:
        source.used["conditional expression"] += 1
        return f"({of_shape(source, shape, depth - 1)} if {source.condition()} else {_leaf(source, shape)}) * 0.95"
    product = _product(source, shape) if len(shape) == 2 else None
    return product or f"pb.tanh({of_shape(source, shape, depth - 1)})"


def scalar(source: Source, must_have: str | None = None) -> str:
    """An expression without axes, moderate; with `must_have`, the name of a tensor, one that depends on it."""
    value = source.pick(lambda shape: len(shape) > 0) or Value("x", ("rows", 1))
    inner = of_shape(source, value.shape)
    form = source.one_of(
        ["pb.mean({})", "pb.sum({}) * 0.2", "({}).mean()", "pb.logsumexp({}, axis=None) * 0.5", "total([{}])"]
    )
    if must_have is None:
        return form.format(inner)
    return form.format(inner) + f" * 0.5 + pb.mean({must_have} * pb.tanh({must_have} + {source.factor()}))"


def new_shape(source: Source) -> Value:
    """An expression by an operation that changes shapes."""
    makers = [_reduced, _reduced, _indexed, _indexed, _transposed, _joined, _multiplied, _normalised, _reshaped, _drawn]
    for _ in range(8):
        made = source.one_of(makers)(source)
        if made is not None:
            return made
    return Value("pb.mean(x) + 0.1", ())


def _leaf(source: Source, shape: Shape) -> str:
    exact = source.pick(lambda s: s == shape)
    if exact is not None and source.chance(0.9):
        return exact.text
    other = source.pick(lambda s: broadcast(s, shape) == shape)
    if other is not None and source.chance(0.8):
        return f"pb.broadcast_to({other.text}, {written(shape)})"
    return f"pb.full({written(shape)}, {round(float(source.rng.uniform(-1, 1)), 2)}, dtype=D)"


def _product(source: Source, shape: Shape) -> str | None:
    a = source.pick(lambda s: len(s) == 2 and s[0] == shape[0])
    if a is None:
        return None
    b = source.pick(lambda s: s == (a.shape[1], shape[1]))
    if b is not None:
        return f"({a.text} @ {b.text} * 0.5)"
    b = source.pick(lambda s: s == (shape[1], a.shape[1]))
    return None if b is None else f"(pb.tanh({a.text}) @ {b.text}.T * 0.5)"


def _reduced(source: Source) -> Value | None:
    v = source.pick(lambda s: len(s) > 0)
    if v is None:
        return None
    axis = source.number(0, len(v.shape) - 1)
    keep = source.chance(0.4)
    shape = tuple(1 if i == axis else n for i, n in enumerate(v.shape) if keep or i != axis)
    function = source.one_of(["mean", "max", "min", "logsumexp", "sum", "var"])
    return Value(f"pb.{function}({v.text}, axis={axis}, keepdims={keep}) * 0.7", shape)


def _indexed(source: Source) -> Value | None:
    v = source.pick(lambda s: len(s) > 0 and s[0] != 1)
    if v is None:
        return None
    first, rest = v.shape[0], v.shape[1:]
    kind = source.number(0, 4)
    if kind == 0:
        return Value(f"{v.text}[{source.one_of([0, 1, -1])}]", rest)
    if kind == 1:
        return Value(f"{v.text}[{source.one_of(['::-1', ':', '...'])}]", v.shape)
    if kind == 2:
        return Value(f"{v.text}[:1]", (1, *rest))
    if kind >= 3 and first != "rows":
        source.used["index array"] += 1
        return Value(f"{v.text}[np.array([0, -1, 1, 0])]", (4, *rest))
    return Value(f"{v.text}[..., None]", (*v.shape, 1))


def _transposed(source: Source) -> Value | None:
    v = source.pick(lambda s: len(s) == 2)
    return v and Value(source.one_of(["{}.T", "pb.permute_dims({}, (1, 0))"]).format(v.text), v.shape[::-1])


def _joined(source: Source) -> Value | None:
    v = source.pick(lambda s: 0 < len(s) < 3)
    if v is None:
        return None
    other = of_shape(source, v.shape, 1)
    if source.chance(0.5):
        return Value(f"pb.stack([{v.text}, {other}])", (2, *v.shape))
    last = v.shape[-1]
    return None if last == "rows" else Value(f"pb.concat([{v.text}, {other}], axis=-1)", (*v.shape[:-1], 2 * last))


def _multiplied(source: Source) -> Value | None:
    a = source.pick(lambda s: len(s) >= 1)
    b = a and source.pick(lambda s: len(s) == 2 and s[0] == a.shape[-1])
    return b and Value(f"{a.text} @ {b.text} * 0.5", (*a.shape[:-1], b.shape[1]))


def _normalised(source: Source) -> Value | None:
    v = source.pick(lambda s: len(s) > 0)
    form = source.one_of(["pb.softmax({}, axis=-1)", "pb.cumulative_sum({}, axis=-1) * 0.4", "pb.flip({}, axis=0)",
                          "pb.roll({}, 1, axis=0)", "pb.sort({}, axis=-1)", "({}).detach() * 0.9"])  # fmt: skip
    return v and Value(form.format(v.text), v.shape)


def _reshaped(source: Source) -> Value | None:
    v = source.pick(lambda s: len(s) > 0)
    if v is None:
        return None
    if v.shape.count("rows") == 0:
        size = 1
        for n in v.shape:
            size *= n
        return Value(f"pb.reshape({v.text}, (-1,))", (size,))
    return Value(f"pb.expand_dims({v.text}, axis=0)", (1, *v.shape)) if len(v.shape) < 3 else None


def _drawn(source: Source) -> Value | None:
    v = source.pick(lambda s: 0 < len(s) < 3)
    if v is None or source.inside == "tensors" or source.chance(0.5):
        return None
    source.used["random numbers"] += 1
    return Value(f"pb.random.uniform({written(v.shape)}, -1.0, 1.0, dtype=D)", v.shape)
