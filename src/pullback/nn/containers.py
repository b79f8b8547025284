"""Modules that hold modules under numbers or names of their own."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Self

from ..errors import ConfigurationError, IndexingError
from ..tensors.tensor import Tensor
from .module import Module


def _checked(owner: Module, name: Any, module: Any) -> Module:
    """`module`, after a look whether it is one and whether `name` can be its attribute."""
    label = type(owner).__name__
    if not isinstance(module, Module):
        made = f" Write `{module.__name__}(...)`." if isinstance(module, type) else ""
        raise ConfigurationError(f"{label}: {name!r} must be a module, got {type(module).__name__}.{made}")
    taken = hasattr(type(owner), str(name)) or (name in vars(owner) and not isinstance(vars(owner)[name], Module))
    if not isinstance(name, str) or not name or "." in name or taken:
        raise ConfigurationError(
            f"{label}: {name!r} cannot name a module: it must be a string without dots that is no attribute."
        )
    return module


class _Numbered(Module):
    """Modules in a row; what `Sequential` and `ModuleList` share."""

    def _pairs(self) -> list[tuple[str, Module]]:
        return [(name, value) for name, value in vars(self).items() if isinstance(value, Module)]

    def _fill(self, pairs: Iterable[tuple[str, Any]]) -> Self:
        """Hold these modules and no others; names that are numbers become the numbers from 0 on."""
        named = [(str(i) if name.isdigit() else name, module) for i, (name, module) in enumerate(pairs)]
        checked = [(name, _checked(self, name, module)) for name, module in named]
        for name, _ in self._pairs():
            delattr(self, name)
        for name, module in checked:
            setattr(self, name, module)
        return self

    def _position(self, index: int) -> int:
        count = len(self)
        if not -count <= index < count:
            raise IndexingError(f"{type(self).__name__}: index {index} is out of range for {count} modules.")
        return index % count

    def __len__(self) -> int:
        return len(self._pairs())

    def __iter__(self) -> Iterator[Any]:
        return iter([value for value in vars(self).values() if isinstance(value, Module)])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            part = type(self)()._fill(self._pairs()[index])
            part.training = self.training
            return part
        return self._pairs()[self._position(index)][1]

    def __setitem__(self, index: int, module: Module) -> None:
        name = self._pairs()[self._position(index)][0]
        setattr(self, name, _checked(self, name, module))

    def __delitem__(self, index: int | slice) -> None:
        pairs = self._pairs()
        del pairs[index if isinstance(index, slice) else self._position(index)]
        self._fill(pairs)

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns the container."""
        return self._fill([*self._pairs(), ("0", module)])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; returns the container."""
        return self._fill([*self._pairs(), *(("0", module) for module in modules)])

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before number `index`; returns the container."""
        pairs = self._pairs()
        pairs.insert(index, ("0", module))
        return self._fill(pairs)


class Sequential(_Numbered):
    """Modules one after the other, each on the result of the one before; named "0", "1", ..., or as in a dict.

    Slices are sequences of the same modules.

    Parameters
    ----------
    *modules : Module, or one dict of str to Module
        What to call, in this order. For functions without parameters there are modules, such as `nn.ReLU`.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.ReLU(), pb.nn.Linear(4, 1))
    >>> model(pb.zeros((5, 3))).shape
    (5, 1)
    >>> model[:2]
    Sequential(
      (0): Linear(in_features=3, out_features=4, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            self._fill(modules[0].items())
        else:
            self._fill([("0", module) for module in modules])

    def forward(self, x: Any) -> Tensor:
        for module in self:
            x = module(x)
        return x


class ModuleList(_Numbered):
    """A list of modules named "0", "1", ...; a plain list as an attribute does as well.

    >>> import pullback as pb
    >>> layers = pb.nn.ModuleList(pb.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(layers[1:])
    (3, 2)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._fill([("0", module) for module in modules])


class ModuleDict(Module):
    """Modules by name; a plain dict as an attribute does as well.

    `modules` is a mapping, or (name, module) pairs.

    >>> import pullback as pb
    >>> heads = pb.nn.ModuleDict({"cat": pb.nn.Linear(2, 1), "dog": pb.nn.Linear(2, 1)})
    >>> list(heads.keys()), "cat" in heads
    (['cat', 'dog'], True)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        self.update(modules)

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(f"ModuleDict: no module {name!r}; there are {list(self.keys())}.")
        return vars(self)[name]

    def __setitem__(self, name: str, module: Module) -> None:
        setattr(self, name, _checked(self, name, module))

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and isinstance(vars(self).get(name), Module)

    def __len__(self) -> int:
        return len(dict(self.items()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules, in their order."""
        return [(name, value) for name, value in vars(self).items() if isinstance(value, Module)]

    def keys(self) -> Iterable[str]:
        """The names."""
        return [name for name, _ in self.items()]

    def values(self) -> Iterable[Any]:
        """The modules."""
        return [module for _, module in self.items()]

    def pop(self, name: str) -> Any:
        """Take a module out, and return it."""
        module = self[name]
        delattr(self, name)
        return module

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or replace those of the same names."""
        pairs = list(modules.items() if isinstance(modules, Mapping) else modules)
        for name, module in [(name, _checked(self, name, module)) for name, module in pairs]:
            setattr(self, name, module)
