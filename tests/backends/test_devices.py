"""Naming devices, choosing the default one, moving between them."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import pullback as pb

from . import strict
from .installed import require

OTHERS = [strict.DEVICE, "jax:cpu", "torch:cpu"]


@pytest.fixture(params=OTHERS)
def device(request):
    require(request.param)
    return request.param


def test_unknown_devices_are_named_with_the_known_ones():
    for function in (
        lambda: pb.tensor([1.0], device="abacus"),
        lambda: pb.tensor([1.0]).to_device("abacus:3"),
        lambda: pb.set_default_device("abacus"),
        lambda: pb.device("abacus").__enter__(),
        lambda: pb.zeros(3, device="abacus"),
    ):
        with pytest.raises(pb.DeviceError, match=r"unknown device 'abacus.*'numpy'"):
            function()
    assert pb.tensor([1.0]).device == "numpy"


@pytest.mark.parametrize("name", ["numpy:gpu", "strict:device9", "torch:cuda:77", "jax:abacus:1"])
def test_unknown_devices_of_known_backends(name):
    require(name)
    with pytest.raises(pb.DeviceError, match=f"unknown device '{name}'"):
        pb.tensor([1.0], device=name)


@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_a_package_that_is_missing_is_named(library):
    code = (
        f"import sys; sys.modules['{library}'] = None\n"
        "import pullback as pb\n"
        f"try: pb.tensor([1.0], device='{library}:0')\n"
        "except pb.DeviceError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install {library}" in result.stdout


def test_only_what_an_array_can_be_put_on_is_listed():
    import pullback.compiler.tracing.backend  # noqa: F401  # a program's symbols have a backend, too

    assert "trace" not in pb.backends.devices()


def test_default_device():
    require(strict.DEVICE)
    assert pb.backends.default_device() == "numpy"
    pb.set_default_device(strict.DEVICE)
    try:
        assert pb.tensor([1.0]).device == pb.zeros(2).device == strict.DEVICE
        seen = []
        thread = threading.Thread(target=lambda: seen.append(pb.tensor([1.0]).device))
        thread.start()
        thread.join()
        assert seen == [strict.DEVICE]
        with pb.device("numpy"):
            assert pb.tensor([1.0]).device == "numpy"
        assert pb.asarray(np.ones(1)).device == "numpy"  # an array stays where it is
    finally:
        pb.set_default_device("numpy")
    assert pb.tensor([1.0]).device == "numpy"


def test_device_blocks_nest_and_end_with_an_error():
    require(strict.DEVICE)
    with pb.device(strict.DEVICE):
        with pb.device("strict:cpu"):
            assert pb.tensor([1.0]).device == "strict:cpu"
        assert pb.tensor([1.0]).device == strict.DEVICE
    with pytest.raises(ZeroDivisionError), pb.device(strict.DEVICE):
        1 / 0  # noqa: B018
    assert pb.tensor([1.0]).device == "numpy"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64"])
def test_moving_keeps_values_and_dtype(device, dtype):
    tensor = pb.asarray(np.asarray([[0, 1, 3], [1, 0, 7]]).astype(dtype))
    moved = tensor.to_device(device)
    assert moved.device == device
    assert moved.dtype.name == dtype
    assert moved.shape == (2, 3)
    assert moved.to_device(device) is moved
    np.testing.assert_array_equal(moved.numpy(), tensor.numpy())
    back = moved.to_device("numpy")
    assert back.dtype.name == dtype
    assert back.numpy().tobytes() == tensor.numpy().tobytes()
    assert pb.asarray(tensor, device=device).device == device
    assert repr(moved).endswith(f"device={device!r})")


def test_moving_is_differentiable(device):
    w = pb.asarray(np.asarray([1.0, 2.0])).set_requires_grad(True)
    loss = pb.sum(pow_three(w.to_device(device)))
    grad = pb.backward(loss, create_graph=True)[w]
    assert grad.device == "numpy"
    np.testing.assert_allclose(grad.detach().numpy(), [3.0, 12.0])
    np.testing.assert_allclose(pb.backward(pb.sum(grad))[w].numpy(), [6.0, 12.0])


def pow_three(x):
    return x * x * x


def test_moving_carries_a_tangent(device):
    _, tangent = pb.jvp(lambda x: pow_three(x.to_device(device)), (pb.asarray(np.asarray([1.0, 2.0])),), (np.ones(2),))
    np.testing.assert_allclose(tangent.numpy(), [3.0, 12.0])


def test_mixing_devices_is_an_error(device):
    here, there = pb.tensor([1.0]), pb.tensor([1.0], device=device)
    with pytest.raises(pb.DeviceError, match=rf"add.*numpy, {device}.*to_device"):
        here + there
    with pytest.raises(pb.DeviceError, match="to_device"):
        pb.concat([there, here])
    with pytest.raises(pb.DeviceError, match=r"pb\.asarray\(x, device="):  # arrays have no `to_device` of ours
        there * np.ones(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x @ y,
        lambda x, y: pb.where(x > 0, x, y),
        lambda x, y: pb.linear(x, pb.stack([y])),
        lambda x, y: x.__setitem__(0, y[0]),
        lambda x, y: x.__iadd__(y),
        lambda x, y: x + y.data,
        lambda x, y: y.data + x,
        lambda x, y: np.add(x, y),
        lambda x, y: x.accumulate_grad(y),
    ],
)
@pytest.mark.parametrize("here", ["numpy", "jax:cpu"])
def test_tensors_of_two_libraries_are_told_to_move(call, here):
    require(here)
    require("torch:cpu")
    x, y = (pb.tensor([1.0, 2.0], device=place) for place in (here, "torch:cpu"))
    with pytest.raises(pb.DeviceError, match=rf"{here}.*torch:cpu|torch:cpu.*{here}"):
        call(x, y)
    assert x.tolist() == [1.0, 2.0] and x.grad is None


def test_arrays_that_are_no_arrays_of_numbers_are_refused():
    torch = pytest.importorskip("torch")
    for made in (torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2, 2).to_sparse()):
        with pytest.raises(pb.DtypeError, match=r"convert the array first|to_dense"):
            pb.asarray(made)
    with pytest.raises(pb.DeviceError, match="torch:meta"):
        pb.asarray(torch.ones(2, device="meta"))
    jax = pytest.importorskip("jax")
    for made in (jax.random.key(0), jax.numpy.ones(2, dtype=jax.numpy.int4)):
        with pytest.raises(pb.DtypeError, match="convert the array first"):
            pb.asarray(made)


@pytest.mark.parametrize("number", [300, -1])
def test_a_number_outside_of_a_dtype_is_named(device, number):
    x = pb.asarray(np.asarray([1, 2], np.uint8), device=device)
    for call in (lambda: x + number, lambda: x * number, lambda: number - x):
        with pytest.raises(pb.DtypeError, match=rf"{number} out of bounds for uint8.*astype"):
            call()
    assert (x < number).tolist() == [number > 0] * 2
    assert (x == number).tolist() == [False] * 2


@pytest.mark.parametrize("place", ["torch:cpu", "jax:cpu"])
def test_positions_outside_are_errors(place):
    require(place)
    x, far = pb.asarray(np.arange(3.0), device=place), pb.asarray(np.asarray([5]), device=place)
    for call in (
        lambda: x[9],
        lambda: x[far],
        lambda: x[0, 0],
        lambda: pb.take(x, far, axis=0),
        lambda: pb.take_along_axis(x, far, axis=0),
        lambda: pb.scatter_add(x, far, x[:1], axis=0),
        lambda: pb.put_along_axis(x, far, x[:1], axis=0),
        lambda: pb.embedding(far, x.reshape(3, 1)),
    ):
        with pytest.raises(pb.IndexingError):
            call()


def test_mixing_devices_of_one_backend_is_an_error():
    require(strict.DEVICE)
    with pytest.raises(pb.DeviceError, match="strict:cpu, strict:device1"):
        pb.tensor([1.0], device="strict:cpu") + pb.tensor([1.0], device="strict:device1")


def test_streams_are_refused():
    with pytest.raises(ValueError, match="stream"):
        pb.tensor([1.0]).to_device("numpy", stream=1)


def test_pickles_and_copies_stay_on_their_device(device):
    w = pb.tensor([1.0, 2.0], device=device, requires_grad=True)
    for again in (pickle.loads(pickle.dumps(w)), copy.deepcopy(w)):
        assert again.device == device
        assert again.requires_grad
        assert again.tolist() == [1.0, 2.0]


def test_writing_in_place_leaves_clones_alone(device):
    x = pb.tensor([1.0, 2.0], device=device)
    y = x.clone()
    y += 1
    y[0] = 7.0
    assert x.tolist() == [1.0, 2.0]
    assert y.tolist() == [7.0, 3.0]


def test_adding_up_gradients(device):
    w = pb.tensor([1.0, 2.0], device=device, requires_grad=True)
    for _ in range(2):
        pb.sum(w * w).backward()
    assert w.grad.device == device
    assert w.grad.tolist() == [4.0, 8.0]
    with pb.no_grad():
        w -= 0.5 * w.grad
    assert w.tolist() == [-1.0, -2.0]


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries_are_known_at_once(library):
    pytest.importorskip(library)
    code = (
        f"import sys, pullback as pb; assert {library!r} not in sys.modules\n"
        f"import {library}{'.numpy' if library == 'jax' else ''} as xp\n"
        "w = pb.asarray(xp.ones(3)).set_requires_grad(True)\n"
        "print(w.device, type(pb.backward(pb.sum(w * w))[w].data) is type(xp.ones(3)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == [f"{library}:cpu", "True"]


def test_a_torch_tensor_with_a_gradient_of_its_own_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(pb.GradientError, match="detach"):
        pb.asarray(torch.ones(2, requires_grad=True))


def test_jax_without_wide_numbers_says_so():
    pytest.importorskip("jax")
    code = (
        "import pullback as pb\n"
        "print(pb.tensor([1], device='jax:cpu').dtype.name)\n"
        "x = pb.tensor([1, 2], device='jax:cpu')\n"
        "print(pb.exp(x).dtype.name, pb.mean(x).dtype.name, (x / 2).dtype.name, pb.argsort(x).dtype.name)\n"
        "for call in (\n"
        "    lambda: pb.tensor([1.0], dtype='float64', device='jax:cpu'),\n"
        "    lambda: pb.asarray([1.0], dtype='float64', device='numpy').to_device('jax:cpu'),\n"
        "    lambda: pb.astype(x, pb.float64),\n"
        "    lambda: pb.zeros(2, dtype=pb.complex128, device='jax:cpu'),\n"
        "    lambda: pb.asarray([2**40], device='jax:cpu'),\n"
        "):\n"
        "    try: print('made', call())\n"
        "    except pb.DtypeError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_ENABLE_X64": "0"},
    )
    lines = result.stdout.splitlines()
    assert lines[:2] == ["int32", "float32 float32 float32 int32"]
    assert len(lines) == 7 and all("jax_enable_x64" in line for line in lines[2:])


def test_recording_works_inside_jit():
    jax = pytest.importorskip("jax")

    @jax.jit
    def slope(x):
        w = pb.asarray(x).set_requires_grad(True)
        assert "shape=(2,)" in repr(w)
        with pb.guard("off"):
            return pb.backward(pb.sum(pow_three(w)))[w].data

    np.testing.assert_allclose(slope(jax.numpy.asarray([1.0, 2.0])), [3.0, 12.0])


def test_dlpack_exports_of_other_devices(device):
    tensor = pb.tensor([1.0, 2.0], device=device)
    array = np.from_dlpack(tensor)
    tensor += 1
    assert array.tolist() == [1.0, 2.0]
    copied = np.from_dlpack(tensor, copy=True)
    assert copied.tolist() == [2.0, 3.0]
    assert pb.from_dlpack(tensor) is tensor
    assert pb.from_dlpack(tensor, device="numpy").device == "numpy"
    assert tuple(tensor.__dlpack_device__()) == (1, 0)


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_other_libraries_take_our_tensors(library):
    module = pytest.importorskip(library)
    taken = module.from_dlpack(pb.tensor([1.0, 2.0]))
    assert taken.tolist() == [1.0, 2.0]
