"""The drawn pictures of `docs/how_it_works/`: boxes and arrows as SVG.

`python -m website.drawings` writes them; a test sees that the files are what it writes. Fills are opaque with white
text on them, and all else has one gray, so that one file does for light and for dark pages.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "how_it_works" / "pictures"

#: Fills that white text is read on.
COLORS = {
    "blue": "#2b6cb0",
    "orange": "#b4531a",
    "green": "#23774a",
    "purple": "#6b4fb0",
    "pink": "#a8386f",
    "gray": "#566070",
}
#: Lines and text without a fill below it.
LINE = "#7c8596"
_SIZE = 15  # of text; second lines are smaller
_SMALL = 13
_WIDTH_OF_LETTER = {"sans": 0.56, "mono": 0.605}  # of the size, at most about this
_FONTS = {
    "sans": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    "mono": "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
}

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """Where something was drawn, to lead arrows to it."""

    x: float
    y: float
    w: float
    h: float

    def at(self, side: str, part: float = 0.5) -> Point:
        """The point at a part of a side: "top", "bottom", "left" or "right"."""
        if side in ("top", "bottom"):
            return self.x + part * self.w, self.y + (self.h if side == "bottom" else 0)
        return self.x + (self.w if side == "right" else 0), self.y + part * self.h


@dataclass
class Drawing:
    """A picture in the making: its name, its size, and what a reader who does not see it is told."""

    name: str
    width: int
    height: int
    title: str
    description: str
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, text: str, color: str = "blue", even: bool = False) -> Box:
        """A filled box. Lines that begin with a backtick are code; the first is the largest, unless all are `even`."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="7" fill="{COLORS[color]}"/>')
        self._lines(x, y, w, h, text, even)
        return Box(x, y, w, h)

    def frame(self, x: float, y: float, w: float, h: float, text: str = "") -> Box:
        """A dashed outline around other things, with its text in the upper left corner."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="10" fill="none" stroke="{LINE}" '
            'stroke-width="1.5" stroke-dasharray="5 4"/>'
        )
        if text:
            self.text(x + 12, y + 21, text)
        return Box(x, y, w, h)

    def text(self, x: float, y: float, text: str, anchor: str = "start", small: bool = True) -> None:
        """Lines of text without a box, the first one's foot at `y`."""
        for number, line in enumerate(text.split("\n")):
            size = _SMALL if small else _SIZE
            self._line(x, y + number * (size + 5), line, size, anchor, LINE)

    def arrow(self, *points: Point, label: str = "", color: str = "", dashed: bool = False, at: Point = (0, 0)) -> None:
        """An arrow along points; `at` moves the label, which else is in the middle of the longest stretch."""
        stroke = COLORS.get(color, LINE)
        (x0, y0), (x1, y1) = points[-2], points[-1]
        length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        end = x1 - 8 * dx, y1 - 8 * dy
        path = " L ".join(f"{_n(x)} {_n(y)}" for x, y in [*points[:-1], end])
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.parts.append(f'<path d="M {path}" fill="none" stroke="{stroke}" stroke-width="2"{dash}/>')
        tip = [(x1, y1), (x1 - 10 * dx - 5 * dy, y1 - 10 * dy + 5 * dx), (x1 - 10 * dx + 5 * dy, y1 - 10 * dy - 5 * dx)]
        self.parts.append(f'<path d="M {" L ".join(f"{_n(x)} {_n(y)}" for x, y in tip)} Z" fill="{stroke}"/>')
        if label:
            (xa, ya), (xb, yb) = max(
                pairwise(points), key=lambda pair: abs(pair[0][0] - pair[1][0]) + abs(pair[0][1] - pair[1][1])
            )
            is_flat = abs(xa - xb) > abs(ya - yb)
            x, y = (xa + xb) / 2 + at[0], (ya + yb) / 2 + at[1]
            if is_flat:
                self.text(x, y - 8 - 18 * label.count("\n"), label, "middle")
            else:
                self.text(x + 9, y + 5 - 9 * label.count("\n"), label)

    def svg(self) -> str:
        """The file."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
                'aria-labelledby="title description">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="description">{escape(self.description)}</desc>',
                *self.parts,
                "</svg>\n",
            ]
        )

    def _lines(self, x: float, y: float, w: float, h: float, text: str, even: bool) -> None:
        lines = text.split("\n")
        sizes = [_SIZE, *[_SIZE if even else _SMALL] * (len(lines) - 1)]
        total = sum(sizes) + 5 * (len(lines) - 1)
        if total > h - 6:
            raise ValueError(f"{self.name}: {len(lines)} lines do not fit into a box of height {h}: {text!r}")
        foot = y + (h - total) / 2
        for line, size in zip(lines, sizes):
            kind = "mono" if line.startswith("`") else "sans"
            if len(line.strip("`")) * size * _WIDTH_OF_LETTER[kind] > w - 8:
                raise ValueError(f"{self.name}: {line!r} does not fit into a box of width {w}.")
            foot += size
            self._line(x + w / 2, foot - 0.17 * size, line, size, "middle", "#ffffff")
            foot += 5

    def _line(self, x: float, y: float, line: str, size: int, anchor: str, fill: str) -> None:
        kind = "mono" if line.startswith("`") else "sans"
        if anchor == "start":
            right = x + len(line.strip("`")) * size * _WIDTH_OF_LETTER[kind]
            if right > self.width + 2:
                raise ValueError(f"{self.name}: {line!r} leaves the picture.")
        self.parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-family="{_FONTS[kind]}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}" xml:space="preserve">{escape(line.strip("`"))}</text>'
        )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


# -- the pictures --------------------------------------------------------------------------------

#: What is said beside a layer, and its color, by its first package.
_LAYERS = {
    "cli": ("gray", "the command pullback"),
    "mlp": ("gray", "pb.Mlp, on NumPy alone"),
    "finetune": ("gray", "fine-tuning runs"),
    "train": ("gray", "Trainer, reports, checkpoints"),
    "peft": ("gray", "LoRA, rsLoRA, DoRA"),
    "bridges": ("gray", "PyTorch and JAX functions; language models"),
    "quant": ("gray", "weights of 8 and 4 bits"),
    "nn": ("gray", "modules, optimizers, batches, files, tape"),
    "compiler": ("purple", "pb.compile"),
    "transforms": ("orange", "grad, vjp, jvp, vmap, hessian"),
    "linalg": ("blue", "namespaces of the standard"),
    "tensors": ("blue", "the class Tensor, writing in place"),
    "functions": ("blue", "public functions: signatures, checks"),
    "random": ("blue", "numbers that all backends share"),
    "autodiff": ("orange", "rule table, graph, walk, guard, duals"),
    "backends": ("green", "arrays without gradients, kernels"),
    "targets": ("green", "descriptions of kernels, native code"),
    "operations": ("pink", "what an operation is; trees; modes"),
    "errors": ("pink", "classes of errors"),
}


def layers(root: Path = ROOT) -> list[list[str]]:
    """The layers of the package from top to bottom, each with its packages, as import-linter has them."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [contract for contract in contracts if contract["name"] == "Layers"]
    return [[name.strip().removeprefix("pullback.") for name in layer.split(":")] for layer in found["layers"]]


def _layers() -> Drawing:
    rows = layers()
    drawing = Drawing(
        "layers", 720, 40 * len(rows) + 62, "The layers of Pullback",
        "From top to bottom: " + "; ".join(" ".join(row) for row in rows) + ". A layer imports only layers below it.",
    )  # fmt: skip
    for number, row in enumerate(rows):
        color, note = _LAYERS[row[0]]
        text = "   ".join(row)
        y = 8 + 40 * number
        if len(text) > 35:
            half = (len(row) + 1) // 2
            lines = "   ".join(row[:half]), "   ".join(row[half:])
            drawing.box(44, y, 340, 50, f"`{lines[0]}\n`{lines[1]}", color, even=True)
        else:
            drawing.box(44, y + 14 * (number == len(rows) - 1), 340, 32, f"`{text}", color)
        drawing.text(400, y + 21 + 8 * (len(text) > 35) + 14 * (number == len(rows) - 1), note)
    bottom = 8 + 40 * len(rows) + 8
    drawing.arrow((22, 10), (22, bottom))
    drawing.text(44, bottom + 30, "An arrow down: a layer imports what is below it, never what is above.")
    return drawing


def _rule_table() -> Drawing:
    d = Drawing(
        "rule_table", 720, 520, "What is derived from one declaration",
        "A declaration in autodiff/rules becomes an Operation with marks and rules in a Table for each namespace. "
        "The operation serves apply, NumPy's functions, autocast, vmap and the compiler. "
        "Rules become recipes, each with gather and backward.",
    )  # fmt: skip
    declaration = '`op("sqrt", "x", elementwise=True, ...,\n`x=lambda g, out: g / (2 * out))'
    d.box(170, 12, 380, 74, f"{declaration}\na module of autodiff/rules", "orange")
    operation = d.box(30, 150, 300, 58, '`OPERATIONS["sqrt"]\ninputs, static arguments, marks', "pink")
    table = d.box(390, 150, 300, 58, "`Table.rules\nonce for each namespace of kernels", "orange")
    d.arrow((180, 86), operation.at("top"), label="once")
    d.arrow((540, 86), table.at("top"), label="for each xp")
    uses = [
        ("`autodiff/apply.py", "runs kernels, makes nodes"),
        ("`tensors/numpy_ufuncs.py", "np.sqrt(tensor)"),
        ("`autodiff/autocast.py", "precision by the mark autocast"),
        ("`autodiff/batching/forms.py", "vmap by the mark batch"),
        ("`compiler/tracing, passes", "scalar, expands, reduces, shape"),
    ]
    for number, (who, what) in enumerate(uses):
        box = d.box(56, 236 + 54 * number, 274, 46, f"{who}\n{what}", "gray")
        d.arrow((38, 208), (38, box.at("left")[1]), box.at("left"))
    names = [
        ("NumPy's arrays", "`NUMPY_TABLE"),
        ("other libraries, stacks, symbols", "`table_for(backend)"),
        ("tensors: higher orders, forward mode", "`tensor_table()"),
    ]
    for number, (who, what) in enumerate(names):
        d.box(390, 236 + 54 * number, 300, 46, f"{what}\n{who}", "green")
    what_for = "`gather(...): what a node keeps\n`backward(g, *saved): gradients"
    recipe = d.box(390, 430, 300, 76, f"`Recipe(operation, rules, mask)\n{what_for}", "blue")
    d.arrow((540, 390), recipe.at("top"), label="one per mask")
    d.arrow(table.at("bottom"), (540, 236))
    return d


def _walk() -> Drawing:
    d = Drawing(
        "walk", 720, 470, "A graph and its walk",
        "x is leaf 1; tanh, node 2, keeps out; multiply, node 3, keeps both factors; sum, node 4, keeps a shape. "
        "The walk visits 4, 3, 2; the two cotangents of x are added, and values are released.",
    )  # fmt: skip
    d.text(20, 26, "Recording: from the top down", small=False)
    x = d.box(60, 46, 210, 58, "`x\nLeaf, seq 1: cell for .grad", "pink")
    tanh = d.box(200, 156, 210, 58, "`tanh\nNode, seq 2: saved (out,)", "blue")
    product = d.box(60, 266, 210, 58, "`multiply\nNode, seq 3: saved (y, x)", "blue")
    total = d.box(60, 376, 210, 58, "`sum\nseq 4: saved (x_shape, ...)", "blue")
    d.arrow(x.at("bottom", 0.85), tanh.at("top", 0.18))
    d.arrow(x.at("bottom", 0.2), product.at("top", 0.2))
    d.arrow(tanh.at("bottom", 0.2), product.at("top", 0.85))
    d.arrow(product.at("bottom"), total.at("top"))
    d.text(452, 26, "Walking: largest seq first", small=False)
    steps = [
        ("4 `sum`", "its rule spreads g", "`cotangents[3] = g"),
        ("3 `multiply`", "two gradients", "`cotangents[1], [2]"),
        ("2 `tanh`", "g * (1 - out * out)", "`sums[1] = before + new"),
        ("leaf 1", "no rule: the result", "`{leaf: gradient}"),
    ]
    before: Box | None = None
    for number, (who, what, where) in enumerate(steps):
        y = (376, 266, 156, 46)[number]
        box = d.box(452, y, 250, 58, f"{who.replace('`', '')}: {what}\n{where}", "pink" if number == 3 else "orange")
        if before is not None:
            d.arrow(before.at("top"), box.at("bottom"), color="orange", label="saved = None" if number < 4 else "")
        before = box
    d.arrow(total.at("right"), (452, 405), label="seed g", color="orange")
    return d


def _copy_on_write() -> Drawing:
    d = Drawing(
        "copy_on_write", 720, 520, "When a write copies",
        "Above: the array is held by two tensors and a node; the write makes a new array for the tensor that is "
        "written. Below: the tensor is the only holder; the write goes into its array.",
    )  # fmt: skip
    d.frame(10, 10, 700, 290, "Somebody else holds the array: three references, so the write copies")
    w = d.box(40, 60, 150, 50, "`w\nto be written", "blue")
    c = d.box(40, 140, 150, 50, "`c = w.clone()\nits _raw", "blue")
    node = d.box(40, 220, 150, 50, "`multiply\nnode.saved", "orange")
    a = d.box(270, 130, 150, 70, "array A\n`1.0 2.0 3.0\nstays as it was", "green")
    b = d.box(520, 130, 160, 70, "array B\n`100. 2.0 3.0\nnew", "pink")
    d.arrow(w.at("right"), (230, 85), (300, 130), dashed=True)
    d.text(292, 112, "before")
    d.arrow(c.at("right"), a.at("left"))
    d.arrow(node.at("right"), (230, 245), (300, 200))
    d.arrow((190, 72), (600, 72), b.at("top"), color="blue", label="after w[0] = 100.0")
    d.arrow(a.at("right"), b.at("left"), label="copy", color="pink")
    d.frame(10, 320, 700, 190, "Nobody else holds it: one reference, so the write is in place")
    w2 = d.box(40, 390, 150, 50, "`w\nthe only holder", "blue")
    a2 = d.box(270, 380, 150, 70, "array A\n`100. 2.0 3.0\nthe same memory", "green")
    asked = d.box(500, 380, 190, 70, "`is_exclusive\nwhat getrefcount says\nis the count of one", "gray")
    d.arrow(w2.at("right"), a2.at("left"))
    d.arrow(asked.at("left"), a2.at("right"), dashed=True)
    d.text(40, 490, "Where references cannot be counted, every array counts as shared.")
    return d


def _guards() -> Drawing:
    d = Drawing(
        "guards", 720, 560, "The two guards",
        "Left: backward checks the loss, walks, adds up squares of gradients; on alarm it walks again and names the "
        "operation. Right: a trace notes what is read; every call compares; a difference makes a new program.",
    )  # fmt: skip
    d.text(180, 28, "Numerics: is it finite?", "middle", small=False)
    d.text(540, 28, "Compiled: is it still so?", "middle", small=False)
    left = [
        ("`check_root\nthe loss itself: born_forward if bad", "blue"),
        ("`walk(guarded=True)\nkeeps saved values for a window", "blue"),
        ("`all_finite(cotangents)\nsquare sum below a limit: fine", "green"),
        ("`np.isfinite, on alarm\nsquares overflowed? then fine", "green"),
        ("`Window._find\nsame walk again, node by node", "orange"),
        ("`NumericalInstabilityError\noperation, line, ranges of inputs", "pink"),
    ]
    right = [
        ("`specialize: trace.run(function)\nthe function runs once, on symbols", "blue"),
        ("`Listener, Recorder, Notes\nwhat code of yours reads or writes", "blue"),
        ("`Guards: one Guard per value\nin Python: changes(...) explains", "green"),
        ("`Rows: guards as native rows\nlooked at before each call", "green"),
        ("`Specialization.why_not\nin Python: which one, and why", "orange"),
        ("`a new trace\nand a line in recompilations", "pink"),
    ]
    for x, column in ((20, left), (380, right)):
        before: Box | None = None
        for number, (text, color) in enumerate(column):
            box = d.box(x, 46 + 86 * number, 320, 54, text, color)
            if before is not None:
                d.arrow(before.at("bottom"), box.at("top"))
            before = box
    d.text(188, 296, "above the limit")
    d.text(188, 382, "NaN or infinity")
    d.text(548, 382, "a row says no")
    return d


def _programs() -> Drawing:
    d = Drawing(
        "programs", 720, 660, "The way of a program",
        "A function is traced to a Program; passes simplify it; rematerialization applies checkpointing; lowering "
        "makes a Schedule of kernels on planned memory; a target compiles it; calls run it. JAX's devices take the "
        "program from the trace to XLA.",
    )  # fmt: skip
    stages = [
        ("your function\nrun once, on symbols", "gray", ""),
        ("Program\ninstructions named after kernels", "blue", "`specialize: Trace, Recorder"),
        ("simpler Program\nalgebra, layout, common, dead", "blue", "`passes/pipeline.py: optimize"),
        ("Program with things made again\ncheckpointing strategies", "blue", "`rematerialized"),
        ("Schedule\nLoop, Product, ... on memory", "green", "`lowering/lower.py: lower"),
        ("Executable\nnative functions, one arena", "green", "`ScheduleTarget.compile"),
        ("call\nguards, addresses, one native run", "purple", "`Compiled.__call__, fast_path"),
    ]
    before: Box | None = None
    boxes = []
    for number, (text, color, label) in enumerate(stages):
        box = d.box(30, 14 + 92 * number, 290, 56, text, color)
        if before is not None:
            d.arrow(before.at("bottom"), box.at("top"), label=label)
        before = box
        boxes.append(box)
    d.text(30, 652, "Targets: llvm for processors, cuda for PyTorch's GPUs, xla for JAX's devices")
    xla = d.box(470, 300, 220, 70, "function of arrays\n`XlaExecutable\nJAX's devices", "orange")
    d.arrow(
        boxes[1].at("right"),
        (580, 134),
        xla.at("top"),
        color="orange",
    )
    d.text(452, 124, "for the target xla", "middle")
    jit = d.box(470, 474, 220, 56, "`jax.jit\nFunctionTarget.compile", "orange")
    d.arrow(xla.at("bottom"), jit.at("top"), color="orange")
    d.arrow(jit.at("bottom"), (580, 594), boxes[6].at("right"), color="orange")
    return d


def _memory_plan() -> Drawing:
    d = Drawing(
        "memory_plan", 720, 470, "A plan of memory",
        "Calls from left to right; places in the arena from bottom to top. B is made over A by the loop that reads A "
        "last. C takes the place of D, which was read last one call before. E needs a place of its own. The new "
        "parameter is written into the parameter's own memory.",
    )  # fmt: skip
    x0, step = 90, 102
    for number, name in enumerate(["1 Product", "2 Loop", "3 Product", "4 Product", "5 Product", "6 Loop"]):
        d.text(x0 + step * number + step / 2, 30, name, "middle", small=False)
        d.parts.append(
            f'<path d="M {x0 + step * number} 42 L {x0 + step * number} 424" stroke="{LINE}" stroke-opacity="0.4"/>'
        )
    d.text(20, 70, "outputs")
    d.text(20, 130, "inputs")
    d.text(20, 294, "arena")
    d.box(x0 + 5 * step, 48, step, 36, "loss", "pink")
    d.box(x0, 100, 5 * step, 50, "`w\na parameter, read until call 6", "gray")
    d.box(x0 + 5 * step, 100, step, 50, "`w\nin place", "orange")
    d.frame(x0 - 6, 170, 6 * step + 12, 240)
    d.box(x0, 350, step, 50, "A", "blue")
    d.box(x0 + step, 350, 4 * step, 50, "B = tanh(A + b)\nwritten over A, which nobody reads again", "green")
    d.box(x0 + step * 2, 284, 2 * step, 50, "D\nread last by call 4", "purple")
    d.box(x0 + step * 4, 284, 2 * step, 50, "C\nin the block that D had", "blue")
    d.box(x0 + step * 3, 218, 3 * step, 50, "E\nD is still read here: a block of its own", "purple")
    d.text(x0 + 8, 198, "arena_bytes: where the highest block ends")
    d.text(x0, 446, "The calls of a schedule, in their order. A block is free after its last reader.")
    return d


def _backends() -> Drawing:
    d = Drawing(
        "backends", 720, 560, "How a kernel is found",
        "apply asks backends.of for the backend of an array; its namespace xp has the kernel under the operation's "
        "name: its own, the standard's, or the portable form bound to xp.",
    )  # fmt: skip
    top = d.box(200, 12, 320, 54, "`apply(OPERATIONS['silu'], (x,))\nautodiff/apply.py", "orange")
    of = d.box(200, 104, 320, 54, "`backends.of(x._raw)\nby the exact type of the array", "blue")
    kernel = d.box(200, 196, 320, 54, "`backend.xp.silu\nkernel_for: an attribute of Kernels", "blue")
    d.arrow(top.at("bottom"), of.at("top"))
    d.arrow(of.at("bottom"), kernel.at("top"))
    own = d.box(14, 296, 220, 74, "a kernel of its own\n`backends/numpy/\n`StandardBackend.kernels()", "green")
    standard = d.box(250, 296, 220, 74, "of the standard\n`StandardKernels\nNumPy's dtypes, promoted", "green")
    portable = d.box(486, 296, 220, 74, "made of others\n`portable.bind(name, xp)\nx * xp.sigmoid(x)", "pink")
    for box, part in ((own, 0.1), (standard, 0.5), (portable, 0.9)):
        d.arrow(kernel.at("bottom", part), box.at("top"))
    rows = [
        ("`NumpyBackend", "the reference"),
        ("`TorchBackend", "StandardBackend"),
        ("`JaxBackend", "StandardBackend"),
        ("`CupyBackend", "StandardBackend"),
        ("`TraceBackend", "symbols: writes"),
        ("`StackBackend", "vmap: stacks"),
    ]
    for number, (name, what) in enumerate(rows):
        d.box(14 + 234 * (number % 3), 426 + 58 * (number // 3), 222, 50, f"{name}\n{what}", "gray")
    d.text(14, 412, "Backends: each has a namespace xp")
    return d


def _transforms() -> Drawing:
    d = Drawing(
        "transforms", 720, 480, "Levels of transforms",
        "A function under grad, inside jvp, inside vmap: it runs once. Its argument is a dual, whose primal "
        "has the node of grad's variable and a stack for its array. Arguments are lifted on the way in, results "
        "lowered on the way out.",
    )  # fmt: skip
    d.frame(14, 14, 692, 350, "pb.vmap: Running opens a Level, number n")
    d.frame(54, 54, 612, 270, "pb.jvp: Push makes duals of level n + 1")
    d.frame(94, 94, 532, 190, "pb.grad: Pass makes variables, and walks")
    argument = "`x: Dual, level n + 1\n`x.primal: a tensor with the variable's node\n`its array: Stack, level n"
    d.box(134, 132, 452, 120, f"`f(x)\nruns once, for all examples\n{argument}", "blue")
    arrays = d.box(180, 406, 360, 56, "arrays of the caller's library\nwhat comes back is of the same kind", "green")
    d.arrow(arrays.at("left"), (88, 434), (88, 370), color="green")
    d.text(100, 396, "lifted")
    d.arrow((632, 366), (632, 434), arrays.at("right"), color="orange")
    d.text(572, 396, "lowered")
    return d


def _data_walk_grad() -> Drawing:
    d = Drawing(
        "data_walk_grad", 720, 620, "One value through pb.grad",
        "The call makes Arguments, a Pass, variables; the function records tanh, multiply and sum; the seed is ones; "
        "walk visits sum, multiply, tanh; results gives an array back.",
    )  # fmt: skip
    down = [
        ("`grad(f)(x)\nx: a NumPy array", "gray"),
        ("`Arguments\nthe array, as a tensor", "blue"),
        ("`Pass: variable(t)\nan identity node of its own", "blue"),
        ("`f(clone)\nyour function, once", "gray"),
        ("`tanh, multiply, sum\nthree nodes, arrays saved", "blue"),
    ]
    up = [
        ("`owned, lowered_like\na NumPy array again", "gray"),
        ("`Pass.results\none gradient per argument", "orange"),
        ("`sum, multiply, tanh\nbackward(g, *saved) of each", "orange"),
        ("`Pass.gradients, walk\nwrt: the variable's node", "orange"),
        ("`ones_like(loss)\nthe seed", "orange"),
    ]
    boxes = []
    for x, column in ((40, down), (410, up)):
        boxes.append([d.box(x, 40 + 112 * n, 270, 60, text, color) for n, (text, color) in enumerate(column)])
    for above, below in pairwise(boxes[0]):
        d.arrow(above.at("bottom"), below.at("top"))
    d.arrow(boxes[0][4].at("right"), boxes[1][4].at("left"), color="orange", label="loss")
    order = [4, 3, 2, 1, 0]
    for a, b in pairwise(order):
        d.arrow(boxes[1][a].at("top"), boxes[1][b].at("bottom"), color="orange")
    d.text(175, 26, "forward", "middle", small=False)
    d.text(545, 26, "backward", "middle", small=False)
    d.text(40, 584, "Forward, each node keeps what its rule names. Backward, the walk lets go of it")
    d.text(40, 602, "as soon as it has passed the node.")
    return d


def _data_walk_step() -> Drawing:
    d = Drawing(
        "data_walk_step", 720, 560, "Two calls of a compiled step",
        "The first call: no program fits, specialize traces, the program is optimized, lowered, compiled, then run. "
        "The second call: the fast path looks at guard rows and inputs and runs the same native code.",
    )  # fmt: skip
    d.text(180, 28, "First call", "middle", small=False)
    d.text(540, 28, "Second call", "middle", small=False)
    first = [
        ("`Compiled.__call__\nno fast path yet", "purple"),
        ("`specialize\ntrace, guards, inputs found", "blue"),
        ("`guarded\nlast output: all finite?", "blue"),
        ("`Built\noptimize, lower, compile", "green"),
        ("`fast_call\nrows and addresses are set up", "green"),
        ("`Specialization.run\ngather inputs, one native run", "purple"),
    ]
    second = [
        ("`Compiled.__call__\nthere is a fast path", "purple"),
        ("rows of guards\nis all as it was?", "green"),
        ("native run\nloops, products, updates of w", "green"),
        ("the flag is true\ntensors around the outputs", "purple"),
    ]
    for x, column in ((20, first), (400, second)):
        before: Box | None = None
        for number, (text, color) in enumerate(column):
            box = d.box(x, 46 + 84 * number, 300, 54, text, color)
            if before is not None:
                d.arrow(before.at("bottom"), box.at("top"))
            before = box
    long = d.box(400, 466, 300, 54, "`NotImplemented\nthe long way: which guard said no?", "pink")
    d.arrow((700, 157), (712, 157), (712, 493), long.at("right"), color="pink", dashed=True)
    d.text(702, 446, "a guard says no", "end")
    return d


PICTURES: tuple[Callable[[], Drawing], ...] = (
    _layers, _rule_table, _walk, _copy_on_write, _guards, _programs, _memory_plan, _backends, _transforms,
    _data_walk_grad, _data_walk_step,
)  # fmt: skip


def pictures() -> dict[str, str]:
    """The files by their names."""
    return {f"{drawing.name}.svg": drawing.svg() for drawing in (make() for make in PICTURES)}


def main(arguments: Iterable[str] | None = None) -> None:
    parser: Any = argparse.ArgumentParser(prog="python -m website.drawings", description="Write the drawn pictures.")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER")
    folder = parser.parse_args(arguments).out
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pictures().items():
        (folder / name).write_text(content)


if __name__ == "__main__":
    main()
