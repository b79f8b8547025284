"""Reading and writing configurations: TOML files and settings from the command line, held to a table of keys."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

from ..errors import ConfigurationError
from . import schema
from .schema import Keys, Problem, Section
from .toml_lines import lines_of

Configuration = dict[str, Any]

_LARGEST = 1 << 16  # bytes; what reading takes can grow with the square of a file's size


@dataclass(frozen=True)
class Format:
    """What the configurations of a command may say, and what is still to be looked at when every key is right.

    `completed` fills in what depends on other keys and returns what is wrong between them; `with_paths` makes paths
    absolute, from the folder of the file. `alternatives` are keys of which only one can hold: one that is set on the
    command line takes the place of the other. `example` is a setting to show to those who write none.
    """

    top: Keys
    sections: Mapping[str, Section] = field(default_factory=dict)
    completed: Callable[[Configuration], list[Problem]] = lambda configuration: []
    with_paths: Callable[[Configuration, Path], None] = lambda configuration, folder: None
    alternatives: tuple[tuple[schema.Path, schema.Path], ...] = ()
    example: str = "section.key=value, such as optimizer.lr=0.01"

    def read(
        self, path: Path, settings: Iterable[str] = (), options: Mapping[str, tuple[str, Any]] | None = None
    ) -> Configuration:
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
        return self.parsed(text, str(path), path.parent, settings, options)

    def parsed(
        self,
        text: str,
        name: str,
        folder: Path,
        settings: Iterable[str] = (),
        options: Mapping[str, tuple[str, Any]] | None = None,
    ) -> Configuration:
        """The configuration in a text; `name` is the file's in messages, and paths in it start from `folder`.

        `settings` are texts such as "optimizer.lr=0.1", which replace what the file says, and so do `options`: by key,
        what the option of the command line is called, and its value.
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
            path, value = self._setting(setting)
            self._put(document, path, value, setting)
            place = (len(text), f"--set {setting}")
            places[path] = place
            for length in range(1, len(path)):
                places.setdefault(path[:length], place)
        for key, (option, value) in (options or {}).items():
            self._put(document, (key,), value, option)
            places[key,] = (len(text), option)
        return self._checked(document, places, folder)

    def _checked(
        self, document: dict[str, Any], places: Mapping[schema.Path, tuple[int, str]], folder: Path
    ) -> Configuration:
        configuration, problems = schema.resolved(document, self.top, self.sections)
        if not problems:
            problems = self.completed(configuration)
        if problems:

            def place_of(problem: Problem) -> tuple[int, str]:
                """Where it is written, or the innermost table that is."""
                path = problem.path
                while path not in places:
                    path = path[:-1]
                return places[path]

            problems.sort(key=lambda problem: place_of(problem)[0])
            raise ConfigurationError("\n".join(_sentence(place_of(problem)[1], problem) for problem in problems))
        self.with_paths(configuration, folder)
        return configuration

    def _setting(self, setting: str) -> tuple[tuple[str, ...], Any]:
        key, equals, text = setting.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if not equals or not all(path):
            raise ConfigurationError(f"--set {setting}: expected {self.example}.")
        try:
            value = tomllib.loads(f"value = {text}")
        except (ValueError, RecursionError):
            return path, text.strip()  # a word: `--set model.kind=mlp` needs no quotes
        return path, value["value"] if len(value) == 1 else text

    def _put(self, document: dict[str, Any], path: tuple[str, ...], value: Any, setting: str) -> None:
        tables = [document]
        for part in path[:-1]:
            tables.append(tables[-1].setdefault(part, {}))
            if not isinstance(tables[-1], dict):
                raise ConfigurationError(f"--set {setting}: {part} is not a section.")
        table = tables[-1]
        if path[-1] == "kind" and value != table.get("kind"):
            table.clear()  # another kind has other keys: those of the file would only be in the way
        for pair in self.alternatives:
            if path in pair:
                table.pop(str(pair[path == pair[0]][-1]), None)
        table[path[-1]] = value


def written(configuration: Mapping[str, Any]) -> str:
    """A configuration as TOML text, which `parsed` turns into an equal one."""
    tables = {name: value for name, value in configuration.items() if isinstance(value, dict)}
    lines = [_line(key, value) for key, value in configuration.items() if key not in tables and value is not None]
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


# -- messages --------------------------------------------------------------------------------------


def _sentence(where: str, problem: Problem) -> str:
    subject = ".".join(map(str, problem.path))
    if len(problem.path) == 1 and problem.message.startswith("is missing"):
        subject = f"[{subject}]"
    joint = " " if problem.message.startswith("is ") else ": "
    if not subject:
        return f"{where} {problem.message}"
    if where == f"--{subject.replace('_', '-')}":  # an option has the name of its key
        return f"{where}{joint}{problem.message}"
    return f"{where}: {subject}{joint}{problem.message}"


def _syntax_message(message: str, text: str, name: str) -> str:
    """The parser's complaint with the line in front."""
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if found:
        return f"{name}:{found[1]}: not valid TOML: {message[: found.start()]} (column {found[2]})"
    message = message.removesuffix(" (at end of document)")
    return f"{name}:{len(text.splitlines()) or 1}: not valid TOML: {message}, at the end of the file"
