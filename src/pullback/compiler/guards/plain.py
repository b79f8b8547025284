"""Guards of things that have no parts: plain values, tensors, arrays, and what is known by who it is."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ...tensors.tensor import Tensor
from .guard import Change, Guard, Look, UnwrittenError, difference_of_forms, form_of
from .places import Place
from .reading import is_same, is_same_state, namespace


class Plain(Guard):
    """A number, a string, None: known by type and value."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if not is_same(now, self.value):
            yield self._change(place, now)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.equal(register, self.value)


class Promoted(Guard):
    """A number that is an input: only its type is known."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if type(now) is not type(self.value):
            yield self._change(place, now)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.of_type(register, type(self.value))


class Identity(Guard):
    """Something that is known by who it is: a type, a library, a lock."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if now is not self.value:
            yield self._change(place, now)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.identical(register, self.value)


class Stateful(Identity):
    """Something with a state that programs do not depend on, but that a function may not change while it is traced.

    `take` gives the state, `put` sets it: a generator of random numbers, or the options of an optimizer.
    """

    __slots__ = ("take", "put", "state")

    def __init__(self, value: Any, name: str, site: str, take: Any, put: Any) -> None:
        super().__init__(value, name, site)
        self.take, self.put = take, put
        self.state = take(value)

    @property
    def is_disturbed(self) -> bool:
        return not is_same_state(self.state, self.take(self.value))

    def put_back(self, place: Place) -> None:
        super().put_back(place)
        if self.is_disturbed:
            self.put(self.value, self.state)


class Namespace(Guard):
    """The functions and descriptors of a class and its bases: those of the user's."""

    __slots__ = ("found", "bases")

    def __init__(self, value: type, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.found = namespace(value)
        self.bases = value.__mro__

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if now.__mro__ != self.bases:
            yield Change(self, place, now, f"`{self.name}` has other bases now")
        found = namespace(now)
        for key in {**self.found, **found}:
            if self.found.get(key) is not found.get(key):
                yield Change(self, place, now, f"`{key}` is another one now")
                return

    def put_back(self, place: Place) -> None:
        """What a function does to a class stays."""

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.version(self.value)


class Refused(Guard):
    """What a program cannot depend on; `reason` completes a sentence."""

    __slots__ = ("reason",)

    def __init__(self, value: Any, name: str, site: str, reason: str) -> None:
        super().__init__(value, name, site)
        self.reason = reason

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        return iter(())


class Fresh(Guard):
    """What the trace itself has made."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        return iter(())

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Nothing to check."""


class Overwritten(Guard):
    """A place that was written before it was read: what was there, in `before`, does not matter."""

    __slots__ = ("before",)

    def __init__(self, before: Guard) -> None:
        super().__init__(before.value, before.name, before.site)
        self.before = before

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        return iter(())

    def put_back(self, place: Place) -> None:
        self.before.put_back(place)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Nothing to check."""


class Given(Guard):
    """A tensor or array among the arguments: an input, of which only the form is known."""

    __slots__ = ("form",)

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(None, name, site)
        self.form = form_of(value)

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if form_of(now) != self.form:
            yield Change(self, place, now, f"`{self.name}` {difference_of_forms(self.form, form_of(now))}")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Inputs are looked at when they are gathered."""
        rows.of_type(register, self.form[0])


class Captured(Guard):
    """A tensor from outside: an input by reference, known by who it is."""

    __slots__ = ("form", "node", "is_carried")

    def __init__(self, value: Tensor, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.form = form_of(value)
        self.node = value._node
        self.is_carried = False  # whether calls put another tensor in its place: then only its form is known

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if now is not self.value and not self.is_carried:
            yield self._change(place, now)
        elif form_of(now) != self.form:
            yield self._change(place, now, difference_of_forms(self.form, form_of(now)))
        elif now._node is not self.node:
            yield self._change(place, now, "is another variable now")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        if self.is_carried:
            rows.of_type(register, Tensor)
        else:
            rows.identical(register, self.value)
            rows.tensor_form(self.value)


class Array(Guard):
    """A NumPy array from outside: small ones are known by their bytes, larger ones must be inputs."""

    __slots__ = ("content", "form", "is_input", "before")

    MOST = 4096  # bytes
    MOST_KEPT = 1 << 28  # while it is traced

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.form = form_of(value)
        self.content = value.tobytes() if value.nbytes <= self.MOST else None
        self.before = value.copy() if self.MOST < value.nbytes <= self.MOST_KEPT else None
        self.is_input = False  # said by the trace, when it is done

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if form_of(now) != self.form:
            yield self._change(place, now, difference_of_forms(self.form, form_of(now)))
        elif (self.content is None or self.is_input) and now is not self.value:
            yield self._change(place, now)
        elif self.content is not None and now.tobytes() != self.content:
            yield self._change(place, now, "has other values now; pass an array that changes as an argument")
        elif self.before is not None and now.tobytes() != self.before.tobytes():
            yield self._change(place, now, "has other values now")

    def let_go(self) -> None:
        self.before = None

    def put_back(self, place: Place) -> None:
        super().put_back(place)
        if self.before is not None:
            self.value[...] = self.before
        if self.content is not None and self.value.tobytes() != self.content:
            self.value[...] = np.frombuffer(self.content, self.value.dtype).reshape(self.value.shape)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        if self.content is None or self.is_input:
            rows.identical(register, self.value)
        if self.content is not None:
            if type(self.value) is not np.ndarray or not self.value.flags.c_contiguous:
                raise UnwrittenError
            rows.array(register, self.value.dtype, self.value.shape)
            rows.flags(register, self.value)
            rows.content(register, self.content)
