"""What a configuration may say: keys with their checks, by section and kind; and the search for everything wrong."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Callable, Mapping, NamedTuple

from .toml_lines import Path


class Check(NamedTuple):
    """What a value must be, in words and as a test."""

    expected: str
    accepts: Callable[[Any], bool]


class Key(NamedTuple):
    """A key that a table may have. Without a default it must be there; None stands for "not set"."""

    check: Check
    default: Any = ...


Keys = Mapping[str, Key]


@dataclass(frozen=True)
class Section:
    """A table of the configuration: keys that it always has, and those that its `kind` brings."""

    keys: Keys = field(default_factory=dict)
    kinds: Mapping[str, Keys] = field(default_factory=dict)
    default_kind: str | None = None


class Problem(NamedTuple):
    """Something wrong: where in the configuration, and what."""

    path: Path
    message: str


# -- checks ---------------------------------------------------------------------------------------


def _is_integer(value: Any) -> bool:
    return type(value) is int


_LARGEST_FLOAT = sys.float_info.max  # an integer may be larger, and has no value as a float then


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT


def one_of(*names: str) -> Check:
    return Check(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def list_of(what: str, check: Check, longest: int | None = None, shortest: int = 0) -> Check:
    def accepts(value: Any) -> bool:
        is_list = isinstance(value, list) and all(map(check.accepts, value))
        return is_list and shortest <= len(value) <= (longest or len(value))

    return Check(f"a list of {what}", accepts)


FLAG = Check("true or false", lambda value: type(value) is bool)
TEXT = Check(
    "a text that is not empty",
    lambda value: isinstance(value, str) and value.strip() != "" and "\0" not in value,  # no file's name has a NUL
)
COUNT = Check("a whole number, 1 or more", lambda value: _is_integer(value) and 1 <= value < 1 << 53)
NATURAL = Check("a whole number, 0 or more", lambda value: _is_integer(value) and 0 <= value < 1 << 53)
POSITIVE = Check("a positive number", lambda value: _is_number(value) and value > 0)
NOT_NEGATIVE = Check("a number, 0 or more", lambda value: _is_number(value) and value >= 0)
BELOW_ONE = Check("a number from 0 to below 1", lambda value: _is_number(value) and 0 <= value < 1)
PART = Check("a number between 0 and 1", lambda value: _is_number(value) and 0 < value < 1)
FACTOR = Check("a number above 0, at most 1", lambda value: _is_number(value) and 0 < value <= 1)
BETAS = Check(
    "two numbers from 0 to below 1",
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(BELOW_ONE.accepts, value)),
)


# -- the search -----------------------------------------------------------------------------------


def resolved(
    document: Mapping[str, Any], top: Keys, sections: Mapping[str, Section]
) -> tuple[dict[str, Any], list[Problem]]:
    """The document with every default filled in, and everything wrong with it. Keys that are wrong are left out."""
    problems: list[Problem] = []
    tables = {name: value for name, value in document.items() if name in sections}
    result = _checked_table({k: v for k, v in document.items() if k not in sections}, (), top, [*sections], problems)
    for name, section in sections.items():
        given = tables.get(name, {})
        if not isinstance(given, dict):
            problems.append(Problem((name,), f"expected a section [{name}], got {shown(given)}"))
            continue
        result[name] = _checked_section(given, name, section, problems)
    return result, problems


def _checked_section(given: dict[str, Any], name: str, section: Section, problems: list[Problem]) -> dict[str, Any]:
    if not section.kinds:
        return _checked_table(given, (name,), section.keys, [], problems)
    kind = given.get("kind", section.default_kind)
    if not isinstance(kind, str) or kind not in section.kinds:
        known = f"one of {', '.join(section.kinds)}"
        if "kind" in given:
            hint = _nearest(kind, section.kinds)
            problems.append(Problem((name, "kind"), f"expected {known}, got {shown(kind)}{hint}"))
        else:
            problems.append(Problem((name,), f'is missing `kind`: write `kind = "..."` with {known}'))
        return {}
    keys = {"kind": Key(TEXT), **section.keys, **section.kinds[kind]}
    known_elsewhere: dict[str, list[str]] = {}
    for other, more in section.kinds.items():
        for key in more:
            if key not in keys:
                known_elsewhere.setdefault(key, []).append(f'"{other}"')
    return _checked_table({"kind": kind, **given}, (name,), keys, [], problems, kind, known_elsewhere)


def _checked_table(
    given: dict[str, Any],
    path: Path,
    keys: Keys,
    others: list[str],
    problems: list[Problem],
    kind: str = "",
    known_elsewhere: Mapping[str, list[str]] | None = None,
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in given.items():
        if key not in keys:
            problems.append(Problem(path + (key,), _unknown(key, value, [*keys, *others], kind, known_elsewhere or {})))
        elif not keys[key].check.accepts(value):
            problems.append(Problem(path + (key,), f"expected {keys[key].check.expected}, got {shown(value)}"))
        else:
            result[key] = value
    for key, (check, default) in keys.items():
        if key not in given:
            if default is ...:
                problems.append(Problem(path, f"is missing `{key}`: {check.expected}"))
            else:
                result[key] = default
    return result


def _unknown(key: str, value: Any, known: list[str], kind: str, known_elsewhere: Mapping[str, list[str]]) -> str:
    what = "section" if isinstance(value, dict) else "key"
    if key in known_elsewhere:
        return f'is a key of kind {" or ".join(known_elsewhere[key])}, and the kind here is "{kind}"'
    hint = _nearest(key, known)
    return f"unknown {what}{hint or '; known here: ' + ', '.join(known)}"


def _nearest(name: Any, known: Any) -> str:
    found = get_close_matches(name, [*known], 1) if isinstance(name, str) else []
    return f'; did you mean "{found[0]}"?' if found else ""


def shown(value: Any) -> str:
    """A value as it is written in a message, shortened."""
    if isinstance(value, dict):
        return "a section"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # thousands of digits, or as deep
        return f"a very long {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
