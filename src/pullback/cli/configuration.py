"""Configuration files of `pullback train`: the table of what they may say.

A configuration names things, which are looked up in fixed tables; nothing in it is ever run.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any, Mapping

from . import schema
from .reading import Configuration, Format
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
            "signal": {
                "length": Key(COUNT, 4000),
                "channels": Key(COUNT, 3),
                "noise": Key(NOT_NEGATIVE, 0.1),
                "context": Key(COUNT, 96),
                **_TEST_PART,
            },
            "copying": {
                "samples": Key(COUNT, 4000),
                "length": Key(COUNT, 64),
                "marked": Key(COUNT, 4),
                "symbols": Key(COUNT, 6),
                "test_fraction": Key(PART, 0.05),
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
            "state_space": {
                "layer": Key(one_of("mamba", "mamba2", "s4d", "s5", "mingru", "rwkv"), "mamba"),
                "layers": Key(COUNT, 2),
                "width": Key(COUNT, 32),
                "states": Key(COUNT, 16),
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
_METRICS_OF = {
    "classification": ("accuracy", "f1"), "regression": ("mse", "mae", "r2"), "text": ("accuracy",),
    "signal": ("mse", "mae", "r2"), "copying": ("accuracy",),
}  # fmt: skip
_LOSSES_OF = {
    "classification": ("cross_entropy",), "regression": ("mse", "mae", "huber"), "text": ("cross_entropy",),
    "signal": ("mse", "mae", "huber"), "copying": ("cross_entropy",),
}  # fmt: skip
_MODELS_OF = {"text": ("transformer",), "signal": ("state_space",), "copying": ("state_space",)}


def examples() -> list[str]:
    """The names of the configurations that come with Pullback."""
    folder = resources.files(__package__) / "examples"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def example_text(name: str) -> str:
    """The text of a configuration that comes with Pullback."""
    return (resources.files(__package__) / "examples" / f"{name}.toml").read_text(encoding="utf-8")


def task_of(configuration: Mapping[str, Any]) -> str:
    """What is learnt: "classification", "regression", "text", "signal" or "copying"."""
    data = configuration["data"]
    return data["task"] if "task" in data else {"digits": "classification"}.get(data["kind"], data["kind"])


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
        train["metrics"] = ["r2"] if "r2" in _METRICS_OF[task] else ["accuracy"]
    for metric in train["metrics"]:
        if metric not in _METRICS_OF[task]:
            expected = ", ".join(_METRICS_OF[task])
            problems.append(Problem(("train", "metrics"), f'expected {expected} for {task} data, got "{metric}"'))
    fitting = _MODELS_OF.get(task, ("mlp", "conv"))
    if model["kind"] not in fitting:
        expected = " or ".join(fitting)
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


FORMAT = Format(
    TOP, SECTIONS, _contradictions, _make_paths_absolute, alternatives=((("train", "epochs"), ("train", "steps")),)
)
