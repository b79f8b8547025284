"""Tracing a function for a call: its program, what it leaves behind, and what it depends on."""

from __future__ import annotations

import decimal
import random
import sys
import weakref
from collections import Counter
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Callable, Iterable, Iterator, Mapping

import numpy as np

from ... import tree
from ...autodiff.engine import is_consumed
from ...autodiff.forward import Dual
from ...autodiff.graph import GradCell, Leaf
from ...errors import GradientError, TraceError
from ...tensors.tensor import Tensor
from ..guards import Guards, Listener, Recorder, library, listening, values
from ..guards.notes import Root
from ..guards.places import Attribute, Entry, Fixed as FixedPlace, Within
from ..program import Value
from ..tracing.blind import Blind, Blindfold
from ..tracing.number import Feed, Number
from ..tracing.symbol import Symbol
from ..tracing.trace import Trace
from .arguments import Arguments, is_whole
from .checks import guarded
from .differentiation import CompiledVjp
from .inputs import find_inputs
from .refusing import refuse_caught, refuse_changed_arguments, refuse_result
from .specialization import SAME, Fixed, Left, Output, RefusedError, Specialization


class _Process:
    """Settings of the process that need no name to be changed."""

    @staticmethod
    def take(_: Any) -> Any:
        context = decimal.getcontext()
        return np.geterr(), sys.getrecursionlimit(), context.prec, context.rounding

    @staticmethod
    def put(_: Any, state: Any) -> None:
        errors, limit, prec, rounding = state
        np.seterr(**errors)
        sys.setrecursionlimit(limit)
        decimal.getcontext().prec, decimal.getcontext().rounding = prec, rounding


_PROCESS = _Process()
#: Generators of random numbers that need no name to be drawn from.
_OF_LIBRARIES: dict[str, Any] = {"random": random._inst, "numpy.random": np.random.mtrand._rand}


def specialize(
    name: str,
    function: Callable[..., Any],
    arguments: Arguments,
    ignore: tuple[str, ...] = (),
    reads: Mapping[str, Any] | None = None,
    promoted: Iterable[Any] = (),
    device: str = "numpy",
    is_open: bool = False,
    rolls: bool = True,
) -> Specialization:
    """Trace `function` for these arguments. Whatever the trace does outside of it is undone.

    `reads` are things that it reads beside what code of the user's reads, by their names; `promoted` places of numbers
    that are inputs. `device` is where it runs, unless that `is_open` and tensors are found elsewhere. Without `rolls`
    all loops are unrolled.
    """
    began = perf_counter()
    trace = Trace(device, is_open, rolls)
    recorder = Recorder(name, ignore)
    given = arguments.given
    given_args, given_kwargs, symbols = arguments.on_symbols(trace.recorder)
    about_arguments = _noted(recorder, arguments)
    root = Root(FixedPlace(function), recorder.note(function, name))
    recorder.roots["function"] = root
    for known_as, thing in {**_OF_LIBRARIES, **(reads or {})}.items():
        recorder.roots[known_as] = Root(FixedPlace(thing), recorder.note(thing, known_as))
    trace.arguments = {tensor._node for _, tensor in symbols if tensor._node is not None}
    listener = Listener(recorder)
    trace.recorder.aside = listener.aside
    found = [(place, place.get()) for place in promoted]
    feeds = [Feed(place) for place, value in found if type(value) in (int, float)]
    hidden = [Blindfold(place) for place, value in found if type(value) is np.ndarray]
    settings = values.Stateful(_PROCESS, "settings of Python and its libraries", "", _Process.take, _Process.put)
    recorder.roots["settings"] = Root(FixedPlace(_PROCESS), settings)
    kept = tree.flatten((given_args, given_kwargs), is_leaf=is_whole)
    try:
        try:
            with _standing_in([*feeds, *hidden], trace), listening(listener):
                result = trace.run(function, given_args, given_kwargs)
        except BaseException as error:
            for place, value in found:
                if type(place.get()) in (Number, Blind):
                    place.put(value)
            Guards(name, recorder, listener, about_arguments).restore(given)
            if trace.arguments and isinstance(error, GradientError):
                raise RefusedError from None  # what was made outside is walked or written inside: eagerly, then
            raise
        guards = Guards(name, recorder, listener, about_arguments)
        guards.settle(given)
        if feeds and recorder.names & {"isinstance", "issubclass", "type"}:
            raise TraceError("the types of values are looked at")
        refuse_caught(name, trace)
        refuse_changed_arguments(function, name, kept, (given_args, given_kwargs), is_whole)
        outputs: dict[Value, int] = {}
        tracked: dict[int, Any] = {}

        known: dict[int, Any] = {}  # by identity of what is returned or left: one thing stays one
        output = partial(_output, trace, outputs=outputs, tracked=tracked, sound=set(), is_made=guards.is_made)

        def numbered(whole: Any) -> tuple[list[Any], Any]:
            leaves, structure = tree.flatten(whole, is_leaf=lambda x: isinstance(x, Tensor))
            return [known.setdefault(id(leaf), output(leaf)) for leaf in leaves], structure

        numbers, structure = numbered(result)
        for leaf in numbers:
            if type(leaf) is Fixed:
                refuse_result(function, name, leaf.thing)
        left = [Left(carried.place, *reversed(numbered(carried.value))) for carried in guards.carried]
        written = [
            (arguments.dynamic[i], outputs.setdefault(tensor._raw.value, len(outputs)))
            for i, (value, tensor) in enumerate(symbols)
            if tensor._raw.value is not value
        ]
        _refuse_written_arrays(name, arguments, written)
        created: list[tuple[Any, Any, Any]] = []
        trace.cell(GradCell())  # nobody else holds this one: the others are compared with it
        for held in trace.cells.values():
            cell, before, after = held.cell, held.before, held._value
            if after is before:
                created.append((cell, before, SAME))
            elif after is None:
                created.append((cell, before, None))
            else:
                number = outputs.setdefault(trace.resolve(after)._raw.value, len(outputs))
                created.append((cell, before, number))
        program = trace.finish([value for value, _ in symbols], list(outputs))
        vjp = CompiledVjp.traced(name, trace, program, tracked, symbols, arguments) if tracked else None
        trace.refuse_inner(program)
    finally:
        trace.close()
    trace.settle()
    made = Specialization(name, program, trace, guards)
    made.feeds = feeds
    made.outputs, made.structure, made.leaves, made.written = list(outputs), structure, numbers, written
    made.left, made.vjp = left, vjp
    there = {*program.inputs, *(value for step in program.instructions for value in step.results)}
    bounds = [bound for bound in trace.recorder.bounds if bound[0] in there]  # not those of the walk outside
    requirements = [value for value in trace.recorder.requirements if value in there]
    if trace.checks or bounds or requirements:
        library = trace.recorder.library
        on_gpu = library is None and made.library is not None
        made.program = guarded(program, trace.checks, bounds, requirements, library is not None, on_gpu)
        made.is_guarded = True
    given_arrays = any(isinstance(leaf, np.ndarray) for leaf in arguments.leaves)
    given_tensors = any(isinstance(leaf, Tensor) for leaf in arguments.leaves)
    made.returns_arrays = given_arrays and not given_tensors and not trace.held
    references = [(weakref.ref(held.tensor), held.value, held.node) for held in trace.held.values()]
    nodes = list(trace.nodes.values())
    trace.written = {id(held.tensor) for held in trace.held.values() if held.is_written}
    trace.held.clear()
    trace.cells.clear()
    places = _carried_inputs(name, guards)
    places |= _replaced_inputs(guards, trace, found)
    replaced = _replaced_gradients(created, guards)
    places |= {id(before): place for place, before in replaced if before is not None}
    for feed in feeds:
        _bind(guards, feed.place)
    guards.carried.clear()
    guards.keep_apart(given)
    guards.close()
    del recorder, listener, root
    cells_replaced = {id(place.owner) for place, _ in replaced}
    replaced.clear()
    del result, symbols, given_args, given_kwargs, kept, cell, before, after, held
    tracked.clear()
    nodes += find_inputs(made, trace, arguments, references, places, guards)
    references.clear()
    made.cells = _without_own_cells(created)
    made.is_steady = not any(before is None and type(after) is int for _, before, after in made.cells)
    guards.roots += _library_roots(trace, made.cells, nodes, cells_replaced)
    made.trace_seconds = perf_counter() - began
    return made


@contextmanager
def _standing_in(feeds: list[Any], trace: Trace) -> Iterator[None]:
    """Inside, numbers and arrays that are inputs are found at their places as such."""
    before = [(feed.place, feed.place.get()) for feed in feeds]
    try:
        for feed in feeds:
            feed.place.put(feed.stand_in(trace))
        yield
    finally:
        for place, value in reversed(before):
            place.put(value)


def _noted(recorder: Recorder, arguments: Arguments) -> values.Guard:
    """The guard of a call's arguments: of their containers and of what is no tensor."""
    args, kwargs = arguments.given
    whole = values.Items(arguments.given, "the arguments", "")
    by_position = values.Items(args, "the arguments", "")

    def noted(x: Any, path: str, name: str) -> values.Guard:
        is_input = path in arguments.promoted
        return values.Promoted(x, name, "") if is_input else recorder.note(x, name, given=True)

    by_position.items = [noted(x, f"[0][{i}]", f"argument {i}") for i, x in enumerate(args)]
    by_name = values.Items(kwargs, "the arguments by name", "")
    by_name.keys = list(kwargs)
    by_name.items = [noted(x, f"[1][{key!r}]", f"argument {key!r}") for key, x in kwargs.items()]
    whole.items = [by_position, by_name]
    return whole


def _carried_inputs(name: str, guards: Guards) -> dict[int, Any]:
    """Tensors that calls read at a place and replace there: the places, by identity of the tensors."""
    places: dict[int, Any] = {}
    for carried in guards.carried:
        _bind(guards, carried.place)
        if not carried.is_read:
            continue
        parts: list[tuple[Any, values.Guard]] = [(carried.place, carried.before)]
        if isinstance(carried.before, values.Items):
            keys = carried.before.keys or range(len(carried.before.items))
            parts = [(Within(carried.place, key), part) for key, part in zip(keys, carried.before.items)]
        for place, before in parts:
            if not isinstance(before, values.Captured):
                continue
            if _places_of(guards, before) > 1:
                raise TraceError(
                    f"{before.site}: {name} replaces `{before.name}`, which is found in several places. Give each "
                    "place a tensor of its own."
                )
            before.is_carried = True
            places[id(before.value)] = place
    return places


def _replaced_inputs(guards: Guards, trace: Trace, found: list[tuple[Any, Any]]) -> dict[int, Any]:
    """Tensors that are replaced before each call, and that the function only reads: places, by their identity."""
    replaced: dict[int, Any] = {}
    decisive = {id(thing) for thing, _ in trace.values_read}
    captured = {guard.value: guard for guard in guards.reached() if isinstance(guard, values.Captured)}
    for place, tensor in found:
        guard = captured.get(tensor) if type(tensor) is Tensor and tensor._node is None else None
        if guard is None or guard.is_carried or id(tensor) in decisive or id(tensor) in trace.written:
            continue
        if _places_of(guards, guard) == 1:
            guard.is_carried = True
            replaced[id(tensor)] = place
            _bind(guards, place)
    return replaced


def _places_of(guards: Guards, guard: values.Guard) -> int:
    """In how many places a thing was found."""
    inside = sum(part is guard for other in guards.reached() for part in other.parts())
    return inside + sum(root.guard is guard for root in guards.roots)


def _bind(guards: Guards, place: Any) -> None:
    """What calls write to, or read numbers from, must be this very object."""
    if isinstance(place, Attribute):
        for guard in guards.reached():
            if isinstance(guard, values.Instance) and guard.value is place.owner:
                guard.is_fixed = True


def _replaced_gradients(cells: list[tuple[Any, Any, Any]], guards: Guards) -> list[tuple[Attribute, Any]]:
    """Where calls find gradients that they replace, and those of now; not such as are found elsewhere too."""
    held = Counter(id(before) for _, before, _ in cells)
    held.update(id(guard.value) for guard in guards.reached() if isinstance(guard, values.Captured))
    return [
        (Attribute(cell, "_value"), before)
        for cell, before, after in cells
        if (after is None or type(after) is int) and (before is None or held[id(before)] == 1)
    ]


def _library_roots(
    trace: Trace, cells: list[tuple[Any, Any, Any]], nodes: list[tuple[Tensor, Any]], replaced: set[int]
) -> list[Root]:
    """Guards of what optimizers, hooks and gradients were like."""
    recorder = Recorder("")
    roots = []
    for options in trace.options:
        label = f"option {{!r}} of {type(options.optimizer).__name__}"
        for option, seen in options.seen.items():
            roots.append(Root(Entry(options.group, option), recorder.note(seen, label.format(option))))
    for thing, name, seen in trace.attributes:
        label = f"{type(thing).__name__}.{name.lstrip('_')}"
        roots.append(Root(Attribute(thing, name), values.Plain(seen, label, "")))
    guards: list[values.Guard] = [library.State(*updated) for updated in trace.optimizers.values()]
    guards += [library.Together(numbers.optimizer, numbers.slots) for numbers in trace.numbers]
    guards += [library.Gradient(cell, before, id(cell) in replaced) for cell, before, _ in cells]
    guards += [library.Variable(tensor, node) for tensor, node in nodes]
    read = {id(thing): (thing, content) for thing, content in trace.values_read}
    guards += [library.Content(thing, content) for thing, content in read.values()]
    guards.append(library.Hooks([node for _, node in nodes if isinstance(node, Leaf)]))
    return roots + [Root(FixedPlace(guard.value), guard) for guard in guards]


def _without_own_cells(cells: list[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """The cells that somebody outside holds, not those of variables that the function made. The last is a probe."""
    probe = cells.pop()
    alone = sys.getrefcount(probe[0])
    return [entry for entry in cells if sys.getrefcount(entry[0]) > alone]


def _refuse_written_arrays(name: str, arguments: Arguments, written: list[tuple[int, int]]) -> None:
    for leaf, _ in written:
        if not isinstance(arguments.leaves[leaf], Tensor):
            raise TraceError(
                f"{name} writes to argument {arguments.name_of(leaf)}, which is a NumPy array; a compiled function "
                "sees a tensor in its place, and the write would not reach it. Write to a copy, or pass a tensor."
            )


def _output(
    trace: Trace, leaf: Any, outputs: dict[Value, int], tracked: dict[int, Any], sound: set[Any], is_made: Any
) -> Any:
    if type(leaf) is Number:
        raise TraceError("it is returned, or kept outside, as it is")
    if not isinstance(leaf, Tensor):
        if isinstance(leaf, Symbol):
            return Output(outputs.setdefault(leaf.value, len(outputs)), False)
        return Fixed(leaf, is_made(leaf))
    if isinstance(leaf, Dual):  # its tangent comes from outside, and would be lost
        raise RefusedError
    leaf = trace.resolve(leaf)
    number = outputs.setdefault(leaf._raw.value, len(outputs))
    if leaf._node is not None and not is_consumed(leaf._node, sound):
        tracked[number] = leaf._node
        return Output(number, True)
    return Output(number, False)
