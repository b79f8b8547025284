"""Configuration files of `pullback train`: the table of what they may say, and reading one.

A configuration names things, which are looked up in fixed tables; nothing in it is ever run.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Iterable, Mapping

from ..errors import ConfigurationError
from . import schema
from .schema import (
    BELOW_ONE,
    BETAS,
    COUNT,
    FACTOR,
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    PART,
    POSITIVE,
    TEXT,
    Key,
    Keys,
    Problem,
    Section,
    one_of,
)
from .toml_lines import lines_of

Configuration = dict[str, Any]

_LARGEST = 1 << 16  # bytes; what reading takes can grow with the square of a file's size

_NAME = schema.Check(
    "a name of letters, digits, - and _",
    lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value) is not None,
)
_TASK = one_of("classification", "regression")
_ACTIVATION = one_of("relu", "gelu", "silu", "tanh")
_METRIC = one_of("accuracy", "f1", "mse", "mae", "r2")
_TEST_PART = {"test_fraction": Key(PART, 0.2)}
_RATE = {"lr": Key(POSITIVE)}
_DECAY = {"weight_decay": Key(NOT_NEGATIVE, 0.0)}
_ADAM = {"betas": Key(BETAS, [0.9, 0.999]), "eps": Key(POSITIVE, 1e-8)}
_FILE = {"path": Key(TEXT), "task": Key(_TASK), "standardize": Key(FLAG, True), **_TEST_PART}

TOP: Keys = {"name": Key(_NAME, "run"), "seed": Key(NATURAL, 0), "device": Key(TEXT, "numpy")}
SECTIONS: dict[str, Section] = {
    "data": Section(
        kinds={
            "digits": _TEST_PART,
            "text": {
                "source": Key(TEXT),
                "characters": Key(COUNT, 1_000_000),
                "context": Key(COUNT, 64),
                "test_fraction": Key(PART, 0.1),
            },
            "regression": {
                "samples": Key(COUNT, 1000),
                "features": Key(COUNT, 8),
                "noise": Key(NOT_NEGATIVE, 0.1),
                **_TEST_PART,
            },
            "npz": {"inputs": Key(TEXT, "x"), "targets": Key(TEXT, "y"), **_FILE},
            "csv": {"target": Key(TEXT), **_FILE},
        },
    ),
    "model": Section(
        kinds={
            "mlp": {
                "hidden": Key(schema.list_of("whole numbers, 1 or more", COUNT), [64]),
                "activation": Key(_ACTIVATION, "relu"),
                "dropout": Key(BELOW_ONE, 0.0),
            },
            "conv": {
                "channels": Key(schema.list_of("one to three whole numbers, 1 or more", COUNT, longest=3), [16, 32]),
                "hidden": Key(COUNT, 64),
                "activation": Key(_ACTIVATION, "relu"),
                "dropout": Key(BELOW_ONE, 0.0),
            },
            "transformer": {
                "layers": Key(COUNT, 4),
                "heads": Key(COUNT, 4),
                "width": Key(COUNT, 128),
                "dropout": Key(BELOW_ONE, 0.0),
            },
        },
    ),
    "loss": Section(
        kinds={
            "default": {},
            "cross_entropy": {"label_smoothing": Key(BELOW_ONE, 0.0)},
            "mse": {},
            "mae": {},
            "huber": {"delta": Key(POSITIVE, 1.0)},
        },
        default_kind="default",
    ),
    "optimizer": Section(
        keys=_RATE,
        kinds={
            "sgd": {"momentum": Key(BELOW_ONE, 0.0), "nesterov": Key(FLAG, False), **_DECAY},
            "adam": {**_ADAM, **_DECAY},
            "adamw": {**_ADAM, "weight_decay": Key(NOT_NEGATIVE, 0.01)},
            "rmsprop": {"alpha": Key(BELOW_ONE, 0.99), "momentum": Key(BELOW_ONE, 0.0), **_DECAY},
            "adagrad": _DECAY,
            "lion": {"betas": Key(BETAS, [0.9, 0.99]), **_DECAY},
        },
    ),
    "schedule": Section(
        keys={"warmup": Key(NATURAL, 0)},
        kinds={
            "constant": {},
            "linear": {"start": Key(NOT_NEGATIVE, 1.0), "end": Key(NOT_NEGATIVE, 0.0)},
            "cosine": {"minimum": Key(BELOW_ONE, 0.0)},
            "step": {"every": Key(COUNT), "gamma": Key(FACTOR, 0.1)},
            "exponential": {"gamma": Key(FACTOR)},
            "onecycle": {"rise": Key(PART, 0.3)},
            "plateau": {"decay": Key(PART, 0.1), "patience": Key(NATURAL, 10)},
        },
        default_kind="constant",
    ),
    "train": Section(
        keys={
            "epochs": Key(COUNT, None),
            "steps": Key(COUNT, None),
            "batch_size": Key(COUNT, 32),
            "accumulate": Key(COUNT, 1),
            "clip_norm": Key(POSITIVE, None),
            "average": Key(PART, None),
            "metrics": Key(schema.list_of("metrics: accuracy, f1, mse, mae, r2", _METRIC), None),
            "validate_every": Key(COUNT, None),
            "checkpoint_every": Key(COUNT, None),
            "keep": Key(COUNT, 2),
            "compile": Key(FLAG, True),
        },
    ),
}
_DEFAULT_EPOCHS = 10
_METRICS_OF = {"classification": ("accuracy", "f1"), "regression": ("mse", "mae", "r2"), "text": ("accuracy",)}
_LOSSES_OF = {"classification": ("cross_entropy",), "regression": ("mse", "mae", "huber"), "text": ("cross_entropy",)}


def examples() -> list[str]:
    """The names of the configurations that come with Pullback."""
    folder = resources.files(__package__) / "examples"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def example_text(name: str) -> str:
    """The text of a configuration that comes with Pullback."""
    return (resources.files(__package__) / "examples" / f"{name}.toml").read_text(encoding="utf-8")


def read(path: Path, settings: Iterable[str] = ()) -> Configuration:
    """The configuration in a file, complete; every mistake in it is named in one `ConfigurationError`."""
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ConfigurationError(f"{path}: a configuration has at most {_LARGEST:,} bytes; this file has more.")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}:{line}: this is not UTF-8 text, so it is not TOML.") from None
    return parsed(text, str(path), path.parent, settings)


def parsed(text: str, name: str, folder: Path, settings: Iterable[str] = ()) -> Configuration:
    """The configuration in a text; `name` is the file's in messages, and paths in it start from `folder`.

    `settings` are texts such as "optimizer.lr=0.1", which replace what the file says.
    """
    text = text.replace("\r\n", "\n")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(_syntax_message(str(error), text, name)) from None
    except RecursionError:
        raise ConfigurationError(f"{name}: nested too deeply.") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ConfigurationError(f"{name}: not valid TOML: {error}") from None
    places = {path: (line, f"{name}:{line}") for path, line in lines_of(text).items()}
    places[()] = (0, name)
    for setting in settings:
        path, value = _setting(setting)
        _put(document, path, value, setting)
        place = (len(text), f"--set {setting}")
        places[path] = place
        for length in range(1, len(path)):
            places.setdefault(path[:length], place)

    configuration, problems = schema.resolved(document, TOP, SECTIONS)
    if not problems:
        problems = _contradictions(configuration)
    if problems:

        def place_of(problem: Problem) -> tuple[int, str]:
            """Where it is written, or the innermost table that is."""
            path = problem.path
            while path not in places:
                path = path[:-1]
            return places[path]

        problems.sort(key=lambda problem: place_of(problem)[0])
        raise ConfigurationError("\n".join(_sentence(place_of(problem)[1], problem) for problem in problems))
    _make_paths_absolute(configuration, folder)
    return configuration


def _sentence(where: str, problem: Problem) -> str:
    subject = ".".join(map(str, problem.path))
    if len(problem.path) == 1 and problem.message.startswith("is missing"):
        subject = f"[{subject}]"
    joint = " " if problem.message.startswith("is ") else ": "
    return f"{where}: {subject}{joint}{problem.message}"


def _syntax_message(message: str, text: str, name: str) -> str:
    """The parser's complaint with the line in front."""
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if found:
        return f"{name}:{found[1]}: not valid TOML: {message[: found.start()]} (column {found[2]})"
    message = message.removesuffix(" (at end of document)")
    return f"{name}:{len(text.splitlines()) or 1}: not valid TOML: {message}, at the end of the file"


def _setting(setting: str) -> tuple[tuple[str, ...], Any]:
    key, equals, text = setting.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise ConfigurationError(f"--set {setting}: expected section.key=value, such as optimizer.lr=0.01.")
    try:
        value = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return path, text.strip()  # a word: `--set model.kind=mlp` needs no quotes
    return path, value["value"] if len(value) == 1 else text


def _put(document: dict[str, Any], path: tuple[str, ...], value: Any, setting: str) -> None:
    table = document
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ConfigurationError(f"--set {setting}: {part} is not a section.")
    if path[-1] == "kind" and value != table.get("kind"):
        table.clear()  # another kind has other keys: those of the file would only be in the way
    if path in (("train", "epochs"), ("train", "steps")):
        table.pop("steps" if path[-1] == "epochs" else "epochs", None)
    table[path[-1]] = value


def task_of(configuration: Mapping[str, Any]) -> str:
    """What is learnt: "classification", "regression" or "text"."""
    data = configuration["data"]
    return {"digits": "classification", "text": "text", "regression": "regression"}.get(data["kind"]) or data["task"]


def _contradictions(configuration: Configuration) -> list[Problem]:
    """What is wrong between keys that are right by themselves; fills in what depends on other keys."""
    problems = []
    data, model, train = (configuration[name] for name in ("data", "model", "train"))
    task = task_of(configuration)
    if train["epochs"] and train["steps"]:
        problems.append(Problem(("train", "steps"), "expected either epochs or steps, got both"))
    if not (train["epochs"] or train["steps"]):
        train["epochs"] = _DEFAULT_EPOCHS
    if train["steps"]:  # an epoch may never end
        for key in ("validate_every", "checkpoint_every"):
            train[key] = train[key] or max(1, train["steps"] // 10)
    loss = configuration["loss"]
    if loss["kind"] == "default":
        loss["kind"] = _LOSSES_OF[task][0]
        loss.update({key: entry.default for key, entry in SECTIONS["loss"].kinds[loss["kind"]].items()})
    elif loss["kind"] not in _LOSSES_OF[task]:
        expected = " or ".join(_LOSSES_OF[task])
        problems.append(Problem(("loss", "kind"), f'expected {expected} for {task} data, got "{loss["kind"]}"'))
    if train["metrics"] is None:
        train["metrics"] = {"classification": ["accuracy"], "regression": ["r2"], "text": ["accuracy"]}[task]
    for metric in train["metrics"]:
        if metric not in _METRICS_OF[task]:
            expected = ", ".join(_METRICS_OF[task])
            problems.append(Problem(("train", "metrics"), f'expected {expected} for {task} data, got "{metric}"'))
    if (model["kind"] == "transformer") != (task == "text"):
        expected = "transformer" if task == "text" else "mlp or conv"
        problems.append(Problem(("model", "kind"), f'expected {expected} for {task} data, got "{model["kind"]}"'))
    elif model["kind"] == "transformer" and model["width"] % model["heads"]:
        expected = f"a multiple of heads = {model['heads']}"
        problems.append(Problem(("model", "width"), f"expected {expected}, got {model['width']}"))
    if model["kind"] == "conv" and data["kind"] in ("csv", "regression"):
        problems.append(Problem(("model", "kind"), f'"conv" needs pictures, and {data["kind"]} data are plain rows'))
    optimizer = configuration["optimizer"]
    if optimizer.get("nesterov") and not optimizer["momentum"]:
        problems.append(Problem(("optimizer", "nesterov"), "expected a momentum above 0 beside it"))
    return problems


def _make_paths_absolute(configuration: Configuration, folder: Path) -> None:
    data = configuration["data"]
    if "path" in data:
        data["path"] = str((folder / data["path"]).resolve())
    elif data["kind"] == "text" and data["source"] != "stdlib":
        data["source"] = str((folder / data["source"]).resolve())


def written(configuration: Mapping[str, Any]) -> str:
    """A configuration as TOML text, which `parsed` turns into an equal one."""
    tables = {name: value for name, value in configuration.items() if isinstance(value, dict)}
    lines = [_line(key, value) for key, value in configuration.items() if key not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(_line(key, value) for key, value in table.items() if value is not None)]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    return f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str):
        return repr(value)
    escaped = {"\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escaped.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in value) + '"'
