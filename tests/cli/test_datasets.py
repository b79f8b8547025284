"""Data of every kind are read, split without sharing a sample, and refused with the place where they are wrong."""

from __future__ import annotations

import sys
import zipfile

import numpy as np
import pytest

from pullback import ConfigurationError, FileFormatError
from pullback.cli import datasets

CSV = {
    "kind": "csv",
    "path": "data.csv",
    "target": "y",
    "task": "regression",
    "standardize": False,
    "test_fraction": 0.25,
}
NPZ = {"kind": "npz", "path": "data.npz", "inputs": "x", "targets": "y", "task": "classification",
       "standardize": False, "test_fraction": 0.25}  # fmt: skip
TEXT = {"kind": "text", "source": "text.txt", "characters": 1000, "context": 8, "test_fraction": 0.2}


def samples(data: datasets.Data) -> list[tuple[float, ...]]:
    """All samples of both parts, in one order."""
    both = [part[:] for part in (data.train, data.test)]
    return sorted(tuple(np.ravel(row)) for x, y in both for row in np.column_stack([x.reshape(len(x), -1), y]).tolist())


def test_digits():
    pytest.importorskip("sklearn")
    data = datasets.load({"kind": "digits", "test_fraction": 0.2}, seed=0)
    assert (len(data.train), len(data.test)) == (1438, 359)
    x, y = data.train[:]
    assert data.input_shape == (1, 8, 8) and x.dtype == np.float32 and 0 == x.min() and x.max() == 1
    assert data.outputs == 10 and set(y.tolist()) == set(range(10)) and data.names == list("0123456789")


def test_digits_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ConfigurationError, match="pip install scikit-learn"):
        datasets.load({"kind": "digits", "test_fraction": 0.2}, seed=0)


def test_regression_is_a_function_of_its_seed():
    options = {"kind": "regression", "samples": 40, "features": 3, "noise": 0.0, "test_fraction": 0.25}
    first, again, other = (samples(datasets.load(options, seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert datasets.load(options, 1).input_shape == (3,) and datasets.load(options, 1).outputs == 1


SIGNAL = {"kind": "signal", "length": 400, "channels": 3, "noise": 0.1, "context": 24, "test_fraction": 0.25}
COPYING = {"kind": "copying", "samples": 40, "length": 9, "marked": 3, "symbols": 5, "test_fraction": 0.1}


def test_a_signal_is_cut_into_windows_and_what_comes_next():
    data = datasets.load(SIGNAL, 0)
    assert data.input_shape == (24, 3) and data.outputs == 3 and data.names == []
    for part in (data.train, data.test):
        x, y = part[:]
        assert x.dtype == np.float32 and x.shape == y.shape == (len(part), 24, 3)
        np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
        np.testing.assert_array_equal(x[1:, :-2], x[:-1, 2:])  # windows are two steps apart
    again, other = (datasets.load(SIGNAL, seed).train[:][0] for seed in (0, 1))
    assert (again == data.train[:][0]).all() and (other != again).any()
    with pytest.raises(ConfigurationError, match="a part of the signal has 100 steps, and needs more than"):
        datasets.load({**SIGNAL, "context": 100}, 0)


def test_marked_symbols_are_asked_for_at_the_end():
    data = datasets.load(COPYING, 0)
    assert data.input_shape == (12,) and data.outputs == 7 and data.names[-2:] == ["nothing", "question"]
    assert (len(data.train), len(data.test)) == (36, 4)
    places = set()
    for tokens, targets in zip(*data.train[:]):
        marked = tokens[:9] < 5
        assert marked.sum() == 3 and (tokens[:9][~marked] == 5).all() and (tokens[9:] == 6).all()
        assert (targets[:9] == -100).all() and (targets[9:] == tokens[:9][marked]).all()
        places.add(tuple(np.flatnonzero(marked)))
    assert len(places) > 20
    with pytest.raises(ConfigurationError, match=r"data\.marked: expected at most data\.length = 9, got 10"):
        datasets.load({**COPYING, "marked": 10}, 0)
    with pytest.raises(ConfigurationError, match="4 samples are too few"):
        datasets.load({**COPYING, "samples": 4}, 0)


@pytest.mark.parametrize("seed", [0, 5])
def test_csv_numbers(tmp_path, seed):
    (tmp_path / "data.csv").write_text("a,y,b\n" + "".join(f"{i},{10 * i},{-i}\n" for i in range(8)) + "\n")
    data = datasets.load(CSV, seed)
    assert (len(data.train), len(data.test), data.input_shape, data.outputs, data.names) == (6, 2, (2,), 1, [])
    assert samples(data) == sorted((i, -i, 10 * i) for i in range(8))


def test_csv_classes_may_be_words(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n1,cat\n2,ant\n3,cat\n4,bee\n")
    data = datasets.load({**CSV, "task": "classification"}, 0)
    assert data.names == ["ant", "bee", "cat"] and data.outputs == 3
    assert samples(data) == [(1, 2), (2, 0), (3, 2), (4, 1)]


def test_csv_spaces_around_a_class_do_not_make_another(tmp_path):
    (tmp_path / "data.csv").write_text("a, y\n1, cat\n2, ant \n3, ant\n4,cat\n")
    assert datasets.load({**CSV, "task": "classification"}, 0).names == ["ant", "cat"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a", "", "b", "a"], "data.csv:3: column 'y' is empty"),
        (["0.5", "1", "2.25", "-1"], "data.csv: column 'y' has numbers such as 0.5, which are no classes"),
        (["a", "a", "a", "a"], "all 4 samples are of the class 'a'"),
    ],
)
def test_csv_wrong_classes(tmp_path, column, message):
    rows = "".join(f"{i},{name}\n" for i, name in enumerate(column))
    (tmp_path / "data.csv").write_text("a,y\n" + rows)
    with pytest.raises(ConfigurationError) as caught:
        datasets.load({**CSV, "task": "classification"}, 0)
    assert message in str(caught.value)


def test_whole_numbers_are_classes_however_they_are_written(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n1,0.0\n2,1.0\n3,1.0\n4,0.0\n")
    assert datasets.load({**CSV, "task": "classification"}, 0).names == ["0.0", "1.0"]


def test_standardized_by_the_training_part_alone(tmp_path):
    generator = np.random.default_rng(0)
    x = np.column_stack([generator.normal(5, 3, 40), np.full(40, 7.0)])
    np.savez(tmp_path / "data.npz", x=x, y=generator.normal(100, 20, 40))
    data = datasets.load({**NPZ, "task": "regression", "standardize": True}, 0)
    train_x, train_y = data.train[:]
    np.testing.assert_allclose(train_x.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(train_x.std(axis=0), [1, 0], atol=1e-6)
    np.testing.assert_allclose([train_y.mean(), train_y.std()], [0, 1], atol=1e-6)
    assert abs(data.test[:][0][:, 0].mean()) > 1e-3


def test_npz_keeps_the_shape_of_a_sample(tmp_path):
    x = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
    np.savez(tmp_path / "data.npz", x=x, y=np.array([3, 3, 7, 7, 9]))
    data = datasets.load(NPZ, 0)
    assert data.input_shape == (2, 3) and data.names == ["3", "7", "9"]
    assert samples(data) == sorted((*row.ravel().tolist(), c) for row, c in zip(x, [0, 0, 1, 1, 2]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,2\nnan,3\n", "data.csv:3: column 'a' is nan"),
        ("a,y\n1,2\n1,inf\n", "data.csv:3: column 'y' is inf"),
        ("a,y\n1,2\nfoo,3\n", "data.csv:3: column 'a': expected a number, got 'foo'"),
        ("a,y\n1,2\n1\n", "data.csv:3: expected 2 values, got 1"),
        ("a,b\n1,2\n", "data.csv:1: expected one column called 'y', the columns are a, b"),
        ("", "data.csv: the file is empty"),
        ("a,y\n", "no samples"),
        ("y\n1\n2\n3\n4\n", "the samples have no values"),
        ("a,y\n1,2\n", "a part would be empty"),
        ("a,y\n1,2\n1e300,1\n3,3\n4,4\n", "float32 cannot hold"),
    ],
)
def test_wrong_csv(tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        datasets.load(CSV, 0)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((4, 2))}, "has no array 'y'; it has x"),
        ({"x": np.ones((4, 2)), "y": np.arange(3)}, "4 inputs, but 3 targets"),
        ({"x": np.array([[1.0, 2.0], [np.nan, 1.0]]), "y": np.arange(2)}, "'x'[1, 0] is nan; 1 of 4 values"),
        ({"x": np.array([[1.0, 2.0], [-np.inf, 1.0]]), "y": np.arange(2)}, "'x'[1, 0] is -inf"),
        ({"x": np.ones((4, 2)), "y": np.array(3)}, "4 inputs, but no list of targets"),
        ({"x": np.ones((4, 0)), "y": np.arange(4) % 2}, "the samples have no values"),
        ({"x": np.ones(4), "y": np.arange(4)}, "must be real numbers of shape (samples, ...)"),
        ({"x": np.ones((4, 2), complex), "y": np.arange(4)}, "must be real numbers"),
        ({"x": np.ones((4, 2)), "y": np.ones(4)}, "must be classes"),
        ({"x": np.ones((4, 2)), "y": np.array([{}] * 4, dtype=object)}, "not a sound .npz file"),
    ],
)
def test_wrong_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises((ConfigurationError, FileFormatError)) as caught:
        datasets.load(NPZ, 0)
    assert message in str(caught.value)


def test_npz_with_an_entry_that_is_no_array(tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", b"hello")
    with pytest.raises(FileFormatError, match="'x' is not an array"):
        datasets.load(NPZ | {"path": str(path)}, 0)


@pytest.mark.parametrize("cut", [0, 1, 100, 300])
def test_npz_that_is_cut_off(tmp_path, cut):
    np.savez(tmp_path / "whole.npz", x=np.ones((4, 2)), y=np.arange(4))
    (tmp_path / "data.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:cut])
    with pytest.raises(FileFormatError, match=r"data\.npz: not a sound \.npz file"):
        datasets.load(NPZ, 0)


def test_npz_with_damaged_bytes(tmp_path):
    np.savez_compressed(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(40, 20)), y=np.arange(40))
    content = bytearray((tmp_path / "data.npz").read_bytes())
    content[1000] ^= 0xFF
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"not a sound \.npz file"):
        datasets.load(NPZ, 0)


@pytest.mark.parametrize("options", [CSV, NPZ, TEXT])
def test_missing_file(options):
    with pytest.raises(ConfigurationError, match="there is no such file"):
        datasets.load(options, 0)


def test_text_of_a_file(tmp_path):
    text = "".join(chr(97 + i % 7) for i in range(100)) + "é"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    data = datasets.load(TEXT, 0)
    assert data.names == [*"abcdefg", "é"] and data.outputs == 8 and data.input_shape == (8,)
    read = lambda codes: "".join(data.names[code] for code in codes)
    x, y = data.train[np.array([0, 5])]
    assert [read(row) for row in x] == [text[0:8], text[5:13]]
    assert [read(row) for row in y] == [text[1:9], text[6:14]]
    assert read(data.train[len(data.train) - 1][1]) == text[73:81]  # the rest is for testing
    x, _ = data.test[:]
    assert "".join(map(read, x)) == text[81:97]  # one after the other, in the last fifth


def test_text_of_the_library_is_always_the_same():
    options = {**TEXT, "source": "stdlib", "characters": 20_000}
    first, again = (datasets.load(options, 0).train[:1000][0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert set("import self\n") <= set(datasets.load(options, 0).names)


@pytest.mark.parametrize("text", ["", "short", "long enough, but not for testing"])
def test_short_text(tmp_path, text):
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(ConfigurationError, match="each part needs more than"):
        datasets.load(TEXT, 0)


def test_text_that_is_not_text(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"abc\xff" * 100)
    with pytest.raises(FileFormatError, match="not a text in UTF-8"):
        datasets.load(TEXT, 0)
