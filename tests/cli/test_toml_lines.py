"""Every key of a TOML document is found on its line."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from pullback.cli.toml_lines import lines_of

DOCUMENT = '''\
# a = 1
name = "a # b = [c]"  # [x]
"quoted key" = 'it is "quoted"'
'lit.eral' = 1
a.b . "c d" = 3
text = """
[not]
x = 1 \\""" still inside
ends with two quotes"""""
raw = \'\'\'
y = [
\'\'\'
array = [ 1, # one ]
  "two, ]",
  { p = 1, q.r = [2, 3] },
  [[4], []],
]
empty = []
date = 1979-05-27 07:32:00  # spaces inside
[ t . "u.v" ]  # header
k = {}
[[l]]
w = 1
[[l]]
w = -2.5e3
[l.sub]
z = true
[[l.deep]]
v = inf
[[l.deep]]
v = 0xff
'''


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """The path of everything in a parsed document."""
    found = {path} if path else set()
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in entries:
        found |= paths(part, path + (key,))
    return found


def test_what_is_found_is_what_is_there():
    assert set(lines_of(DOCUMENT)) == paths(tomllib.loads(DOCUMENT))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), "name ="),
        (("quoted key",), '"quoted key"'),
        (("lit.eral",), "'lit.eral'"),
        (("a", "b", "c d"), "a.b ."),
        (("text",), "text ="),
        (("raw",), "raw ="),
        (("array",), "array ="),
        (("array", 1), '  "two'),
        (("array", 2, "q", "r"), "  { p"),
        (("array", 3, 0, 0), "  [[4]"),
        (("date",), "date"),
        (("t", "u.v"), "[ t ."),
        (("t", "u.v", "k"), "k = {}"),
        (("l", 0, "w"), "w = 1"),
        (("l", 1, "w"), "w = -2"),
        (("l", 1, "sub", "z"), "z ="),
        (("l", 1, "deep", 0, "v"), "v = inf"),
        (("l", 1, "deep", 1, "v"), "v = 0xff"),
    ],
)
def test_line(path, line):
    assert DOCUMENT.splitlines()[lines_of(DOCUMENT)[path] - 1].startswith(line)


def test_an_array_of_tables_is_on_its_first_line():
    assert lines_of("\n[[a]]\n[[a]]\n")[("a",)] == 2


def test_empty_document():
    assert lines_of("") == lines_of("# only a comment") == {}


def test_a_key_of_very_many_parts_takes_little_room():
    found = lines_of(f"a = 1\n{'b.' * 2000}c = 2\nd = 3\n")
    assert len(found) == 18 and found[("d",)] == 3 and found[("b",) * 16] == 2
