"""Fewer rows that look at as much: what is found or looked at twice, or for nothing."""

from __future__ import annotations

from typing import Any, Iterable

from .native import row_code as code

_FINDING = frozenset((
    code.GIVEN, code.CONSTANT, code.SLOT, code.ITEM, code.ENTRY, code.ATTRIBUTE, code.ENTRIES, code.DICT,
))  # fmt: skip
_LOOKING = frozenset((
    code.WORD, code.ABSENT, code.NO_ATTRIBUTE, code.METHOD, code.EQUAL, code.CONTENT, code.CONTEXT, code.IS,
))  # fmt: skip
_COMPARING = frozenset((code.SAME, code.DIFFERENT))  # whose first argument is a register
_CANNOT_FAIL = frozenset((code.CONSTANT, code.GIVEN))
_HEAP_TYPE = 1 << 9  # the flag of types whose objects may be given another one


def simplified(rows: list[list[int]], kept: Iterable[Any]) -> list[list[int]]:
    """Rows that fail when these do, without repetition. `kept` are the objects that they name by address."""
    return _without_unused(_without_repeats(rows, {id(thing): thing for thing in kept}))


def _without_repeats(rows: list[list[int]], things: dict[int, Any]) -> list[list[int]]:
    """Nobody's code runs between rows, but for that of `PYTHON`: what was found or true before still is."""
    found: dict[tuple[int, ...], int] = {}  # the registers that are filled by a row
    same: dict[int, int] = {}  # registers that hold what another one holds
    known: dict[int, int] = {}  # the addresses in registers
    done: set[tuple[int, ...]] = set()
    left: list[list[int]] = []
    for row in rows:
        op, to, source, *more = row
        source = same.get(source, source)
        if op in _COMPARING:
            more[0] = same.get(more[0], more[0])
        key = (op, source, *more)
        if op == code.PYTHON:
            for memory in (found, same, known, done):
                memory.clear()
        elif op in _FINDING:
            if key in found:
                count = more[1] if op == code.ENTRIES else 1
                same.update({to + i: found[key] + i for i in range(count)})
                continue
            found[key] = to
        elif op in _LOOKING or op in _COMPARING:
            if key in done or (op == code.WORD and _is_settled(known.get(source), more, things)):
                continue
            done.add(key)
        if op in (code.CONSTANT, code.IS):
            known[to if op == code.CONSTANT else source] = more[0]
        left.append([op, to, source, *more])
    return left


def _is_settled(address: Any, more: list[int], things: dict[int, Any]) -> bool:
    """Whether a row asks for the type of an object that cannot have another one."""
    if address not in things or more[0] != code.TYPE:
        return False
    kind = type(things[address])
    return id(kind) == more[1] and not kind.__flags__ & _HEAP_TYPE


def _without_unused(rows: list[list[int]]) -> list[list[int]]:
    used: set[int] = set()
    left: list[list[int]] = []
    for row in reversed(rows):
        op, to, source, first = row[:4]
        if op in _CANNOT_FAIL and to not in used:
            continue
        used.add(source)
        if op in _COMPARING:
            used.add(first)
        left.append(row)
    return left[::-1]
