"""The generator that programs use without making one, and its methods as functions."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from inspect import cleandoc
from typing import Callable, Concatenate, Iterator, ParamSpec, TypeVar

from .generator import Generator
from .stream import State

P = ParamSpec("P")
R = TypeVar("R")

_process_generator = Generator()
_context_generator: ContextVar[Generator | None] = ContextVar("pullback_generator", default=None)


def default_generator() -> Generator:
    """The generator that the functions of this module use: the innermost `using`, else the process's.

    >>> import pullback as pb
    >>> with pb.random.using(3) as generator:
    ...     pb.random.default_generator() is generator
    True
    """
    return _context_generator.get() or _process_generator


@contextmanager
def using(generator: Generator | int) -> Iterator[Generator]:
    """Use `generator` (or a new one with this seed) inside the block, in this thread or task alone.

    >>> import pullback as pb
    >>> with pb.random.using(3):
    ...     a = pb.random.normal((2,))
    >>> with pb.random.using(3):
    ...     b = pb.random.normal((2,))
    >>> bool((a == b).all())
    True
    """
    chosen = generator if isinstance(generator, Generator) else Generator(generator)
    token = _context_generator.set(chosen)
    try:
        yield chosen
    finally:
        _context_generator.reset(token)


def seed(seed: int | None = None) -> None:
    """Start the default generator anew, from `seed` or, without one, where nobody knows.

    Parameters
    ----------
    seed : int, optional
        Equal seeds give equal numbers. Without one the stream begins at a place that nobody knows.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.random.seed(0)
    >>> pb.random.get_state()
    {'key': 0, 'offset': 0}
    """
    default_generator().seed(seed)


def get_state() -> State:
    """The default generator's state: its key and its place, as a dictionary that JSON can hold.

    >>> import pullback as pb
    >>> pb.random.seed(0)
    >>> pb.random.get_state()
    {'key': 0, 'offset': 0}
    """
    return default_generator().state


def set_state(state: State) -> None:
    """Go back to a `state` of the default generator, which `get_state` gave.

    >>> import pullback as pb
    >>> state = pb.random.get_state()
    >>> first = pb.random.uniform((2,))
    >>> pb.random.set_state(state)
    >>> bool((pb.random.uniform((2,)) == first).all())
    True
    """
    default_generator().state = state


def _on_default(method: Callable[Concatenate[Generator, P], R]) -> Callable[P, R]:
    """A method of the default generator, as a function."""
    name = method.__name__

    def function(*args: P.args, **kwargs: P.kwargs) -> R:
        return method(default_generator(), *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__
    summary, _, more = cleandoc(method.__doc__ or "").partition("\n")
    function.__doc__ = f"{summary}\n\n`Generator.{name}` of the default generator.\n{more}"
    function.__wrapped__ = getattr(_process_generator, name)  # type: ignore[attr-defined]
    return function


next_key = _on_default(Generator.next_key)
split = _on_default(Generator.split)
uniform = _on_default(Generator.uniform)
normal = _on_default(Generator.normal)
exponential = _on_default(Generator.exponential)
gumbel = _on_default(Generator.gumbel)
bernoulli = _on_default(Generator.bernoulli)
integers = _on_default(Generator.integers)
permutation = _on_default(Generator.permutation)
choice = _on_default(Generator.choice)
categorical = _on_default(Generator.categorical)
multinomial = _on_default(Generator.multinomial)
