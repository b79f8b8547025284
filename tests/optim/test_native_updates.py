"""Updates of large NumPy parameters by native code: those of NumPy, to the last bit, in place."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy import native
from pullback.compiler.eager import programs

pytest.importorskip("llvmlite")

OPTIMIZERS = [
    (pb.optim.SGD, {}),
    (pb.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (pb.optim.SGD, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1, "maximize": True}),
    (pb.optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
    (pb.optim.AdamW, {}),
    (pb.optim.AdamW, {"maximize": True, "weight_decay": 0.0}),
    (pb.optim.Lion, {"weight_decay": 0.1}),
    (pb.optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (pb.optim.Adagrad, {}),
    (pb.optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (pb.optim.RAdam, {"weight_decay": 0.1, "betas": (0.9, 0.9)}),  # the first two steps are of the other kind
]


def trained(kind, options, dtype, allowed):
    rng = np.random.default_rng(0)
    w = pb.tensor(rng.standard_normal((130, 1027)).astype(dtype), requires_grad=True)
    optimizer = kind([w], lr=0.01, **options)
    with native.native_kernels(allowed):
        address = w.data.ctypes.data
        for step in range(4):
            optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)  # another number is no other formula
            optimizer.step([rng.standard_normal(w.shape).astype(dtype)])
            if step == 1:
                programs_before = len(programs.PROGRAMS.made())
        assert len(programs.PROGRAMS.made()) == programs_before
        assert w.data.ctypes.data == address
    return np.asarray(w.detach())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_the_same_bits_as_numpy(kind, options, dtype):
    found = trained(kind, options, dtype, True)
    made = [program for key, program in programs.PROGRAMS.made() if key[:2] == ("update", kind)]
    assert made and None not in made
    np.testing.assert_array_equal(found, trained(kind, options, dtype, False))


def test_a_formula_of_the_users_own_runs_as_it_is():
    class Counting(pb.optim.SGD):
        calls = 0

        def update(self, *args):
            self.calls += 1
            return super().update(*args)

    w = pb.tensor(np.ones((130, 130), np.float32), requires_grad=True)
    optimizer = Counting([w], lr=0.1)
    for _ in range(5):
        optimizer.step([np.ones((130, 130), np.float32)])
    assert optimizer.calls == 5


def test_an_overflow_is_reported_as_by_numpy():
    w = pb.tensor(np.full((130, 130), 3e38, np.float32), requires_grad=True)
    with pytest.raises(pb.NumericalInstabilityError, match="infinite or NaN"):
        pb.optim.SGD([w], lr=1e30, maximize=True).step([np.full((130, 130), 1e9, np.float32)])


def test_a_parameter_that_a_clone_sees_is_copied_first():
    w = pb.tensor(np.ones((130, 130), np.float32), requires_grad=True)
    clone = w.detach().clone()
    pb.optim.SGD([w], lr=0.5).step([np.ones((130, 130), np.float32)])
    assert np.asarray(clone).min() == 1 and np.asarray(w.detach()).max() == 0.5
