"""What stands beside tokenizer.json in a Hugging Face folder: special tokens, the chat template, where texts end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Mapping

from ..errors import FileFormatError
from ..models.config import read_json
from .templates import LONGEST_TEMPLATE

#: The names under which special tokens are known, also to chat templates.
NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_TEMPLATE = "chat_template.jinja"
_CONFIG = "tokenizer_config.json"


@dataclass(frozen=True)
class TokenizerFiles:
    """The entries that matter, and for the template the file that it is in.

    `eos_ids` are those that generation_config.json says, or config.json; `added_tokens` are tokens with their
    numbers and options, which old folders have beside tokenizer.json.

    >>> import json, pathlib, tempfile
    >>> from pullback.finetune.tokenizer_files import read_tokenizer_files
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    >>> _ = (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    >>> files = read_tokenizer_files(str(folder))
    >>> files.special_tokens, files.eos_ids
    ({'eos_token': '</s>'}, (2, 7))
    """

    special_tokens: Mapping[str, str]
    added_tokens: Mapping[int, Mapping[str, Any]]
    eos_ids: tuple[int, ...]
    template: str | None
    template_path: str


def read_tokenizer_files(folder: str) -> TokenizerFiles:
    """What the files of a folder say; none of them has to be there."""
    config_path = os.path.join(folder, _CONFIG)
    config = _entries(config_path)
    template_path = os.path.join(folder, _TEMPLATE)
    template = _text(template_path) if os.path.exists(template_path) else None
    if template is None:
        template, template_path = _default_template(config.get("chat_template"), config_path), config_path
    return TokenizerFiles(
        _special_tokens(folder, config), _added_tokens(config, config_path), _eos_ids(folder), template, template_path
    )


def _entries(path: str) -> dict[str, Any]:
    return read_json(path) if os.path.exists(path) else {}


def _text(path: str) -> str:
    with open(path, "rb") as file:
        content = file.read(4 * LONGEST_TEMPLATE + 1)  # bytes of a character
    try:
        # Newlines as Python reads them from a text file: as the template was before a system changed them.
        return content.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text in UTF-8 ({error}).") from None


def _default_template(entry: Any, path: str) -> str | None:
    """One template, or the one called "default" of several that have names."""
    if isinstance(entry, list):
        named = {each.get("name"): each.get("template") for each in entry if isinstance(each, dict)}
        entry = named.get("default")
    if entry is not None and not isinstance(entry, str):
        raise FileFormatError(f"{path}: chat_template must be a text or a list of named ones, got {entry!r:.60}.")
    return entry


def _special_tokens(folder: str, config: Mapping[str, Any]) -> dict[str, str]:
    map_path = os.path.join(folder, "special_tokens_map.json")
    old = _entries(map_path)
    found = {}
    for name in NAMES:
        path, entry = os.path.join(folder, _CONFIG), config.get(name)
        if entry is None:
            path, entry = map_path, old.get(name)
        content = entry.get("content") if isinstance(entry, dict) else entry
        if content is None:
            continue
        if not isinstance(content, str):
            raise FileFormatError(f"{path}: {name} must be a text, got {entry!r:.60}.")
        found[name] = content
    return found


def _added_tokens(config: Mapping[str, Any], path: str) -> dict[int, Mapping[str, Any]]:
    entries = config.get("added_tokens_decoder") or {}
    found: dict[int, Mapping[str, Any]] = {}
    for number, token in entries.items() if isinstance(entries, dict) else [("", None)]:
        # `isdecimal` of more than twenty digits would let Python refuse to read the number.
        is_number = number.isdecimal() and len(number) < 20
        if not (is_number and isinstance(token, dict) and isinstance(token.get("content"), str)):
            raise FileFormatError(f"{path}: added_tokens_decoder must map numbers to tokens; {number!r:.60} is none.")
        found[int(number)] = token
    return dict(sorted(found.items()))


def _eos_ids(folder: str) -> tuple[int, ...]:
    """Where generation ends: generation_config.json says so, and config.json in folders without it."""
    path = os.path.join(folder, "generation_config.json")
    if not os.path.exists(path):
        path = os.path.join(folder, "config.json")
    entry = _entries(path).get("eos_token_id")
    numbers = entry if isinstance(entry, list) else [] if entry is None else [entry]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise FileFormatError(f"{path}: eos_token_id must be a number or a list of them, got {entry!r:.60}.")
    return tuple(dict.fromkeys(numbers))
