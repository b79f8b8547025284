"""Run all cases and say how they came out: `python -m tests.compiler.guards.report [part of a name ...]`."""

from __future__ import annotations

import sys
from collections import Counter
from time import perf_counter

from . import cases  # noqa: F401  (registers them)
from .harness import CASES, OUTCOMES, judge


def main(parts: list[str]) -> None:
    began = perf_counter()
    chosen = [one for one in CASES.values() if not parts or any(part in f"{one.file} {one.name}" for part in parts)]
    judged = [(one, judge(one)) for one in chosen]
    print(f"{len(chosen)} cases, {sum(one.refused for one in chosen)} of them declared refused")
    counts = Counter(judgement.outcome for _, judgement in judged)
    for outcome in OUTCOMES:
        print(f"  {counts[outcome]:4} {outcome}")
    unexpected = [(one, judgement) for one, judgement in judged if judgement.outcome not in one.accepted]
    print(f"\n{len(unexpected)} not as declared")
    file = ""
    for one, judgement in unexpected:
        if one.file != file:
            file = one.file
            total = sum(other.file == file for other in chosen)
            print(f"\n{file}: {sum(other.file == file for other, _ in unexpected)} of {total}")
        print(f"  {one.name}: {judgement.outcome}: {judgement.detail:.160}")
    print(f"\n{perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
