"""The tables: which measurements stand in which cell, and the pages where they are put."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .run import ROOT, Run

#: Pages with tables, each between two comments: `<!-- figures: NAME -->` and `<!-- end of figures -->`.
PAGES = ("README.md", "docs/benchmarks.md", "docs/checkpointing.md", "docs/mlp.md")
_PLACE = re.compile(r"<!-- figures: (?P<name>[\w-]+) -->\n(?P<content>.*?)<!-- end of figures -->", re.S)


@dataclass(frozen=True)
class Row:
    """A line: what people call it, and where its measurements are."""

    label: str
    benchmark: str
    workload: str
    metric: str = "time"
    ours: str = "pullback"  # the system whose value is shown


@dataclass(frozen=True)
class Table:
    """Rows, the value of Pullback in the first column, its ratio to each peer in the others."""

    rows: tuple[Row, ...]
    peers: dict[str, tuple[str, ...]]  # title -> the names that this peer has in benchmarks
    title: str = "Pullback"
    first: str = ""

    def markdown(self, run: Run) -> str:
        titles = [self.first, self.title, *(f"of {peer}" for peer in self.peers)]
        lines = [_line(titles), "|" + "---|" * len(titles)]
        for row in self.rows:
            own = run[row.benchmark, row.workload, row.ours, row.metric]
            beside = {
                m.system: m.value
                for m in run.measurements
                if (m.benchmark, m.workload, m.metric) == (row.benchmark, row.workload, row.metric)
            }
            cells = [row.label, shown(own.value, own.unit)]
            for names in self.peers.values():
                values = [value for system, value in beside.items() if system in names]
                cells.append(ratio(own.value / min(values)) if values else "")
            lines.append(_line(cells))
        return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def shown(value: float, unit: str) -> str:
    """A value for people, with three digits.

    >>> shown(1234.5, "us"), shown(0.512, "us"), shown(5.25 * 2**20, "bytes")
    ('1.23 ms', '0.512 µs', '5.25 MiB')
    """
    if unit == "us":
        scale = next((pair for pair in ((1e6, "s"), (1e3, "ms")) if value >= pair[0]), (1.0, "µs"))
    elif unit == "bytes":
        scale = next((pair for pair in ((2.0**30, "GiB"), (2.0**20, "MiB")) if value >= pair[0]), (1024.0, "KiB"))
    else:
        scale = (1.0, {"ratio": "", "ns": "ns"}.get(unit, unit))
    return f"{_three_digits(value / scale[0])} {scale[1]}".rstrip()


def ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.05 else f"{value:.3f}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


TORCH, JAX, AUTOGRAD = {"PyTorch's": ("torch",)}, {"`jax.jit`": ("jax", "jax.jit")}, {"autograd's": ("autograd",)}

EAGER = Table(
    (
        Row("chain of 100 small operations, forward and backward", "chain", "100 operations"),
        Row("training step 2-16-16-1, batch 1", "eager-mlp", "tiny 2-16-16-1, batch 1"),
        Row("training step 2-64-64-1, batch 32", "eager-mlp", "small 2-64-64-1, batch 32"),
        Row("training step 784-512-512-10, batch 128", "eager-mlp", "mnist 784-512-512-10, batch 128"),
        Row("training step 8 x 256, batch 64", "eager-mlp", "deep 8 x 256, batch 64"),
        Row("graph 100,000 deep, forward and backward", "deep", "depth 100000"),
        Row("peak memory, 20 layers, all frozen but the last", "memory", "all frozen but the last", "memory"),
        Row("peak memory, 20 layers, none frozen", "memory", "none frozen", "memory"),
        Row("`import`", "import", "fresh process"),
    ),
    {**TORCH, **AUTOGRAD},
)
NETWORKS = Table(
    (
        Row("CNN, 3-32-64-128 with batch norm and pooling, 32 x 3 x 32 x 32", "eager-networks", "cnn"),
        Row("LSTM 64-128, 64 steps, batch 32", "eager-networks", "lstm"),
        Row("depthwise 3 x 3 and 1 x 1, 16 x 32 x 32 x 32", "eager-networks", "depthwise"),
        Row("transformer encoder, 4 layers, width 256, 8 x 64 tokens", "eager-networks", "encoder"),
        Row("512-2048-2048-512, GELU, layer norm, batch 256", "eager-networks", "wide"),
        Row("GPT, 4 layers, width 128, 8 x 128 tokens, AdamW", "eager-networks", "gpt"),
    ),
    TORCH,
    first="eager training step",
)
COMPILED = Table(
    (
        Row("2-16-16-1, batch 1, SGD", "compiled", "mlp-tiny"),
        Row("2-64-64-1, batch 32, SGD", "compiled", "mlp-small"),
        Row("784-512-512-10, batch 128, SGD", "compiled", "mlp-mnist"),
        Row("8 x 256, batch 64, SGD", "compiled", "mlp-deep"),
        Row("GPT, 4 layers, width 128, 8 x 128 tokens, AdamW", "compiled", "gpt"),
        Row("CNN, as above", "compiled", "cnn"),
        Row("LSTM, as above", "compiled", "lstm"),
        Row("depthwise, as above", "compiled", "depthwise"),
        Row("encoder, as above", "compiled", "encoder"),
        Row("wide, as above", "compiled", "wide"),
        Row("scan of 1024 steps, 4 x 256, gradients", "compiled", "scan"),
        Row("RNN of 1000 steps, 64-128, batch 32, SGD", "compiled", "recurrence"),
        Row("compiling the GPT step", "compiled", "gpt", "compile"),
        Row("the same from the disk, in another process", "compiled", "gpt", "cached"),
        Row("peak memory of the GPT step", "compiled", "gpt", "memory"),
    ),
    {**JAX, "`torch.compile`": ("torch.compile",), "PyTorch": ("torch",), "products or copies alone": ("floor",)},
)
MLP = Table(
    tuple(
        Row(f"{what}, batch {batch}", "mlp", f"batch {batch}", what)
        for batch in (1, 8, 32, 128)
        for what in ("forward", "gradients", "step")
    ),
    {"NumPy by hand": ("numpy",), **TORCH},
    title="`pb.Mlp`",
    first="128-256-256-10",
)
TRANSFORMS = Table(
    (
        Row("Hessian of Rosenbrock's function of 10 numbers", "second-order", "hessian of 10"),
        Row("the same of 100 numbers", "second-order", "hessian of 100"),
        Row("a product with the Hessian, 100 numbers", "second-order", "product of 100"),
        Row("gradients of 256 examples, 32-64-10", "per-example", "gradients, 32-64-10, batch 256"),
        Row("the same, compiled", "per-example", "gradients, 32-64-10, batch 256", ours="pullback.compile"),
        Row("norms of the gradients of 256 examples, 784-512-10", "per-example", "norms, 784-512-10, batch 256"),
        Row("the same, compiled", "per-example", "norms, 784-512-10, batch 256", ours="pullback.compile"),
    ),
    {**TORCH, **AUTOGRAD, **JAX},
)
SCANS = Table(
    (
        Row("linear scan, 1024 steps, 4 x 256, gradients, compiled", "scan", "scan"),
        Row("the same, eager", "scan", "scan", ours="pullback eager"),
        Row("selective scan, 512 steps, 2 x 128, 16 states, gradients, compiled", "scan", "selective"),
        Row("the same, eager", "scan", "selective", ours="pullback eager"),
        Row("one step of a stream through two layers of Mamba of width 64", "scan", "stream"),
        *(
            Row(f"a number of a scan of {length:,} steps, 16 channels", "scan", f"length {length}")
            for length in (1_000, 10_000, 100_000, 1_000_000)
        ),
    ),
    {**JAX, "PyTorch's": ("torch",), "copying the same bytes": ("floor",)},
)
TORCH_CPU = Table(
    (
        Row("GPT as above, eager", "torch-cpu", "gpt-eager", ours="torch:cpu"),
        Row("GPT as above, compiled", "torch-cpu", "gpt", ours="torch:cpu"),
        Row("784-512-512-10, batch 128, compiled", "torch-cpu", "mlp-mnist", ours="torch:cpu"),
    ),
    {**TORCH, "the `numpy` device's": ("numpy",)},
    title="on `torch:cpu`",
)
XLA = Table(
    (
        Row("GPT as above", "xla", "gpt"),
        Row("784-512-512-10, batch 128", "xla", "mlp-mnist"),
    ),
    JAX,
    title="on `jax:cpu`, compiled",
)
FINETUNE = Table(
    (Row("time of a step", "finetune", "lora"), Row("peak memory", "finetune", "lora", "memory")),
    {"`transformers` with `peft`": ("torch",)},
)
STRATEGIES = {
    "plain": "plain",
    "balanced": "`BalancedCheckpointing()`",
    "budget": "`BudgetCheckpointing(half of what is saved)`",
    "region": "`pb.checkpoint` around every block",
}


def checkpointing(run: Run) -> str:
    """Memory and time under each strategy, eager and compiled, as shares of what plain recording takes."""
    columns = (
        ("saved bytes", "12 blocks", "memory"),
        ("time", "12 blocks", "time"),
        ("program's memory, compiled", "12 blocks compiled", "arena"),
        ("time, compiled", "12 blocks compiled", "time"),
    )
    lines = [
        _line(["12 transformer blocks, forward and backward", *(title for title, _, _ in columns)]),
        "|" + "---|" * (1 + len(columns)),
    ]
    for system, label in STRATEGIES.items():
        cells = [label]
        for _, workload, metric in columns:
            own, plain = (run["checkpointing", workload, name, metric] for name in (system, "plain"))
            cells.append(shown(own.value, own.unit) if system == "plain" else ratio(own.value / plain.value))
        lines.append(_line(cells))
    return "\n".join(lines)


def guard(run: Run) -> str:
    """What the numerics guard costs in training steps."""
    found = [m for m in run.measurements if (m.benchmark, m.metric) == ("eager-mlp", "guard cost")]
    return "\n".join(
        [_line(["training step", "with the guard"]), "|---|---|", *(_line([m.workload, ratio(m.value)]) for m in found)]
    )


def source(run: Run) -> str:
    """Where the figures are from: one sentence below tables."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    again = "".join(f", `{name}` once more at {commit}" for name, commit in run.again.items())
    return (
        f"Measured on {run.day} at commit {run.commit}{again}, two threads on {run.machine}, Python {run.python}, "
        f"{versions}."
    )


TABLES: dict[str, Callable[[Run], str]] = {
    "eager": EAGER.markdown,
    "networks": NETWORKS.markdown,
    "compiled": COMPILED.markdown,
    "mlp": MLP.markdown,
    "transforms": TRANSFORMS.markdown,
    "scans": SCANS.markdown,
    "torch-cpu": TORCH_CPU.markdown,
    "xla": XLA.markdown,
    "finetune": FINETUNE.markdown,
    "checkpointing": checkpointing,
    "guard": guard,
    "source": source,
}


def filled(page: str, run: Run) -> str:
    """The text of a page with its tables made anew."""
    known = ", ".join(TABLES)

    def put(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in TABLES:
            raise ValueError(f"<!-- figures: {name} -->: there is no table {name}; there are {known}")
        return f"<!-- figures: {name} -->\n{TABLES[name](run)}\n<!-- end of figures -->"

    return _PLACE.sub(put, page)


def write(run: Run, root: Path = ROOT) -> list[str]:
    """Make the tables of all pages anew; the names of the pages that have changed."""
    texts = {name: (root / name).read_text() for name in PAGES}
    pages = {name: filled(text, run) for name, text in texts.items()}
    changed = [name for name in PAGES if pages[name] != texts[name]]
    for name in changed:
        (root / name).write_text(pages[name])
    return changed
