"""What lines of code look up: the names of globals and free variables, of attributes, and of imports."""

from __future__ import annotations

import dis
from types import CodeType
from typing import NamedTuple

_FREE = ("_DEREF", "_CLASSDEREF", "_CLOSURE", "_FAST", "_CHECK", "_BORROW", "_CLEAR")


class Line(NamedTuple):
    """What one line of code looks up."""

    globals: frozenset[str]
    free: frozenset[int]  # numbers of free variables
    stored: frozenset[str | int]  # those of both that it only writes
    keys: dict[str | int, tuple[str, ...]]  # variables of which it reads entries under these keys, and no more


class Names(NamedTuple):
    """What a code object looks up."""

    lines: dict[int, Line]
    imports: frozenset[str]
    attributes: frozenset[str]  # names that may be attributes, also such as strings for `getattr`
    loaded: frozenset[str]  # those that are not only written
    stored: frozenset[str]  # attributes that are written
    entries: dict[int, str]  # keys that are read of attributes, by the offset of the instruction that reads those


_known: dict[int, tuple[CodeType, Names]] = {}


def names_of(code: CodeType) -> Names:
    found = _known.get(id(code))
    if found is None:
        found = _known[id(code)] = code, _names_of(code)
    return found[1]


def _names_of(code: CodeType) -> Names:
    free = {name: i for i, name in enumerate(code.co_freevars)}
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    loaded: dict[int, set[str | int]] = {}
    stored: dict[int, set[str | int]] = {}
    keys: dict[int, dict[str | int, list[str]]] = {}
    whole: dict[int, set[str | int]] = {}
    line = code.co_firstlineno
    for number, step in enumerate(steps):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname.endswith(("_GLOBAL", "_NAME")) and step.opname != "IMPORT_NAME":
            given: tuple[str | int, ...] = (step.argval,)
        elif any(part in step.opname for part in _FREE):
            several = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            given = tuple([free[name] for name in several if name in free])
        else:
            continue
        for name in given:
            if step.opname.startswith(("STORE", "DELETE")):
                stored.setdefault(line, set()).add(name)
                whole.setdefault(line, set()).add(name)
                continue
            loaded.setdefault(line, set()).add(name)
            key = _constant_key(steps, number + 1)
            if key is None or step.opname.startswith("LOAD_FAST_LOAD"):
                whole.setdefault(line, set()).add(name)
            else:
                keys.setdefault(line, {}).setdefault(name, []).append(key)
    lines = {}
    for at in {*loaded, *stored}:
        here = loaded.get(at, set()) | stored.get(at, set())
        parts = {n: tuple(k) for n, k in keys.get(at, {}).items() if n not in whole.get(at, set())}
        lines[at] = Line(
            frozenset(n for n in here if isinstance(n, str)),
            frozenset(n for n in here if isinstance(n, int)),
            frozenset(stored.get(at, set()) - loaded.get(at, set())),
            parts,
        )
    constants = [c for known in code.co_consts for c in (known if type(known) is tuple else (known,))]
    strings = {c for c in constants if type(c) is str and c.isidentifier()}
    imports = frozenset(step.argval for step in steps if step.opname == "IMPORT_NAME")
    written = frozenset(step.argval for step in steps if step.opname == "STORE_ATTR")
    read = {step.argval for step in steps if step.argval in written and step.opname != "STORE_ATTR"}
    names = frozenset((*code.co_names, *strings))
    entries = {
        step.offset: key
        for number, step in enumerate(steps)
        if step.opname == "LOAD_ATTR" and (key := _constant_key(steps, number + 1)) is not None
    }
    return Names(lines, imports, names, names - (written - read), written, entries)


def _constant_key(steps: list[dis.Instruction], position: int) -> str | None:
    """The key in `name["key"]`, where `position` is just after the name."""
    if position + 1 >= len(steps):
        return None
    key, then = steps[position : position + 2]
    is_read = then.opname == "BINARY_SUBSCR" or (then.opname == "BINARY_OP" and then.argrepr == "[]")
    if key.opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT")) and is_read and type(key.argval) is str:
        return key.argval
    return None
