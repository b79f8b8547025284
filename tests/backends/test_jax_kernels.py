"""Operations on JAX's arrays are one compiled call each way, and give what NumPy gives."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pullback as pb

from .installed import optional, require

jax = optional("jax")
DEVICE = "jax:cpu"


@pytest.fixture(autouse=True)
def _needs_jax():
    require(DEVICE)


def arrays(*shapes, dtype=np.float64):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def value_and_gradients(function, given, device):
    tensors = [pb.asarray(a, device=device).set_requires_grad(True) for a in given]
    out = function(*tensors)
    seed = np.random.default_rng(1).standard_normal(out.shape)
    found = pb.backward(out, pb.asarray(seed, dtype=out.dtype, device=device))
    return [out.detach(), *(found[t] for t in tensors)]


def check_like_numpy(function, *given, tolerance=1e-10):
    for ours, numpys in zip(
        value_and_gradients(function, given, DEVICE), value_and_gradients(function, given, "numpy")
    ):
        assert ours.dtype == numpys.dtype
        np.testing.assert_allclose(
            ours.numpy().astype(np.float64), numpys.numpy().astype(np.float64), rtol=tolerance, atol=tolerance
        )


OPERATIONS = {
    "softmax": lambda x: pb.softmax(x, -1),
    "log_softmax": lambda x: pb.log_softmax(x, 0),
    "gelu": pb.gelu,
    "gelu-tanh": lambda x: pb.gelu(x, approximate="tanh"),
    "silu": pb.silu,
    "layer_norm": lambda x: pb.layer_norm(x, (5,)),
    "rms_norm": lambda x: pb.rms_norm(x, (5,)),
    "cross_entropy": lambda x: pb.cross_entropy(x, pb.asarray(np.array([1, 0, 4]), device=x.device)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_dtypes_and_values_are_numpys(name, dtype):
    tolerance = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3}[dtype]
    check_like_numpy(OPERATIONS[name], *arrays((3, 5), dtype=dtype), tolerance=tolerance)


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_call(name):
    x = jax.numpy.asarray(arrays((3, 5))[0])
    steps = jax.make_jaxpr(lambda raw: OPERATIONS[name](pb.asarray(raw))._raw)(x).eqns
    made_first = ("convert_element_type", "sharding_constraint")  # of the targets
    assert [step.primitive.name for step in steps if step.primitive.name not in made_first] == ["jit"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_second_time_nothing_is_compiled(name):
    def compiled():
        x = pb.asarray(arrays((3, 5))[0], device=DEVICE).set_requires_grad(True)
        messages = []
        with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
            patch.setattr("logging.Logger.handle", lambda self, record: messages.append(record.getMessage()))
            out = OPERATIONS[name](x)
            pb.backward(out, pb.ones(out.shape, dtype=out.dtype, device=DEVICE))
        return [message for message in messages if message.startswith("Compiling")]

    jax.clear_caches()
    assert compiled()
    assert not compiled()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_with_targets_that_are_ignored(reduction):
    target = np.array([1, 0, -100, 3, 2])

    def loss(x):
        return pb.cross_entropy(x, pb.asarray(target, device=x.device), reduction=reduction)

    check_like_numpy(loss, *arrays((5, 4)))


def test_cross_entropy_of_what_is_ignored_or_impossible():
    x = np.array([[0.0, np.inf], [-np.inf, 1.0], [2.0, 1.0]])
    logits = pb.asarray(x, device=DEVICE).set_requires_grad(True)
    losses = pb.cross_entropy(logits, pb.asarray(np.array([-100, 0, 1]), device=DEVICE), reduction="none")
    assert losses.detach().numpy().tolist()[:2] == [0.0, np.inf]
    with pb.guard("off"):
        grad = pb.backward(losses, pb.ones((3,), dtype="float64", device=DEVICE))[logits].numpy()
    np.testing.assert_allclose(grad[:2], [[0.0, 0.0], [-1.0, 1.0]])


def test_cross_entropy_where_all_is_ignored():
    logits = pb.asarray(arrays((3, 4))[0], device=DEVICE).set_requires_grad(True)
    loss = pb.cross_entropy(logits, pb.asarray(np.full(3, -100), device=DEVICE))
    assert loss.item() == 0.0
    assert not pb.backward(loss)[logits].numpy().any()


@pytest.mark.parametrize("heads", [(4, 4), (6, 2)])
@pytest.mark.parametrize(("length", "keys", "causal"), [(7, 7, True), (5, 9, False)])
def test_what_is_given_to_cudnn(heads, length, keys, causal, monkeypatch):
    """cuDNN needs a GPU: its arrays, its scale and what is made of its result are tried with JAX's own function."""
    from pullback.backends import jax_attention

    ours = jax.nn.dot_product_attention
    monkeypatch.setattr(jax.nn, "dot_product_attention", lambda *a, implementation, **k: ours(*a, **k))
    q, k, v, g = (jax.numpy.asarray(a) for a in arrays(*_attention_shapes(*heads, length, keys)))
    options = (causal, 0.3)
    portable = _general("attention", options)(q, k, v, None)
    out, lse = jax.jit(partial(jax_attention._forward, *options))(q, k, v)
    np.testing.assert_allclose(out, portable[0], rtol=1e-6, atol=1e-6)  # its softmax is of float32
    np.testing.assert_allclose(lse, portable[1], rtol=1e-6, atol=1e-6)
    expected = _general("attention_gradient", ((True, True, True, False), *options))(g, q, k, v, None, *portable)
    found = jax.jit(partial(jax_attention._backward, *options))(g, q, k, v, out, lse)
    assert found[3] is None
    for a, b in zip(found[:3], expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def _general(name, options):
    from pullback.backends.jax_backend import BACKEND

    return jax.jit(lambda *arrays: BACKEND.xp.composed(name)(*arrays, *options, 0.0, 0, 0))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("axes", "channels"), [(1, 4), (2, 4), (2, 10), (3, 4)])
def test_convolutions(axes, channels, groups):
    options = {"stride": 2, "padding": 1, "dilation": 2, "groups": groups}
    shapes = (2, channels, *range(9, 9 - axes, -1)), (6, channels // groups, *(3, 2, 3)[:axes]), (6,)
    check_like_numpy(lambda *a: getattr(pb, f"conv{axes}d")(*a, **options), *arrays(*shapes))


def test_a_convolution_on_other_devices_than_processors(monkeypatch):
    """JAX's own transposes, which processors leave to the portable form."""
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *arrays, cpu, default: default(*arrays))
    jax.clear_caches()
    shapes = (2, 10, 9, 8), (6, 5, 3, 2), (6,)
    check_like_numpy(lambda *a: pb.conv2d(*a, stride=2, padding=1, groups=2), *arrays(*shapes))
    jax.clear_caches()


def _attention_shapes(heads, key_heads, length, keys):
    return (2, heads, length, 8), (2, key_heads, keys, 8), (2, key_heads, keys, 8), (2, heads, length, 8)


def test_cudnn_is_for_gpus_alone():
    """Where a GPU is there, too, arrays on the processor still take the portable kernel."""
    from pullback.backends import jax_attention

    def run():
        q, k, v = (pb.asarray(a, device=DEVICE, dtype="float16") for a in arrays(*[(1, 2, 4, 8)] * 3))
        q.set_requires_grad(True)
        out = pb.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.detach().numpy(), pb.backward(pb.sum(out))[q].numpy()

    alone = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax_attention, "_has_cudnn", lambda: True)
        patch.setattr(jax_attention, "_attend", lambda is_causal, scale, q, k, v: q)  # nobody's
        jax.clear_caches()
        beside = run()
    jax.clear_caches()
    for a, b in zip(alone, beside):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dropout_in_half_precision(dtype):
    x = pb.ones(64, device=DEVICE, dtype=dtype).set_requires_grad(True)
    out = pb.dropout(x, 0.5, generator=pb.random.Generator(1))
    assert out.dtype == dtype and pb.backward(pb.sum(out))[x].dtype == dtype
    expected = pb.dropout(pb.ones(64), 0.5, generator=pb.random.Generator(1)).numpy()
    np.testing.assert_array_equal(pb.asarray(out.detach(), dtype="float32").numpy(), expected)
