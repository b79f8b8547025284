"""The short way for a program on a library's devices: native code has looked at the guards, here are the arrays."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any, Callable

from ... import tree
from ...autodiff import pending
from ...autodiff.base import make
from ...autodiff.graph import Leaf
from ...tensors.tensor import Tensor
from ...tensors.writing import separate
from ..deferral import signals_later
from ..host import host_dtype
from .arguments import is_whole, on_device
from .inputs import sole_holder
from .specialization import RefusedError
from .standing import standing


class Source:
    """Where a call finds an input, and what it must be like."""

    __slots__ = ("entry", "find", "shape", "dtype", "kind", "form", "spread")

    def __init__(self, entry: Any, find: Any) -> None:
        self.entry = entry
        self.find = find
        self.shape, self.dtype = entry.value.shape, entry.value.dtype
        # the array when it was last looked at: its type, what its library knows of its shape and dtype, where it lies
        self.kind: Any = None
        self.form: Any = None
        self.spread: Any = None

    def array(self, library: Any, call: LibraryCall, given: Any) -> Any:
        """The array for a call with these arguments; None if it is not as the program needs it."""
        raise NotImplementedError

    def fits(self, library: Any, raw: Any) -> bool:
        """Whether an array is what the program is for: of the library, of this form, on its device."""
        if library.writable:
            if raw.dtype is self.form and raw.device == self.spread and raw.shape == self.shape:
                return True
        elif type(raw) is self.kind and raw.aval is self.form and raw.sharding is self.spread:  # as it nearly always is
            return True
        if raw.shape != self.shape or host_dtype(raw.dtype) != self.dtype:
            return False
        if not (isinstance(raw, library.array_types) and library.is_concrete(raw)):
            return False
        if library.device_of(raw) != self.entry.device:
            return False
        self.kind = type(raw)
        self.form, self.spread = (raw.dtype, raw.device) if library.writable else (raw.aval, raw.sharding)
        return True


class ArgumentSource(Source):
    """An argument: a tensor, or an array of NumPy's, which is moved. Native code has looked at what it is."""

    __slots__ = ("is_tensor", "given_dtype")

    def __init__(self, entry: Any, path: Any, is_tensor: bool, given: Any) -> None:
        super().__init__(entry, path.find)
        self.is_tensor = is_tensor
        self.given_dtype = given.dtype  # which moving may make narrower

    def array(self, library: Any, call: LibraryCall, given: Any) -> Any:
        thing = self.find(given)
        if not self.is_tensor:
            fits = thing.shape == self.shape and thing.dtype == self.given_dtype
            return thing if fits else None
        if id(thing) in call.updated:
            return None  # it is also found outside, and replaced there
        return thing._raw if self.fits(library, thing._raw) else None


class TensorSource(Source):
    """A tensor from outside, or one that is found at a place, for itself alone if the call replaces its array."""

    __slots__ = ("tensor", "is_updated")

    def __init__(self, entry: Any, find: Any) -> None:
        super().__init__(entry, find)
        self.tensor, self.is_updated = entry.tensor, entry.is_updated

    def array(self, library: Any, call: LibraryCall, given: Any) -> Any:
        tensor = self.tensor if self.find is None else self.find()
        if self.is_updated:
            node = tensor._node
            if type(node) is Leaf and node.clones:
                separate(tensor)
            if not call.is_sole(tensor):
                return None
        raw = tensor._raw
        return raw if self.fits(library, raw) else None


class ArraySource(Source):
    """Numbers of an optimizer, places in random streams, and arrays of NumPy's from outside."""

    __slots__ = ()

    def __init__(self, entry: Any) -> None:
        super().__init__(entry, None)

    def array(self, library: Any, call: LibraryCall, given: Any) -> Any:
        array = self.entry.array if self.entry.view is None else self.entry.view
        return array if array.shape == self.shape else None


class LibraryCall:
    """`call(args, kwargs)`: the result, or NotImplemented, with nothing done, if something is not as it was."""

    def __init__(
        self, made: Any, function: Any, check: Callable[..., Any], sources: list[Any], kept: tuple[Any, ...]
    ) -> None:
        self._made = weakref.ref(made)  # which holds this
        self._library, self._lock = made.library, made.built.executable.lock
        self._function, self._device = function, made.device
        self._check = check
        self._sources = sources
        self._kept = kept  # what the native check reads
        self._changes = made.changes_something and made.library.writable
        self._quiet = signals_later if made.changes_something else nullcontext
        self.is_sole = sole_holder(made.library)
        self._arguments = [i for i, source in enumerate(sources) if isinstance(source, ArgumentSource)]
        # Whoever hears later that a call failed finds nothing changed: only what the program itself updates may be.
        self._may_wait = made.later is not None and not (made.cells or made.left or made.returns_arrays)
        self._may_wait = self._may_wait and all(sources[i].is_tensor for i in self._arguments)
        # Of a library whose arrays are written, those in tensors from outside, which stay where they are.
        outside = [
            (i, source)
            for i, source in enumerate(sources)
            if made.library.writable and type(source) is TensorSource and source.find is None
        ]
        self._outside = [i for i, _ in outside]
        owned = [source.tensor for _, source in outside if source.is_updated]
        others = [source.tensor for _, source in outside if not source.is_updated]
        self._standing = standing(made.library, made.device, owned, others) if outside else None
        self._others = [(i, source) for i, source in enumerate(sources) if i not in set(self._outside)]
        self.updated = {id(entry.tensor) for entry in made.inputs if entry.is_updated and entry.tensor is not None}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = self._made()
        if made is None or self._check(args, kwargs) is not None:
            return NotImplemented
        if self._may_wait:
            made.later.glance()  # what has to be made again comes first
        elif self._changes and pending.checks:
            pending.look()
        with self._lock, self._quiet():
            given, library = (args, kwargs), self._library
            inputs: list[Any] = [None] * len(self._sources)
            for i, source in self._others:
                inputs[i] = source.array(library, self, given)
                if inputs[i] is None:
                    return NotImplemented
            executable: Any = made.built.executable
            stands = self._standing is not None and self._standing.holds() and executable.can_repeat(inputs)
            if not stands and not self._find_outside(inputs, given):
                return NotImplemented
            again = None
            if self._may_wait:
                held = [(self._sources[i].find(given), inputs[i]) for i in self._arguments]
                kept = given if self._is_flat(given) else tree.flatten(given, is_leaf=is_whole)
                again = partial(copy_context().run, self._again, kept, held)
            try:
                return made.run_gathered(None, inputs, again, stands)
            except RefusedError:
                pass
        return on_device(self._function, args, kwargs, self._device)

    def _find_outside(self, inputs: list[Any], given: Any) -> bool:
        """Put the arrays of tensors from outside among the inputs, if each is as the program needs it."""
        found = [self._sources[i] for i in self._outside]
        if any([source.array(self._library, self, given) is None for source in found]):
            return False
        if self._standing is not None:
            self._standing.note()  # while nobody here holds one of them
        for i, source in zip(self._outside, found):
            inputs[i] = source.tensor._raw
        return True

    @staticmethod
    def _is_flat(given: tuple[Any, Any]) -> bool:
        """Whether arguments are in no container that somebody may change."""
        args, kwargs = given
        return not kwargs and all([type(arg) is Tensor for arg in args])

    def _again(self, kept: Any, held: list[tuple[Any, Any]]) -> Any:
        """Make a call operation by operation, with what was in its arguments, on the arrays that tensors had then."""
        if isinstance(kept[0], tuple):
            leaves, structure = tree.flatten(kept, is_leaf=is_whole)
        else:
            leaves, structure = kept
        before = {id(tensor): make(raw, None) for tensor, raw in held if tensor._raw is not raw}
        args, kwargs = tree.unflatten(structure, [before.get(id(leaf), leaf) for leaf in leaves])
        return on_device(self._function, args, kwargs, self._device)
