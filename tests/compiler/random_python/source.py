"""Text that grows line by line, and the names in it whose shapes are known."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

Shape = tuple[Any, ...]  # of numbers, and of "rows": as many as the argument x has, at least two


class Value(NamedTuple):
    """An expression in the text, and the shape of the tensor that it is."""

    text: str
    shape: Shape


class Source:
    """Lines, the values that can be named at this place, and how often each construct was used."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.used: Counter[str] = Counter()
        self.values: list[Value] = []
        self.sizes: dict[str, int] = {}  # of the axes of what is found outside
        self.arguments: list[Value] = []
        self.plain_arguments = False  # which the function may write to
        self.globals: set[str] = set()  # that the function binds
        self.depth = 0  # of blocks
        # "once" in a differentiated function that runs once, "grad" in others, "tensors" for pb.scan and the like
        self.inside = ""
        self._floor = 0  # values before this one belong to another function
        self._indent = 1
        self._names = 0

    def write(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    def name(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def define(self, text: str, shape: Shape, prefix: str = "v") -> Value:
        """Write `name = text`, and let the name be used from now on."""
        value = Value(self.name(prefix), shape)
        self.write(f"{value.text} = {text}")
        self.values.append(value)
        return value

    @contextmanager
    def block(self, head: str, inside: str | None = None) -> Iterator[None]:
        """A block below a line; names made in it end with it."""
        self.write(head)
        before, was_inside = len(self.values), self.inside
        self.inside = was_inside if inside is None or was_inside == "tensors" else inside
        self._indent += 1
        self.depth += 1
        yield
        self.depth -= 1
        self._indent -= 1
        self.inside = was_inside
        del self.values[before:]

    @contextmanager
    def function(self, name: str, parameters: Sequence[Value], inside: str | None = None) -> Iterator[None]:
        """A function in the text: what is outside of it can be read, and not bound."""
        floor, values = self._floor, self.values
        names = [value.text for value in parameters]
        with self.block(f"def {name}({', '.join(names)}):", inside):
            self.values = [value for value in values if value.text not in names]
            self._floor = len(self.values)
            self.values.extend(parameters)
            yield
            self.values = values
        self._floor = floor

    @property
    def may_change_state(self) -> bool:
        """Whether the function runs once in a call, so that it may change what is outside."""
        return self.inside in ("", "once")

    @property
    def is_nested(self) -> bool:
        """Whether a function in the function is being written, which cannot bind the names outside."""
        return self._floor > 0

    # -- choices -----------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def number(self, low: int, high: int) -> int:
        """One of low..high, both included."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, things: Sequence[Any]) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def factor(self) -> str:
        """A Python number of moderate size: written out, or read from somewhere."""
        places = ["n", 'CONFIG["scale"]', "SCALE", "LIMITS[0]", "LIMITS[-1]", "cell.scale", "len(LIMITS)",
                  "sum(LIMITS)", 'CONFIG.get("bias", 0.25)', 'len(tree["layers"])', "float(rows)", "cell.rate()",
                  "(0.5 if flag else 0.75)", "max(LIMITS)"]  # fmt: skip
        if self.chance(0.5):
            return repr(round(float(self.rng.uniform(0.2, 1.3)), 2))
        return self.one_of(places)

    def condition(self) -> str:
        """A Python condition, over arguments, shapes, lengths, and what is found outside."""
        return self.one_of([
            "flag", "n > 1", "rows > 2", 'CONFIG["on"]', "cell.on", "x.ndim == 2", "len(LIMITS) > 2", "not flag",
            'len(tree["layers"]) == 2', "n % 2 == 0", "SCALE > 0.5", '"bias" in CONFIG', "rows >= 2 and flag",
            "isinstance(n, int) and n", 'CONFIG["mode"] == "sum"', "any(limit > 0.9 for limit in LIMITS)",
        ])  # fmt: skip

    def count(self) -> str:
        """How often a loop goes round: at most four times."""
        return self.one_of(["n", "min(rows, 3)", 'CONFIG["rounds"]', "len(LIMITS[:3])", "2", 'len(tree["layers"])'])

    def pick(self, fits: Any = lambda shape: True) -> Value | None:
        """A value whose shape fits, rather a late one."""
        found = [value for value in self.values if fits(value.shape)]
        return found[max(self.rng.integers(0, len(found), 2))] if found else None

    def assignable(self, fits: Any = lambda shape: True) -> Value | None:
        """A local name whose shape fits, so that something else can be bound to it."""
        own = self.values[self._floor :]
        found = [value for value in own if value.text[0] == "v" and value.text.isalnum() and fits(value.shape)]
        return self.one_of(found) if found else None


def written(shape: Shape) -> str:
    """A shape as it stands in the text."""
    return "(" + "".join(f"{size}, " for size in shape).rstrip(" " if len(shape) == 1 else ", ") + ")"


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape of both together."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    out = list(longer)
    for i in range(1, len(shorter) + 1):
        if out[-i] != shorter[-i] and 1 not in (out[-i], shorter[-i]):
            return None
        out[-i] = shorter[-i] if out[-i] == 1 else out[-i]
    return tuple(out)
