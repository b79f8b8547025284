"""Where Python keeps a value: how to read it there now, and how to put one back."""

from __future__ import annotations

from collections import OrderedDict, deque
from types import CellType
from typing import Any, NamedTuple

from .reading import MISSING, attribute, contents, lookup, native_base


class Entry(NamedTuple):
    """An entry of a dict, such as a global."""

    holder: dict[Any, Any]
    key: Any

    def get(self) -> Any:
        return self.holder.get(self.key, MISSING)

    def put(self, value: Any) -> None:
        if value is MISSING:
            self.holder.pop(self.key, None)
        else:
            self.holder[self.key] = value


class Cell(NamedTuple):
    """A variable of an enclosing function."""

    cell: CellType

    def get(self) -> Any:
        return contents(self.cell)

    def put(self, value: Any) -> None:
        if value is MISSING:
            del self.cell.cell_contents
        else:
            self.cell.cell_contents = value


class Attribute(NamedTuple):
    """An attribute of an instance."""

    owner: Any
    name: str

    def get(self) -> Any:
        return attribute(self.owner, self.name)

    def put(self, value: Any) -> None:
        """Give it back what it was; what the class has is not put into the instance."""
        cls: Any = type(self.owner)
        base: Any = object if cls.__setattr__ is object.__setattr__ else native_base(cls)
        if value is MISSING or value is lookup(cls, self.name):
            base.__delattr__(self.owner, self.name)
        else:
            base.__setattr__(self.owner, self.name, value)


class OfClass(NamedTuple):
    """An attribute of a class or of one of its bases."""

    cls: type
    name: str

    def get(self) -> Any:
        return lookup(self.cls, self.name)

    def put(self, value: Any) -> None:
        if value is MISSING:
            type.__delattr__(self.cls, self.name)
        else:
            type.__setattr__(self.cls, self.name, value)


class Contents(NamedTuple):
    """All that is in a container."""

    container: Any

    def get(self) -> Any:
        return self.container

    def put(self, value: Any) -> None:
        """Fill the container as it was: `value` has its items, those of a dict as pairs."""
        container = self.container
        if isinstance(container, OrderedDict):
            OrderedDict.clear(container)
            for key, item in value:
                OrderedDict.__setitem__(container, key, item)
            return
        for base, fill in _FILLED.items():  # by the methods of Python's own, not by those of a subclass
            if isinstance(container, base):
                base.clear(container)
                fill(container, value)
                return


_FILLED: dict[Any, Any] = {list: list.extend, deque: deque.extend, set: set.update, dict: dict.update}


class Within(NamedTuple):
    """An item of what is at another place."""

    outer: Any
    key: Any

    def get(self) -> Any:
        return self.outer.get()[self.key]

    def put(self, value: Any) -> None:
        """The container as a whole is put."""


class Fixed(NamedTuple):
    """The very thing: nobody knows where it was found."""

    thing: Any

    def get(self) -> Any:
        return self.thing

    def put(self, value: Any) -> None:
        """It is where it was."""


class Computed(NamedTuple):
    """What a function of Python's own says."""

    function: Any

    def get(self) -> Any:
        return self.function()

    def put(self, value: Any) -> None:
        """Nobody can."""


Place = Entry | Cell | Attribute | OfClass | Contents | Within | Fixed | Computed
