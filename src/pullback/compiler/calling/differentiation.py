"""Gradients through a compiled function, taken outside of it: a second program, traced along with the first.

The walk from the results to the variables continues the trace. What it needs of the forward pass becomes outputs of
the first program and inputs of the second, which is compiled when a gradient is first asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backends
from ...autodiff.apply import new_node, select
from ...autodiff.base import make
from ...autodiff.engine import in_order, walk
from ...autodiff.graph import Leaf, Node
from ...autodiff.recipe import Recipe
from ...errors import GradientError
from ...operations import Operation
from ...tensors.tensor import Tensor
from ..passes.rematerialization import walk_apart
from ..program import Program, Value
from ..tracing.rolling import UnrollError, loop_of
from ..tracing.symbol import Symbol
from .building import runner
from .inputs import constant_of


class CompiledVjp:
    """How cotangents of a program's results become gradients of the variables and arguments it depends on."""

    def __init__(self, name: str, numbers: list[int], cotangents: list[Value], backward: Program) -> None:
        self.name = name
        self.numbers = numbers  # of the results that need a gradient
        self.cotangents = cotangents
        self.program = backward
        self.library: Any = None  # whose arrays the program is for; None for the host's
        self.device = "numpy"
        self.sources: list[Any] = []  # for each gradient: a tensor or variable from outside, or an argument's number
        self.asking: list[frozenset[int]] = []  # and which cotangents it depends on
        self.chooses = False  # whether values decide which variables get one: the program then says which do
        self.residuals: list[Value] = []
        self.inputs: dict[Value, int] = {}  # residuals that are inputs of the first program
        self.outputs: dict[Value, int] = {}  # and those that are outputs of it
        self.copied: set[Value] = set()  # of the inputs: those in whose memory the next call finds something else
        self._run: Any = None
        self._recipe: Any = None

    @classmethod
    def traced(
        cls, name: str, trace: Any, program: Program, tracked: dict[int, Node], given: Any, arguments: Any
    ) -> CompiledVjp | None:
        """Continue the trace with the walk; `program` gets what the walk needs as more outputs."""
        recorder = trace.recorder
        first = len(recorder.instructions)
        seeds, cotangents = [], []
        for number, node in tracked.items():
            value = program.outputs[number]
            cotangent = Value(value.shape, value.dtype)
            cotangents.append(cotangent)
            seeds.append((node, Symbol(cotangent, recorder)))
        held = {entry.node: entry.tensor for entry in trace.held.values() if isinstance(entry.node, Leaf)}
        held |= {entry.stand_in._node: entry.tensor for entry in trace.held.values()}  # a clone may have parted
        own = {tensor._node: arguments.dynamic[i] for i, (_, tensor) in enumerate(given) if tensor._node is not None}
        known_before = set(recorder.arrays)
        # The walk outside, which goes on from here to variables from outside, calls the hooks on those.
        with_mode = trace.run(lambda: walk(seeds, retain_graph=True, hooks_since=trace.began), (), {})
        sources, gradients, nodes = [], [], []
        for node, g in with_mode.items():
            source = own[node] if node in own else held.get(node)
            if source is None and node.seq < trace.began:
                source = node  # the variable behind a result from outside
            if source is not None:
                sources.append(source)
                nodes.append(node)
                gradients.append(
                    g.value
                    if type(g) is Symbol
                    else recorder.lift_array(np.asarray(g) if recorder.memory is backends.NUMPY else g)
                )
        _make_again(recorder, first, program, gradients)
        asked = [Value((), np.bool_) for _ in cotangents] if trace.choices or trace.may_not_run else []
        reached = _reached([node for node, _ in seeds], asked, trace) if asked else {}
        flags = [reached[node].value for node in nodes if node in reached]
        instructions = recorder.instructions[first:]
        del recorder.instructions[first:]
        made = {value for instruction in instructions for value in instruction.results}
        needed = dict.fromkeys(v for instruction in instructions for v in instruction.values() if v not in made)
        needed.update(dict.fromkeys(g for g in gradients if g not in made))
        new = {recorder.arrays[key][0]: recorder.arrays.pop(key)[1] for key in set(recorder.arrays) - known_before}
        if not sources:
            return None
        constants = {
            value: np.array(array) if type(array) is np.ndarray else constant_of(recorder.arrays_of, array)
            for value, array in new.items()
            if value in needed
        }
        residuals = [v for v in needed if v not in constants and v not in cotangents and v not in asked]
        backward = Program(
            [*residuals, *cotangents, *asked, *constants], instructions, [*gradients, *flags], [], constants
        )
        vjp = cls(name, list(tracked), cotangents, backward)
        vjp.library, vjp.device = recorder.arrays_of, recorder.device
        vjp.sources, vjp.residuals, vjp.chooses = sources, residuals, bool(asked)
        vjp.asking = _dependence(instructions, cotangents, gradients)
        updated = {target for target, _ in program.updates}  # of these the old values are wanted, as outputs
        inputs = {value: i for i, value in enumerate(program.inputs) if value not in updated}
        draws = [*trace.finished_draws, *trace.draws.values()]
        vjp.copied = {recorder.arrays[id(one.array)][0] for one in draws if id(one.array) in recorder.arrays}
        vjp.copied |= trace.unreadable
        outputs = {value: i for i, value in enumerate(program.outputs)}
        for value in residuals:
            if value in inputs:
                vjp.inputs[value] = inputs[value]
            else:
                if value not in outputs:
                    outputs[value] = len(program.outputs)
                    program.outputs.append(value)
                vjp.outputs[value] = outputs[value]
        return vjp

    # -- a call ------------------------------------------------------------------------------------

    def kept(self, inputs: list[Any], outputs: list[Any]) -> list[Any]:
        """The arrays that a gradient will need: those who want to write to them will find them held."""
        return [self._kept(v, inputs) if v in self.inputs else outputs[self.outputs[v]] for v in self.residuals]

    def _kept(self, value: Value, inputs: list[Any]) -> Any:
        array = inputs[self.inputs[value]]
        return np.array(array) if value in self.copied else array

    def tensors(self, arguments: Any, outputs: list[Any], residuals: list[Any]) -> dict[int, Tensor]:
        """The results that need a gradient, by number, with their node."""
        leaves = arguments.leaves
        parents: list[Any] = [
            source if isinstance(source, Node) else (source if isinstance(source, Tensor) else leaves[source])._node
            for source in self.sources
        ]
        if any(parent is None for parent in parents):
            return {}  # nobody asks for one any more
        if self._recipe is None:
            self._recipe = self._new_recipe()
        node = new_node(self._recipe, tuple(parents), tuple(residuals))
        count = len(self.numbers)
        return {number: make(outputs[number], select(node, i, count)) for i, number in enumerate(self.numbers)}

    def _new_recipe(self) -> Recipe:
        names = tuple(f"r{i}" for i in range(len(self.residuals)))
        operation = Operation(f"compiled {self.name}", "*xs", residuals=" ".join(names), outputs="*outs")
        return Recipe.of_function(operation, (True,) * len(self.sources), names, self._backward)

    def _backward(self, g: Any, *residuals: Any) -> tuple[Any, ...]:
        if any(isinstance(part, Tensor) for part in g):
            raise GradientError(
                f"{self.name} is compiled, and its gradient is differentiated again outside of it. Take both "
                "derivatives inside one compiled function, or call it without pb.compile."
            )
        arrays = [
            np.zeros(value.shape, value.dtype) if part is None else part for part, value in zip(g, self.cotangents)
        ]
        if self._run is None:
            from ...targets.locking import lock

            with lock:
                if self._run is None:
                    self._run = runner(self.program, self.library, self.device)
        if self.chooses:
            arrays += [np.array(part is not None) for part in g]
        gradients = self._run([*residuals, *arrays])
        if self.chooses:
            count = len(self.sources)
            return tuple([made if flag else None for made, flag in zip(gradients[:count], gradients[count:])])
        given = {i for i, part in enumerate(g) if part is not None}
        return tuple([None if given.isdisjoint(asking) else made for made, asking in zip(gradients, self.asking)])


def _make_again(recorder: Any, first: int, program: Program, gradients: list[Value]) -> None:
    """Let the instructions from `first` on make again what checkpointing strategies do not keep for them."""
    if first == len(recorder.instructions):
        return
    whole = Program(program.inputs, recorder.instructions, [*program.outputs, *gradients], program.updates)
    # what is drawn on the host is no work of the device's
    drawn = () if recorder.is_on_host else [one for one in recorder.instructions if one.op in ("draw", "moved_on")]
    given = frozenset([value for one in drawn for value in one.results])
    apart = walk_apart(whole, recorder.instructions[first].mark.walk, given)
    if apart is not None:
        recorder.instructions[first:] = apart


def _reached(roots: list[Node], asked: list[Value], trace: Any) -> dict[Node, Symbol]:
    """Whether a walk from the roots that are asked for reaches a node on a way that was chosen when the program ran."""
    recorder = trace.recorder
    reached: dict[Node, Symbol] = {}

    def reach(node: Node, flag: Symbol) -> None:
        before = reached.get(node)
        reached[node] = flag if before is None else recorder.record("logical_or", (before, flag))

    for node, value in zip(roots, asked):
        reach(node, Symbol(value, recorder))
    for node in in_order(roots):
        flag = reached[node]
        predicate = trace.choices.get(node)
        loop = loop_of(node)
        if loop is not None:
            if loop.chooses:
                raise UnrollError  # whether some step was on a way that was chosen is not known of all together
            runs = flag if loop.runs is None else recorder.record("logical_and", (flag, loop.runs))
            for parent, (kind, _) in zip(node.inputs, loop.parents):
                reach(parent, flag if kind == "carry" else runs)
        elif predicate is not None:
            ways = [predicate, recorder.record("logical_not", (predicate,))]
            tracked = node.recipe.mask[-2:]
            for parent, way in zip(node.inputs, [way for way, is_tracked in zip(ways, tracked) if is_tracked]):
                reach(parent, recorder.record("logical_and", (flag, way)))
        else:
            for parent in node.inputs:
                reach(parent, flag)
    return reached


def _dependence(instructions: list[Any], cotangents: list[Value], gradients: list[Value]) -> list[frozenset[int]]:
    """For each gradient, the numbers of the cotangents that it is computed from."""
    none: frozenset[int] = frozenset()
    known = {value: frozenset((i,)) for i, value in enumerate(cotangents)}
    for instruction in instructions:
        found = none.union(*(known.get(value, none) for value in instruction.values()))
        known.update(dict.fromkeys(instruction.results, found))
    return [known.get(value, none) for value in gradients]
