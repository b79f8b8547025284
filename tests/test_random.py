"""pb.random: known answers, distributions, state, and that numbers depend on (key, offset, index) alone."""

from __future__ import annotations

import json
import pickle
import threading

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy import random as kernels
from pullback.backends.numpy.random import philox_uint32

from .backends.installed import optional, require

stats = optional("scipy.stats")


def scalar_philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 written down from the paper, one number at a time."""
    for _ in range(10):
        left, right = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            right >> 32 ^ counter[1] ^ key[0],
            right & 0xFFFFFFFF,
            left >> 32 ^ counter[3] ^ key[1],
            left & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_published_known_answers(counter, key, expected):
    assert scalar_philox(counter, key) == expected
    domain = counter[2] | counter[3] << 32
    offset = 4 * (counter[0] | counter[1] << 32)
    assert philox_uint32(key[0] | key[1] << 32, offset, 4, domain).tolist() == expected


def test_any_stretch_of_the_stream_agrees_with_the_scalar_form():
    key = 0x0123456789ABCDEF
    expected = [w for block in range(40) for w in scalar_philox([block, 0, 0, 0], [key & 0xFFFFFFFF, key >> 32])]
    for offset, count in ((0, 160), (0, 1), (1, 2), (3, 9), (5, 0), (7, 150)):
        assert philox_uint32(key, offset, count).tolist() == expected[offset : offset + count]


def test_chunks_do_not_show():
    whole = philox_uint32(5, 0, 50_000)
    assert np.array_equal(whole[33_333:44_444], philox_uint32(5, 33_333, 11_111))


def test_counter_carries_into_its_high_word():
    offset = 4 * (2**32 - 1)
    words = philox_uint32(1, offset, 8).tolist()
    assert words == scalar_philox([2**32 - 1, 0, 0, 0], [1, 0]) + scalar_philox([0, 1, 0, 0], [1, 0])


def test_first_numbers_are_fixed_for_ever():
    """Changing any of these changes every program's results: they are part of the format."""
    generator = pb.random.Generator(42)
    assert generator.uniform((2,), dtype="float32").tolist() == UNIFORM32
    assert generator.uniform((2,), dtype="float64").tolist() == UNIFORM64
    assert generator.normal((3,), dtype="float64").tolist() == NORMAL64
    assert generator.integers(0, 1000, (4,)).tolist() == INTEGERS
    assert generator.permutation(6).tolist() == PERMUTATION


UNIFORM32: list[float] = [0.6129598617553711, 0.4685865044593811]
UNIFORM64: list[float] = [0.9877186516453577, 0.513906146990624]
NORMAL64: list[float] = [-1.4934674775718375, -1.12491099993181, -1.3847914961865648]
INTEGERS: list[int] = [839, 235, 293, 40]
PERMUTATION: list[int] = [4, 3, 1, 2, 5, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "distribution"), [("uniform", "uniform"), ("normal", "norm"), ("exponential", "expon")]
)
def test_distributions(name, distribution, dtype):
    sample = getattr(pb.random.Generator(7), name)((60_000,), dtype=dtype)
    assert sample.dtype.name == dtype
    assert stats.kstest(np.asarray(sample, np.float64), distribution).pvalue > 0.01
    assert abs(np.corrcoef(np.asarray(sample)[:-1], np.asarray(sample)[1:])[0, 1]) < 0.02


def test_parameters_of_distributions():
    generator = pb.random.Generator(1)
    normal = np.asarray(generator.normal((40_000,), mean=3.0, std=0.5, dtype="float64"))
    assert abs(normal.mean() - 3) < 0.02
    assert abs(normal.std() - 0.5) < 0.02
    uniform = np.asarray(generator.uniform((40_000,), low=-2, high=5))
    assert uniform.min() >= -2
    assert uniform.max() < 5
    assert abs(np.asarray(generator.exponential((40_000,), scale=3.0)).mean() - 3) < 0.1
    assert abs(np.asarray(generator.bernoulli(0.3, (40_000,))).mean() - 0.3) < 0.02


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_uniform_never_reaches_its_upper_end(dtype):
    require("numpy", dtype)
    generator = pb.random.Generator(3)
    for low, high in ((0.0, 1.0), (1.0, 1.5), (-3.0, -1.0), (100.0, 101.0)):
        values = np.asarray(generator.uniform((20_000,), low, high, dtype=dtype), np.float64)
        assert values.min() >= low
        assert values.max() < high


def test_bernoulli_at_the_ends_and_with_an_array():
    generator = pb.random.Generator(3)
    assert not np.asarray(generator.bernoulli(0.0, (1000,))).any()
    assert np.asarray(generator.bernoulli(1.0, (1000,))).all()
    chances = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert np.array_equal(np.asarray(generator.bernoulli(chances)), chances.astype(bool))
    assert generator.bernoulli(pb.asarray(chances), (5, 2, 2)).shape == (5, 2, 2)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 6, "int64"), (-3, 4, "int8"), (-5, 2**40, "int64"), (-(2**63), 2**63, "int64"), (0, 2**64, "uint64")],
)
def test_integers_cover_their_range_evenly(low, high, dtype):
    values = np.asarray(pb.random.Generator(9).integers(low, high, (20_000,), dtype=dtype))
    assert values.dtype.name == dtype
    unit = (values.astype(object) - low) / (high - low)
    assert abs(float(unit.mean()) - (0.5 if high - low > 100 else (high - low - 1) / 2 / (high - low))) < 0.01
    if high - low < 100:
        assert sorted(set(values.tolist())) == list(range(low, high))
        assert stats.chisquare(np.unique(values, return_counts=True)[1]).pvalue > 0.01


def test_long_multiplication():
    generator = np.random.default_rng(0)
    words = generator.integers(0, 2**32, (4, 50), dtype=np.uint32)
    for bound in (1, 6, 2**32):
        number = [int(a) | int(b) << 32 for a, b in words[:2].T]
        assert kernels.high_part(words[:2], (bound,)).tolist() == [n * bound >> 64 for n in number]
    for bound in (2**32 + 1, 2**40 - 3, 2**64 - 1):
        number = [sum(int(w) << 32 * i for i, w in enumerate(column)) for column in words.T]
        limbs = (bound & 0xFFFFFFFF, bound >> 32)
        assert kernels.high_part(words, limbs).tolist() == [n * bound >> 128 for n in number]


def test_own_elementary_functions():
    x = np.concatenate([np.random.default_rng(0).random(5000), [1.0, 2.0**-53, 0.5, np.sqrt(0.5)]])
    np.testing.assert_allclose(kernels._log(x), np.log(x), rtol=2e-15, atol=1e-16)
    turns = np.concatenate([np.random.default_rng(1).random(5000), [0.0, 0.125, 0.25, 0.5, 0.75, 1 - 2.0**-53]])
    sine, cosine = kernels._sine_and_cosine(turns)
    np.testing.assert_allclose(sine, np.sin(2 * np.pi * turns), atol=1e-15)
    np.testing.assert_allclose(cosine, np.cos(2 * np.pi * turns), atol=1e-15)


def test_permutation_and_choice():
    generator = pb.random.Generator(2)
    assert sorted(generator.permutation(100).tolist()) == list(range(100))
    rows = np.arange(12.0).reshape(4, 3)
    shuffled = np.asarray(generator.permutation(rows))
    assert sorted(map(tuple, shuffled)) == sorted(map(tuple, rows))
    columns = np.asarray(generator.permutation(rows, axis=1))
    assert sorted(map(tuple, columns.T)) == sorted(map(tuple, rows.T))
    assert len(set(generator.choice(10, (10,), replace=False).tolist())) == 10
    assert generator.choice(rows, (5, 2), axis=1).shape == (4, 5, 2)
    assert set(generator.choice(3, (200,)).tolist()) == {0, 1, 2}
    counts = np.zeros((4, 4))
    for _ in range(2000):
        counts[np.arange(4), np.asarray(generator.permutation(4))] += 1
    assert stats.chisquare(counts.ravel()).pvalue > 0.001


def test_numbers_depend_on_key_offset_and_index_alone():
    generator = pb.random.Generator(5)
    generator.next_key(8)
    state = generator.state
    long = np.asarray(generator.normal((30_000,), dtype="float64"))
    generator.state = state
    short = np.asarray(generator.normal((101,), dtype="float64"))
    assert np.array_equal(long[:101], short)
    generator.state = state
    assert np.array_equal(np.asarray(generator.normal((100, 300), dtype="float64")).ravel(), long)


def test_state_goes_through_json_and_pickle():
    generator = pb.random.Generator(11)
    generator.uniform((7,))
    state = json.loads(json.dumps(generator.state))
    copy = pickle.loads(pickle.dumps(generator))
    expected = generator.uniform((5,)).tolist()
    generator.state = state
    assert generator.uniform((5,)).tolist() == expected
    assert copy.uniform((5,)).tolist() == expected


def test_split_gives_streams_of_their_own():
    parent = pb.random.Generator(0)
    children = parent.split(5) + parent.split(5)
    streams = [parent, *children]
    first = np.stack([np.asarray(g.uniform((100,), dtype="float64")) for g in streams])
    assert np.unique(first).size == first.size
    again = pb.random.Generator(0).split(5)
    assert [g.state for g in again] == [{"key": g.state["key"], "offset": 0} for g in children[:5]]


def test_default_generator_is_seeded_and_can_be_replaced():
    pb.random.seed(3)
    first = pb.random.normal((4,)).tolist()
    with pb.random.using(3) as generator:
        assert pb.random.default_generator() is generator
        assert pb.random.normal((4,)).tolist() == first
    pb.random.seed(3)
    state = pb.random.get_state()
    assert pb.random.normal((4,)).tolist() == first
    pb.random.set_state(state)
    assert pb.random.normal((4,)).tolist() == first
    assert pb.random.Generator().state != pb.random.Generator().state


def test_using_is_seen_by_its_own_thread_only():
    seen = []
    with pb.random.using(1) as generator:
        thread = threading.Thread(target=lambda: seen.append(pb.random.default_generator()))
        thread.start()
        thread.join()
    assert seen[0] is not generator


def test_threads_reserve_different_stretches():
    generator = pb.random.Generator(0)
    reserved: list[tuple[int, int]] = []

    def reserve() -> None:
        for _ in range(500):
            reserved.append(generator.next_key(5))

    threads = [threading.Thread(target=reserve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offset for _, offset in reserved) == list(range(0, 8 * 2000, 8))


def test_shapes_and_dtypes():
    generator = pb.random.Generator(0)
    assert generator.uniform().shape == ()
    assert generator.normal(3).shape == (3,)
    assert generator.normal((0, 4)).shape == (0, 4)
    assert generator.uniform((2, 3)).dtype == pb.default_dtype()
    assert not generator.normal((2,)).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda g: g.uniform((-1,)), pb.ShapeError, "negative"),
        (lambda g: g.uniform((1.5,)), pb.ShapeError, "integers"),
        (lambda g: g.uniform((2,), dtype="int32"), pb.DtypeError, "int32"),
        (lambda g: g.uniform((2,), 2.0, 1.0), ValueError, "at most"),
        (lambda g: g.normal((2,), std=-1.0), ValueError, "negative"),
        (lambda g: g.integers(5, 5), ValueError, "high is 5"),
        (lambda g: g.integers(0, 300, dtype="uint8"), ValueError, "300"),
        (lambda g: g.integers(0.5), pb.DtypeError, "integer"),
        (lambda g: g.integers(3, dtype="float32"), pb.DtypeError, "float32"),
        (lambda g: g.bernoulli(1.5), ValueError, "between 0 and 1"),
        (lambda g: g.bernoulli([0.5, 0.5], (3,)), pb.ShapeError, "fit"),
        (lambda g: g.choice(3, (4,), replace=False), pb.ShapeError, "4 of 3"),
        (lambda g: g.permutation(np.ones((2, 2)), axis=2), pb.ShapeError, "axis 2"),
        (lambda g: g.seed(-1), ValueError, "seed is -1"),
        (lambda g: g.seed("a"), pb.DtypeError, "integer"),
    ],
)
def test_errors_say_what_was_given_and_leave_the_state(call, error, text):
    generator = pb.random.Generator(0)
    generator.next_key(12)
    with pytest.raises(error, match=text):
        call(generator)
    assert generator.state == {"key": 0, "offset": 12}


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda g, **options: g.uniform((7,), **options),
        lambda g, **options: g.normal((3, 5), mean=1.0, std=2.0, dtype="float64", **options),
        lambda g, **options: g.exponential((7,), dtype="float64", **options),
        lambda g, **options: g.integers(-5, 100, (9,), **options),
        lambda g, **options: g.bernoulli(0.4, (20,), **options),
        lambda g, **options: g.permutation(11, **options),
    ],
    ids=["uniform", "normal", "exponential", "integers", "bernoulli", "permutation"],
)
def test_every_device_has_the_same_numbers(draw, device):
    require(device)
    here, there = draw(pb.random.Generator(5)), draw(pb.random.Generator(5), device=device)
    assert there.device.startswith(device)
    assert there.dtype == here.dtype
    assert there.tolist() == here.tolist()
    with pb.device(device):
        assert draw(pb.random.Generator(5)).device == there.device


@pytest.mark.parametrize("call", ["normal(0, 1, (2,))", "uniform(0, 1, (2,))", "exponential(3, (2,))"])
def test_arguments_in_the_order_of_numpy_are_explained(call):
    with pytest.raises(pb.DtypeError, match=r"got tuple: \(2,\)\. The arguments are \(shape, "):
        eval(f"pb.random.{call}")


def test_help_of_the_functions_says_what_they_do_and_take():
    import inspect

    for name in ("normal", "uniform", "integers", "choice"):
        function, method = getattr(pb.random, name), getattr(pb.random.Generator, name)
        assert list(inspect.signature(function).parameters) == list(inspect.signature(method).parameters)[1:]
        assert function.__doc__.startswith(method.__doc__.partition("\n")[0])


def test_more_numbers_than_there_is_memory_for_are_refused_before_any_is_made():
    with pytest.raises(MemoryError):
        pb.random.Generator(0).normal((1 << 52, 8))
