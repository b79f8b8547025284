"""Loops made at random: every kind of step, access and write, whole and in parts, against NumPy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.targets.kernels import Loop
from pullback.targets.llvm.loops import emit_loop as loops

from .evaluation import FLOATS, INTEGERS, Compiled, RandomLoop

DTYPES = {
    "float32": ("float32",),
    "common": ("float32", "int32", "bool"),
    "floats": FLOATS,
    "integers": (*INTEGERS, "bool"),
    "wide": ("float64", "int64", "bool"),
    "narrow": ("float32", "float16", "bfloat16", "uint8"),
}
SEEDS = 16


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("dtypes", DTYPES)
def test_a_random_loop_computes_what_numpy_does(dtypes: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *dtypes.encode()])
    RandomLoop(rng, DTYPES[dtypes], plain=seed % 3 == 0).check(lambda loop, arrays: Compiled(loop)(arrays))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("dtypes", DTYPES)
def test_a_random_loop_can_be_run_in_parts(dtypes: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    rng = np.random.default_rng([seed, 1, *dtypes.encode()])

    def run(loop: Loop, arrays: list[np.ndarray]) -> None:
        compiled = Compiled(loop)
        units, grain = compiled.emitted.units, compiled.emitted.grain
        inside = [int(cut) // grain * grain for cut in rng.integers(0, units + 1, 2)]
        compiled.in_parts(arrays, sorted({0, *inside, units}))

    RandomLoop(rng, DTYPES[dtypes], plain=seed % 3 == 0).check(run)


@pytest.mark.parametrize("seed", range(8))
def test_large_random_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SHARED_COST", 0.0)
    rng = np.random.default_rng([seed, 2])

    def run(loop: Loop, arrays: list[np.ndarray]) -> None:
        compiled = Compiled(loop)
        units, grain = compiled.emitted.units, compiled.emitted.grain
        compiled.in_parts(arrays, sorted({0, units // 3 // grain * grain, units}))

    RandomLoop(rng, ("float32", "int32"), plain=seed % 2 == 0, big=True).check(run)
