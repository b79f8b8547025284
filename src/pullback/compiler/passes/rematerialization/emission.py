"""Writing a program in which walks compute again what was dropped."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

from ...program import Instruction, Mark, Value, mapped
from .flow import Flow, is_free, is_loop, is_view, values_read

#: Whether there is room for so many bytes at a position, beside those that are held already.
Room = Callable[[int, int, int], bool]


class TooLongError(Exception):
    """A program has become too long, because nothing that is computed again can be held."""


class Emission:
    """The instructions of a program, and before those of walks what makes again what they need.

    What is made again is held for what else the walk needs of it, if there is `room`.
    """

    def __init__(self, flow: Flow, dropped: set[Value], room: Room | None = None, most: int | None = None) -> None:
        self.instructions: list[Instruction] = []
        self.cost = 0.0  # of what is made again
        self._flow = flow
        self._dropped = dropped
        self._room = room
        self._most = most
        self.until = last_needs(flow, dropped)
        self._walk = 0
        self._again: dict[Value, Value] = {}  # of this walk: what stands for roots and for views of them
        self._held: dict[Value, int] = {}  # roots among these, with their bytes
        self._token: Value | None = None  # what must be made before anything is made again
        self._waiting = waiting(flow, dropped)
        for position, one in enumerate(flow.instructions):
            self._add(position, one)

    def _add(self, position: int, one: Instruction) -> None:
        walk = one.mark.walk
        if walk and walk != self._walk:
            self._walk, self._again, self._held = walk, {}, {}
        if walk and not is_view(one):  # a view of what is made again is made where it is used
            needed = [root for value in values_read(one) if self._is_missing(root := self._flow.root(value))]
            missing = [root for root in dict.fromkeys(needed) if root not in self._again]
            if missing:
                self._make_again(missing, position)
            if needed:
                one = one.with_args(mapped(one.args, self._version))
            self._release(position)
            one = self._placed(position, one)
        elif not walk and not is_view(one) and one.results and not is_free(one):
            self._token = one.results[0]
        self.instructions.append(one)
        if self._most is not None and len(self.instructions) > self._most:
            raise TooLongError

    def _placed(self, position: int, one: Instruction) -> Instruction:
        """An instruction of a walk, which may have to wait, or be what others wait for."""
        if position in self._waiting:
            return one.waiting_for(self._token)
        if position not in self._flow.local and one.results and one.results[0].size:
            self._token = one.results[0]
        return one

    def _is_missing(self, root: Value) -> bool:
        """Whether this walk finds nothing of a root but what it makes again."""
        return root in self._dropped and self._flow.walk_of(root) != self._walk

    def _make_again(self, targets: list[Value], position: int) -> None:
        flow = self._flow
        found: dict[Value, None] = {}
        stack = list(targets)
        while stack:
            root = stack.pop()
            if root not in found and root not in self._again:
                found[root] = None
                stack += [operand for operand in flow.operands(root) if self._is_missing(operand)]
        made: list[Value] = []
        for number in sorted({flow.position[root] for root in found}):
            one = flow.instructions[number]
            results = tuple([Value(value.shape, value.dtype, value.site) for value in one.results])
            args = mapped(one.args, self._version)
            self.instructions.append(Instruction(one.op, args, results, one.site, Mark(self._walk), self._token))
            self._again.update(zip(one.results, results))
            self.cost += flow.cost(one.results[0])
            made += one.results
        regions: set[Any] = set()
        for target in targets:
            region = flow.region_of(target)
            regions.update([None] if region is None else [None, *region.around()])
        for root in reversed(made):  # a walk goes backwards: it needs the last of them first
            self._hold(root, position, is_own=root in targets or flow.region_of(root) in regions)

    def _hold(self, root: Value, position: int, is_own: bool) -> None:
        """Hold what was made again until the walk has used it for the last time, or let it go."""
        is_needed = root in self._dropped and self.until[self._walk].get(root, -1) > position
        held = sum(self._held.values()) if is_needed and self._room is not None else 0
        if is_needed and is_own and (self._room is None or self._room(position, held, root.nbytes)):
            self._held[root] = root.nbytes

    def _release(self, position: int) -> None:
        """Let go of what was made again and is not held any longer."""
        if self._again:
            until, root_of = self.until[self._walk], self._flow.root
            self._held = {root: nbytes for root, nbytes in self._held.items() if until[root] > position}
            self._again = {value: made for value, made in self._again.items() if root_of(value) in self._held}

    def _version(self, value: Value) -> Value:
        """What stands for a value in this walk."""
        root = self._flow.root(value)
        if not self._is_missing(root):
            return value
        found = self._again.get(value)
        if found is None:
            one = self._flow.makers[value]
            args = mapped(one.args, self._version)
            results = tuple([Value(v.shape, v.dtype, v.site) for v in one.results])
            self.instructions.append(Instruction(one.op, args, results, one.site, Mark(self._walk), self._token))
            self._again.update(zip(one.results, results))
            found = self._again[value]
        return found


def waiting(flow: Flow, dropped: set[Value]) -> set[int]:
    """The positions of instructions that follow from something earlier alone, and that wait for the walk all the same.

    They could be computed along with that, and be kept in its place. That is no gain where it is in memory at any rate,
    nor where they belong to what is made again.
    """
    groups: dict[int, set[int]] = {}  # those that are connected, by each of their positions
    found: set[int] = set()
    for position in sorted(flow.local):
        one = flow.instructions[position]
        roots = [root for root in map(flow.root, values_read(one)) if root in flow.makers]
        group = groups[position] = {position}
        for root in roots:
            maker = flow.position[root]
            if maker in groups and groups[maker] is not group:
                joined = groups[maker]
                joined |= group
                groups.update(dict.fromkeys(group, joined))
                group = joined
        before = [root for root in roots if flow.walk_of(root) != one.mark.walk]
        if any(root in dropped for root in before) or (
            before and all(_is_in_memory(flow, root, dropped) for root in before)
        ):
            found.add(position)
    return found.union(*[groups[position] for position in found])


def _is_in_memory(flow: Flow, root: Value, dropped: set[Value]) -> bool:
    """Whether a root is kept under a strategy, and needed by more than what follows from it alone."""
    if flow.makers[root].mark.strategy is None:
        return False
    uses = flow.uses.get(root, ())
    return any(use not in flow.local for use in flow.saved_uses(root)) or any(
        value in dropped for use in uses for value in flow.instructions[use].results
    )


def last_needs(flow: Flow, dropped: set[Value]) -> dict[int, dict[Value, int]]:
    """For each walk: the roots that it needs of those before it, directly or to make others again, and until where."""
    needs: dict[int, dict[Value, int]] = {}
    for walk in flow.walks:
        until: dict[Value, int] = {}
        for position in range(len(flow.instructions) - 1, -1, -1):
            one = flow.instructions[position]
            if is_view(one):
                continue
            last = position if one.mark.walk == walk else -1
            if last < 0:
                last = max([until.get(value, -1) for value in one.results if value in dropped], default=-1)
            if last < 0:
                continue
            for value in values_read(one):
                root = flow.root(value)
                if flow.is_made(root) and flow.walk_of(root) != walk and until.get(root, -1) < last:
                    until[root] = last
        needs[walk] = until
    return needs


def peak_bytes(instructions: Sequence[Instruction], flow: Flow, counted: Callable[[Value], bool]) -> int:
    """The most bytes that are kept for walks at a time in instructions that were written of `flow`'s.

    Of what was made before a walk, what is `counted` counts from there until a walk uses it for the last time. So does
    what is made again, but for what only the loop needs in which it is made.
    """
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    roots: dict[Value, Value] = {}
    runs: dict[Value, int] = {}  # of what is made again: which of the runs of such instructions makes it
    stored: set[Value] = set()  # of these, what others use than loops in the same run
    run = 0
    for position, one in enumerate(instructions):
        if is_view(one):
            root = roots.get(one.args[0], one.args[0])
            roots.update(dict.fromkeys(one.results, root))
            continue
        for value in values_read(one):
            root = roots.get(value, value)
            if root in runs:
                last[root] = position
                if runs[root] != run or not is_loop(one):
                    stored.add(root)
            elif root in first and one.mark.walk not in (0, flow.walk_of(root)):
                last[root] = position
        is_again = any(value not in flow.makers and value not in flow.given for value in one.results)
        for value in one.results:
            if is_again:
                first[value], runs[value] = position, run
                if not is_loop(one):
                    stored.add(value)
            elif value in flow.makers and not flow.is_free(value) and counted(value):
                first[value] = position
        run += not is_again
    return _peak((first[root], end, root.nbytes) for root, end in last.items() if root not in runs or root in stored)


def _peak(intervals: Iterable[tuple[int, int, int]]) -> int:
    """The largest sum of bytes of intervals (first, last, bytes) that have a position in common."""
    changes: dict[int, int] = {}
    for start, end, nbytes in intervals:
        changes[start] = changes.get(start, 0) + nbytes
        changes[end + 1] = changes.get(end + 1, 0) - nbytes
    now = most = 0
    for position in sorted(changes):
        now += changes[position]
        most = max(most, now)
    return most
