"""The graph: a node per recorded operation, a leaf per variable."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Iterator

from .. import modes

next_sequence_number = itertools.count().__next__


class Node:
    """One recorded operation: who made its inputs, and what its rule needs.

    Nodes hold raw arrays, never tensors, so that a graph has no reference cycles.
    """

    __slots__ = ("seq", "recipe", "inputs", "saved", "unbroadcast", "code", "lasti", "hooks", "__weakref__")

    seq: int  # a parent's number is smaller than its child's
    recipe: Any  # autodiff.recipe.Recipe; None for a leaf
    inputs: tuple[Node, ...]  # the tracked inputs' nodes
    saved: Any  # a tuple in the order of recipe.names; None once released
    unbroadcast: tuple[tuple[Any, Any], ...] | None  # (shape, raw dtype) per tracked input where these may differ
    code: CodeType | None  # where the user called the operation
    lasti: int
    hooks: list[Any]  # only where there are some: the user's functions, which may hold the tensor of this node


class GradCell:
    """The place where a variable's gradient is added up; `value` is a tensor or None.

    While a function is traced, what it puts there stays in the trace (see `compiler.tracing.trace`).

    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> cell = w.grad_cell
    >>> (w * w).sum().backward()
    >>> cell.value
    tensor([2., 4.])
    """

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Any = None

    @property
    def value(self) -> Any:
        """The gradient so far, or None."""
        return self.current()._value

    @value.setter
    def value(self, gradient: Any) -> None:
        self.current()._value = gradient

    def current(self) -> Any:
        """What holds `_value`: the cell itself, or while a function is traced what stands for it."""
        mode = modes.current()
        return self if mode is None or mode.tracing is None else mode.tracing.cell(self)


class Leaf(Node):
    """A variable. Clones of a tensor share its leaf until one of them is written."""

    __slots__ = ("cell", "shape", "dtype", "_clones")

    def __init__(self, shape: tuple[int, ...], dtype: Any, cell: GradCell) -> None:
        self.seq = next_sequence_number()
        self.recipe = None
        self.inputs = ()
        self.saved = ()
        self.unbroadcast = None
        self.code = None
        self.lasti = -1
        self.cell = cell
        self.shape = shape
        self.dtype = dtype  # raw dtype
        self._clones: list[Any] = []

    @property
    def clones(self) -> list[Any]:
        """Weak references to the clones; while a function is traced, to those that it knows."""
        trace = modes.tracing()
        return self._clones if trace is None else trace.clones_of(self)

    @clones.setter
    def clones(self, references: list[Any]) -> None:
        trace = modes.tracing()
        if trace is None:
            self._clones = references
        else:
            trace.clones_of(self)[:] = references


def saved_values(node: Node, walking: bool = False) -> Any:
    """What a node saved, in the order of its recipe's names; computed again where it was dropped. None if released.

    `walking` promises that the nodes before it come next: what they need too is held for them.
    """
    unpack = node.recipe.unpack
    return node.saved if unpack is None or node.saved is None else unpack(node.saved, walking)


LIBRARY = (os.path.dirname(os.path.dirname(__file__)) + os.sep, "<pullback>")  # the latter: templates in `fast`


def is_library(code: CodeType) -> bool:
    """Whether code is Pullback's own."""
    return code.co_filename.startswith(LIBRARY)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame at or above `frame` that is not Pullback's own code."""
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        frame = frame.f_back
    return frame


class _Origin(threading.local):
    """Where code is at work for the user, if that is known already: (code, instruction)."""

    site: tuple[CodeType | None, int] | None = None


origin = _Origin()


@contextmanager
def library_at_work() -> Iterator[None]:
    """Inside, nothing is at a line of the user's: a program of the library's own calls operations."""
    before, origin.site = origin.site, (None, -1)
    try:
        yield
    finally:
        origin.site = before


def users_site() -> tuple[CodeType | None, int]:
    """Where the user's code called into Pullback, or made what is at work now: (code, instruction)."""
    if origin.site is not None:
        return origin.site
    frame = user_frame(sys._getframe(1))
    return (None, -1) if frame is None else (frame.f_code, frame.f_lasti)


users_code: list[Any] = [None]  # the code that called last and is not the library's: looked at first


def record_site(node: Node) -> None:
    """Note in `node` where it comes from in the user's code."""
    site = origin.site
    if site is not None:
        node.code, node.lasti = site
        return
    frame: Any = sys._getframe(2)  # as `user_frame`, which would be another call
    known = users_code[0]
    while frame is not None:
        code = frame.f_code
        if code is known:
            break
        if not code.co_filename.startswith(LIBRARY):
            users_code[0] = code
            break
        frame = frame.f_back
    else:
        node.code, node.lasti = None, -1
        return
    node.code, node.lasti = code, frame.f_lasti


def line_of(code: CodeType, lasti: int) -> int:
    """The line number of an instruction, as a traceback would print it."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno
