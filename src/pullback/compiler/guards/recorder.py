"""Noting what a function is about to read, while it is traced."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from typing import Any

from ...errors import TraceError
from . import values as guards
from .choosing import is_bag
from .code_names import Names, names_of
from .notes import Notes, Root
from .ownership import is_users_class, is_users_code
from .places import Attribute, Cell, Entry, Fixed, Place
from .reading import MISSING, attribute, contents
from .told_names import (
    BY_CHANCE,
    COMPUTED,
    FUNCTIONS_BY_CHANCE,
    REFUSED,
    WHOLE,
)


class Recorder(Notes):
    """Takes notes of what code that runs is about to look up, read and write."""

    def __init__(self, name: str, ignore: tuple[str, ...] = ()) -> None:
        super().__init__(name, ignore)
        self._ran: dict[int, Names] = {}  # by identity of the code

    # -- code that runs ------------------------------------------------------------------------------

    def started(self, function: Any, code: types.CodeType, scope: dict[str, Any]) -> None:
        """A function of the user's starts. What its lines look up is noted when they are reached."""
        names = self._ran.get(id(code))
        if not self.first_site:
            self.site = self.first_site = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        if names is None:
            names = self._ran[id(code)] = names_of(code)
            self.look_for(names.attributes, names.loaded, names.stored)
            if "__globals__" in names.attributes:
                self.refuse("reads `__globals__` of a function, of which anything may be read")
            if {"object", "__setattr__"} <= names.attributes or {"object", "__delattr__"} <= names.attributes:
                self._is_bypassed = True
                for guard in list(self.guards.values()):
                    if isinstance(guard, guards.Instance) and is_users_class(guard.kind):
                        self._note_all(guard, guard.value, guard.name)
            for name in names.modules & sys.modules.keys():
                if isinstance(sys.modules[name], types.ModuleType):
                    self.hold(sys.modules[name])
            for name in names.imports & sys.modules.keys():
                self._root(("import", name), Entry(sys.modules, name), name)
        if isinstance(function, types.FunctionType):
            self.note(function, function.__name__)
        for line in names.lines if self.is_thorough else (code.co_firstlineno,):  # no event tells of the `def`'s line
            self.reached(function, code, scope, line)

    def reached(self, function: Any, code: types.CodeType, scope: dict[str, Any], number: int) -> None:
        """A line is about to run."""
        line = self._ran[id(code)].lines.get(number)
        if line is None:
            return
        self.site = f"{os.path.basename(code.co_filename)}:{number}"
        self._refuse_chance(function, code, scope, line)
        for name in sorted(line.globals):
            if (id(scope), name) not in self.roots and name not in self.ignore:
                self._look_up(scope, name, line)
            elif name not in line.stored:
                self._read_again((id(scope), name))
        if line.free and function is not None:
            guard: Any = self.note(function, function.__name__)
            for i in sorted(line.free):
                if i not in line.stored:
                    self._read_again((id(function.__closure__[i]), "written"))
                if code.co_freevars[i] not in self.ignore:
                    self._look_in_cell(guard, i, function.__closure__[i], code.co_freevars[i], line)

    def _refuse_chance(self, function: Any, code: types.CodeType, scope: dict[str, Any], line: Any) -> None:
        """A line that asks for the time, or what is in a folder, gets another answer each time."""
        found = {name: scope.get(name) for name in line.globals - self.ignore}
        if line.free and function is not None:
            found.update({code.co_freevars[i]: contents(function.__closure__[i]) for i in line.free})
        for name, value in found.items():
            asked = line.attributes & BY_CHANCE.get(id(value), frozenset())
            if asked or id(value) in FUNCTIONS_BY_CHANCE:
                what = f"{name}.{min(asked)}" if asked else name
                self.refuse(
                    f"calls {what}, which says something else each time, and a program would ask once. Ask outside and "
                    "pass the answer as an argument"
                )

    def _look_up(self, scope: dict[str, Any], name: str, line: Any) -> None:
        found = scope.get(name, MISSING)
        if name in line.keys and type(found) is dict:
            at = (id(scope), name, "entries")
            for key in line.keys[name]:
                root = self.roots.get(at)
                guard = self._note_entry(None if root is None else root.guard, found, name, key)
                if guard is not None:
                    self.roots[at] = Root(Entry(scope, name), guard)
            return
        if found is MISSING and name in REFUSED:
            self.refuse(
                f"calls {name}(), which a program would do once, when it is traced. To see values, return the tensor "
                "and look at it outside"
            )
        self._root((id(scope), name), Entry(scope, name), name, is_stored=name in line.stored)

    def _read_again(self, key: Any) -> None:
        """What seemed to be written before it is read may not have been, as in `if flag: last = x`."""
        root = self.roots.get(key)
        if root is not None and isinstance(root.guard, guards.Overwritten):
            if root.place.get() is root.guard.value:
                self.roots[key] = Root(root.place, root.guard.before)

    def _note_entry(self, known: guards.Guard | None, found: Any, name: str, key: str) -> guards.Guard | None:
        """The guard of a dict of which one more entry is read, and nothing else; None if all of it is read already."""
        if known is not None and (not isinstance(known, guards.Selected) or known.value is not found):
            return None
        selected: Any = known or guards.Selected(found, name, self.site)
        if key not in selected.entries:
            selected.entries[key] = self.note(found.get(key, MISSING), f"{name}[{key!r}]")
        return selected

    def _look_in_cell(self, guard: Any, i: int, cell: Any, name: str, line: Any) -> None:
        place, known = Cell(cell), guard.cells.get(i)
        if known is not None and not isinstance(known, guards.Selected):
            return
        if i in line.stored:
            self._root((id(cell), "written"), place, name, is_stored=True)
        elif (id(cell), "written") not in self.roots:
            found = contents(cell)
            if i in line.keys and type(found) is dict:
                for key in line.keys[i]:
                    guard.cells[i] = self._note_entry(guard.cells.get(i), found, name, key) or guard.cells[i]
                return
            guard.cells[i] = guards.Fresh(None, name, self.site)  # while it is being noted
            guard.cells[i] = self.note(found, name)

    # -- objects ---------------------------------------------------------------------------------------

    def read(self, thing: Any, name: str, caller: types.CodeType, offset: int = -1) -> None:
        """An attribute of a user's object is about to be read, by the instruction at `offset`."""
        guard: Any = self.note(thing, type(thing).__name__)
        if not isinstance(guard, guards.Instance):
            return
        if name in WHOLE:
            members = getattr(type(thing), "_guarded_members", None)
            if members is not None and not is_users_code(caller):  # the library looks for tensors and modules alone
                self._root(("members", id(thing)), Fixed(thing), guard.name, self._members(thing, members))
            elif caller.co_filename != functools.__file__:  # a cached property looks for its own
                self._note_all(guard, thing, guard.name)
        elif not self._is_passed_over(thing, name):
            self._read(guard, thing, name, caller, offset)

    def _read(self, guard: guards.Instance, thing: Any, name: str, caller: types.CodeType, offset: int) -> None:
        known = guard.reads.get(name)
        if known is None or isinstance(known, guards.Selected):
            written = guard.written.get(name)
            if written is not None:
                if attribute(thing, name) is written.value:  # it was not, after all
                    guard.reads[name] = guard.written.pop(name)
                return
            found = attribute(thing, name)
            if type(found) is types.FunctionType and not is_users_code(caller) and not is_users_code(found.__code__):
                return  # a method of the library's, called by the library
            names = self._ran.get(id(caller))
            key = None if names is None else names.entries.get(offset)
            if key is not None and type(found) is dict:
                guard.reads[name] = self._note_entry(known, found, f"{guard.name}.{name}", key) or guard.reads[name]
                return
            guard.reads[name] = guards.Fresh(None, name, self.site)
            guard.reads[name] = self.note(found, f"{guard.name}.{name}")

    def _is_passed_over(self, thing: Any, name: str) -> bool:
        return name[:2] == "__" or name in self.ignore or name in getattr(type(thing), "_unguarded", ())

    def _members(self, thing: Any, members: Any) -> guards.Guard:
        made = guards.Parts(thing, type(thing).__name__, self.site, members)
        made.pieces = [self.note(part, made.name) for part in members(thing)]
        return made

    def write(self, thing: Any, name: str, site: str) -> None:
        """An attribute of a user's object is about to be written."""
        guard: Any = self.note(thing, type(thing).__name__)
        self.written[id(thing), name] = site
        if isinstance(guard, guards.Instance) and name not in guard.reads and name not in guard.written:
            if not self._is_passed_over(thing, name):
                guard.written[name] = self.note(attribute(thing, name), f"{guard.name}.{name}")

    def is_written_only(self, place: Place) -> bool:
        """Whether an attribute was written before it was read. Of objects that nobody listens to, code tells."""
        owner = self.guards.get(id(place.owner)) if isinstance(place, Attribute) else None
        if not isinstance(owner, guards.Instance):
            return False
        name = place.name  # type: ignore[union-attr]
        is_told = is_bag(owner.kind) or owner.kind is threading.local
        if name in owner.reads and is_told and not (self.loaded & {name, *COMPUTED, *WHOLE}):
            owner.written[name] = owner.reads.pop(name)
        return name in owner.written

    def read_wholly(self, thing: Any) -> None:
        """All attributes of a thing are about to be looked at, in a way that nobody hears."""
        guard: Any = self.note(thing, type(thing).__name__)
        if isinstance(guard, guards.Instance):
            self._note_all(guard, thing, guard.name)

    def guard_wholly(self, cls: type) -> None:
        """Note all attributes of a class's objects, from now on."""
        self.unheard.add(cls)
        for guard in list(self.guards.values()):
            if isinstance(guard, guards.Instance) and issubclass(guard.kind, cls):
                self._note_all(guard, guard.value, guard.name)

    def refuse(self, what: str) -> None:
        """The function is about to do something that a program cannot repeat: it does not come to that."""
        error = TraceError(f"{self.site}: {self.name} {what}.")
        if self.refusal is None:
            self.refusal = error
        raise error
