"""Modules with other values in the places of their tensors: for trees, and for `functional_call`.

The original is never written to, so that threads may do this with one module at the same time.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from ..autodiff.base import resolved
from ..autodiff.creation import asarray
from ..autodiff.graph import Leaf
from ..errors import ConfigurationError, ShapeError
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

Places = dict[int, dict[str, Any]]  # by the module's id, then by the path in it


def rebuilt(module: Module, places: Places, slots: Places | None = None) -> Module:
    """A copy of the tree of modules with the values of `places`; whatever is not in them is shared."""
    return _Rebuilding(places, slots or {}).module(module)


class _Rebuilding:
    def __init__(self, places: Places, slots: Places) -> None:
        self.places = places
        self.slots = slots
        self.done: dict[int, Module] = {}  # a module in several places stays one

    def module(self, module: Module) -> Module:
        found = self.done.get(id(module))
        if found is None:
            found = self.done[id(module)] = copy.copy(module)
            found._slots.update(self.slots.get(id(module), {}))
            values = self.places.get(id(module), {})
            for name, value in list(vars(found).items()):
                if name not in ("_kinds", "_slots"):
                    found.__dict__[name] = self.value(name, value, values)
        return found

    def value(self, path: str, value: Any, values: dict[str, Any]) -> Any:
        from .module import Module

        if path in values:
            return values[path]
        if isinstance(value, Module):
            return self.module(value)
        if isinstance(value, dict):
            parts = {key: self.value(f"{path}.{key}", part, values) for key, part in value.items()}
            return value if all(parts[key] is value[key] for key in parts) else _like_mapping(value, parts)
        if isinstance(value, (list, tuple)):
            items = [self.value(f"{path}.{i}", part, values) for i, part in enumerate(value)]
            if all(new is old for new, old in zip(items, value)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value


def _like_mapping(value: dict[Any, Any], parts: dict[Any, Any]) -> dict[Any, Any]:
    made = copy.copy(value)  # keeps the factory of a defaultdict
    made.update(parts)
    return made


# -- trees -----------------------------------------------------------------------------------------


class Frame:
    """What is left of a module without its leaves. Frames of one class with leaves of the same names are equal."""

    __slots__ = ("module", "groups", "names")

    def __init__(self, module: Module, groups: list[list[tuple[Module, str]]], names: tuple[Any, ...]) -> None:
        self.module = module
        self.groups = groups  # per leaf the places that hold it
        self.names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and type(self.module) is type(other.module) and self.names == other.names

    def __hash__(self) -> int:
        return hash((type(self.module), self.names))

    def __repr__(self) -> str:
        return f"{type(self.module).__name__} with " + ", ".join(name for name, *_ in self.names)


def to_tree(module: Module) -> tuple[list[Any], Frame]:
    """The values of parameters that require a gradient, tied ones once; of what `from_tree` made, whatever is there.

    Values, not variables: what `tree.map(lambda p, g: p - rate * g, model, gradients)` makes would otherwise carry the
    graph of all steps before. The variables of a transform stay what they are.
    """
    leaves, frame = to_variables(module)
    is_leaf = [isinstance(leaf, Tensor) and isinstance(resolved(leaf)._node, Leaf) for leaf in leaves]
    return [leaf.detach() if is_one else leaf for leaf, is_one in zip(leaves, is_leaf)], frame


def to_variables(module: Module) -> tuple[list[Any], Frame]:
    """The parameters that `to_tree` gives the values of."""
    variables: dict[int, Any] = {}
    groups: dict[int, list[tuple[Module, str]]] = {}
    names: dict[int, list[str]] = {}
    for name, kind, owner, path, value in module._tensors(once=True):
        slot = owner._slots.get(path)
        if slot is not None or (kind == "parameter" and value.requires_grad):
            key = id(value if slot is None else slot)
            variables[key] = value
            groups.setdefault(key, []).append((owner, path))
            names.setdefault(key, []).append(name)
    return list(variables.values()), Frame(module, list(groups.values()), tuple(map(tuple, names.values())))


def from_tree(frame: Frame, leaves: Iterable[Any]) -> Module:
    """The module of a frame with other leaves; it shares buffers and frozen parameters with the first one."""
    places: Places = {}
    slots: Places = {}
    for group, leaf in zip(frame.groups, leaves):
        slot = object()
        for owner, path in group:
            places.setdefault(id(owner), {})[path] = leaf
            slots.setdefault(id(owner), {})[path] = slot
    return rebuilt(frame.module, places, slots)


# -- calling with other tensors --------------------------------------------------------------------


def functional_call(module: Module, tensors: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """`module(*args, **kwargs)` as if it had `tensors`, by name, in the place of its parameters and buffers.

    Differentiable by the tensors, to any order. The module is not changed, so threads may call it at the same time;
    what `forward` assigns to attributes is lost, but buffers that it writes in place are written. A tensor in several
    places is replaced in all of them.

    Parameters
    ----------
    module : Module
        What to call.
    tensors : mapping of str to array
        Values by the names of parameters and buffers. Those that are not named stay.
    *args : any
        The arguments of the module.
    **kwargs : any
        Those by keyword.

    Returns
    -------
    any
        What the module returns.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.Linear(2, 1)
    >>> def loss(weight):
    ...     return pb.nn.functional_call(layer, {"weight": weight}, pb.tensor([1.0, 2.0])).sum()
    >>> pb.grad(loss)(pb.zeros((1, 2)))
    tensor([[1., 2.]])
    """
    entries = list(module._tensors(once=False))
    by_name = {name: value for name, _, _, _, value in entries}
    replaced: dict[int, tuple[str, Tensor]] = {}
    for name, given in tensors.items():
        if name not in by_name:
            from .state import nearest

            raise ConfigurationError(
                f"functional_call: {type(module).__name__} has no tensor {name!r}. {nearest(name, by_name)}"
            )
        own, value = by_name[name], asarray(given)
        if value.shape != own.shape:
            raise ShapeError(f"functional_call: {name!r} has shape {value.shape}, the module's has {own.shape}.")
        first, other = replaced.setdefault(id(own), (name, value))
        one, two = resolved(value), resolved(other)
        if one._raw is not two._raw or one._node is not two._node:
            raise ConfigurationError(f"functional_call: {first!r} and {name!r} are one tensor in the module: give one.")
    places: Places = {}
    for _, _, owner, path, value in entries:
        if id(value) in replaced:
            places.setdefault(id(owner), {})[path] = replaced[id(value)][1]
    return rebuilt(module, places)(*args, **kwargs)
