"""The data that a configuration names: read, checked, split into training and test part."""

from __future__ import annotations

import csv
import math
import sysconfig
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple

import numpy as np

from ..data import ArrayDataset, Characters, TextWindows, random_split
from ..errors import ConfigurationError, FileFormatError
from ..random import Generator
from . import sequences

_PRINTABLE = frozenset(map(chr, (9, 10, *range(32, 127))))


class Data(NamedTuple):
    """A training and a test part (sequences of samples, see `pullback.data`), and what a model must know of them."""

    train: Any
    test: Any
    input_shape: tuple[int, ...]
    outputs: int  # classes, or numbers to predict
    names: list[str]  # of the classes, or the characters of a text; empty for numbers

    def fingerprint(self) -> str:
        """A checksum of all samples: a run can be resumed only with the data that it began with."""
        digest = sha256(repr((self.input_shape, self.names)).encode())
        for part in (self.train, self.test):
            for array in [part.tokens] if isinstance(part, TextWindows) else part.arrays:
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def load(options: Mapping[str, Any], seed: int) -> Data:
    """The data of a configuration's [data] section; which samples are for testing depends on `seed` alone."""
    return _KINDS[options["kind"]](options, seed)


# -- digits and made-up numbers -------------------------------------------------------------------


def _digits(options: Mapping[str, Any], seed: int) -> Data:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ConfigurationError(
            f"the digits come with scikit-learn, which cannot be imported here ({error}). "
            "Install it with `pip install scikit-learn`."
        ) from None
    pictures, labels = load_digits(return_X_y=True)
    return _split((pictures / 16).reshape(-1, 1, 8, 8), *_classes(labels), options, seed)


def _regression(options: Mapping[str, Any], seed: int) -> Data:
    """A smooth function of a few directions in the space of the features, and noise."""
    samples, features = options["samples"], options["features"]
    generator = Generator(seed)
    x = generator.normal((samples, features)).numpy()
    directions = generator.normal((features, 3)).numpy() / math.sqrt(features)
    first, second, third = (x @ directions).T
    y = np.sin(2 * first) + second * third + 0.5 * first
    y = y + options["noise"] * generator.normal((samples,)).numpy()
    return _split(x, y.reshape(-1, 1), [], options, seed)


# -- sequences ------------------------------------------------------------------------------------


def signal_stride(context: int) -> int:
    """How far the windows of a signal are apart."""
    return max(1, context // 12)


def _signal(options: Mapping[str, Any], seed: int) -> Data:
    """Windows of a signal, the end of which is for testing."""
    series = sequences.signal(options["length"], options["channels"], options["noise"], seed)
    count = len(series) - round(len(series) * options["test_fraction"])
    series = _single_precision(_standardized(series, slice(0, count)))
    stride = signal_stride(options["context"])
    parts = [
        ArrayDataset(*sequences.windows(part, options["context"], stride)) for part in (series[:count], series[count:])
    ]
    return Data(parts[0], parts[1], (options["context"], options["channels"]), options["channels"], [])


def _copying(options: Mapping[str, Any], seed: int) -> Data:
    x, y = sequences.copying(options["samples"], options["length"], options["marked"], options["symbols"], seed)
    count = len(x) - round(len(x) * options["test_fraction"])
    if not 0 < count < len(x):
        raise ConfigurationError(f"{len(x)} samples are too few to train and to test with: raise data.samples.")
    names = [*(f"symbol {number}" for number in range(options["symbols"])), "nothing", "question"]
    return Data(ArrayDataset(x[:count], y[:count]), ArrayDataset(x[count:], y[count:]), x.shape[1:], len(names), names)


# -- files ----------------------------------------------------------------------------------------


def _npz(options: Mapping[str, Any], seed: int) -> Data:
    path = _existing(options["path"])
    arrays = []
    if not zipfile.is_zipfile(path):
        raise FileFormatError(f"{path}: not a sound .npz file: it is cut off, damaged, or of another format.")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            for key in (options["inputs"], options["targets"]):
                if key not in file:
                    raise ConfigurationError(f"{path}: has no array {key!r}; it has {', '.join(file) or 'none'}.")
                arrays.append(file[key])
                if not isinstance(arrays[-1], np.ndarray):  # NumPy gives the bytes of what is no array
                    raise ValueError(f"{key!r} is not an array")
    except (ConfigurationError, OSError):
        raise
    except Exception as error:  # zipfile, zlib and NumPy each have their own for a damaged file
        raise FileFormatError(f"{path}: not a sound .npz file of plain arrays: {error}") from None
    x, y = arrays
    if not np.issubdtype(x.dtype, np.number) or np.iscomplexobj(x) or x.ndim < 2:
        raise ConfigurationError(
            f"{path}: {options['inputs']!r} must be real numbers of shape (samples, ...), got {x.dtype} {x.shape}."
        )
    if not y.ndim or len(x) != len(y):
        raise ConfigurationError(f"{path}: {len(x)} inputs, but {len(y) if y.ndim else 'no list of'} targets.")
    _check_finite(x, lambda index: f"{path}: {options['inputs']!r}{list(index)}")
    if options["task"] == "classification":
        if y.ndim != 1 or y.dtype.kind not in "iubU":
            raise ConfigurationError(
                f"{path}: {options['targets']!r} must be classes, integers or texts of shape (samples,), "
                f"got {y.dtype} {y.shape}."
            )
        return _split(x, *_classes(y), options, seed)
    if not np.issubdtype(y.dtype, np.number) or np.iscomplexobj(y) or y.ndim not in (1, 2):
        raise ConfigurationError(
            f"{path}: {options['targets']!r} must be numbers of shape (samples,) or (samples, n), "
            f"got {y.dtype} {y.shape}."
        )
    _check_finite(y, lambda index: f"{path}: {options['targets']!r}{list(index)}")
    return _split(x, y.reshape(len(y), -1), [], options, seed)


def _csv(options: Mapping[str, Any], seed: int) -> Data:
    path = _existing(options["path"])
    is_regression = options["task"] == "regression"
    rows: list[list[float]] = []
    targets: list[Any] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            if not header:
                raise ConfigurationError(f"{path}: the file is empty.")
            if header.count(options["target"]) != 1:
                raise ConfigurationError(
                    f"{path}:1: expected one column called {options['target']!r}, the columns are {', '.join(header)}."
                )
            place = header.index(options["target"])
            for cells in reader:
                if not cells:
                    continue
                where = f"{path}:{reader.line_num}"
                if len(cells) != len(header):
                    raise ConfigurationError(f"{where}: expected {len(header)} values, got {len(cells)}.")
                numbers = [
                    cell.strip() if i == place and not is_regression else _number(cell, where, header[i])
                    for i, cell in enumerate(cells)
                ]
                if not is_regression and not cells[place].strip():
                    raise ConfigurationError(f"{where}: column {header[place]!r} is empty, and names no class.")
                targets.append(numbers.pop(place))
                rows.append(numbers)  # type: ignore[arg-type]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path}: not a CSV file in UTF-8: {error}") from None
    x = np.array(rows, np.float64).reshape(len(rows), len(header) - 1)
    if is_regression:
        return _split(x, np.array(targets, np.float64).reshape(-1, 1), [], options, seed)
    _check_classes(path, options["target"], targets)
    return _split(x, *_classes(np.array(targets, dtype=str)), options, seed)


def _number(cell: str, where: str, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ConfigurationError(f"{where}: column {column!r}: expected a number, got {cell.strip()!r:.40}.") from None
    if not math.isfinite(value):
        raise ConfigurationError(f"{where}: column {column!r} is {value}; nothing can be learnt from it.")
    return value


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise ConfigurationError(f"{path}: there is no such file.")
    return path


def _check_finite(array: Any, name: Callable[[tuple[int, ...]], str]) -> None:
    wrong = ~np.isfinite(array)
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise ConfigurationError(
            f"{name(index)} is {array[index]}; {int(wrong.sum())} of {array.size} values are NaN or infinite, and "
            "nothing can be learnt from them."
        )


def _check_classes(path: Path, column: str, labels: list[str]) -> None:
    """Refuse a column of measurements: each of them would be a class of its own."""
    try:
        broken = [label for label in labels if not float(label).is_integer()]
    except ValueError:
        return  # words
    if broken:
        raise ConfigurationError(
            f"{path}: column {column!r} has numbers such as {broken[0]}, which are no classes. "
            'Is it a task = "regression"?'
        )


def _classes(labels: Any) -> tuple[Any, list[str]]:
    """Labels as numbers from 0, and what each number stands for."""
    names, numbers = np.unique(labels, return_inverse=True)
    if len(names) == 1:
        raise ConfigurationError(f"all {len(labels)} samples are of the class {str(names[0])!r}: expected two or more.")
    return numbers.reshape(-1).astype(np.int64), [str(name) for name in names]


# -- the split ------------------------------------------------------------------------------------


def _split(x: Any, y: Any, names: list[str], options: Mapping[str, Any], seed: int) -> Data:
    """Samples as a training and a test part; `names` are those of the classes, and empty for numbers to predict."""
    if not len(x):
        raise ConfigurationError("there are no samples in the data.")
    if not math.prod(x.shape[1:]):
        raise ConfigurationError("there is nothing to learn from in the data: the samples have no values.")
    shares = [1 - options["test_fraction"], options["test_fraction"]]
    train, test = (part.indices for part in random_split(range(len(x)), shares, seed))
    if options.get("standardize"):
        x = _standardized(x, train)
        y = y if names else _standardized(y, train)
    x = _single_precision(x)
    y = y if names else _single_precision(y)
    parts = [ArrayDataset(x[chosen], y[chosen]) for chosen in (train, test)]
    return Data(parts[0], parts[1], x.shape[1:], len(names) or y.shape[1], names)


def _standardized(values: Any, train: Any) -> Any:
    """With mean 0 and deviation 1 over the training part alone, so that the test stays a test."""
    values = np.asarray(values, np.float64)
    mean, deviation = values[train].mean(axis=0), values[train].std(axis=0)
    return (values - mean) / np.where(deviation > 0, deviation, 1.0)


def _single_precision(values: Any) -> Any:
    with np.errstate(over="ignore"):
        short = np.asarray(values, np.float32)
    if not np.isfinite(short).all():
        raise ConfigurationError("the data have values that float32 cannot hold: set data.standardize = true.")
    return short


# -- text -----------------------------------------------------------------------------------------


def _text(options: Mapping[str, Any], seed: int) -> Data:
    text = _library_text(options["characters"]) if options["source"] == "stdlib" else _file_text(options)
    length = options["context"]
    tested = round(len(text) * options["test_fraction"])
    if min(tested, len(text) - tested) <= length:
        raise ConfigurationError(
            f"the text has {len(text)} characters, of which {tested} are for testing: each part needs more than "
            f"data.context = {length}. Choose a longer text or a smaller context."
        )
    characters = Characters.of(text)
    codes = characters.encode(text)
    train, test = TextWindows(codes[:-tested], length, stride=1), TextWindows(codes[-tested:], length)
    return Data(train, test, (length,), len(characters), list(characters.alphabet))


def _file_text(options: Mapping[str, Any]) -> str:
    path = _existing(options["source"])
    try:
        return path.read_text(encoding="utf-8")[: options["characters"]]
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text in UTF-8: {error}") from None


def _library_text(count: int) -> str:
    """The source of Python's own library, module after module in the order of their names."""
    parts: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-z]*.py")):
        text = "".join(filter(_PRINTABLE.__contains__, path.read_text(encoding="utf-8", errors="ignore")))
        parts.append(text[: count - size])
        size += len(parts[-1])
        if size == count:
            break
    if not size:
        raise ConfigurationError("the source of Python's library is not installed here: name a text file instead.")
    return "".join(parts)


_KINDS = {
    "digits": _digits, "text": _text, "regression": _regression, "signal": _signal, "copying": _copying, "npz": _npz,
    "csv": _csv,
}  # fmt: skip
