"""What type checkers say of the programs here, of lines with mistakes, and of every public name.

`make types` runs both checkers on an installed wheel: `python tests/typing/checking.py`. The tests run mypy alone, on
the source.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pullback as pb

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
MISTAKES = HERE / "mistakes" / "mistakes.py"
#: Modules whose names people complete and look up.
PUBLIC = {
    "pb": pb,
    "pb.backends": pb.backends,
    "pb.data": pb.data,
    "pb.fft": pb.fft,
    "pb.linalg": pb.linalg,
    "pb.models": pb.models,
    "pb.nn": pb.nn,
    "pb.nn.init": pb.nn.init,
    "pb.optim": pb.optim,
    "pb.optim.schedules": pb.optim.schedules,
    "pb.peft": pb.peft,
    "pb.quant": pb.quant,
    "pb.random": pb.random,
    "pb.train": pb.train,
    "pb.train.metrics": pb.train.metrics,
    "pb.tree": pb.tree,
    "pb.typing": pb.typing,
}

Lines = dict[str, dict[int, str]]  # what is reported, by file and line


def gather(folder: Path) -> None:
    """Put what is checked into a folder that has nothing else: a program for every file, all public names in one."""
    for path in (*PROGRAMS, MISTAKES):
        shutil.copy(path, folder)
    names = [f"{module}.{name}" for module, namespace in PUBLIC.items() for name in namespace.__all__]
    uses = [f"object_{number} = {name}" for number, name in enumerate(names)]
    (folder / "names.py").write_text("\n".join(["import pullback as pb", "", *uses, ""]))


def wrong_lines(path: Path) -> set[int]:
    """The lines of a file that are marked as mistakes."""
    lines = path.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("  # wrong")}


def mypy(folder: Path, source: Path | None = None) -> Lines:
    """What `mypy --strict` reports; of the package in `source`, or of the one that is installed."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={os.devnull}"]
    command += ["--no-error-summary", "--hide-error-context", "--no-pretty", "--follow-imports=silent"]
    environment = {**os.environ, "MYPYPATH": "" if source is None else str(source)}
    result = subprocess.run([*command, "."], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    found: Lines = defaultdict(dict)
    for line in result.stdout.splitlines():
        match = re.match(r"(.+?):(\d+): error: (.*)", line)
        if match is not None:
            found[match[1]][int(match[2])] = match[3]
    return found


def pyright(folder: Path) -> Lines:
    """What pyright reports in its standard mode of the package that is installed."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "."]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    found: Lines = defaultdict(dict)
    for entry in json.loads(result.stdout)["generalDiagnostics"]:
        if entry["severity"] == "error":
            found[Path(entry["file"]).name][entry["range"]["start"]["line"] + 1] = entry["message"]
    return found


def main() -> int:
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gather(folder)
        for checker, found in (("mypy --strict", mypy(folder)), ("pyright", pyright(folder))):
            print(f"{checker}, with pullback in {Path(pb.__file__).parent}")
            for path in sorted(folder.glob("*.py")):
                marked, reported = wrong_lines(path), found.get(path.name, {})
                missed, mistaken = marked - set(reported), set(reported) - marked
                mistakes = f"{len(marked) - len(missed)} of {len(marked)} mistakes found, " if marked else ""
                print(f"    {path.name:28} {mistakes}{len(mistaken)} errors")
                for line in sorted(missed | mistaken):
                    print(f"        {line}: {reported.get(line, 'a mistake that is not found')}")
                failures += len(missed) + len(mistaken)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
