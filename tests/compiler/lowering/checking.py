"""Lower a program, run it both ways, and compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.lowering.lower import lower
from pullback.compiler.program import Program
from pullback.targets.kernels import Host, Loop, Product, Schedule
from pullback.targets.protocol import Abilities
from tests.compiler import meaning

from . import reference

#: Of a target where passes over memory and launches cost more than arithmetic.
FAST = Abilities(reads_once=True, small_loop=1 << 17)


def checked(program: Program, inputs: list[Any], exact: bool = False, abilities: Any = None) -> Schedule:
    """The schedule of a program, for a target with these abilities, that computes the same as the interpreter."""
    schedule = lower(program) if abilities is None else lower(program, abilities)
    wanted = meaning.run(program, inputs)
    made = reference.run(program, schedule, [np.array(array) for array in inputs])
    for ours, theirs in zip((*made[0], *made[1]), (*wanted[0], *wanted[1])):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if exact or ours.dtype.kind in "biu":
            np.testing.assert_array_equal(ours, theirs)
        else:
            tolerance = {2: 2e-2, 4: 2e-5, 8: 1e-12, 16: 1e-12}[ours.dtype.itemsize]
            np.testing.assert_allclose(
                ours.astype(np.float64) if ours.dtype.itemsize == 2 else ours,
                theirs.astype(np.float64) if ours.dtype.itemsize == 2 else theirs,
                rtol=tolerance,
                atol=tolerance * max(1.0, float(np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs)))),
            )
    return schedule


def kinds(schedule: Schedule) -> str:
    """The calls in short: "L" for a loop, "P" for a product, "H" for a host call, "W" for others."""
    names = {Loop: "L", Product: "P", Host: "H"}
    return "".join(names.get(type(call.kernel), "W") for call in schedule.calls)
