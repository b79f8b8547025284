"""`python -m benchmarks [NAME ...] [--json] [--quick]`"""

from __future__ import annotations

import argparse
import json
import sys

from . import (
    audits,
    chain,
    checkpointing,
    compiled,
    deep,
    eager_mlp,
    eager_networks,
    finetune,
    finetune_curve,
    import_time,
    memory,
    mlp,
    optimizers,
    peers,
    per_example,
    report,
    scan,
    second_order,
    torch_cpu,
    xla,
)
from .measure import QUICK, THOROUGH

BENCHMARKS = {
    module.NAME: module
    for module in (
        chain,
        eager_mlp,
        eager_networks,
        mlp,
        optimizers,
        memory,
        checkpointing,
        deep,
        second_order,
        per_example,
        compiled,
        scan,
        xla,
        torch_cpu,
        finetune,
        finetune_curve,
        audits,
        import_time,
    )
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Pullback beside its peers, in one run.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    parser.add_argument("--quick", action="store_true", help="once each, to see that it runs; the numbers mean nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    effort = QUICK if options.quick else THOROUGH
    for name in options.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        absent = peers.missing(benchmark.SYSTEMS)
        if absent:
            print(f"{name}: left out because not installed: {', '.join(absent)}", file=sys.stderr)
        if options.json:
            for measurement in benchmark.run(effort):
                print(json.dumps(measurement.as_dict()), flush=True)
        else:
            print(f"\n== {name}: {benchmark.__doc__.splitlines()[0]}\n", flush=True)
            print(report.table(benchmark.run(effort), getattr(benchmark, "BASELINE", None)))
            for note in benchmark.NOTES:
                print(f"({note})")


if __name__ == "__main__":
    main()
