"""What `pullback finetune` is told: the table of its options, which are also the keys of its configuration files."""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigurationError
from ..finetune.settings import QUANT, Settings, checkpointing_bytes
from .reading import Configuration, Format
from .schema import (
    BELOW_ONE,
    COUNT,
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    POSITIVE,
    TEXT,
    Check,
    Key,
    Problem,
    list_of,
    one_of,
)


class Option(NamedTuple):
    """An option: what it must be, what to call its value, and what it is for."""

    check: Check
    metavar: str
    summary: str


CHECKPOINTING = Check(
    '"none", "balanced", "layers", or a size such as "2GiB"',
    lambda value: isinstance(value, str) and checkpointing_bytes(value) is not None,
)
_DATE = Check("a date such as 2026-01-31", lambda value: _is_date(str(value)))  # TOML has dates of its own
_PATH = Check("the path of a file or a folder", TEXT.accepts)
_NAMES = list_of("names of layers", TEXT, shortest=1)
_LENGTH = Check("a whole number, 2 or more", lambda value: COUNT.accepts(value) and value > 1)

OPTIONS: dict[str, Option] = {
    "model": Option(_PATH, "DIR", "the Hugging Face folder of the model"),
    "data": Option(
        _PATH, "FILE.jsonl", 'a line per text: {"text": ...}, {"messages": [...]} or {"prompt", "completion"}'
    ),
    "validation": Option(_PATH, "FILE.jsonl", "texts to evaluate with, and not to learn from"),
    "device": Option(TEXT, "DEVICE", "where to compute, as `pullback devices` lists them"),
    "dtype": Option(one_of("float32", "bfloat16", "float16"), "DTYPE", "of the frozen weights (default: as saved)"),
    "quant": Option(one_of(*QUANT), "HOW", "keep the frozen weights of the layers in few bits: int8, fp8, int4 or nf4"),
    "rank": Option(COUNT, "N", "rank of the adapters"),
    "alpha": Option(POSITIVE, "X", "the adapters' part is scaled by alpha / rank"),
    "dropout": Option(BELOW_ONE, "P", "of the adapters' inputs"),
    "targets": Option(_NAMES, "NAME", 'layers that get adapters: names, patterns, or "all-linear"'),
    "rslora": Option(FLAG, "", "scale by alpha / sqrt(rank)"),
    "dora": Option(FLAG, "", "learn the lengths of the weights' rows too"),
    "epochs": Option(COUNT, "N", "how often to go through the texts (default: 1)"),
    "steps": Option(COUNT, "N", "how many updates to make, in place of epochs"),
    "batch": Option(COUNT, "N", "rows at a time"),
    "seq": Option(_LENGTH, "N", "tokens in a row"),
    "accumulate": Option(COUNT, "N", "batches in an update, weighted by their tokens"),
    "pack": Option(FLAG, "", "put several texts into a row; they do not see each other"),
    "train_on": Option(one_of("answers", "all"), "WHAT", "learn answers alone, or all of a text"),
    "too_long": Option(one_of("error", "truncate", "skip"), "HOW", "what becomes of texts longer than a row"),
    "lr": Option(POSITIVE, "X", "learning rate"),
    "schedule": Option(one_of("constant", "linear", "cosine"), "NAME", "how the learning rate goes on"),
    "warmup": Option(NATURAL, "N", "steps in which it rises first (default: a thirtieth of all)"),
    "weight_decay": Option(NOT_NEGATIVE, "X", "of AdamW"),
    "clip_norm": Option(POSITIVE, "X", "the largest norm of a gradient"),
    "checkpointing": Option(CHECKPOINTING, "HOW", 'compute again what is not kept: none, balanced, layers, or "2GiB"'),
    "compile": Option(FLAG, "", "one native call per step"),
    "validate_every": Option(COUNT, "N", "steps between evaluations (default: an epoch)"),
    "checkpoint_every": Option(COUNT, "N", "steps between checkpoints (default: a tenth of the run)"),
    "keep": Option(COUNT, "N", "checkpoints that stay"),
    "seed": Option(NATURAL, "N", "of adapters, order and dropout"),
    "date": Option(_DATE, "DATE", "that chat templates are told (default: today's)"),
}
_PATHS = ("model", "data", "validation")
_DEFAULTS = {field.name: field.default for field in fields(Settings)}


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _key(name: str, option: Option) -> Key:
    default = _DEFAULTS[name]
    if isinstance(default, tuple):
        default = list(default)
    return Key(option.check) if name in ("model", "data") else Key(option.check, default)


def _completed(configuration: Configuration) -> list[Problem]:
    problems = []
    if configuration["epochs"] and configuration["steps"]:
        problems.append(Problem(("steps",), "expected either epochs or steps, got both"))
    if not (configuration["epochs"] or configuration["steps"]):
        configuration["epochs"] = 1
    configuration["date"] = str(configuration["date"] or date.today())  # a run that is resumed has the same
    if configuration["validate_every"] and not configuration["validation"]:
        problems.append(Problem(("validate_every",), "expected `validation` beside it, a file of texts"))
    return problems


def _make_paths_absolute(configuration: Configuration, folder: Path) -> None:
    for name in _PATHS:
        if configuration[name] is not None:
            configuration[name] = str((folder / configuration[name]).resolve())


FORMAT = Format(
    {name: _key(name, option) for name, option in OPTIONS.items()},
    completed=_completed,
    with_paths=_make_paths_absolute,
    alternatives=((("epochs",), ("steps",)),),
)


def add_options(parser: ArgumentParser) -> None:
    """Let a command line say all that a configuration file can."""
    for name, (check, metavar, summary) in OPTIONS.items():
        flag, default = f"--{name.replace('_', '-')}", _DEFAULTS[name]
        if name not in ("model", "data") and default is not None and "default:" not in summary:
            shown = " ".join(default) if isinstance(default, tuple) else default
            summary += f" (default: {str(shown).lower() if check is FLAG else shown})"
        if check is FLAG:
            parser.add_argument(flag, action=BooleanOptionalAction, default=None, help=summary)
        elif check is _NAMES:
            parser.add_argument(flag, nargs="+", metavar=metavar, help=summary)
        else:
            parser.add_argument(flag, metavar=metavar, help=summary)


def given(options: Namespace) -> dict[str, Any]:
    """The values that a command line has, by key; not yet checked."""
    found = {}
    for name, option in OPTIONS.items():
        value = getattr(options, name)
        if value is not None:
            if name in _PATHS and value:
                value = str(Path(value).resolve())
            found[name] = _typed(option.check, value)
    return found


def configuration_of(options: Namespace) -> Configuration:
    """What a command line says, and the file that it names."""
    named = {name: (f"--{name.replace('_', '-')}", value) for name, value in given(options).items()}
    if {"epochs", "steps"} <= named.keys():
        raise ConfigurationError("--epochs and --steps both say how long a run is: leave one of them out.")
    if options.config is not None:
        return FORMAT.read(Path(options.config), options=named)
    if "model" not in named or "data" not in named:
        raise ConfigurationError(
            "name the model and the texts: --model DIR --data FILE.jsonl, or a CONFIG.toml that says them."
        )
    return FORMAT.parsed("", "pullback finetune", Path.cwd(), options=named)


def settings_of(configuration: Configuration) -> Settings:
    """The settings that a configuration says."""
    return Settings(**{**configuration, "targets": tuple(configuration["targets"])})


def _typed(check: Check, value: Any) -> Any:
    """A text as the number that it says, where a number is what is expected."""
    if not isinstance(value, str) or check.accepts(value):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError, KeyError):
        return value
