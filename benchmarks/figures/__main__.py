"""`python -m benchmarks.figures run` measures and keeps the run; `... tables` puts it into the pages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .run import BENCHMARKS, KEPT, Run, measure
from .tables import PAGES, write


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.figures", description="The figures of README and site, from one run."
    )
    parser.add_argument("what", choices=("run", "tables"), help="measure and keep, or put what was kept into pages")
    parser.add_argument("names", nargs="*", metavar="NAME", help="measure only these, and keep the others as they are")
    parser.add_argument("--file", type=Path, default=KEPT, help="where the run is kept")
    parser.add_argument("--quick", action="store_true", help="once each, to see that it runs; the numbers mean nothing")
    options = parser.parse_args(arguments)
    if options.quick and options.file == KEPT:
        parser.error("--quick measures nothing: name another --file")
    if options.what == "run":
        unknown = set(options.names) - set(BENCHMARKS)
        if unknown:
            parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
        run = measure(options.names or BENCHMARKS, options.quick)
        (Run.read(options.file).with_again(run) if options.names else run).write(options.file)
        return
    changed = write(Run.read(options.file))
    print(f"{', '.join(changed) or 'nothing'} changed, of {', '.join(PAGES)}", file=sys.stderr)


if __name__ == "__main__":
    main()
