"""Runs the code of a page, from top to bottom in one process, and collects what it prints and draws.

`python -m website.execution PAGE.md --out FOLDER` shows what a page prints, and writes its figures.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import types
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ROOT = Path(__file__).parents[1]
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|sh)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
_MOST_LINES = 40  # of what a shell command prints


class PageError(Exception):
    """A block of a page that does not run, or does not print what the page says."""


@dataclass(frozen=True)
class Block:
    """A fence with code that is run."""

    language: str  # "python" or "sh"
    code: str
    line: int  # of its first line of code, in the page, from 0
    end: int  # where the fence ends in the page's text
    indent: str

    @property
    def has_prompts(self) -> bool:
        return ">>>" in self.code


@dataclass
class Output:
    """What a block has made: its text, and its figures as pairs of a title and an SVG picture."""

    text: str = ""
    figures: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Run:
    """What a page has made, block by block, and where."""

    outputs: list[Output]
    seconds: float
    machine: str


def blocks(text: str) -> list[Block]:
    """The fences of a page that are run, in their order."""
    found = []
    for match in _FENCE.finditer(text):
        line = text[: match.start("code")].count("\n")
        code = textwrap.dedent(match["code"])
        found.append(Block(match["language"], code, line, match.end(), match["indent"]))
    return found


def run_here(page: Path, pictures: Path | None = None) -> Iterator[Output]:
    """Run a page's blocks in this process; files that they write go to the working folder.

    Figures are written to the folder `pictures`, too, as PNG.
    """
    # A module of its own: what looks a function's module up, as pickling and dataclasses do, finds the page's.
    module = types.ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module
    try:
        for block in blocks(page.read_text()):
            output = _run(block, page, vars(module))
            output.figures = list(_figures(pictures, f"{page.stem}-{block.line + 1}"))
            yield output
    finally:
        del sys.modules[module.__name__]


def _run(block: Block, page: Path, scope: dict[str, Any]) -> Output:
    if block.language == "sh":
        return Output(_shell(block, page))
    if block.has_prompts:
        test = doctest.DocTestParser().get_doctest(block.code, scope, page.name, str(page), block.line)
        test.globs = scope  # it has made a copy, which functions of other blocks would not see
        check(test)
        return Output()
    source = "\n" * block.line + block.code  # errors and warnings name the page's own lines
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(page), "exec"), scope)
    return Output(printed.getvalue())


def check(test: doctest.DocTest) -> None:
    """Run examples with prompts, and fail where they print something else."""
    import numpy as np

    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    with np.errstate(all="ignore"):  # some show what happens at the edge of a domain
        runner.run(test, out=report.append, clear_globs=False)
    if report:
        raise PageError("".join(report))


def _shell(block: Block, page: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    environment = os.environ | {"PATH": path, "PYTHONPATH": source, "COLUMNS": "100"}
    script = f'pullback() {{ "{sys.executable}" -m pullback "$@"; }}\nset -e\n{block.code}'
    done = subprocess.run(
        ["bash", "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise PageError(f"{page.name}:{block.line + 1}: exit code {done.returncode}\n{done.stdout}")
    lines = done.stdout.replace(f"{os.getcwd()}/", "").splitlines()  # the folder is another one each time
    return "".join(f"{line}\n" for line in ["..."] * (len(lines) > _MOST_LINES) + lines[-_MOST_LINES:])


def _figures(pictures: Path | None, name: str) -> Iterator[tuple[str, str]]:
    """The open figures of matplotlib, where a page uses it; they are closed."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    for number in pyplot.get_fignums() if pyplot else ():
        figure = pyplot.figure(number)
        titles = [axes.get_title() or axes.get_ylabel() for axes in figure.axes]
        picture = io.StringIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
        if pictures:
            figure.savefig(pictures / f"{name}-{number}.png", facecolor="white", transparent=False)
        pyplot.close(figure)
        yield ", ".join(dict.fromkeys(filter(None, titles))) or "plot", picture.getvalue()


def run_alone(page: Path, timeout: float = 300.0) -> Run:
    """Run a page in a process and an empty folder of its own."""
    with tempfile.TemporaryDirectory(prefix="pullback-page-") as folder:
        result = Path(folder) / ".page.json"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "website.execution", str(page.resolve()), "--write", str(result)],
            cwd=folder, env=os.environ | _environment(), capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        if done.returncode:
            raise PageError(f"{page}: {done.stderr.strip() or done.stdout.strip()}")
        content = json.loads(result.read_text())
    outputs = [Output(o["text"], [(title, picture) for title, picture in o["figures"]]) for o in content["outputs"]]
    return Run(outputs, content["seconds"], content["machine"])


def _environment() -> dict[str, str]:
    """Variables of a process that runs a page: how figures look, and where we are found."""
    return {
        "MPLBACKEND": "svg",
        "MATPLOTLIBRC": str(ROOT / "website" / "assets" / "matplotlibrc"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(":;"),
    }


def versions_and_machine() -> str:
    """What figures of a run depend on, for people."""
    import numpy as np

    import pullback as pb

    versions = f"Pullback {pb.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    others = [f"{shown} {sys.modules[name].__version__}" for name, shown in _OTHERS.items() if name in sys.modules]
    return f"{', '.join([versions, *others])}, on {machine.machine()}"


_OTHERS = {"torch": "PyTorch", "jax": "JAX", "scipy": "SciPy", "sklearn": "scikit-learn"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m website.execution", description="Run the code of a page.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where figures go, as PNG")
    parser.add_argument("--write", type=Path, metavar="FILE", help=argparse.SUPPRESS)  # see `run_alone`
    options = parser.parse_args(arguments)
    page = options.page.resolve()
    start = time.perf_counter()
    if options.write:
        outputs = list(run_here(page))
        run = Run(outputs, time.perf_counter() - start, versions_and_machine())
        options.write.write_text(json.dumps(asdict(run)))
        return
    pictures = options.out and options.out.resolve()
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    os.environ.update(_environment())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block, output in zip(blocks(page.read_text()), run_here(page, pictures)):
            print(
                f"--- {page.name}:{block.line + 1}\n{output.text}",
                *(f"[{title}]\n" for title, _ in output.figures),
                end="",
            )
    print(f"--- {time.perf_counter() - start:.1f} s: {versions_and_machine()}")


if __name__ == "__main__":
    main()
