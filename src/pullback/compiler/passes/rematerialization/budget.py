"""Keeping at most so many bytes for walks: what is dropped is what takes least per byte to compute again."""

from __future__ import annotations

import heapq
from functools import partial
from typing import Any, Iterator

from ....autodiff.checkpointing.budget import BudgetCheckpointing
from ....errors import TraceError
from ...program import Instruction, Value
from .choices import Again, drop_cheap
from .emission import Emission, TooLongError, last_needs, peak_bytes
from .flow import Flow

_MOST_STEPS = 512  # instructions that make one value again
_ROUNDS = 24  # attempts with less and less kept
_LONGEST = 8, 2048  # a program with what is computed again: so many times as long as it was, and so many more


def is_counted(flow: Flow, root: Value, budget: BudgetCheckpointing) -> bool:
    """Whether a root is one of those of which a budget allows so many bytes; results that the caller gets are not."""
    return flow.strategy_of(root) is budget and root not in flow.wanted and not flow.is_free(root)


class _Share:
    """How much of a budget is for what is kept until a walk begins, and how much for all that a walk then holds."""

    def __init__(self, budget: BudgetCheckpointing, both: bool) -> None:
        self._bytes = self.kept = self.held = budget.bytes
        self._both = both

    def lower(self, excess: int) -> None:
        """Make room for `excess` more: by keeping less, and by holding less, at once or where nothing is kept."""
        less = max(excess, self._bytes // _ROUNDS, 1)
        if self._both or not self.kept:
            self.held = max(0, self.held - less)
        self.kept = max(0, self.kept - less)


class _Attempt:
    """A program that was made with shares of each budget, and the most bytes that it keeps of each."""

    def __init__(self, flow: Flow, dropped: set[Value], shares: dict[Any, _Share]) -> None:
        dropped = set(dropped)
        for budget, share in shares.items():
            _drop_cheapest(flow, dropped, budget, share.kept)
        factor, more = _LONGEST
        most = factor * len(flow.instructions) + more
        emission = Emission(flow, dropped, _Room(flow, dropped, shares), most)
        self.instructions = emission.instructions
        self.cost = emission.cost
        self.peaks = _peaks(self.instructions, flow, list(shares))
        self.over = {budget: peak - budget.bytes for budget, peak in self.peaks.items() if peak > budget.bytes}
        # Where nothing is held, what is over is what making a single value again takes, or cannot be made again.
        self.is_possible = not any(shares[budget].held for budget in self.over)


def _attempts(flow: Flow, dropped: set[Value], budgets: list[Any], both: bool) -> Iterator[_Attempt]:
    """Attempts with less and less, until one is within the budgets, or the program would be too long."""
    shares = {budget: _Share(budget, both) for budget in budgets}
    for _ in range(2 * _ROUNDS):
        try:
            made = _Attempt(flow, dropped, shares)
        except TooLongError:
            return
        yield made
        if made.is_possible:
            return
        for budget, excess in made.over.items():
            shares[budget].lower(excess)


def within_budgets(flow: Flow, dropped: set[Value], budgets: list[Any]) -> list[Instruction]:
    """Instructions that keep for walks no more than the budgets say; `dropped` is what goes in any case."""
    whole = Emission(flow, dropped).instructions if dropped else flow.instructions
    short = [budget for budget, peak in _peaks(whole, flow, budgets).items() if peak > budget.bytes]
    if not short:
        return whole
    drop_cheap(flow, dropped, short)  # which takes next to no time, in the loops that need it
    made = [attempt for both in (True, False) for attempt in _attempts(flow, dropped, budgets, both)]
    possible = [attempt for attempt in made if attempt.is_possible]
    if possible:
        return min(possible, key=lambda attempt: (sum(attempt.over.values()), attempt.cost)).instructions
    least = min((max(attempt.peaks.values()) for attempt in made), default=None)
    raise TraceError(
        f"pb.compile cannot make a program of at most {len(flow.instructions) * _LONGEST[0] + _LONGEST[1]:,} "
        f"instructions that stays within {short[0]!r}: too much would be computed again and again"
        + ("." if least is None else f"; with {least:,} bytes it can.")
        + " Allow more bytes, or call the function without pb.compile."
    )


def _peaks(instructions: list[Instruction], flow: Flow, budgets: list[Any]) -> dict[Any, int]:
    """The most bytes that are kept of each budget."""
    return {budget: peak_bytes(instructions, flow, partial(is_counted, flow, budget=budget)) for budget in budgets}


class _Room:
    """How much of its budget is left at each position, beside what is kept."""

    def __init__(self, flow: Flow, dropped: set[Value], shares: dict[Any, _Share]) -> None:
        self._least = min(share.held for share in shares.values())
        changes = [0] * (len(flow.instructions) + 2)
        for root, until in _until(flow, dropped).items():
            if root not in dropped and any(is_counted(flow, root, budget) for budget in shares):
                changes[flow.position[root]] += root.nbytes
                changes[until + 1] -= root.nbytes
        self._kept: list[int] = []
        now = 0
        for change in changes:
            now += change
            self._kept.append(now)

    def __call__(self, position: int, held: int, nbytes: int) -> bool:
        return self._kept[position] + held + nbytes <= self._least


def _until(flow: Flow, dropped: set[Value]) -> dict[Value, int]:
    until: dict[Value, int] = {}
    for needs in last_needs(flow, dropped).values():
        for root, position in needs.items():
            until[root] = max(until.get(root, -1), position)
    return until


def _drop_cheapest(flow: Flow, dropped: set[Value], budget: Any, target: int) -> None:
    """Add to `dropped` until what walks find kept when they begin is no more than `target`."""
    begins: dict[int, int] = {}
    for position, one in enumerate(flow.instructions):
        begins.setdefault(one.mark.walk, position)
    until = _until(flow, dropped)
    kept = {
        root: until[root]
        for root in flow.made()
        if root in until and root not in dropped and is_counted(flow, root, budget)
    }
    loads = dict.fromkeys(flow.walks, 0)

    def count(root: Value, sign: int) -> None:
        for walk in loads:
            if flow.position[root] < begins[walk] <= kept[root]:
                loads[walk] += sign * root.nbytes

    for root in kept:
        count(root, 1)

    def is_there(root: Value) -> bool:
        return root in kept or not is_counted(flow, root, budget)

    def again(root: Value) -> tuple[float, Again]:
        """What making a root again takes, per byte, and how."""
        found = Again(flow, root, is_there, flow.can_run_again, _MOST_STEPS)
        return sum(map(flow.cost, found.computed)) / max(root.nbytes, 1), found

    candidates = [(again(root)[0], number, root) for number, root in enumerate(kept)]
    heapq.heapify(candidates)
    while candidates and max(loads.values()) > target:
        score, number, root = heapq.heappop(candidates)
        now, found = again(root)
        if now > score and candidates and now > candidates[0][0]:
            heapq.heappush(candidates, (now, number, root))  # what it is made from was dropped since
            continue
        if not found.is_possible or sum(value.nbytes for value in found.kept) >= root.nbytes:
            continue
        count(root, -1)
        end = kept.pop(root)
        dropped.update(found.computed)
        for value in found.kept:
            kept[value] = end
            count(value, 1)
