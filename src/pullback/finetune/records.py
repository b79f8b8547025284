"""Records to learn from: the lines of a JSON Lines file, each checked, and what is wrong named by file and line."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import IO, Any, Iterator, Mapping

from ..errors import FileFormatError

LONGEST_LINE = 64 * 1024 * 1024  # bytes: a file without newlines must not be read into memory as a whole
MOST_PROBLEMS = 5  # that are told; the rest of the file is not read
_CHUNK = 1 << 20
_FORMS = (
    '{"text": "..."}',
    '{"messages": [{"role": "user", "content": "..."}, ...]}',
    '{"prompt": "...", "completion": "..."}',
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TextRecord:
    """A text; `place` is its file and line, as in all records."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A conversation: messages with role and content, and whatever else a chat template may read."""

    messages: tuple[Mapping[str, Any], ...]
    place: str


@dataclass(frozen=True, slots=True)
class CompletionRecord:
    """A text that is given, and the one to follow it."""

    prompt: str
    completion: str
    place: str


Record = TextRecord | ChatRecord | CompletionRecord


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a JSON Lines file, in UTF-8.

    Each line is an object in one of three forms, of which a file may have several: `{"text": ...}`,
    `{"messages": [{"role": ..., "content": ...}, ...]}` or `{"prompt": ..., "completion": ...}`. Other entries of it
    mean nothing; those of a message are for the chat template. Empty lines are passed over.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    list of TextRecord, ChatRecord and CompletionRecord
        In the order of the file. `FileFormatError` names the first lines that are none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pullback.finetune import read_records
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "texts.jsonl"
    >>> _ = path.write_text('{"text": "The tide."}')
    >>> read_records(path)[0].text
    'The tide.'
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"{name}: no such file.")
    if os.path.isdir(name):
        raise FileFormatError(f"{name}: is a folder, expected a file with a JSON object on each line.")
    records: list[Record] = []
    problems: list[str] = []
    with open(name, "rb") as file:
        for number, line in _lines(file):
            place = f"{name}:{number}"
            try:
                records.append(_record(line, place))
            except _LineError as error:
                problems.append(f"{place}: {error}")
                if len(problems) == MOST_PROBLEMS:
                    problems.append("The rest of the file was not read.")
                    break
    if problems:
        forms = "\n".join(f"    {form}" for form in _FORMS)
        raise FileFormatError("\n".join([*problems, f"Every line must be one of\n{forms}"]))
    if not records:
        raise FileFormatError(f"{name}: the file is empty. Every line is a JSON object, such as {_FORMS[0]}.")
    return records


class _LineError(Exception):
    """What is wrong with a line."""


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers; None for one that is too long."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        is_too_long = len(line) > LONGEST_LINE
        if is_too_long:
            while not line.endswith(b"\n") and (line := file.readline(_CHUNK)):
                pass
        elif number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        line = line.strip(b" \t\r\n")
        if line or is_too_long:
            yield number, None if is_too_long else line


def _record(line: bytes | None, place: str) -> Record:
    entries = _object(line)
    forms = [form for form in ("text", "messages", "prompt") if form in entries]
    if not forms and "completion" in entries:
        raise _LineError("has 'completion' without 'prompt'.")
    if not forms:
        found = ", ".join(repr(key)[:40] for key in list(entries)[:5]) or "nothing"
        raise _LineError(f"has none of 'text', 'messages' or 'prompt', but {found}.")
    if len(forms) > 1:
        raise _LineError(f"has both {forms[0]!r} and {forms[1]!r}; which of them to learn from is not clear.")
    if "text" in entries:
        return TextRecord(_text(entries, "text"), place)
    if "messages" in entries:
        return ChatRecord(_messages(entries["messages"]), place)
    if "completion" not in entries:
        raise _LineError("has 'prompt' without 'completion'.")
    return CompletionRecord(_text(entries, "prompt", may_be_empty=True), _text(entries, "completion"), place)


def _object(line: bytes | None) -> dict[str, Any]:
    """The JSON object of a line, whose texts are all sound."""
    if line is None:
        raise _LineError(f"the line has more than {LONGEST_LINE} bytes. Is it JSON Lines, with one record per line?")
    try:
        text = line.decode()
        entries = json.loads(text)
    except UnicodeDecodeError as error:
        raise _LineError(f"is not UTF-8: {error.reason} at byte {error.start} of the line.") from None
    except RecursionError:
        raise _LineError("is nested too deeply.") from None
    except ValueError as error:
        raise _LineError(f"is not JSON ({error}): {text[:40]!r}.") from None
    if not isinstance(entries, dict):
        raise _LineError(f"is {_kind(entries)}, expected an object.")
    if b"\\u" in line:  # the only way in which a text can have half of a character
        try:
            json.dumps(entries, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise _LineError("has half of a character: a lone surrogate, such as \\ud83d without its pair.") from None
        except RecursionError:
            raise _LineError("is nested too deeply.") from None
    return entries


def _text(entries: Mapping[str, Any], name: str, may_be_empty: bool = False) -> str:
    value = entries[name]
    if not isinstance(value, str):
        raise _LineError(f"{name!r} is {_kind(value)}, expected a text.")
    if not (value.strip() or may_be_empty):
        raise _LineError(f"{name!r} is empty.")
    return value


def _messages(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list):
        raise _LineError(f"'messages' is {_kind(value)}, expected a list.")
    if not value:
        raise _LineError("'messages' is empty.")
    for number, message in enumerate(value):
        if not isinstance(message, dict):
            raise _LineError(f"messages[{number}] is {_kind(message)}, expected an object with 'role' and 'content'.")
        for name in ("role", "content"):
            if name not in message:
                raise _LineError(f"messages[{number}] has no {name!r}.")
            if not isinstance(message[name], str):
                raise _LineError(f"messages[{number}]: {name!r} is {_kind(message[name])}, expected a text.")
        if not message["role"].strip():
            raise _LineError(f"messages[{number}]: 'role' is empty.")
    return tuple(value)


def _kind(value: Any) -> str:
    """What JSON calls a value's type."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names[type(value)]
