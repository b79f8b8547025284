"""Long loops on the CUDA target, in Triton's interpreter: every step is launched, by kernels that are made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.compiler.iteration import iterations
from pullback.functions import traced_control_flow
from pullback.targets.cuda.executable import Executable

from ...control_flow.test_compiled import differentiated
from ...control_flow.test_rolled import cell, compare, program_of, random
from ..test_random_programs import check as check_random
from . import interpreted  # noqa: F401  (gives the interpreter its functions)

DEVICE = "torch:cpu"


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(targets._MODULES, DEVICE, "cuda.target")
    monkeypatch.setattr(traced_control_flow, "LONGEST_UNROLLED", 2)
    with np.errstate(all="ignore"):
        yield


def tensor(*shape: int) -> pb.Tensor:
    return pb.tensor(random(*shape), device=DEVICE)


@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_derivatives(reverse: bool) -> None:
    def f(u: pb.Tensor, start: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        last, states = pb.scan(cell(u), start, xs, reverse=reverse)
        return (states * states).sum() + last.sum()

    arguments = tensor(3, 3), tensor(2, 3), tensor(4, 2, 3)
    eager = differentiated(f)
    compiled = pb.compile(eager)
    for _ in range(2):
        compare(compiled(*arguments), eager(*arguments))
    assert len(iterations(program_of(compiled))) == 4


def test_kernels_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Executable] = []
    start = Executable.__init__
    monkeypatch.setattr(Executable, "__init__", lambda self, *args: (start(self, *args), made.append(self))[0])
    sizes = []
    for steps in (4, 12):
        compiled = pb.compile(lambda u, start, xs: pb.scan(cell(u), start, xs))
        arguments = tensor(3, 3), tensor(2, 3), tensor(steps, 2, 3)
        compare(compiled(*arguments), pb.scan(cell(arguments[0]), *arguments[1:]))
        sizes.append((len(made[-1]._kernels), compiled.memory["arena"]))
        assert len(made[-1]._pieces) == 1  # captured as one graph
    assert sizes[0] == sizes[1]


def test_an_alarm_is_the_eager_ones() -> None:
    w = pb.tensor(np.array([2.0, 3.0]), device=DEVICE, requires_grad=True)

    def train(xs: pb.Tensor) -> pb.Tensor:
        w.grad = None
        loss = pb.scan(lambda h, x: (h + pb.log(w * x), None), pb.zeros_like(w.detach()), xs)[0].sum()
        loss.backward()
        return loss.detach()

    compiled = pb.compile(train)
    xs = np.ones((4, 2))
    for _ in range(2):
        compiled(pb.tensor(xs, device=DEVICE))
    xs[3, 1] = -1.0
    with pytest.raises(pb.NumericalInstabilityError, match=r"test_loops_of_programs.py:\d+"):
        compiled(pb.tensor(xs, device=DEVICE)).item()


def test_random_functions_with_loops() -> None:
    for seed in (3, 8):
        check_random(seed, DEVICE)
