"""What a function finds under the names of its module."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Iterator

import pullback as pb

from ..harness import X, attempt, case, restored, variable

SCALE: Any = 2.0
MODE: Any = "double"
FACTORS: Any = [1.0, 2.0]
OPTIONS: Any = {"scale": 2.0, "nested": {"shift": 1.0}}
PAIR: Any = (2.0, 3.0)
FLAG: Any = True
NOTHING: Any = None
UNUSED: Any = 0
WEIGHT: Any = pb.tensor([1.0, 2.0])


def scaled(x: Any) -> Any:
    return x * SCALE


def helper(x: Any) -> Any:
    return x + 1


def through_helper(x: Any) -> Any:
    return helper(x) * 2


def twice_removed(x: Any) -> Any:
    return through_helper(scaled(x))


def by_mode(x: Any) -> Any:
    return x * 2 if MODE == "double" else x / 2


def rebinding(name: str, function: Any, *values: Any) -> Any:
    """A case in which a global takes these values, and then its first one again."""

    @case(name=name)
    def run(compiled: Any) -> Iterator[Any]:
        names = [found for found in function.__code__.co_names if found.isupper() and found in globals()]
        with restored(globals()):
            f, first = compiled(function), globals()[names[0]]
            yield f(X)
            for value in (*values, first):
                globals()[names[0]] = value
                yield f(X)
                yield f(X)

    return run


rebinding("global_number", lambda x: x * SCALE, 3.0, -1.0)
rebinding("global_integer_becomes_a_float", lambda x: pb.astype(x, pb.int64) * SCALE, 3, 3.0)
rebinding("global_number_becomes_a_string", lambda x: x * (3 if SCALE == "three" else SCALE), "three")
rebinding("global_number_becomes_a_tensor", lambda x: x * SCALE, WEIGHT)
rebinding("global_bool_in_a_choice", lambda x: x if FLAG else -x, False)
rebinding("global_string_in_a_choice", by_mode, "half")
rebinding("global_none_becomes_a_tensor", lambda x: x if NOTHING is None else x * NOTHING, WEIGHT, 5.0)
rebinding("global_list_replaced", lambda x: x * sum(FACTORS), [5.0], [])
rebinding("global_dict_replaced", lambda x: x * OPTIONS["scale"], {"scale": 5.0})
rebinding("global_tuple_replaced", lambda x: x * PAIR[0] + PAIR[1], (5.0, 6.0))
rebinding("global_tensor_replaced", lambda x: x * WEIGHT, pb.tensor([5.0, 6.0]), pb.tensor([5.0]))
rebinding("global_number_in_an_index", lambda x: x[int(SCALE) - 2], 3.0)
rebinding("global_number_in_a_shape", lambda x: pb.broadcast_to(x, (int(SCALE), 2)), 3.0)
rebinding("global_number_in_a_range", lambda x: sum((x * i for i in range(int(SCALE))), x), 4.0)
rebinding("global_string_formatted", lambda x: x * len(f"<{MODE}>"), "triple!")
rebinding("global_number_in_a_helper", scaled, 7.0)
rebinding("global_number_in_a_default_of_get", lambda x: x * {}.get("missing", SCALE), 7.0)
rebinding("global_exponent", lambda x: x**SCALE, 3.0, 0.5)


@case
def global_list_changed_in_place(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * FACTORS[0] + len(FACTORS))
    yield f(X)
    FACTORS[0] = 9.0
    yield f(X)
    FACTORS.append(0.0)
    yield f(X)
    FACTORS[:] = [1.0, 2.0]
    yield f(X)


@case
def global_dict_item_assigned_and_deleted(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * OPTIONS["scale"] if "scale" in OPTIONS else -x)
    yield f(X)
    OPTIONS["scale"] = 4.0
    yield f(X)
    del OPTIONS["scale"]
    yield f(X)
    OPTIONS["scale"] = 2.0
    yield f(X)


@case
def global_nested_dict(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x + OPTIONS["nested"]["shift"])
    yield f(X)
    OPTIONS["nested"]["shift"] = 4.0
    yield f(X)
    OPTIONS["nested"] = {"shift": 5.0}
    yield f(X)
    OPTIONS["nested"] = {"shift": 1.0}
    yield f(X)


@case
def global_function_rebound(compiled: Any) -> Iterator[Any]:
    global helper
    first = helper
    f = compiled(through_helper)
    try:
        yield f(X)
        helper = lambda x: x * 100
        yield f(X)
    finally:
        helper = first
    yield f(X)


@case
def global_function_rebound_two_calls_away(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f = compiled(twice_removed)
        yield f(X)
        globals()["helper"] = lambda x: x - 1
        yield f(X)
        globals()["scaled"] = lambda x: -x
        yield f(X)
    yield f(X)


@case
def global_name_deleted_and_shadowing_a_builtin(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f = compiled(lambda x: x * max(2, 3))
        yield f(X)
        globals()["max"] = lambda *numbers: 10
        yield f(X)
        del globals()["max"]
        yield f(X)


@case
def global_name_deleted(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f = compiled(scaled)
        yield f(X)
        del globals()["SCALE"]
        yield attempt(f, X)
        globals()["SCALE"] = 4.0
        yield f(X)


@case
def global_imported_module_is_another(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f = compiled(lambda x: x * math.floor(2.5))
        yield f(X)
        other = ModuleType("other")
        other.floor = lambda number: 7
        globals()["math"] = other
        yield f(X)
        other.floor = lambda number: 8
        yield f(X)


@case
def global_write_that_does_not_depend_on_the_past(compiled: Any) -> Iterator[Any]:
    def remember(x: Any) -> Any:
        global UNUSED
        UNUSED = "seen"
        return x * 2

    with restored(globals()):
        f = compiled(remember)
        for _ in range(2):
            globals()["UNUSED"] = 0
            yield attempt(f, X)
            yield UNUSED


@case
def global_tensor_assigned_inside(compiled: Any) -> Iterator[Any]:
    def remember(x: Any) -> Any:
        global NOTHING
        NOTHING = x * 2 if NOTHING is None else NOTHING + x
        return NOTHING * 10

    with restored(globals()):
        f = compiled(remember)
        for _ in range(3):
            yield f(X)
            yield NOTHING


@case(steady=True)
def global_that_is_not_read_changes(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f = compiled(scaled)
        for value in (0, 1, "text", [1, 2]):
            globals()["UNUSED"] = value
            yield f(X)


@case(refused=True)
def globals_read_as_a_dict(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f = compiled(lambda x: x * globals()["SCALE"])
        yield f(X)
        globals()["SCALE"] = 3.0
        yield f(X)


def module_of(text: str, name: str, folder: str) -> Any:
    Path(folder, f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    return importlib.import_module(name)


@case
def attribute_of_an_imported_module(compiled: Any) -> Iterator[Any]:
    settings = ModuleType("settings")
    settings.scale, settings.shift = 2.0, [1.0]
    f = compiled(lambda x: x * settings.scale + settings.shift[0])
    yield f(X)
    settings.scale = 3.0
    yield f(X)
    settings.shift[0] = 5.0
    yield f(X)
    settings.scale = 2.0
    yield f(X)


@case
def function_of_an_imported_module_reads_its_own_globals(compiled: Any) -> Iterator[Any]:
    with restored(sys.modules), TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        try:
            found = module_of("rate = 2.0\ndef apply(x):\n    return x * rate\n", "guarded_rates", folder)
            f = compiled(lambda x: found.apply(x))
            yield f(X)
            found.rate = 4.0
            yield f(X)
            found.apply = lambda x: x * 0
            yield f(X)
        finally:
            sys.path.remove(folder)


@case
def module_reloaded(compiled: Any) -> Iterator[Any]:
    with restored(sys.modules), TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            found = module_of("def apply(x):\n    return x * 2\n", "guarded_reloaded", folder)
            f = compiled(lambda x: found.apply(x))
            yield f(X)
            Path(folder, "guarded_reloaded.py").write_text("def apply(x):\n    return x * 7 + 1\n")
            importlib.reload(found)
            yield f(X)
        finally:
            sys.path.remove(folder)
            sys.dont_write_bytecode = writes


@case
def module_replaced_in_sys_modules(compiled: Any) -> Iterator[Any]:
    def importing(x: Any) -> Any:
        import guarded_settings

        return x * guarded_settings.scale

    with restored(sys.modules):
        for scale in (2.0, 3.0):
            sys.modules["guarded_settings"] = ModuleType("guarded_settings")
            sys.modules["guarded_settings"].scale = scale
            if scale == 2.0:
                f = compiled(importing)
            yield f(X)
        sys.modules["guarded_settings"].scale = 4.0
        yield f(X)


@case
def one_function_compiled_twice(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        f, g = compiled(scaled), compiled(scaled)
        yield f(X)
        globals()["SCALE"] = 5.0
        yield g(X)
        yield f(X)
        globals()["SCALE"] = 2.0
        yield f(X)
        yield g(X)


@case
def global_optimizer_and_model_replaced(compiled: Any) -> Iterator[Any]:
    with restored(globals()):
        globals()["W"] = variable(1.0, 2.0)
        globals()["OPTIMIZER"] = pb.optim.SGD([W], 0.1)  # noqa: F821
        f = compiled(step_of_globals)
        yield f(X)
        yield f(X)
        globals()["W"] = variable(5.0, 6.0)
        globals()["OPTIMIZER"] = pb.optim.SGD([W], 0.01)  # noqa: F821
        yield f(X)
        yield W  # noqa: F821


def step_of_globals(x: Any) -> Any:
    loss = ((W * x) ** 2).sum()  # noqa: F821
    OPTIMIZER.step(pb.backward(loss))  # noqa: F821
    return loss
