"""Programs lowered for the CUDA target compute the same as run instruction by instruction, in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends import for_device
from pullback.backends.torch_memory import host_array, on_host
from pullback.compiler.lowering.lower import lower
from pullback.compiler.program import Program
from pullback.targets.cuda.executable import Executable
from pullback.targets.cuda.target import TARGET
from pullback.targets.custom_kernels import Scatter
from tests.compiler import meaning

from ..lowering.building import Building
from ..lowering.random_programs import random_program
from .interpreted import torch


def checked(program: Program, inputs: list[Any]) -> Executable:
    """An executable of a program that computes the same as the interpreter, twice."""
    schedule = lower(program, TARGET.abilities)
    executable = TARGET.compile(schedule, for_device("torch:cpu")[0], torch.device("cpu"))
    for _ in range(2):
        wanted = meaning.run(program, inputs)
        given = [on_host(np.array(array)) for array in inputs]
        outputs = [on_host(np.zeros(value.shape, value.dtype)) for value in program.outputs]
        with np.errstate(all="ignore"):
            executable.run([*given, *[torch.zeros(())] * (len(schedule.inputs) - len(given))], outputs)
        updated = [given[program.inputs.index(target)] for target, _ in program.updates]
        for made, theirs in zip((*outputs, *updated), (*wanted[0], *wanted[1])):
            _compare(host_array(made), theirs)
    return executable


def _compare(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if ours.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs)
        return
    tolerance = {2: 2e-2, 4: 2e-5, 8: 1e-12, 16: 1e-12}[ours.dtype.itemsize]
    ours, theirs = (x.astype(np.float64) if x.dtype.itemsize == 2 else x for x in (ours, theirs))
    scale = max(1.0, float(np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs))))
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("is_read_again", [False, True])
def test_rows_are_added_in_place_where_nobody_needs_what_was_there(is_read_again: bool) -> None:
    b = Building()
    x, rows, index = b.input(np.ones((9, 5))), b.input(np.arange(15.0).reshape(3, 5)), b.input(np.array([4, -1, 4]))
    onto = b.exp(x)
    total = b.index_add(onto, rows, (index,))
    outputs = [b.tanh(total), *([b.matmul(b.matrix_transpose(onto), onto)] if is_read_again else [])]
    program = b.program(outputs)
    (call,) = [call for call in lower(program, TARGET.abilities).calls if isinstance(call.kernel, Scatter)]
    assert (call.reads[0].buffer is call.writes[0].buffer) is not is_read_again
    checked(program, b.given())


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_programs_agree_with_the_interpreter(first: int) -> None:
    for seed in range(first, first + 20):
        program, inputs = random_program(seed, 4 + seed % 27)
        checked(program, inputs)


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_programs_of_several_dtypes_agree(first: int) -> None:
    for seed in range(first, first + 20):
        program, inputs = random_program(1000 + seed, 4 + seed % 27, ("float32", "float64", "int32", "bool", "float16"))
        checked(program, inputs)
