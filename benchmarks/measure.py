"""What a benchmark gives: measurements; and how functions are timed beside each other."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Measurement:
    """One number. The fields are those of a line of `--json`."""

    benchmark: str
    workload: str
    system: str
    metric: str
    value: float
    unit: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int  # turns that each system gets; the best one counts
    seconds: float  # how long a turn takes, about

    @property
    def is_quick(self) -> bool:
        return self.seconds == 0


# Many short turns: on a busy machine some of them go through without an interruption.
THOROUGH = Effort(rounds=50, seconds=0.01)
QUICK = Effort(rounds=1, seconds=0.0)

# After a matrix product, BLAS threads spin before they sleep (OpenBLAS's for 2**28 cycles, a tenth of a second).
# Whoever comes next must not pay for that: nobody begins before no thread of the process has anything to do.
_SLICE_SECONDS = 0.01
_MOST_SLICES = 100


def best_times(functions: Mapping[str, Callable[[], Any]], effort: Effort) -> dict[str, float]:
    """The best time per call of each function in microseconds; they take turns, in another order each round."""
    loops = {name: _loops_for(function, effort.seconds) for name, function in functions.items()}
    best = dict.fromkeys(functions, float("inf"))
    # What was imported before is no garbage: keep the collector from going through the peers' modules.
    gc.collect()
    gc.freeze()
    try:
        order = list(functions)
        for _ in range(effort.rounds):
            for name in order:
                best[name] = min(best[name], _turn(functions[name], loops[name], effort))
            order.append(order.pop(0))
    finally:
        gc.unfreeze()
    return {name: seconds * 1e6 for name, seconds in best.items()}


def _loops_for(function: Callable[[], Any], seconds: float) -> int:
    """How many calls take about `seconds`, found by trying; this also warms the function up."""
    function()
    loops = 1
    while True:
        taken = _timed(function, loops)
        if taken >= seconds:
            return loops
        loops = max(loops + 1, min(10 * loops, int(loops * seconds / max(taken, 1e-9))))


def _turn(function: Callable[[], Any], loops: int, effort: Effort) -> float:
    if not effort.is_quick:
        gc.collect()
        _settle()
        function()
    return _timed(function, loops) / loops


def _settle() -> None:
    """Wait until all threads of the process have been idle for a moment."""
    for _ in range(_MOST_SLICES):
        before = time.process_time()
        time.sleep(_SLICE_SECONDS)
        if time.process_time() - before < _SLICE_SECONDS / 10:
            return


def _timed(function: Callable[[], Any], loops: int) -> float:
    turns = range(loops)
    start = time.perf_counter()
    for _ in turns:
        function()
    return time.perf_counter() - start
