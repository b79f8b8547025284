"""The strategies: what to keep for the walk, and what to compute again."""

from __future__ import annotations

import weakref
from functools import wraps
from typing import Any, Callable, Iterator, TypeVar

from ... import modes
from ...errors import DtypeError
from .recording import bytes_of, is_variable, operand_of, record
from .saved import Origin, Saved, Step, replay_of

_RUNS_LATER = 0x20 | 0x80 | 0x200  # the flags of generators, coroutines and asynchronous generators
_Function = TypeVar("_Function", bound=Callable[..., Any])


class NoCheckpointing:
    """Keep everything that the rules need: the default, and a way back to it inside a block.

    >>> import pullback as pb
    >>> with pb.checkpointing(pb.BalancedCheckpointing()):
    ...     with pb.checkpointing(pb.NoCheckpointing()):
    ...         pass
    """

    def __repr__(self) -> str:
        return "NoCheckpointing()"


class Strategy:
    """What all strategies that drop something have in common."""

    region: Any = None
    entered: Any = None  # the last mode that it was entered from, and the one that was then entered

    @property
    def key(self) -> Any:
        """What tells it from strategies that keep something else: compiled programs are for one of them."""
        return type(self).__name__

    def record(self, *run: Any) -> Any:
        """Record an operation that has just run; see `recording.record`."""
        return record(self, *run)

    def operand(self, step: Step, x: Any, raw: Any) -> Any:
        """How `step`, which ran on `x`, refers to it."""
        return operand_of(x, raw)

    def classify(self, step: Step, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Note in `step` what `keep` wants to know of it."""

    def keep(self, origin: Origin, raw: Any) -> Saved:
        """What a node holds of an array that its rule needs."""
        raise NotImplementedError

    def make(self, origin: Origin, raw: Any) -> Saved:
        """Something to keep an array with, or to compute it again."""
        return Saved(origin, raw)


class BalancedCheckpointing(Strategy):
    """Compute again what is cheap and keep what is expensive: results of elementwise operations and norms are dropped.

    Gradients are bit for bit those without it.

    >>> import pullback as pb
    >>> x = pb.tensor([0.5, 1.0], requires_grad=True)
    >>> with pb.checkpointing(pb.BalancedCheckpointing()):
    ...     loss = pb.sum(pb.exp(x * x))
    >>> loss.backward()
    >>> x.grad
    tensor([1.2840255, 5.436564 ])
    """

    LONGEST = 12  # steps in a row to run again; without an end, a long chain of them would be held at once

    def __repr__(self) -> str:
        return "BalancedCheckpointing()"

    def classify(self, step: Step, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        if not step.operation.cheap:
            return
        run, given = 0, 0  # `given`: bytes that replaying would keep alive on its own account
        for x, operand in zip(inputs, step.operands):
            if isinstance(operand, Origin):
                kept = operand.kept()
                if kept is None or kept.replay is not None:
                    before = operand.step()
                    run = max(run, before.run if before is not None else 0)
            elif not is_variable(x):
                given += bytes_of(operand)
        if run < self.LONGEST and given <= sum([bytes_of(out) for out in outputs]):
            step.run = run + 1

    def keep(self, origin: Origin, raw: Any) -> Saved:
        kept = origin.kept()
        if kept is not None:
            return kept
        kept = Saved(origin, raw)
        step = origin.step()
        if step is not None and step.run:
            replay = replay_of(step, _is_cheap)
            if replay is not None:
                kept.drop(replay)
        return kept


def _is_cheap(step: Step) -> bool:
    return step.run > 0


class Region(Strategy):
    """One call of a function under `checkpoint`: everything made inside is dropped, everything it was given is kept."""

    def __init__(self, outer: Strategy | None) -> None:
        self.region = self
        self.outer = outer
        self._dropped: list[weakref.ref[Saved]] = []

    @property
    def key(self) -> Any:
        return type(self).__name__, None if self.outer is None else self.outer.key

    def operand(self, step: Step, x: Any, raw: Any) -> Any:
        operand = operand_of(x, raw)
        if not isinstance(operand, Origin):
            return operand
        before = operand.step()
        if before is not None and self._ran_here(before):
            return operand
        if self.outer is None:
            return raw
        kept = self.outer.keep(operand, raw)
        if kept.first is None or kept.first > step.seq:
            kept.first = step.seq  # so that whoever computes it again holds it for this region
        return kept

    def keep(self, origin: Origin, raw: Any) -> Saved:
        kept = origin.kept()
        if kept is None:
            kept = self.make(origin, raw)
            step = origin.step()
            replay = None if step is None else replay_of(step, self._ran_here, self.make)
            if replay is not None:
                kept.drop(replay)
        if kept.first is None:  # no node needs it yet
            kept.region = self
        self._dropped.append(weakref.ref(kept))
        return kept

    def make(self, origin: Origin, raw: Any) -> Saved:
        return Saved(origin, raw) if self.outer is None else self.outer.make(origin, raw)

    def around(self) -> Iterator[Region]:
        """This region, and those that it is in."""
        region: Strategy | None = self
        while isinstance(region, Region):
            yield region
            region = region.outer

    def _ran_here(self, step: Step) -> bool:
        return step.region is self or (step.region is not None and self in step.region.around())

    def dropped_before(self, current: int) -> list[Saved]:
        """What was dropped and is needed by nodes that a walk at `current` has yet to come to."""
        alive = [kept for reference in self._dropped if (kept := reference()) is not None]
        return [kept for kept in alive if kept.raw is None and kept.first is not None and kept.first < current]


def checkpoint(function: _Function) -> _Function:
    """A function that keeps only its arguments for `backward`; what it computes is computed again when needed.

    It is never called a second time: the operations it ran are. So random numbers repeat, and statistics that it
    updates are updated once. Regions nest.

    Parameters
    ----------
    function : callable
        Any function of tensors: a block of a model, say. Also a decorator.

    Returns
    -------
    callable
        A function with the same arguments and results.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([[0.5, -0.5], [1.0, 0.0]], requires_grad=True)
    >>> @pb.checkpoint
    ... def block(x):
    ...     return pb.tanh(x @ w) @ w
    >>> block(block(pb.ones((1, 2)))).sum().backward()
    >>> w.grad.shape
    (2, 2)
    """

    code = getattr(function, "__code__", None)
    if not callable(function) or (code is not None and code.co_flags & _RUNS_LATER):
        given = type(function).__name__ if code is None else f"`{code.co_name}`, a generator or coroutine"
        raise DtypeError(f"checkpoint: expected a function that computes its result when it is called, got {given}.")

    @wraps(function)
    def wrapped(*args: Any, **named: Any) -> Any:
        mode = modes.current()
        with modes.changed(checkpointing=Region(None if mode is None else mode.checkpointing)):
            return function(*args, **named)

    return wrapped  # type: ignore[return-value]


class checkpointing:
    """Record under a strategy inside a `with` block: no, balanced or budget checkpointing.

    The strategy concerns what is recorded inside; the walk may come later, anywhere.

    Parameters
    ----------
    strategy : strategy
        `pb.BalancedCheckpointing()`, `pb.BudgetCheckpointing(bytes)` or `pb.NoCheckpointing()`.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> with pb.checkpointing(pb.BudgetCheckpointing(10**6)):
    ...     loss = pb.sum(pb.exp(w) * w)
    >>> loss.backward()
    """

    def __init__(self, strategy: Any) -> None:
        self.strategy = checked(strategy, "checkpointing")
        self._tokens: list[Any] = []

    def __enter__(self) -> Any:
        strategy = self.strategy
        if strategy is None:
            self._tokens.append(modes.enter(checkpointing=None))
        else:
            self._tokens.append(modes.enter_again(strategy, checkpointing=strategy))
        return strategy

    def __exit__(self, *exc: object) -> None:
        modes.leave(self._tokens.pop())


def checked(strategy: Any, caller: str) -> Strategy | None:
    """A user's strategy as operations look at it: None where nothing is dropped."""
    if isinstance(strategy, NoCheckpointing):
        return None
    if not isinstance(strategy, Strategy) or isinstance(strategy, Region):
        given = f"the class {strategy.__name__}" if isinstance(strategy, type) else type(strategy).__name__
        raise DtypeError(
            f"{caller}: expected pb.NoCheckpointing(), pb.BalancedCheckpointing() or pb.BudgetCheckpointing(bytes), "
            f"got {given}."
        )
    return strategy
