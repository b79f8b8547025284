"""A call's arguments: which are arrays that may change from call to call, and which belong to the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backends, dtypes, modes, tree
from ...autodiff import pending
from ...autodiff.base import make
from ...autodiff.creation import asarray
from ...autodiff.forward import Dual
from ...autodiff.graph import GradCell, Leaf
from ...errors import DeviceError
from ...targets import target_for
from ...tensors.tensor import Tensor
from ..host import host_dtype
from ..program import Value
from ..tracing.number import feed_dtype, number
from ..tracing.recorder import native
from ..tracing.symbol import Symbol, kept

_ndarray = np.ndarray
_NUMBERS = (int, float)
_FLOAT = np.dtype(np.float64)
_PLAIN = frozenset((int, bool, str, bytes, type(None)))


class Arguments:
    """The leaves of (args, kwargs). `dynamic` are numbers of those that are inputs; the others are part of the key."""

    __slots__ = ("given", "leaves", "structure", "dynamic", "key", "kinds", "promoted", "device", "is_abstract")

    def __init__(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], promoted: frozenset[str] = frozenset()
    ) -> None:
        self.given = args, kwargs
        self.promoted = promoted  # paths of numbers that are inputs
        self.leaves, self.structure = tree.flatten((args, kwargs), is_leaf=is_whole)
        if any(isinstance(leaf, _ndarray) and type(leaf) is not _ndarray for leaf in self.leaves):
            self.leaves = _plain_arrays(self.leaves)
            self.given = tree.unflatten(self.structure, self.leaves)
        self.dynamic: list[int] = []
        self.device: str | None = None  # of the tensors; None if there are none
        self.is_abstract = False  # whether another library is tracing one of them
        parts: list[Any] = []
        for i, leaf in enumerate(self.leaves):
            if _is_input(name, leaf):
                self.dynamic.append(i)
                raw = leaf._raw if isinstance(leaf, Tensor) else leaf
                device = self._note_device(name, leaf) if isinstance(leaf, Tensor) else None
                dtype = host_dtype(raw.dtype)
                parts.append((type(leaf), tuple(raw.shape), dtype, self.is_tracked(i), self.first_of(i), device))
            elif promoted and type(leaf) in _NUMBERS and self.structure._paths()[i] in promoted:
                self.dynamic.append(i)
                parts.append((type(leaf), (), _FLOAT, False, i, None))
            else:
                parts.append(_fixed(leaf))
        self.kinds = tuple(parts)
        self.key = (self.structure, self.kinds)

    def _note_device(self, name: str, tensor: Tensor) -> str:
        if type(tensor._raw) is _ndarray:
            device = "numpy"
        elif backends.of(tensor._raw).is_concrete(tensor._raw):
            device = tensor.device
        else:
            self.is_abstract = True
            return tensor.device
        if self.device is None:
            self.device = device
        elif device != self.device:
            raise DeviceError(
                f"{name}: pb.compile runs a function on one device, and got tensors on {self.device!r} and on "
                f"{device!r}. Move one with `.to_device({self.device!r})`."
            )
        return device

    @property
    def carry_tangents(self) -> bool:
        """Whether a derivative is taken in forward mode."""
        return any(isinstance(leaf, Dual) for leaf in self.leaves)

    def is_tracked(self, i: int) -> bool:
        """Whether a gradient is wanted for leaf `i`, which some operation made."""
        return getattr(self.leaves[i], "_node", None) is not None and modes.is_recording()

    def first_of(self, i: int) -> int:
        """The number of the first leaf that is the same thing as dynamic leaf `i`."""
        return i if self.is_number(i) else next(j for j in self.dynamic if self.leaves[j] is self.leaves[i])

    def is_number(self, i: int) -> bool:
        """Whether dynamic leaf `i` is a number of Python's."""
        return type(self.leaves[i]) in _NUMBERS

    def changed_numbers(self, before: Any) -> list[tuple[str, str]]:
        """Paths and names of the numbers by which these arguments differ from those of a key, if by nothing else."""
        structure, kinds = before
        differing = [i for i, (old, new) in enumerate(zip(kinds, self.kinds)) if old != new]
        if structure != self.structure or any(kinds[i][0] is not self.kinds[i][0] for i in differing):
            return []
        paths = self.structure._paths()
        if not all(type(self.leaves[i]) in _NUMBERS and _is_on_top(paths[i]) for i in differing):
            return []
        return [(paths[i], self.name_of(i)) for i in differing]

    def is_tensor(self, i: int) -> bool:
        return isinstance(self.leaves[i], Tensor)

    def array(self, i: int) -> Any:
        """The raw array of dynamic leaf `i`, in this machine's order of bytes."""
        leaf = self.leaves[i]
        if type(leaf) in _NUMBERS:
            return np.array(leaf, _FLOAT)
        raw = leaf._raw if isinstance(leaf, Tensor) else leaf
        return native(raw) if type(raw) is _ndarray else raw

    def on_symbols(self, recorder: Any) -> tuple[tuple[Any, ...], dict[str, Any], list[tuple[Value, Tensor]]]:
        """Arguments for a trace, with symbols for the dynamic ones; and these, in order."""
        leaves = list(self.leaves)
        made: list[tuple[Value, Tensor]] = []
        for i in self.dynamic:
            if self.first_of(i) != i:
                leaves[i] = leaves[self.first_of(i)]
                made.append(made[self.dynamic.index(self.first_of(i))])
                continue
            raw = self.array(i)
            dtype = feed_dtype(recorder) if self.is_number(i) else recorder.dtype_of(raw)
            value = Value(tuple(raw.shape), dtype, f"argument {self.name_of(i)}")
            if self.is_number(i):
                leaves[i] = number(Symbol(value, recorder), self.leaves[i], type(self.leaves[i]) is int)
                made.append((value, leaves[i]))
                continue
            node = Leaf(value.shape, value.dtype, GradCell()) if self.is_tracked(i) else None
            leaves[i] = make(Symbol(value, recorder), node)
            made.append((value, leaves[i]))
        args, kwargs = tree.unflatten(self.structure, leaves)
        return args, kwargs, made

    def name_of(self, i: int) -> str:
        """How to name leaf `i` in a message: "0['x']" or "'y'"."""
        return _name(self.structure._paths()[i])


def moved(args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments for the function itself, with NumPy's arrays on the device where its program has them."""
    if device == "numpy":
        return args, kwargs
    leaves, structure = tree.flatten((args, kwargs), is_leaf=is_whole)
    return tree.unflatten(structure, [asarray(x, device=device) if type(x) is _ndarray else x for x in leaves])


def on_device(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> Any:
    """Call the function itself, on the device where its program runs, in the place of a run that has failed."""
    args, kwargs = moved(args, kwargs, device)
    with pending.looking_at_once():
        return function(*args, **kwargs)


def is_whole(x: Any) -> bool:
    """Modules and optimizers are known by who they are, not by what is in them."""
    return isinstance(x, Tensor) or getattr(type(x), "_known_by_identity", False)


def _plain_arrays(leaves: list[Any]) -> list[Any]:
    """Leaves with plain views of arrays of subclasses, as `pb.asarray` takes them; what is there twice stays one."""
    views = {id(leaf): backends.NUMPY.plain(leaf) for leaf in leaves if isinstance(leaf, _ndarray)}
    return [views.get(id(leaf), leaf) for leaf in leaves]


def _is_input(name: str, leaf: Any) -> bool:
    if isinstance(leaf, Tensor):
        if type(leaf) is not Tensor or type(leaf._node) is Leaf:
            return False  # a variable: known by who it is, so that its gradient finds it
        if type(leaf._raw) is Symbol:
            raise kept()
        if type(leaf._raw) is not _ndarray and target_for(leaf.device) is None:
            raise DeviceError(
                f"{name}: pb.compile compiles for 'numpy', PyTorch's and JAX's devices so far, and got a tensor on "
                f"{leaf.device!r}. Move it with `.to_device('numpy')`, or call the function without pb.compile."
            )
        return True
    if type(leaf) is _ndarray:
        dtypes.from_numpy(leaf.dtype)  # refuses what no tensor can hold
        return True
    if not isinstance(leaf, np.generic) and backends.of(leaf) is not None:
        raise DeviceError(
            f"{name}: pb.compile takes tensors and NumPy's arrays, and got a "
            f"{type(leaf).__module__.partition('.')[0]}.{type(leaf).__name__}. Pass "
            "`pb.asarray(x)` of it, or call the function without pb.compile."
        )
    return False


def _fixed(leaf: Any) -> Any:
    """How a leaf that belongs to the program is recognised: by value if it is plain; what else there is to know of it
    is a matter of guards.
    """
    if isinstance(leaf, (float, complex, np.inexact)):
        return (type(leaf), repr(leaf))  # by its text: 0.0 is not -0.0, and NaN is NaN
    return (type(leaf), leaf) if type(leaf) in _PLAIN else (type(leaf),)


def difference(before: Any, now: Arguments) -> str:
    """What is different about a call's arguments, in words."""
    structure, kinds = before
    if structure != now.structure:
        return _difference_of_structures(structure._paths(), now.structure._paths())
    for i, (old, new) in enumerate(zip(kinds, now.kinds)):
        if old == new:
            continue
        name = f"argument {now.name_of(i)}"
        if i in now.dynamic and len(old) == 6:
            if old[1] != new[1]:
                return f"{name} had shape {old[1]} and has {new[1]}"
            if old[2] != new[2]:
                return f"{name} was {old[2]} and is {new[2]}"
            if old[3] != new[3]:
                return f"{name} {'requires' if new[3] else 'does not require'} a gradient now"
            if old[4] != new[4]:
                return f"{name} is {'' if new[4] != i else 'not '}another argument too, now"
            if old[0] is new[0]:
                return f"{name} was on {old[5]!r} and is on {new[5]!r}"
            return f"{name} was of type {old[0].__name__} and is of type {new[0].__name__}"
        was, now_is = _in_words(old), _in_words(new)
        if was == now_is:
            return f"{name} is another {now_is.removeprefix('a ')}"
        advice = "; pass a number that changes as a tensor" if issubclass(old[0], float) and old[0] is new[0] else ""
        return f"{name} was {was} and is {now_is}{advice}"
    return "nothing about the arguments"


def _in_words(kind: Any) -> str:
    """An argument as its part of the key has it."""
    if len(kind) == 6:
        return f"a {kind[0].__name__} of shape {kind[1]}"
    if len(kind) == 1:
        return "a tensor that requires a gradient" if issubclass(kind[0], Tensor) else f"a {kind[0].__name__}"
    if issubclass(kind[0], (float, complex, np.inexact)):
        return kind[1]
    return repr(kind[1]) if isinstance(kind[1], (int, str, bytes, type(None))) else f"a {kind[0].__name__}"


def _is_on_top(path: str) -> bool:
    """Whether a path leads to an argument itself, not to a part of one."""
    return path.count("[") == 2 and "." not in path


def _name(path: str) -> str:
    """A leaf's name in messages, from its path: "[0][2]['x']" or "[1]['y']"."""
    return path[3:].replace("[", "", 1).replace("]", "", 1) if path.startswith(("[0]", "[1]")) else path


def _difference_of_structures(old: list[str], new: list[str]) -> str:
    for path in new:
        if path not in old:
            return f"argument {_name(path)} was not there before"
    for path in old:
        if path not in new:
            return f"argument {_name(path)} is not there any more"
    return "the arguments are in other containers"
