"""Long loops in a trace: the body is traced for one step, and becomes the body of one instruction of the program.

The body runs on symbols for the carry and for a slice of each array. What it writes down is cut out and becomes a
program of its own (see `iteration.py`); what it reads from outside are its constants. Its graph stays: the gradient of
the loop is another loop, in the other direction, whose body is a walk over that graph. What such a walk needs of the
forward steps, the forward loop gives as more outputs. Since the walk can be recorded in turn, gradients of gradients
are loops, too.

What cannot be done so (see `loop_steps.py`) raises `UnrollError`: the function is then traced again, with its loops
unrolled.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Sequence

from ... import modes
from ...autodiff import base
from ...autodiff.apply import new_node, select
from ...autodiff.base import make
from ...autodiff.engine import walk
from ...autodiff.graph import Node, next_sequence_number
from ...autodiff.hooks import hooked
from ...autodiff.recipe import Recipe
from ...autodiff.sites import user_site
from ...autodiff.tables import TENSORS
from ...operations import Operation
from ...tensors.tensor import Tensor
from ..iteration import ITERATE, Iteration
from ..program import Instruction, Program, Value, values_in
from .loop_steps import VARIABLE, Body, Step, UnrollError, settled_step, variable as step_variable, written_apart
from .symbol import Symbol


def roll(
    trace: Any,
    body: Body,
    functions: Sequence[Any],
    initial: Sequence[Tensor],
    columns: Sequence[Tensor],
    steps: int,
    reverse: bool,
    runs: Tensor | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """The last carry and the stacked outputs of a loop, as one instruction.

    `functions` are the user's in the body. `runs` says whether it does anything at all; None if that is sure.
    """
    initial, columns = list(trace.resolve_all(initial)), list(trace.resolve_all(columns))
    world = _World(trace, steps, next_sequence_number())
    step = settled_step(trace, body, functions, initial, columns, steps)
    stacks = {value: column._raw.value for value, column in zip(step.slices, columns)}
    for value, array in step.stacks_of_places(steps, reverse).items():
        stacks[value] = trace.constant(array).value
    loop = world.cut(
        step.instructions, step.carry, [x._raw.value for x in initial], step.next_carry, stacks, step.outputs, reverse
    )
    trace.recorder.requirements.update(dict.fromkeys(loop.results[len(initial) + step.kept :]))
    differentiable = _Differentiable(
        world,
        loop,
        [_Carried(*parts) for parts in zip(step.carry_nodes, step.carry, step.next_nodes)],
        list(zip(step.slice_nodes, columns)),
        step.output_nodes,
        None if runs is None else runs._raw,
    )
    trace.may_not_run |= runs is not None
    made = differentiable.tensors(initial, loop.results[: len(initial) + step.kept])
    return made[: len(initial)], made[len(initial) :]


# -- loops of the program ----------------------------------------------------------------------------


class _Loop:
    """A loop in the program that is being written, which may still be asked for more of what its steps compute."""

    def __init__(self, instruction: Instruction, stacks: dict[Value, Value]) -> None:
        self.instruction = instruction
        self.iteration: Iteration = instruction.args[0]
        self._stacks = stacks  # where values of its steps are, along a first axis

    @property
    def results(self) -> tuple[Value, ...]:
        return self.instruction.results

    def defines(self, value: Value) -> bool:
        """Whether a value is one of each step."""
        body = self.iteration.body
        return value in body.inputs[self.iteration.constants :] or any(
            value in one.results for one in body.instructions
        )

    def stacked(self, value: Value) -> Value:
        """The values of all steps."""
        if value not in self._stacks:
            made = Value((self.iteration.steps, *value.shape), value.dtype, value.site)
            self.iteration.body.outputs.append(value)
            self.instruction.results = (*self.instruction.results, made)
            self._stacks[value] = made
        return self._stacks[value]


class _World:
    """A loop with those that its gradients are: all over the same steps."""

    def __init__(self, trace: Any, steps: int, began: int) -> None:
        self.trace = trace
        self.steps = steps
        self.began = began  # nodes with smaller numbers are from outside of the body
        self.loops: list[_Loop] = []
        #: For the variables of bodies that stand for other values at every step, the tensors of all steps.
        self.leaves: dict[Node, Callable[[], Tensor]] = {}
        trace.worlds.append(self)

    def cut(
        self,
        instructions: list[Instruction],
        carry: list[Value],
        initial: list[Value],
        next_carry: list[Value],
        stacks: dict[Value, Value],
        outputs: list[Value],
        reverse: bool,
    ) -> _Loop:
        """Write down a loop. `stacks` has the arrays of slices; what else is of steps is found in earlier loops."""
        inside = {*carry, *stacks, *[value for one in instructions for value in one.results]}
        constants: dict[Value, None] = {}
        stacks = dict(stacks)
        for value in values_in((*[one.args for one in instructions], *next_carry, *outputs)):
            if value in inside or value in constants:
                continue
            maker = next((loop for loop in self.loops if loop.defines(value)), None)
            if maker is not None:
                stacks[value] = maker.stacked(value)
                inside.add(value)
            elif value in self.trace.inner:
                raise UnrollError  # of a step of another loop, kept by the function
            else:
                constants[value] = None
        body = Program([*constants, *carry, *stacks], instructions, [*next_carry, *outputs])
        iteration = Iteration(body, len(constants), len(carry), self.steps, reverse)
        site = user_site()
        results = [Value(value.shape, value.dtype, site) for value in next_carry]
        results += [Value((self.steps, *value.shape), value.dtype, site) for value in outputs]
        args = iteration, tuple(constants), tuple(initial), tuple(stacks.values())
        instruction = Instruction(ITERATE, args, tuple(results), site)
        self.trace.recorder.instructions.append(instruction)
        made = dict(zip(outputs, results[len(carry) :]))
        loop = _Loop(instruction, {**made, **stacks})
        self.trace.inner.update(carry, stacks, *[one.results for one in instructions])
        self.loops.append(loop)
        return loop


# -- gradients ---------------------------------------------------------------------------------------


class _Carried:
    """A part of the carry in the body: its variable, its value, and what the next one was made by."""

    __slots__ = ("leaf", "value", "next_node")

    def __init__(self, leaf: Node | None, value: Value, next_node: Node | None) -> None:
        self.leaf = leaf
        self.value = value
        self.next_node = next_node


_ITERATE = Operation(ITERATE, "*xs", "loop", outputs="*outs", autocast="given", masking=True)


class _Differentiable:
    """A loop and the graph of its body, which its gradient is a walk over.

    Its results for the graph are the last carry, the outputs, and the carry before every step.
    """

    def __init__(
        self,
        world: _World,
        loop: _Loop,
        carry: list[_Carried],
        columns: list[tuple[Node | None, Tensor]],
        outputs: list[Node | None],
        runs: Symbol | None = None,
    ) -> None:
        self.world = world
        self.loop = loop
        self.runs = runs
        self.chooses = False  # whether values decide, in the body, which variables a gradient reaches
        self.carry = carry
        #: Variables that stand for slices, and what these are slices of.
        self.columns = [(leaf, column) for leaf, column in columns if leaf is not None and column._node is not None]
        self.outputs = outputs
        roots = [part.next_node for part in carry] + outputs
        self.captured = self._found_outside([node for node in roots if node is not None])
        self.parents: list[tuple[str, int]] = []

    def _found_outside(self, roots: list[Node]) -> list[Node]:
        """The nodes from outside of the body that lead to some inside."""
        found: dict[Node, None] = {}
        for node in self._behind(roots):
            if node in hooked and (node.recipe is not None or node.seq >= self.world.began):
                raise UnrollError  # it sees the gradients of all steps; that of a variable from outside sees their sum
            inner = loop_of(node)
            if node in self.world.trace.choices or (inner is not None and (inner.chooses or inner.runs is not None)):
                self.chooses = True
            if node.seq < self.world.began:
                found[node] = None
        return list(found)

    def _behind(self, roots: Iterable[Node | None]) -> Iterator[Node]:
        """The nodes of the body that lead to `roots`, and the first ones from outside of it."""
        waiting = list(dict.fromkeys([node for node in roots if node is not None]))
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            yield node
            if node.seq >= self.world.began and node.recipe is not VARIABLE:
                new = [parent for parent in dict.fromkeys(node.inputs) if parent not in seen]
                waiting += new
                seen.update(new)

    @property
    def count(self) -> int:
        return 2 * len(self.carry) + len(self.outputs)

    def tensors(self, initial: Sequence[Tensor], made: Sequence[Value]) -> list[Tensor]:
        """What the loop has made, as tensors with its node."""
        recorder = self.world.trace.recorder
        symbols = [Symbol(value, recorder) for value in made]
        nodes: list[Node] = []
        for kind, tensors in (("carry", initial), ("column", [column for _, column in self.columns])):
            for i, x in enumerate(tensors):
                if x._node is not None and (kind == "column" or self.carry[i].leaf is not None):
                    self.parents.append((kind, i))
                    nodes.append(x._node)
        self.parents += [("captured", i) for i in range(len(self.captured))]
        nodes += self.captured
        if not nodes or not modes.is_recording():
            return [make(symbol, None) for symbol in symbols]
        recipe = Recipe.of_function(_ITERATE, (True,) * len(nodes), ("loop",), _backward)
        node = new_node(recipe, tuple(nodes), (self,))
        self._register(node)
        tracked = [part.next_node is not None or part.leaf is not None for part in self.carry]
        tracked += [output is not None for output in self.outputs]
        return [
            make(symbol, select(node, i, self.count) if needed else None)
            for i, (symbol, needed) in enumerate(zip(symbols, tracked))
        ]

    def _register(self, node: Node) -> None:
        """Tell the world where the values of the body's variables are at all steps."""
        recorder, loop = self.world.trace.recorder, self.loop

        def stack(i: int) -> Tensor:
            place = len(self.carry) + len(self.outputs) + i
            return make(Symbol(loop.stacked(self.carry[i].value), recorder), select(node, place, self.count))

        for i, part in enumerate(self.carry):
            if part.leaf is not None:
                self.world.leaves[part.leaf] = lambda i=i: stack(i)  # type: ignore[misc]
        for leaf, column in self.columns:
            self.world.leaves[leaf] = lambda column=column: column  # type: ignore[misc]

    def gradients(self, g: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the parents, given the cotangents of the results (None where nothing depends on one)."""
        trace = self.world.trace
        on_tensors = any(isinstance(part, base.Tensor) for part in g)
        g = tuple([part if part is None else _on_symbols(trace, part) for part in g])
        xp = TENSORS if on_tensors else trace.backend.xp
        recorder = trace.recorder
        step = Step()
        size, middle = len(self.carry), len(self.carry) + len(self.outputs)
        live = self._live(g)
        given = [i for i in range(size, self.count) if g[i] is not None]
        like: Any = next(part for part in g if part is not None)

        def zeros(value: Value) -> Any:
            return xp.zeros(value.shape, value.dtype, like)

        def variable(value: Value) -> Any:
            made = step_variable(recorder, value.shape, value.dtype, on_tensors)
            return made if on_tensors else made._raw

        def raw(x: Any) -> Value:
            return (x._raw if on_tensors else x).value

        with written_apart(trace, step):
            cotangents = [variable(self.carry[i].value) for i in live]
            slices = [variable(_slice_of(raw(g[i]))) for i in given]
            seeds: list[tuple[Node, Any]] = []
            for i, cotangent in zip(live, cotangents):
                node = self.carry[i].next_node
                if node is not None:
                    seeds.append((node, cotangent))
            for i, cotangent in zip(given, slices):
                node = self.outputs[i - size] if i < middle else self.carry[i - middle].leaf
                if node is not None:
                    seeds.append((node, cotangent))
            leaves: list[Any] = [self.carry[i].leaf for i in live]
            wanted = frozenset([*leaves, *[leaf for leaf, _ in self.columns], *self.captured])
            options = {"retain_graph": True, "create_graph": on_tensors, "stop": True, "is_masked": True}
            found = walk(seeds, wanted, hooks_since=self.world.began, **options)
            found = {node: _on_symbols(trace, x) for node, x in found.items()}
            totals = [(node, variable(raw(found[node]))) for node in self.captured if node in found]
            before = [*cotangents, *[total for _, total in totals]]
            after = [found[leaf] if leaf in found else zeros(self.carry[i].value) for i, leaf in zip(live, leaves)]
            after += [total + found[node] for node, total in totals]
            reached = [(i, found[leaf]) for i, (leaf, _) in enumerate(self.columns) if leaf in found]
            step.carry, step.next_carry = [raw(x) for x in before], [raw(x) for x in after]
            step.slices = [raw(x) for x in slices]
            step.outputs = [raw(x) for _, x in reached]
        initial = [zeros(self.carry[i].value) if g[i] is None else g[i] for i in live]
        initial += [zeros(raw(total)) for _, total in totals]
        stacks = {value: raw(g[i]) for value, i in zip(step.slices, given)}
        loop = self.world.cut(
            step.instructions, step.carry, [raw(x) for x in initial], step.next_carry, stacks, step.outputs,
            not self.loop.iteration.reverse,
        )  # fmt: skip
        recorder.requirements.update(dict.fromkeys(loop.results[len(after) + step.kept :]))
        made = loop.results[: len(after) + step.kept]
        if on_tensors:
            carried = [_Carried(x._node, x._raw.value, y._node) for x, y in zip(before, after)]
            columns = [(x._node, g[i]) for x, i in zip(slices, given)]
            columns += self._reachable([x._node for x in (*after, *[x for _, x in reached])])
            again = _Differentiable(self.world, loop, carried, columns, [x._node for _, x in reached])
            results: list[Any] = again.tensors(initial, made)
        else:
            results = [Symbol(value, recorder) for value in made]
        last = {i: x for i, x in zip(live, results) if self.carry[i].leaf in found}
        sums = {node: x for (node, _), x in zip(totals, results[len(live) :])}
        of_columns = {i: x for (i, _), x in zip(reached, results[len(after) :])}
        of_captured = {i: sums[node] for i, node in enumerate(self.captured) if node in sums}
        sources = {"carry": last, "column": of_columns, "captured": of_captured}
        return tuple([sources[kind].get(i) for kind, i in self.parents])

    def _reachable(self, roots: Iterable[Node | None]) -> list[tuple[Node, Tensor]]:
        """Variables of earlier loops' bodies that lead to these nodes, with the tensors of all steps."""
        leaves = self.world.leaves
        return [(node, leaves[node]()) for node in self._behind(roots) if node in leaves]

    def _live(self, g: tuple[Any, ...]) -> list[int]:
        """The parts of the carry that get a cotangent at some step, given those of the results."""
        size, middle = len(self.carry), len(self.carry) + len(self.outputs)
        numbers = {part.leaf: i for i, part in enumerate(self.carry) if part.leaf is not None}
        live = {i for i in numbers.values() if g[i] is not None or g[middle + i] is not None}
        roots = [self.outputs[i] for i in range(len(self.outputs)) if g[size + i] is not None]
        waiting = [self.carry[i].next_node for i in live] + roots
        while waiting:
            reached = {numbers[node] for node in self._behind([waiting.pop()]) if node in numbers}
            waiting += [self.carry[i].next_node for i in reached - live]
            live |= reached
        return sorted(live)


def loop_of(node: Node) -> _Differentiable | None:
    """The loop whose results a node has made; None for nodes of other operations."""
    return node.saved[0] if node.recipe is not None and node.recipe.operation is _ITERATE and node.saved else None


def _on_symbols(trace: Any, x: Any) -> Any:
    """A cotangent, a tensor or a raw array, as one of the trace's."""
    if isinstance(x, base.Tensor):
        return trace.resolve(x)
    return x if type(x) is Symbol else trace.lift(x)


def _backward(g: Any, loop: _Differentiable) -> tuple[Any, ...]:
    return loop.gradients(g)


def _slice_of(value: Value) -> Value:
    return Value(value.shape[1:], value.dtype)
