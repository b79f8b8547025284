"""On which line of a TOML document every key is, which the standard library's parser does not tell.

The document must have been accepted by `tomllib`: only its layout is looked at here, and nothing is checked twice.
"""

from __future__ import annotations

import re
import tomllib

#: A key's place in the document: ("optimizer", "lr"), or ("layers", 0, "width") inside an array.
Path = tuple[str | int, ...]

_DEEPEST = 16  # keys in a path; of a key with a thousand dots every path would be noted

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'  # up to two quotes may stand just before the closing three
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'",
    re.DOTALL,
)


def lines_of(text: str) -> dict[Path, int]:
    """The line, counted from 1, of every table and key of a valid TOML document; of a repeated table, its first one.

    Those nested more than 16 deep are left out.

    >>> from pullback.cli.toml_lines import lines_of
    >>> lines_of('[optimizer]\\nkind = "adam"  # a comment\\nlr = 0.1')
    {('optimizer',): 1, ('optimizer', 'kind'): 2, ('optimizer', 'lr'): 3}
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[Path, int] = {}
        self.line, self.counted = 1, 0  # the line of the last place that was noted, which only ever goes forward
        self.counts: dict[Path, int] = {}  # tables so far in each array of tables

    def document(self) -> None:
        table: Path = ()
        self.skip(_BLANK)
        while self.position < len(self.text):
            if self.text[self.position] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_BLANK)

    def header(self) -> Path:
        """A line such as `[a.b]` or `[[a]]`: the table that it opens."""
        start = self.position
        is_array = self.text.startswith("[[", start)
        self.position += 2 if is_array else 1
        self.skip(_SPACE)
        *parents, last = self.dotted()
        self.position += 2 if is_array else 1
        table: Path = ()
        for key in parents:
            table = self.latest(table + (key,))
            self.note(table, start)
        table = table + (last,)
        self.note(table, start)
        if is_array:
            self.counts[table] = self.counts.get(table, 0) + 1
        table = self.latest(table)
        self.note(table, start)
        return table

    def latest(self, table: Path) -> Path:
        """An array of tables named without an index means its last table."""
        count = self.counts.get(table)
        return table if count is None else table + (count - 1,)

    def pair(self, table: Path) -> None:
        start = self.position
        path = table
        for key in self.dotted():
            path = path + (key,)
            self.note(path, start)
        self.position += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def value(self, path: Path) -> None:
        opening = self.text[self.position]
        if opening in "\"'":
            self.skip(_STRING)
        elif opening == "[":
            self.items("]", path)
        elif opening == "{":
            self.items("}", path)
        else:
            self.skip(_SCALAR)

    def items(self, closing: str, path: Path) -> None:
        """The inside of an array or of an inline table."""
        self.position += 1
        self.skip(_BLANK)
        count = 0
        while self.text[self.position] != closing:
            if closing == "]":
                self.note(path + (count,), self.position)
                self.value(path + (count,))
            else:
                self.pair(path)
            count += 1
            self.skip(_BLANK)
            if self.text[self.position] == ",":
                self.position += 1
                self.skip(_BLANK)
        self.position += 1

    def dotted(self) -> list[str]:
        keys = [self.key()]
        self.skip(_SPACE)
        while self.text[self.position] == ".":
            self.position += 1
            self.skip(_SPACE)
            keys.append(self.key())
            self.skip(_SPACE)
        return keys

    def key(self) -> str:
        if self.text[self.position] in "\"'":
            return tomllib.loads(f"key = {self.skip(_STRING)}")["key"]
        return self.skip(_BARE_KEY)

    def note(self, path: Path, position: int) -> None:
        if path not in self.lines and len(path) <= _DEEPEST:
            self.line += self.text.count("\n", self.counted, position)
            self.counted = position
            self.lines[path] = self.line

    def skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.position)
        if found is None:  # then the document was not valid TOML
            raise ValueError(f"unexpected text at character {self.position}")
        self.position = found.end()
        return found[0]
