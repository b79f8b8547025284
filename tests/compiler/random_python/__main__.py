"""`python -m tests.compiler.random_python FIRST COUNT`: run programs, print what fails, count constructs."""

from __future__ import annotations

import sys
import time
from collections import Counter

from . import failure_of, write_program


def main(first: int, count: int, show: int = 3) -> int:
    """Run the programs of `count` seeds from `first` on; the source of the first few that fail is printed."""
    used: Counter[str] = Counter()
    failures: dict[int, str] = {}
    start = time.perf_counter()
    for seed in range(first, first + count):
        program = write_program(seed)
        used += program.used
        reason = failure_of(program)
        if reason is not None:
            failures[seed] = reason
            print(f"seed {seed}: {reason[:600]}", flush=True)
            if len(failures) <= show:
                print(program.source[program.source.index("def f(x, tree") :], flush=True)
        done = seed - first + 1
        if done % 100 == 0:
            seconds = time.perf_counter() - start
            print(f"{done} programs, {len(failures)} failed, {seconds:.0f} s", flush=True)
    for construct, times in sorted(used.items()):
        print(f"{times:7} {construct}")
    print(f"{count} programs, {len(failures)} failed: {sorted(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
