"""Guards of the library's own state: what optimizers, hooks and gradients were like when a function was traced."""

from __future__ import annotations

import operator
from typing import Any, Iterator

import numpy as np

from ... import backends
from ...autodiff.hooks import changes as hook_changes, hooks_on
from ...tensors.tensor import Tensor
from .guard import difference_of_forms, form_of
from .native import object_layout as layout
from .places import Place
from .values import Change, Guard, Look, UnwrittenError


class Variable(Guard):
    """Whether a tensor from outside needs a gradient, and as which variable."""

    __slots__ = ("node",)

    def __init__(self, tensor: Tensor, node: Any) -> None:
        super().__init__(tensor, f"a tensor of shape {tensor.shape}", "")
        self.node = node

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        node = self.value._node
        if node is self.node:
            return
        text = "is another variable now"
        if node is None or self.node is None:
            text = f"requires {'no' if node is None else 'a'} gradient now"
        yield Change(self, place, now, f"{self.name} from outside {text}")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.kept.append(self.node)
        rows.word(0, layout.slot_address(self.value, "_node"), id(self.node))


class Content(Guard):
    """The values of a small tensor or array from outside that decided what was traced."""

    __slots__ = ("content",)

    def __init__(self, thing: Any, content: bytes) -> None:
        super().__init__(thing, f"a tensor of shape {thing.shape}", "")
        self.content = content

    @property
    def _raw(self) -> Any:
        return self.value._raw if isinstance(self.value, Tensor) else self.value

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        raw = self._raw
        if (raw if type(raw) is np.ndarray else backends.of(raw).to_numpy(raw)).tobytes() != self.content:
            yield Change(self, place, now, f"{self.name} from outside, whose values are read, has others now")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        raw = self._raw
        if type(raw) is not np.ndarray or not raw.flags.c_contiguous:
            raise UnwrittenError
        found = rows.at(layout.slot_address(self.value, "_raw")) if raw is not self.value else rows.constant(raw)
        rows.array(found, raw.dtype, raw.shape)
        rows.content(found, self.content)


class Gradient(Guard):
    """Whether there is a gradient in a variable's cell; unless calls replace it, which one."""

    __slots__ = ("before", "form", "node", "is_replaced")

    def __init__(self, cell: Any, before: Any, is_replaced: bool) -> None:
        super().__init__(cell, "a variable's `.grad`", "")
        self.before = before
        self.form: tuple[Any, ...] = () if before is None else form_of(before)
        self.node: Any = None if before is None else before._node
        self.is_replaced = is_replaced

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        found = self.value._value
        if (found is None) is not (self.before is None):
            yield Change(self, place, now, f"{self.name} {'is gone' if found is None else 'is there now'}")
        elif found is not self.before:
            if not self.is_replaced:
                yield Change(self, place, now, f"{self.name} is another tensor")
            elif form_of(found) != self.form or found._node is not self.node:
                yield Change(self, place, now, f"{self.name} {difference_of_forms(self.form, form_of(found))}")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        address = layout.slot_address(self.value, "_value")
        if self.before is None or not self.is_replaced:
            rows.kept.append(self.before)
            rows.word(0, address, id(self.before))
        else:
            rows.of_type(rows.at(address), Tensor)


class Hooks(Guard):
    """The hooks on variables from outside: a walk inside the function calls them while it is traced."""

    __slots__ = ("seen",)

    def __init__(self, nodes: list[Any]) -> None:
        super().__init__(nodes, "hooks", "")
        self.seen = self._hooks()

    def _hooks(self) -> list[Any]:
        return [hooks_on(node) for node in self.value]

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if self._hooks() != self.seen:
            yield Change(self, place, now, "a variable from outside has other hooks now")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """A count of all changes: if it is not the same, the hooks are looked at."""
        (count,) = rows.items(rows.constant(hook_changes), list, 1)
        rows.identical(count, hook_changes[0])


class Together(Guard):
    """Parameters of an optimizer that have taken the same number of steps, and so share their numbers."""

    __slots__ = ()

    def __init__(self, optimizer: Any, slots: list[Any]) -> None:
        super().__init__(slots, type(optimizer).__name__, "")

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if any(slot.step != self.value[0].step for slot in self.value):
            yield Change(self, place, now, f"parameters of {self.name} have taken different numbers of steps")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.kept.append(self.value)
        first, *others = [rows.at(layout.slot_address(slot, "step")) for slot in self.value]
        for other in others:
            rows.alike(other, first)


class State(Guard):
    """An optimizer's parameters, and the lists of buffers of those that were updated."""

    __slots__ = ("sizes", "buffers", "groups")

    def __init__(self, optimizer: Any, buffers: list[tuple[Any, list[Any]]]) -> None:
        super().__init__(optimizer, type(optimizer).__name__, "")
        self.sizes = [len(slots) for slots in optimizer._slots]
        self.groups = list(optimizer.param_groups)
        self.buffers = buffers  # loading a state gives a slot another list

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if [len(slots) for slots in self.value._slots] != self.sizes:
            yield Change(self, place, now, f"{self.name} has other parameters now")
        elif any(map(operator.is_not, self.value.param_groups, self.groups)):
            yield Change(self, place, now, f"{self.name} has other param_groups now")
        elif any(slot.buffers is not buffers for slot, buffers in self.buffers):
            yield Change(self, place, now, f"{self.name} has another state now")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        groups = rows.items(rows.constant(self.value._slots), list, len(self.sizes))
        for group, size in zip(groups, self.sizes):
            rows.items(group, list, size, ())
        options = rows.items(rows.attribute(rows.constant(self.value), "param_groups"), list, len(self.groups))
        for register, group in zip(options, self.groups):
            rows.identical(register, group)
        for slot, buffers in self.buffers:
            rows.kept += [slot, buffers]
            rows.word(0, layout.slot_address(slot, "buffers"), id(buffers))
