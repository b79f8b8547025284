"""A whole random program: what is outside, the function, and the calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from . import python_statements, tensor_statements
from .expressions import of_shape
from .prelude import PRELUDE
from .source import Source, Value
from .writes import WRITES

_OUTSIDE = {  # how a result is looked at
    "called": 0.25, "backward outside": 0.15, "pb.backward outside": 0.08, "chained outside": 0.05,
    "grad outside": 0.1, "hvp outside": 0.04, "jvp outside": 0.03, "value and grad inside": 0.1,
    "second order inside": 0.1, "second order by backward": 0.1,
}  # fmt: skip
_INSIDE = {  # what the function may then do: see `Source.inside`
    "grad outside": "once", "value and grad inside": "once", "chained outside": "once", "hvp outside": "grad",
    "jvp outside": "grad", "second order inside": "grad", "second order by backward": "grad",
}  # fmt: skip
_VALUES = {
    'tree["w"]': ("C", "K"), 'tree["layers"][0]': ("C",), 'tree["layers"][-1]': ("C",), 'tree["pair"].left': ("K",),
    'tree["pair"].right': (), 'tree["bundle"].first': ("rows",), 'tree["bundle"].second[0]': ("rows", "C"),
    "W": ("C", "K"), "B": ("C",), "PARAMETERS[1]": ("C",), "S": ("C",), "COUNT": (), 'STATE["total"]': ("C",),
    "MEMORY[0]": ("C", "K"), "MEMORY[1]": ("K",), "cell.h": ("C",), "cell.w": ("C",), "cell.inner.h": ("C",),
    "pb.asarray(ARRAY)": ("C",), "cell.mix": ("C",),
}  # fmt: skip
_CHANGES = (
    'CONFIG["scale"] = {:.2f}', "LIMITS[0] = {:.2f}", "LIMITS.append({:.2f})", "cell.scale = {:.2f}", "SCALE = {:.2f}",
    "cell.on = not cell.on", 'CONFIG["on"] = not CONFIG["on"]', 'CONFIG["rounds"] = 3 - CONFIG["rounds"] % 3',
    'CONFIG["bias"] = {:.2f}', 'CONFIG["mode"] = "product"', "S[...] = {:.2f}", "cell.h = numbers(21, (C,))",
    'STATE["total"] = numbers(22, (C,))', "MEMORY[1] = numbers(23, (K,))", "ARRAY[0] = {:.2f}", "LIMITS.reverse()",
    "HELPERS.reverse()", "cell.inner = SimpleNamespace(h=numbers(24, (C,)))", "PARAMETERS.reverse()",
    'STATE["steps"] += 1',
    "Cell.rates = ({:.2f}, 0.5)", "OPTIMIZER.lr = {:.2f} * 0.1", "S = numbers(25, (C,))", "W.zero_grad()",
    "Cell.__call__ = lambda self, t: t * {:.2f}", 'HELPERS_BY_NAME["sum"] = squash', "cell.w.set_requires_grad(False)",
)  # fmt: skip
_FORMS = (
    "f = wrap(f)", "f = wrap(f)", "f = wrap(lambda *a, inner=f, **k: inner(*a, **k))", "f = wrap(partial(f))",
    'f = wrap(type("Model", (), {"__call__": staticmethod(f)})())',
    'f = type("Model", (), {"run": wrap(lambda self, *a, inner=f, **k: inner(*a, **k))})().run',
)  # fmt: skip
_CALL = "f(x, tree, n, flag)"


@dataclass(frozen=True)
class Program:
    """The text of a program, which `wrap` completes, and what it is made of."""

    seed: int
    source: str
    dtype: str
    used: Counter[str]

    @property
    def computes_both_branches(self) -> bool:
        """Whether compiled it depends on tensors that only the branch not taken would read."""
        return bool(self.used["cond"] or self.used["while loop"])


def write_program(seed: int) -> Program:
    """The program of a seed."""
    source = Source(seed)
    source.sizes = {"C": source.number(2, 4), "K": source.number(1, 3), "rows": "rows"}  # type: ignore[dict-item]
    dtype = "float32" if source.chance(0.15) else "float64"
    outside = str(source.rng.choice(list(_OUTSIDE), p=list(_OUTSIDE.values())))
    source.used[outside] += 1
    source.plain_arguments = outside == "called"
    source.inside = _INSIDE.get(outside, "")
    body = _write_function(source)
    optimizer = source.one_of(["SGD(OPTIMIZED, 0.05)", "SGD(OPTIMIZED, 0.05, momentum=0.9)", "Adam(OPTIMIZED, 0.02)",
                               "AdamW(OPTIMIZED, 0.02)"])  # fmt: skip
    head = PRELUDE.format(dtype=dtype, C=source.sizes["C"], K=source.sizes["K"], optimizer=optimizer)
    calls = _write_calls(source, outside)
    return Program(seed, f"{head}\n\n{body}\n\n{calls}\n", dtype, source.used)


def _write_function(source: Source) -> str:
    sizes = source.sizes
    values = [Value(text, tuple(sizes[name] for name in shape)) for text, shape in _VALUES.items()]
    source.arguments = [Value("x", ("rows", sizes["C"])), *values[:7]]
    kept = [value for value in values if source.chance(0.55)]
    order = source.rng.permutation(len(kept))
    source.values = [*(kept[i] for i in order), source.arguments[0]]
    for _ in range(source.number(2, 9)):
        _statement(source)
    results = [source.pick() for _ in range(source.number(1, 4))]
    made = source.assignable()
    texts = [
        of_shape(source, v.shape, 1) if source.chance(0.2) else v.text for v in [*results, *([made] * bool(made))] if v
    ]
    source.write("return " + _tree(source, texts))
    lines = ["def f(x, tree, n=1, flag=True):", *(f"    global {name}" for name in sorted(source.globals)),
             "    rows = x.shape[0]", *source.lines]  # fmt: skip
    source.lines = []
    return "\n".join(lines)


def _statement(source: Source) -> None:
    kind = source.rng.random()
    if kind < 0.35:
        writer = source.one_of(WRITES)
        before = len(source.lines)
        writer(source)
        name = writer.__name__
    else:
        statements = tensor_statements.STATEMENTS if kind > 0.75 else python_statements.STATEMENTS
        writer = source.one_of(statements)
        if source.depth > 2 and writer not in (python_statements.assigned, python_statements.bound_again):
            writer = python_statements.assigned
        before = len(source.lines)
        writer(source, _block)
        name = writer.__name__
    if len(source.lines) > before:
        source.used[name.replace("_", " ")] += 1


def _block(source: Source) -> None:
    for _ in range(source.number(1, 2)):
        _statement(source)


def _tree(source: Source, texts: list[str]) -> str:
    """The texts in a container."""
    kind = source.number(0, 6)
    a, rest = texts[0], texts[1:]
    joined = ", ".join(rest)
    if kind == 0 and not rest:
        return a
    return [
        f"({a}, {joined})" if rest else f"[{a}]",
        f"[{', '.join(texts)}]",
        f'{{"a": {a}, "rest": [{joined}], "n": n}}',
        f"Pair({a}, ({joined}{',' if len(rest) == 1 else ''}))",
        f"Bundle({a}, [{joined}, None])" if rest else f"Bundle({a}, None)",
        f'{{"deep": {{"er": [({a}, "text")]}}, "others": ({joined}{"," if len(rest) == 1 else ""}), "rows": rows}}',
        f"({a}, {{1: [{joined}], 0: flag}})",
    ][kind]


def _write_calls(source: Source, outside: str) -> str:
    form = source.one_of(_FORMS)
    lines = _STEPS.get(outside, f"\n\n{form}").splitlines()
    lines += ["", "", "def run():", "    global SCALE, S", "    pb.random.seed(7)"]
    tracked = outside in ("backward outside", "pb.backward outside", "chained outside")
    if outside == "grad outside":  # with variables among what is captured it is a second derivative, or may become one
        lines.append("    for t in (W, *PARAMETERS, cell.w):\n        t.set_requires_grad(False)")
    for call in range(source.number(3, 4)):
        if call and source.chance(0.6):
            for _ in range(source.number(1, 3)):
                source.used["Python's state changed"] += 1
                source.write(source.one_of(_CHANGES).format(float(source.rng.uniform(0.3, 1.1))))
        if call == 0 or source.chance(0.7):
            if call == 0 or source.chance(0.45):
                rows, layers = source.number(2, 4), source.number(1, 3)
                source.write(f"n, flag = {source.number(0, 3)}, {source.chance(0.5)}")
            source.write(_arguments(source, rows, layers, tracked))
        source.write(f"yield {call + 1}")
        mix = f"cell.mix = pb.tanh(cell.w * {source.rng.uniform(0.3, 1.1):.2f})"
        if outside != "chained outside":
            source.write(mix)
        elif call == 0:  # there two programs take turns, and a tensor that is replaced too often is refused
            source.write(f"{mix}.detach()")
        source.write("cell.last = None")
        if call % 2:  # what shares memory with tensors that are written stays as it is
            source.write('shared = [t.clone() for t in (S, COUNT, STATE["total"], *MEMORY, cell.h, x, W.detach())]')
        source.lines += [f"    {line}" for line in _LOOKS[outside].splitlines()]
        if call % 2:
            source.write("yield shared")
        source.write("yield state()")
    calls = "\n".join(lines + source.lines)
    if source.chance(0.2):
        source.used["keyword arguments"] += 1
        calls = calls.replace(_CALL, "f(x, flag=flag, tree=tree, n=n)")
    return calls


def _arguments(source: Source, rows: int, layers: int, tracked: bool) -> str:
    def one(shape: str) -> str:
        return f"numbers({source.number(100, 999)}, {shape}{', True' if tracked and source.chance(0.8) else ''})"

    listed = ", ".join(one("(C,)") for _ in range(layers))
    return (
        f'x, tree = {one(f"({rows}, C)")}, {{"w": {one("(C, K)")}, "layers": [{listed}], '
        f'"pair": Pair({one("(K,)")}, {one("()")}), "bundle": Bundle({one(f"({rows},)")}, ({one(f"({rows}, C)")},))}}'
    )


_STEPS = {
    "value and grad inside": f"""

@wrap
def step(x, tree, n, flag):
    return pb.value_and_grad(lambda x, tree: total({_CALL}), argnums=(0, 1))(x, tree)
""",
    "second order inside": f"""

@wrap
def step(x, tree, n, flag):
    def loss(x):
        return total({_CALL})

    return pb.grad(lambda x: pb.sum(pb.grad(loss)(x) * pb.cos(x)))(x), pb.hvp(loss, (x,), (x * 0.5,))
""",
    "second order by backward": f"""

@wrap
def step(x, tree, n, flag):
    x = x.detach().set_requires_grad(True)
    loss = total({_CALL}) + pb.mean(x) ** 2
    variables = [x, W, B]
    first = [pb.backward(loss, create_graph=True).get(t) for t in variables]
    slope = sum(pb.sum(g * pb.cos(g)) for g in first if g is not None)
    second = pb.backward(slope)
    return loss.detach(), [g if g is None else g.detach() for g in first], [second.get(t) for t in variables]
""",
}
_STEP = "yield step(x, tree, n, flag)"
_LOOKS = {
    "called": f"yield {_CALL}\nyield x, tree",
    "backward outside": f"""result = {_CALL}
yield result
loss = total([result, cell.last])
if loss.requires_grad:
    loss.backward()
yield [t.grad for t in pb.tree.leaves((x, tree))]""",
    "pb.backward outside": f"""result = {_CALL}
loss = total(result)
grads = pb.backward(loss) if loss.requires_grad else {{}}
yield result, [grads.get(t) for t in [x, W, B, cell.w, *pb.tree.leaves(tree)]]""",
    "chained outside": f"""first = {_CALL}
loss = total(first) + total({_CALL.replace("x", "pb.tanh(x * total(first))", 1)})
if loss.requires_grad:
    loss.backward()
yield loss, [t.grad for t in pb.tree.leaves((x, tree))]""",
    "grad outside": f"yield pb.value_and_grad(lambda x, tree: total({_CALL}), argnums=(0, 1))(x, tree)",
    "hvp outside": f"yield pb.hvp(lambda x: total({_CALL}), (x,), (x * 0.5,))",
    "jvp outside": f"yield pb.jvp(lambda x: total({_CALL}), (x,), (x * 0.5,))",
    "value and grad inside": _STEP,
    "second order inside": _STEP,
    "second order by backward": _STEP,
}
