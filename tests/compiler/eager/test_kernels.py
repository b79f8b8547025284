"""Native code for large arrays gives what NumPy's kernels give, forward and backward."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY
from pullback.backends.numpy import native
from pullback.compiler.eager import programs
from pullback.functions import recurrent
from pullback.functions.packed import packed_linear

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(0)
ROWS, WIDTH = 131, 129  # more than the least size, and no multiple of anything


def normal(*shape):
    return RNG.standard_normal(shape)


def labels(*shape, classes=WIDTH):
    return RNG.integers(0, classes, shape)


def heads(*arrays, **options):
    return pb.scaled_dot_product_attention(*arrays, **options)


def with_packed_weight(scheme):
    """A product with a weight that is packed and unpacked by native kernels."""
    return lambda x: packed_linear(x, pb.quant.packed(pb.asarray(WEIGHT), scheme))


IMAGE = normal(3, 6, 17, 15)
WEIGHT = normal(2 * ROWS, WIDTH - 1).astype("float32")
LABELS, SHARES, MASK = labels(ROWS), RNG.random((ROWS, WIDTH)), RNG.random((35, 35)) > 0.3
MEAN, VARIANCE = normal(5), RNG.random(5)
CASES = {
    **{
        name: (getattr(pb, name), (normal(ROWS, WIDTH),))
        for name in (
            "gelu",
            "silu",
            "softplus",
            "log_sigmoid",
            "elu",
            "relu",
            "leaky_relu",
            "sigmoid",
            "tanh",
            "softmax",
            "log_softmax",
            "logsumexp",
            "erf",
        )
    },
    "relu-large": (pb.relu, (normal(2 * ROWS, WIDTH),)),
    "sum": (lambda x: pb.sum(x, axis=0), (normal(8 * ROWS, WIDTH),)),
    "mean": (lambda x: pb.mean(x, axis=(1, 2)), (normal(9, 32, 16, 33),)),
    "gelu-tanh": (lambda x: pb.gelu(x, approximate="tanh"), (normal(ROWS, WIDTH),)),
    "softmax-first-axis": (lambda x: pb.softmax(x, axis=0), (normal(ROWS, WIDTH),)),
    "ndtr": (pb.ndtr, (normal(ROWS, WIDTH),)),
    "layer_norm": (
        lambda x, w, b: pb.layer_norm(x, (WIDTH,), w, b),
        (normal(ROWS, WIDTH), normal(WIDTH), normal(WIDTH)),
    ),
    "rms_norm": (lambda x, w: pb.rms_norm(x, (WIDTH,), w), (normal(ROWS, WIDTH), normal(WIDTH))),
    "batch_norm": (
        lambda x, w, b: pb.batch_norm(x, None, None, w, b, training=True),
        (normal(7, 5, 23, 23), normal(5), normal(5)),
    ),
    "cross_entropy": (lambda x: pb.cross_entropy(x, LABELS), (normal(ROWS, WIDTH),)),
    "cross_entropy-smooth": (
        lambda x: pb.cross_entropy(x, LABELS, label_smoothing=0.1, ignore_index=3, reduction="sum"),
        (normal(ROWS, WIDTH),),
    ),
    "soft_cross_entropy": (
        lambda x: pb.cross_entropy(x, SHARES),
        (normal(ROWS, WIDTH),),
    ),
    "binary_cross_entropy_with_logits": (
        lambda x: pb.binary_cross_entropy_with_logits(x, SHARES),
        (normal(ROWS, WIDTH),),
    ),
    "mse_loss": (pb.mse_loss, (normal(ROWS, WIDTH), normal(ROWS, WIDTH))),
    "huber_loss": (pb.huber_loss, (normal(ROWS, WIDTH), normal(ROWS, WIDTH))),
    "attention": (heads, (normal(2, 3, 33, 24), normal(2, 3, 41, 24), normal(2, 3, 41, 20))),
    "attention-causal": (lambda *x: heads(*x, is_causal=True), tuple(normal(2, 3, 35, 24) for _ in range(3))),
    "attention-mask": (
        lambda *x: heads(*x, MASK),
        tuple(normal(2, 3, 35, 24) for _ in range(3)),
    ),
    "rotary_embedding": (lambda x: pb.rotary_embedding(x, *pb.rotary_tables(131, 130)), (normal(131, 130),)),
    "multiply_add": (
        lambda x: pb.batch_norm(x, MEAN, VARIANCE, training=False),
        (normal(7, 5, 23, 23),),
    ),
    "convolution": (lambda x, w: pb.conv2d(x, w, padding=1), (IMAGE, normal(8, 6, 3, 3))),
    "convolution-grouped": (
        lambda x, w, b: pb.conv2d(x, w, b, stride=2, dilation=2, groups=3),
        (normal(4, 6, 19, 17), normal(9, 2, 3, 2), normal(9)),
    ),
    "convolution-depthwise": (lambda x, w: pb.conv2d(x, w, padding=1, groups=6), (IMAGE, normal(6, 1, 3, 3))),
    "max_pool": (lambda x: pb.max_pool2d(x, 3, stride=2), (normal(5, 7, 23, 25),)),
    "linear": (pb.linear, (normal(70, 65), normal(68, 65), normal(68))),
    "matmul": (pb.matmul, (normal(70, 65), normal(65, 68))),
    "matmul-stacks": (pb.matmul, (normal(5, 33, 65), normal(5, 65, 34))),
    "lstm": (
        lambda *x: recurrent.lstm(*x, False)[0],
        (normal(9, 16, 256), normal(16, 64), normal(16, 64), normal(256, 64) / 8, normal(256)),
    ),
    "gru": (
        lambda *x: recurrent.gru(*x, True),
        (normal(10, 22, 192), normal(22, 64), normal(192, 64) / 8, normal(192)),
    ),
    "rnn": (
        lambda *x: recurrent.rnn(*x, "tanh", False),
        (normal(4, 65, 64), normal(65, 64), normal(64, 64) / 8, normal(64)),
    ),
    "embedding": (lambda w: pb.embedding(LABELS, w), (normal(WIDTH, ROWS),)),
    "ssm_scan": (lambda *x: pb.ssm_scan(*x, axis=1), tuple(normal(3, 50, 131) for _ in range(3))),
    "ssm_scan-constant-reverse": (
        lambda x, a, h: pb.ssm_scan(x, a, h0=h, reverse=True),
        (normal(300, 70), np.tanh(normal(70)), normal(70)),
    ),
    **{scheme: (with_packed_weight(scheme), (normal(3, WIDTH - 1),)) for scheme in ("int4", "nf4", "fp8")},
    "dropout": (lambda x: pb.dropout(x, 0.3), (normal(ROWS, WIDTH),)),
}


def results(function, arrays, dtype):
    """The result and all gradients for a cotangent that depends on the shape alone."""
    pb.random.seed(5)
    tensors = [pb.tensor(array.astype(dtype), requires_grad=True) for array in arrays]
    out = function(*tensors)
    out = out[0] if isinstance(out, tuple) else out
    cotangent = np.random.default_rng(1).standard_normal(out.shape).astype(dtype)
    grads = pb.backward(out, pb.tensor(cotangent))
    return [np.asarray(out.detach()), *(np.asarray(grads[tensor]) for tensor in tensors)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_numpys_kernels(name, dtype):
    function, arrays = CASES[name]
    found = results(function, arrays, dtype)
    with native.native_kernels(False):
        expected = results(function, arrays, dtype)
    tolerance = 3e-5 if dtype == "float32" else 1e-12
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_every_kernel_and_rule_of_the_tables_has_native_code():
    for function, arrays in CASES.values():
        results(function, arrays, "float32")
    results(lambda x: pb.rms_norm(x, (WIDTH,)), (normal(ROWS, WIDTH),), "float32")
    made = {key[0] for key, program in programs.PROGRAMS.made() if program is not None}
    listed = {("kernel", name) for name in native.KERNELS} | {("rule", *names) for names in native.RULES}
    assert not listed - made


STRIDED = {
    "transposed": lambda x: x.T,
    "every-other": lambda x: x[:, ::2],
    "middle": lambda x: x[3:-4, 5:-6],
    "backwards": lambda x: x[::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "repeated-column": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "three-axes": lambda x: x[:180].reshape(3, 60, 201).transpose(2, 0, 1)[:, 1:, 2:],
}


@pytest.mark.parametrize("layout", STRIDED)
def test_arrays_in_any_layout(layout):
    x = STRIDED[layout](normal(200, 201))
    assert x.size >= 1 << 14
    for function in (pb.gelu, lambda x: pb.softmax(x, axis=-1)):
        found = np.asarray(function(x))
        with native.native_kernels(False):
            np.testing.assert_allclose(found, np.asarray(function(x)), rtol=1e-12, atol=1e-15)


def test_an_array_that_is_not_aligned_is_read_by_numpy():
    raw = np.zeros(8 * 20_000 + 1, np.uint8)[1:].view(np.float64)
    raw[...] = normal(20_000)
    assert not raw.flags.aligned
    with native.native_kernels(False):
        expected = np.asarray(pb.gelu(pb.asarray(raw)))
    np.testing.assert_array_equal(np.asarray(pb.gelu(pb.asarray(raw))), expected)


def test_shapes_that_do_not_fit_are_the_same_error():
    with pytest.raises(pb.ShapeError, match="do not fit"):
        pb.matmul(normal(4, 100, 90), normal(5, 90, 100))


def test_the_order_of_an_elements_bytes_is_part_of_what_a_program_is_for():
    x = normal(ROWS, WIDTH)
    kernel = NUMPY.xp.gelu
    np.testing.assert_allclose(kernel(x.astype(">f8"), "none"), kernel(x, "none"), rtol=1e-12)


def test_a_target_out_of_bounds_is_an_error_and_nothing_else():
    x, y = pb.tensor(normal(ROWS, WIDTH)), labels(ROWS)
    y[7] = WIDTH
    with pytest.raises(pb.IndexingError):
        pb.cross_entropy(x, y)


def test_squares_that_overflow_are_left_to_numpy():
    x = pb.tensor((normal(ROWS, WIDTH) * 1e30).astype(np.float32))
    found = np.asarray(pb.layer_norm(x, (WIDTH,)))
    with native.native_kernels(False):
        np.testing.assert_array_equal(found, np.asarray(pb.layer_norm(x, (WIDTH,))))
    assert np.isfinite(found).all()


def test_nan_and_infinities_stay():
    x = normal(ROWS, WIDTH)
    x[3, 4], x[5, 6], x[7, 8] = np.nan, np.inf, -np.inf
    for function in (pb.gelu, pb.silu, pb.softplus, pb.log_softmax):
        found = np.asarray(function(pb.tensor(x)))
        with native.native_kernels(False), np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found, np.asarray(function(pb.tensor(x))), rtol=1e-12)


def test_half_precision_is_numpys():
    x = pb.tensor(normal(ROWS, WIDTH), dtype=pb.float16)
    found = np.asarray(pb.gelu(x))
    with native.native_kernels(False):
        np.testing.assert_array_equal(found, np.asarray(pb.gelu(x)))


def test_second_derivatives_go_through_it():
    x, v = normal(ROWS, WIDTH), normal(ROWS, WIDTH)
    found = pb.hvp(lambda x: (pb.gelu(x) ** 2).sum(), (x,), (v,))
    with native.native_kernels(False):
        expected = pb.hvp(lambda x: (pb.gelu(x) ** 2).sum(), (x,), (v,))
    np.testing.assert_allclose(np.asarray(found[-1]), np.asarray(expected[-1]), rtol=1e-10, atol=1e-12)


def test_recomputing_gives_the_same_bits():
    x = pb.tensor(normal(ROWS, WIDTH), requires_grad=True)

    def gradient():
        return np.asarray(pb.backward(pb.softmax(pb.gelu(pb.layer_norm(x, (WIDTH,)))).sum())[x])

    expected = gradient()
    with pb.checkpointing(pb.BalancedCheckpointing()):
        np.testing.assert_array_equal(gradient(), expected)


def test_threads_share_programs():
    x = pb.tensor(normal(ROWS, WIDTH + 2))
    expected = np.asarray(pb.gelu(x))
    found = [None] * 4

    def work(number):
        for _ in range(20):
            found[number] = np.asarray(pb.gelu(x))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        np.testing.assert_array_equal(one, expected)


# -- bounds ------------------------------------------------------------------------------------------------------


def test_ever_new_shapes_are_left_to_numpy(monkeypatch):
    monkeypatch.setattr(programs, "MOST_SHAPES", 2)
    monkeypatch.setattr(programs, "PROGRAMS", fresh := programs.Programs())
    monkeypatch.setattr("pullback.compiler.eager.kernels.PROGRAMS", fresh)
    for n in range(5):
        x = normal(130, 130 + n)
        np.testing.assert_allclose(np.asarray(pb.silu(x)), x / (1 + np.exp(-x)), rtol=1e-12)
    assert [program is None for _, program in fresh.made()] == [False, False, True, True, True]


def test_the_memory_of_programs_is_bounded(monkeypatch):
    monkeypatch.setattr(programs, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(programs, "PROGRAMS", fresh := programs.Programs())
    monkeypatch.setattr("pullback.compiler.eager.kernels.PROGRAMS", fresh)
    for n in range(4):
        pb.conv2d(normal(2, 6, 40 + n, 40), normal(8, 6, 3, 3))
    held = sum(program.nbytes for _, program in fresh.made() if program is not None)
    assert len(list(fresh.made())) == 1 or held <= 1 << 20


SMALL = """
import sys, numpy as np, pullback as pb
x = pb.tensor(np.zeros(({rows}, 128), np.float32), requires_grad=True)
pb.backward(pb.softmax(pb.gelu(pb.layer_norm(x, (128,)))).sum())
print(sorted(name for name in sys.modules if name in ("llvmlite", "pullback.compiler")))
"""


@pytest.mark.parametrize(
    ("rows", "setting", "imported"),
    [(4, "1", "[]"), (256, "0", "[]"), (256, "1", "['llvmlite', 'pullback.compiler']")],
)
def test_nothing_is_imported_for_small_arrays_or_when_it_is_switched_off(rows, setting, imported, monkeypatch):
    monkeypatch.setenv("PULLBACK_NATIVE_KERNELS", setting)
    done = subprocess.run(
        [sys.executable, "-c", SMALL.format(rows=rows)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == imported
