"""Nested containers as trees of leaves.

Containers are dict (and OrderedDict, defaultdict), list, tuple, namedtuple, dataclass, None, and types added with
`register`; everything else is a leaf. A dict's leaves come in the order of its sorted keys, so that equal dicts have
equal leaves however they were filled; what `unflatten` makes has the keys in their first order. A dataclass field with
`metadata={"static": True}` belongs to the structure. Nothing here recurses, so depth is not limited.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any, Callable, Iterable

from .errors import ShapeError

__all__ = ["Structure", "flatten", "leaves", "map", "paths", "register", "structure", "unflatten"]


def __dir__() -> list[str]:
    return __all__


_map = map


class _Kind:
    """How containers of one kind are taken apart and made.

    `take(x)` gives (children, data); `make(children, data)` undoes it. Containers of equal data have equal structure.
    `take_whole` is `take`, unless children are made from what the container holds: then it gives that itself.
    """

    __slots__ = ("name", "take", "make", "step", "take_whole")

    def __init__(self, name: str, take: Any, make: Any, step: Any) -> None:
        self.name = name
        self.take = take
        self.make = make
        self.step = step  # step(data, i): how to write the way to child i
        self.take_whole = take

    def __repr__(self) -> str:
        return self.name


class _Keys:
    """The keys of a dict: equal if they are the same keys, in whatever order."""

    __slots__ = ("kind", "ordered", "insertion", "factory")

    def __init__(self, x: dict[Any, Any]) -> None:
        self.kind = type(x)
        self.insertion = tuple(x)
        self.ordered = _sorted(self.insertion)
        self.factory = x.default_factory if type(x) is defaultdict else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keys) and (self.kind, self.ordered) == (other.kind, other.ordered)

    def __hash__(self) -> int:
        return hash((self.kind, self.ordered))

    def __repr__(self) -> str:
        return "keys " + ", ".join(_map(repr, self.ordered))

    def make(self, children: list[Any]) -> Any:
        by_key = dict(zip(self.ordered, children))
        pairs = [(key, by_key[key]) for key in self.insertion]
        return defaultdict(self.factory, pairs) if self.kind is defaultdict else self.kind(pairs)


def _sorted(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(keys))
    except TypeError:  # keys that cannot be compared: any order that depends on the keys alone will do
        return tuple(sorted(keys, key=lambda key: (type(key).__name__, repr(key))))


def _take_dict(x: Any) -> Any:
    keys = _Keys(x)
    return [x[key] for key in keys.ordered], keys


def _take_dataclass(x: Any) -> Any:
    from dataclasses import fields

    names = tuple(field.name for field in fields(x) if not field.metadata.get("static"))
    static = tuple((field.name, getattr(x, field.name)) for field in fields(x) if field.metadata.get("static"))
    return [getattr(x, name) for name in names], (type(x), names, static)


def _make_dataclass(children: list[Any], data: Any) -> Any:
    """Without `__init__`: a frozen class, or one that checks its fields, must hold any leaves."""
    cls, names, static = data
    made = object.__new__(cls)
    for name, value in (*zip(names, children), *static):
        object.__setattr__(made, name, value)
    return made


def _position(data: Any, i: int) -> str:
    return f"[{i}]"


_LEAF = _Kind("leaf", None, None, None)
_NONE = _Kind("None", lambda x: ([], None), lambda children, data: None, _position)
_DICT = _Kind("dict", _take_dict, lambda children, keys: keys.make(children), lambda keys, i: f"[{keys.ordered[i]!r}]")
_LIST = _Kind("list", lambda x: (x, None), lambda children, data: list(children), _position)
_TUPLE = _Kind("tuple", lambda x: (x, None), lambda children, data: tuple(children), _position)
_NAMED_TUPLE = _Kind(
    "namedtuple",
    lambda x: (x, type(x)),
    lambda children, cls: cls(*children),
    lambda cls, i: f".{cls._fields[i]}",
)
_DATACLASS = _Kind("dataclass", _take_dataclass, _make_dataclass, lambda data, i: f".{data[1][i]}")
_kinds: dict[type, _Kind] = {
    type(None): _NONE, dict: _DICT, OrderedDict: _DICT, defaultdict: _DICT, list: _LIST, tuple: _TUPLE,
}  # fmt: skip


def register(
    cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[Any, Any], Any]
) -> None:
    """Make a type a container: `flatten(x)` gives (children, data), `unflatten(data, children)` makes one.

    `data` must be comparable with `==` and hashable. Subclasses are not registered along.

    >>> import pullback as pb
    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> pb.tree.register(Point, lambda p: ((p.x, p.y), None), lambda data, children: Point(*children))
    >>> pb.tree.leaves({"origin": Point(0.0, 1.0)})
    [0.0, 1.0]
    """
    if not isinstance(cls, type):
        raise TypeError(f"tree.register: expected a class, got {cls!r:.60}")
    _kinds[cls] = _Kind(cls.__name__, _taking(flatten), lambda children, data: unflatten(data, children), _position)


def register_variables(cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]]) -> None:
    """For a registered class: `flatten` as for `register`, with variables where that gives their values."""
    _kinds[cls].take_whole = _taking(flatten)


def _taking(flatten: Callable[[Any], tuple[Iterable[Any], Any]]) -> Callable[[Any], tuple[list[Any], Any]]:
    def take(x: Any) -> tuple[list[Any], Any]:
        children, data = flatten(x)
        return list(children), data

    return take


def _kind_of(x: Any) -> _Kind:
    cls = type(x)
    kind = _kinds.get(cls)
    if kind is None:
        if hasattr(cls, "__dataclass_fields__"):
            kind = _DATACLASS
        elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
            kind = _NAMED_TUPLE
        else:
            kind = _LEAF
        _kinds[cls] = kind
    return kind


class Structure:
    """What is left of a tree without its leaves. Structures can be compared, hashed and printed.

    Made by `pb.tree.structure` and `pb.tree.flatten`, out of `entries` and a `leaf_count`.

    >>> import pullback as pb
    >>> pb.tree.structure({"w": 1.0, "b": [2.0, None]})
    Structure({'b': [*, None], 'w': *})
    """

    __slots__ = ("_entries", "_hash", "leaf_count")

    def __init__(self, entries: tuple[tuple[_Kind, Any, int], ...], leaf_count: int) -> None:
        self._entries = entries  # (kind, data, number of children) of every container and leaf, parents first
        self._hash: int | None = None
        self.leaf_count = leaf_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._entries == other._entries

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._entries)
        return self._hash

    def __repr__(self) -> str:
        def text(kind: _Kind, data: Any, children: list[str]) -> str:
            if kind is _NONE:
                return "None"
            if kind is _LIST:
                return f"[{', '.join(children)}]"
            if kind is _TUPLE:
                return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
            if kind is _DICT:
                return "{" + ", ".join(f"{key!r}: {child}" for key, child in zip(data.ordered, children)) + "}"
            name = data.__name__ if kind is _NAMED_TUPLE else data[0].__name__ if kind is _DATACLASS else kind.name
            steps = ["" if kind.step is _position else kind.step(data, i)[1:] + "=" for i in range(len(children))]
            return f"{name}({', '.join(step + child for step, child in zip(steps, children))})"

        return f"Structure({self._built(['*'] * self.leaf_count, text)})"

    def _built(self, leaves: list[Any], make: Callable[[_Kind, Any, list[Any]], Any] | None = None) -> Any:
        """Put the tree together from its end: every container finds its children ready on the stack."""
        rest = iter(reversed(leaves))
        ready: list[Any] = []
        for kind, data, count in reversed(self._entries):
            if kind is _LEAF:
                ready.append(next(rest))
            else:
                children = ready[len(ready) - count :][::-1]
                del ready[len(ready) - count :]
                ready.append(kind.make(children, data) if make is None else make(kind, data, children))
        return ready[0]

    def _paths(self) -> list[str]:
        """The way to every leaf, in their order."""
        result: list[str] = []
        waiting = [""]
        for kind, data, count in self._entries:
            path = waiting.pop()
            if kind is _LEAF:
                result.append(path)
            waiting.extend(path + kind.step(data, i) for i in reversed(range(count)))
        return result

    def _path_to(self, entry: int) -> str:
        """The way to one entry, without making those to all the others."""
        waiting: list[tuple[int, int]] = [(-1, 0)]
        parents: list[tuple[int, int]] = []  # (number of the parent's entry, which child)
        for number, (_, _, count) in enumerate(self._entries[: entry + 1]):
            parents.append(waiting.pop())
            waiting.extend((number, child) for child in reversed(range(count)))
        steps: list[str] = []
        parent, child = parents[entry]
        while parent >= 0:
            kind, data, _ = self._entries[parent]
            steps.append(kind.step(data, child))
            parent, child = parents[parent]
        return "".join(reversed(steps))


_LEAF_ENTRY = (_LEAF, None, 0)
_ONE_LEAF = Structure((_LEAF_ENTRY,), 1)
_NOTHING = Structure(((_NONE, None, 0),), 0)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree, and what is left without them.

    Parameters
    ----------
    tree : tree
        Nested dicts, lists, tuples, dataclasses, modules and what is registered; None has no leaf.
    is_leaf : callable, optional
        What it says True of is taken whole, as a leaf.

    Returns
    -------
    tuple
        (list of leaves, `Structure`): `unflatten` makes a tree of both.

    Examples
    --------
    >>> import pullback as pb
    >>> leaves, structure = pb.tree.flatten({"w": 1.0, "b": (2.0, 3.0)})
    >>> leaves
    [2.0, 3.0, 1.0]
    >>> pb.tree.unflatten(structure, [20.0, 30.0, 10.0])
    {'w': 10.0, 'b': (20.0, 30.0)}
    """
    return _flattened(tree, is_leaf, False)


def flatten_variables(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """As `flatten`, but the leaves of modules are their variables, through which gradients flow: for what is passed on.

    The leaves that `flatten` gives are their values, for what is changed and for what is differentiated by.
    """
    return _flattened(tree, is_leaf, True)


def holds_variables(x: Any) -> bool:
    """Whether `flatten_variables` gives other leaves than `flatten`: for a module."""
    kind = _kinds.get(type(x))
    return kind is not None and kind.take_whole is not kind.take


def _flattened(tree: Any, is_leaf: Callable[[Any], bool] | None, whole: bool) -> tuple[list[Any], Structure]:
    if is_leaf is None:
        kind = _kinds.get(type(tree))
        if kind is _LEAF:
            return [tree], _ONE_LEAF
        if kind is _NONE:
            return [], _NOTHING
    found: list[Any] = []
    entries: list[tuple[_Kind, Any, int]] = []
    stack = [tree]
    while stack:
        x = stack.pop()
        kind = _LEAF if is_leaf is not None and is_leaf(x) else _kinds.get(type(x)) or _kind_of(x)
        if kind is _LEAF:
            found.append(x)
            entries.append(_LEAF_ENTRY)
        else:
            children, data = kind.take_whole(x) if whole else kind.take(x)
            entries.append((kind, data, len(children)))
            stack.extend(reversed(children))
    return found, Structure(tuple(entries), len(found))


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with the given leaves.

    Parameters
    ----------
    structure : Structure
        What `flatten` or `structure` gave.
    leaves : iterable
        As many as the structure has, in the order that `flatten` gives.

    Returns
    -------
    tree

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tree.unflatten(pb.tree.structure({"w": 0, "b": [0, 0]}), [1, 2, 3])
    {'w': 3, 'b': [1, 2]}
    """
    given = list(leaves)
    if len(given) != structure.leaf_count:
        raise ShapeError(f"tree.unflatten: {structure!r} has {structure.leaf_count} leaves, {len(given)} were given.")
    if structure is _ONE_LEAF:
        return given[0]
    return structure._built(given)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree in a list.

    Parameters
    ----------
    tree : tree
        Nested dicts, lists, tuples, dataclasses, modules and what is registered; None has no leaf.
    is_leaf : callable, optional
        What it says True of is taken whole, as a leaf.

    Returns
    -------
    list

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tree.leaves([1, {"a": 2}, (3, None)])
    [1, 2, 3]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Structure:
    """What is left of a tree without its leaves, as of `flatten`.

    `is_leaf` says what is taken whole, as in `leaves`.

    >>> import pullback as pb
    >>> pb.tree.structure({"w": 1.0}) == pb.tree.structure({"w": 2.0})
    True
    """
    return flatten(tree, is_leaf)[1]


def paths(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[str]:
    """How to write the way to each leaf, in the order of `leaves`.

    `is_leaf` says what is taken whole, as in `leaves`.

    >>> import pullback as pb
    >>> pb.tree.paths({"w": 1.0, "layers": [2.0, 3.0]})
    ["['layers'][0]", "['layers'][1]", "['w']"]
    """
    return structure(tree, is_leaf)._paths()


def map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of what `function` makes of every leaf of a tree.

    Parameters
    ----------
    function : callable
        It takes a leaf of `tree`, and the one in its place of each tree in `rest`.
    tree : tree
        Nested dicts, lists, tuples, dataclasses, modules and what is registered; None has no leaf.
    *rest : tree
        Trees of the same structure.
    is_leaf : callable, optional
        What it says True of is taken whole, as a leaf.

    Returns
    -------
    tree
        Of the structure of `tree`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tree.map(lambda x, g: x - 0.5 * g, {"w": 1.0, "b": 2.0}, {"b": 1.0, "w": 1.0})
    {'w': 0.5, 'b': 1.5}
    """
    first, shape = flatten(tree, is_leaf)
    columns = [first]
    for number, other in enumerate(rest, 2):
        found, other_shape = flatten(other, is_leaf)
        if other_shape != shape:
            raise ShapeError(f"tree.map: {_difference(shape, other_shape, number)}")
        columns.append(found)
    return unflatten(shape, [function(*row) for row in zip(*columns)])


def _difference(a: Structure, b: Structure, number: int) -> str:
    """Where tree `number` first differs from the first tree, in words."""
    for i, (one, other) in enumerate(zip(a._entries, b._entries)):
        if one != other:
            path = a._path_to(i)
            where = f"at `tree{path}`" if path else "at the top"
            both = f"{_described(one)} in the first, {_described(other)} in tree {number}"
            return f"tree {number} differs from the first {where}: {both}."
    return f"tree {number} has {len(b._entries)} parts, the first has {len(a._entries)}."


def _described(entry: tuple[_Kind, Any, int]) -> str:
    kind, data, count = entry
    if kind is _LEAF:
        return "a leaf"
    if kind is _NONE:
        return "None"
    if kind is _DICT:
        return f"a {data.kind.__name__} with {data!r}" if count else f"an empty {data.kind.__name__}"
    if kind is _NAMED_TUPLE:
        return f"a {data.__name__} of {count}"
    if kind is _DATACLASS:
        static = ", ".join(f"{name}={value!r:.40}" for name, value in data[2])
        return f"a {data[0].__name__}" + (f" with {static}" if static else "")
    return f"a {kind.name} of {count}"
