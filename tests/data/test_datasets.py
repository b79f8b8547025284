"""Datasets in memory, their parts, and windows of text."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.data import ArrayDataset, Characters, Subset, TextWindows, random_split


@pytest.fixture
def arrays():
    return np.arange(14.0).reshape(7, 2), np.arange(7) * 10


@pytest.mark.parametrize("convert", [np.asarray, pb.asarray], ids=["numpy", "tensor"])
@pytest.mark.parametrize(
    "index", [3, -1, slice(1, 4), slice(None, None, 2), np.array([5, 0, 5]), np.array([], np.int64)], ids=repr
)
def test_indexing_takes_the_same_samples_of_every_array(arrays, convert, index):
    inputs, targets = arrays
    dataset = ArrayDataset(convert(inputs), convert(targets))
    first, second = dataset[index]
    assert isinstance(first, pb.Tensor) == (convert is pb.asarray)
    np.testing.assert_array_equal(np.asarray(first), inputs[index])
    np.testing.assert_array_equal(np.asarray(second), targets[index])
    assert len(dataset) == 7


@pytest.mark.parametrize(
    ("arrays", "error", "words"),
    [
        ((), pb.ConfigurationError, "no arrays"),
        ((np.zeros((3, 2)), np.zeros(4)), pb.ShapeError, r"3 and 4 samples"),
        ((np.zeros((0, 2)), np.zeros(0)), pb.ShapeError, r"no samples \(shapes \(0, 2\) and \(0,\)\)"),
        ((np.zeros(3), np.float32(1)), pb.ShapeError, r"array 1 has shape \(\)"),
        (("text",), pb.DtypeError, "array 0 is a str"),
        ((pb.tensor([1.0], requires_grad=True),), pb.DtypeError, "detach"),
    ],
)
def test_what_is_no_dataset_is_named(arrays, error, words):
    with pytest.raises(error, match=words):
        ArrayDataset(*arrays)


def test_a_subset_takes_its_indices_of_the_dataset(arrays):
    subset = Subset(ArrayDataset(*arrays), [6, -7, 2])
    assert len(subset) == 3
    assert subset[0][1] == 60 and subset[1][1] == 0
    np.testing.assert_array_equal(subset.batch(slice(1, 3))[1], [0, 20])
    np.testing.assert_array_equal(Subset(subset, [2, 0]).batch(np.array([1, 0]))[1], [60, 20])
    assert [Subset("abc", [2, 0])[i] for i in range(2)] == ["c", "a"]
    assert not hasattr(Subset("abc", [2, 0]), "batch")


@pytest.mark.parametrize(
    ("indices", "error", "words"),
    [([0, 7], pb.IndexingError, "index 7 .* 7 samples"), ([0.5], pb.DtypeError, "integers"), ([-8], IndexError, "-8")],
)
def test_a_subset_of_samples_that_are_not_there_is_refused(arrays, indices, error, words):
    with pytest.raises(error, match=words):
        Subset(ArrayDataset(*arrays), indices)


@pytest.mark.parametrize(
    ("length", "fractions", "sizes"),
    [
        (10, [0.8, 0.2], [8, 2]),
        (7, [0.5, 0.5], [4, 3]),
        (10, [1 / 3, 1 / 3, 1 / 3], [4, 3, 3]),
        (100, [0.29, 0.71], [29, 71]),  # 100 * 0.29 is 28.999999999999996
        (11, [0.1, 0.8, 0.1], [1, 9, 1]),
    ],
)
def test_a_split_shares_out_every_sample_once(length, fractions, sizes):
    parts = random_split(range(length), fractions, seed=3)
    assert [len(part) for part in parts] == sizes
    assert sorted(index for part in parts for index in part.indices) == list(range(length))
    again = random_split(range(length), fractions, seed=3)
    other = random_split(range(length), fractions, seed=4)
    assert all((a.indices == b.indices).all() for a, b in zip(parts, again))
    assert any((a.indices != b.indices).any() for a, b in zip(parts, other))


@pytest.mark.parametrize(
    ("length", "fractions", "words"),
    [
        (10, [0.5, 0.4], "add up to 1"),
        (10, [1.5, -0.5], "positive"),
        (10, [], "add up"),
        (3, [0.9, 0.1], "part would be empty"),
        (10, 0.8, r"fractions is a list, such as \[0.8, 0.2\], got 0.8"),
    ],
)
def test_a_split_that_makes_no_sense_is_refused(length, fractions, words):
    with pytest.raises(pb.ConfigurationError, match=words):
        random_split(range(length), fractions)


def test_lists_of_floats_are_float32_as_everywhere():
    dataset = ArrayDataset([[1.0, 2.0], [3.0, 4.0]], [1, 2], [np.float64(1), np.float64(2)])
    assert [array.dtype for array in dataset.arrays] == [np.float32, np.int64, np.float64]


def test_a_tuple_of_arrays_is_split_along_its_samples():
    training, _ = random_split((np.arange(20), np.arange(20) * 2), [0.8, 0.2])
    assert len(training) == 16
    first, second = training[np.arange(3)]
    assert first.shape == (3,) and (second == 2 * first).all()


@pytest.mark.parametrize(("count", "length", "stride"), [(8, 3, None), (7, 3, None), (9, 4, 1), (20, 5, 2), (4, 3, 7)])
def test_windows_of_text_are_shifted_by_one(count, length, stride):
    tokens = np.arange(count) * 3
    windows = TextWindows(tokens, length, stride)
    step = stride or length
    starts = [start for start in range(0, count, step) if start + length < count]
    assert len(windows) == len(starts)
    for number, start in enumerate(starts):
        np.testing.assert_array_equal(windows[number][0], tokens[start : start + length])
        np.testing.assert_array_equal(windows[number][1], tokens[start + 1 : start + length + 1])
    inputs, targets = windows.batch(np.arange(len(windows))[::-1])
    np.testing.assert_array_equal(inputs, np.stack([windows[i][0] for i in range(len(windows))][::-1]))
    np.testing.assert_array_equal(targets, inputs + 3)
    with pytest.raises(IndexError):
        windows[len(windows)]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.arange(3), 3), pb.ShapeError, "3 tokens are too few"),
        ((np.arange(3.0), 1), pb.DtypeError, "float64"),
        ((np.zeros((2, 2), int), 1), pb.DtypeError, r"\(2, 2\)"),
        ((np.arange(9), 0), pb.ConfigurationError, "length=0"),
        ((np.arange(9), 2, 0), pb.ConfigurationError, "stride=0"),
    ],
)
def test_tokens_that_make_no_windows_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        TextWindows(*arguments)


def test_characters_are_encoded_and_decoded():
    text = "one, zwei, trois: été"
    characters = Characters.of(text)
    assert characters.decode(characters.encode(text)) == text
    assert list(characters.alphabet) == sorted(set(text))
    with pytest.raises(pb.PullbackError, match=r"'!' \(at 3\)"):
        characters.encode("one!")
    for wrong in ("", "aba"):
        with pytest.raises(pb.ConfigurationError, match="every character once"):
            Characters(wrong)
