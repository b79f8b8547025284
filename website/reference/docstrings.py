"""Docstrings in numpydoc's form, taken apart."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """Parameters of one kind and what is said of them; a result has its type for a name."""

    names: list[str]
    kind: str
    said: str


class Docstring(NamedTuple):
    summary: list[str]
    sections: dict[str, list[str]]
    description: list[str]  # what stands between the two

    def entries(self, section: str) -> list[Entry]:
        found: list[Entry] = []
        for line in self.sections[section]:
            if line and not line.startswith(" "):
                names, _, kind = line.partition(" : ")
                found.append(Entry(names.split(", "), kind, ""))
            elif found:
                found[-1] = found[-1]._replace(said=f"{found[-1].said} {line.strip()}".strip())
        return found


def parse(text: str) -> Docstring:
    lines = text.splitlines()
    end = lines.index("") if "" in lines else len(lines)
    sections: dict[str, list[str]] = {}
    description: list[str] = []
    current = description
    for number, (line, below) in enumerate(zip(lines, [*lines[1:], ""])):
        if below and set(below) == {"-"}:
            current = sections.setdefault(line, [])
        elif number > end and not (sections and set(line) == {"-"}):
            current.append(line)
    return Docstring(lines[:end], sections, description)
