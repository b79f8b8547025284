"""Hooks on modules: functions of the user's that see, and may replace, what goes into a module and what comes out."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable, Literal

from ..errors import ConfigurationError
from ..modes import refuse_in_trace

if TYPE_CHECKING:
    from .module import Module

Entry = tuple[Callable[..., Any], bool]  # a hook, and whether it is given keyword arguments too


class Hooks:
    """A module's hooks. They are replaced, never changed, so that copies of the module keep theirs."""

    __slots__ = ("before", "after")

    def __init__(self, before: tuple[Entry, ...] = (), after: tuple[Entry, ...] = ()) -> None:
        self.before = before
        self.after = after


class HookHandle:
    """What registering a hook on a module returns: `remove()` takes the hook away, and so does the end of a `with`."""

    def __init__(self, module: Module, place: Literal["before", "after"], entry: Entry) -> None:
        self._module = weakref.ref(module)
        self._place = place
        self._entry = entry

    def remove(self) -> None:
        """Take the hook away, if it is still there."""
        module = self._module()
        hooks = None if module is None else module._hooks
        if module is None or hooks is None:
            return
        refuse_in_trace("Removing a hook changes a module.")
        kept = {place: getattr(hooks, place) for place in Hooks.__slots__}
        kept[self._place] = tuple([entry for entry in kept[self._place] if entry is not self._entry])
        if any(kept.values()):
            vars(module)["_hooks"] = Hooks(**kept)
        else:
            vars(module).pop("_hooks", None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register(
    module: Module, place: Literal["before", "after"], hook: Callable[..., Any], prepend: bool, with_kwargs: bool
) -> HookHandle:
    """Put a hook on a module, behind the others or in front of them."""
    if not callable(hook):
        raise ConfigurationError(f"a hook is a function, got {type(hook).__name__}.")
    refuse_in_trace("Registering a hook changes a module. Do it before the call.")
    hooks = module._hooks or Hooks()
    entry = (hook, with_kwargs)
    kept = {name: getattr(hooks, name) for name in Hooks.__slots__}
    kept[place] = (entry, *kept[place]) if prepend else (*kept[place], entry)
    vars(module)["_hooks"] = Hooks(**kept)
    return HookHandle(module, place, entry)


def call(module: Module, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `module(*args, **kwargs)` gives with these hooks."""
    for hook, with_kwargs in hooks.before:
        if not with_kwargs:
            given = hook(module, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
            continue
        both = hook(module, args, kwargs)
        if both is None:
            continue
        if not (isinstance(both, tuple) and len(both) == 2 and isinstance(both[1], dict)):
            raise ConfigurationError(
                "a forward pre-hook with with_kwargs=True returns None or a pair of the arguments, a tuple, and the "
                f"keyword arguments, a dict; got {both!r:.60}."
            )
        args, kwargs = both
    output = module.forward(*args, **kwargs)
    for hook, with_kwargs in hooks.after:
        replaced = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        if replaced is not None:
            output = replaced
    return output
