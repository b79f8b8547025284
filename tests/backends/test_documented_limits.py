"""The table in docs/devices.md of what a library cannot do is true, and there is a check for each of its rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pullback as pb

from .installed import optional, require

jax, torch = optional("jax"), optional("torch")
PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
NAMES = {"PyTorch": "torch:cpu", "JAX": "jax:cpu"}


def rows() -> dict[str, list[str]]:
    """The devices of each row, by what it says cannot be had."""
    table = PAGE.read_text().partition("## What cannot be had")[2].partition("\n\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {what: [NAMES[name] for name in where.split(", ")] for what, where, _ in cells}


def complex_order(device):
    x = pb.asarray(np.array([1j, 2.0]), device=device)
    for call in (lambda: pb.max(x), lambda: pb.sort(x), lambda: pb.less(x, x)):
        with pytest.raises(pb.DtypeError):
            call()


def complex_argmax(device):
    x = pb.asarray(np.array([1j, 2.0]), device=device)
    for function in (pb.argmax, pb.argmin):
        with pytest.raises(pb.DtypeError):
            function(x)


def wide_numbers(device):
    with jax.enable_x64(False):
        with pytest.raises(pb.DtypeError, match="jax_enable_x64"):
            pb.zeros(2, dtype="float64", device=device)
        with pytest.raises(pb.DtypeError, match="jax_enable_x64"):
            pb.asarray([2**40], device=device)
        assert pb.asarray([2**20], device=device).dtype == pb.int32


def writing_into_memory(device):
    x = pb.tensor([1.0, 2.0], device=device)
    with pytest.raises(pb.GradientError, match="cannot be written"):
        x.data_mut()[0] = 5.0
    x[0] = 5.0
    assert x.numpy().tolist() == [5.0, 2.0]


def other_kinds(device):
    if device == "torch:cpu":
        things = [torch.eye(2).to_sparse(), torch.zeros(2, dtype=torch.float8_e4m3fn)]
    else:
        jnp = jax.numpy
        things = [jnp.zeros(2, jnp.float8_e4m3fn), jnp.zeros(2, jnp.int4), jax.random.key(0)]
    for thing in things:
        with pytest.raises(pb.DtypeError):
            pb.asarray(thing)


def added_booleans(device):
    x, at = pb.asarray(np.array([True, False]), device=device), pb.asarray(np.array([0]), device=device)
    with pytest.raises(pb.DtypeError):
        pb.scatter_add(x, at, x[:1], axis=0)


def tracked_by_another(device):
    with pytest.raises(pb.GradientError, match="detach"):
        pb.asarray(torch.ones(2, requires_grad=True))


def traced_positions(device):
    x = jax.numpy.arange(3.0)
    found = jax.jit(lambda i: pb.take(pb.asarray(x), pb.asarray(i))._raw)(jax.numpy.asarray([7]))
    assert found.shape == (1,)


def positions_elsewhere(device):
    from pullback.backends.jax_backend import BACKEND

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BACKEND, "is_on_device", lambda raw: True)
        found = BACKEND.xp.getitem(jax.numpy.arange(3.0), jax.numpy.asarray([7]))
    assert np.isnan(found).all()


CHECKS = {
    "an order of complex numbers: `max`, `sort`, `less`, ...": complex_order,
    "`argmax` and `argmin` of complex numbers": complex_argmax,
    "float64, complex128, 64-bit integers without `jax_enable_x64`": wide_numbers,
    "writing into memory: `data_mut()`": writing_into_memory,
    "sparse tensors, float8, int4, random keys": other_kinds,
    "addition of booleans at positions (`index_add`)": added_booleans,
    "tensors that require a gradient of PyTorch's": tracked_by_another,
    "positions and negative powers, checked while `jax.jit` traces": traced_positions,
    "positions outside of an array, on a GPU or TPU, not compiled": positions_elsewhere,
}


def test_every_row_has_a_check():
    assert list(rows()) == list(CHECKS)


@pytest.mark.parametrize(("what", "device"), [(what, device) for what, devices in rows().items() for device in devices])
def test_what_cannot_be_had(what, device):
    require(device)
    CHECKS[what](device)
