"""`pullback check`: the derivatives of a user's function against central differences."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

import numpy as np

from ..errors import ConfigurationError, PullbackError
from ..transforms.checking import Comparison, comparisons
from .tables import aligned

_MODES = {"rev": "reverse", "fwd": "forward"}
_DEFAULT_SHAPE = (3, 4)
_HEADING = ("argument", "shape", "order", "mode", "max abs error", "max rel error", "worst", "verdict")


def run(options: Namespace) -> int:
    """Check a function as the command line says: 0 if its derivatives are right, 1 if one is wrong."""
    function = _imported(options.function)
    shapes = [_shape(text) for text in options.shapes] if options.shapes else _default_shapes(function)
    arguments = _arguments(shapes, options.dtype, options.range, options.seed)
    found = _compared(function, options.function, arguments, options.order)
    print(f"{options.function}: {options.dtype}, seed {options.seed}, against central differences")
    print(aligned([_HEADING, *(_row(comparison, arguments) for comparison in found)]))
    wrong = [comparison for comparison in found if comparison.wrong.any()]
    for comparison in wrong:
        print(_explained(comparison))
    print(f"{len(wrong)} of {len(found)} checks failed" if wrong else f"all {len(found)} checks passed")
    return 1 if wrong else 0


def _imported(name: str) -> Callable[..., Any]:
    """The function that "package.module:function" names, imported as Python would from the current folder."""
    module_name, colon, path = name.partition(":")
    if not (colon and module_name and path):
        raise ConfigurationError(f"{name}: expected module:function, such as `model:loss` for `loss` of model.py.")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise _failure(f"importing {module_name}", error) from None
        raise ConfigurationError(f"{name}: there is no module {error.name!r} in {Path.cwd()} or installed.") from None
    except Exception as error:
        raise _failure(f"importing {module_name}", error) from None
    for part in path.split("."):
        if not hasattr(found, part):
            names = ", ".join(n for n in vars(found) if callable(getattr(found, n)) and not n.startswith("_"))
            raise ConfigurationError(f"{name}: {module_name} has no {part!r}; it has {names or 'no functions'}.")
        found = getattr(found, part)
    if not callable(found):
        raise ConfigurationError(f"{name}: expected a function, got {type(found).__name__}.")
    return found


def _shape(text: str) -> tuple[int, ...]:
    if text == "scalar":
        return ()
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise ConfigurationError(f"--shapes {text}: expected a shape such as 3x4, 5, or scalar.")
    return tuple(map(int, text.split("x")))


def _default_shapes(function: Callable[..., Any]) -> list[tuple[int, ...]]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ConfigurationError("this function does not tell its arguments: give shapes with --shapes.") from None
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not needed:
        raise ConfigurationError("this function needs no arguments: give the shapes of some with --shapes.")
    return [_DEFAULT_SHAPE] * len(needed)


def _arguments(shapes: list[tuple[int, ...]], dtype: str, bounds: list[float] | None, seed: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(seed)
    if bounds and not -np.inf < bounds[0] < bounds[1] < np.inf:
        raise ConfigurationError(f"--range {bounds[0]:g} {bounds[1]:g}: expected a lower and a higher bound.")

    def numbers(shape: tuple[int, ...]) -> Any:
        return generator.uniform(*bounds, shape) if bounds else generator.normal(size=shape)

    def argument(shape: tuple[int, ...]) -> Any:
        return np.asarray(numbers(shape) + 1j * numbers(shape) if dtype == "complex128" else numbers(shape))

    return tuple(argument(shape) for shape in shapes)


def _compared(function: Callable[..., Any], name: str, arguments: tuple[Any, ...], order: int) -> list[Comparison]:
    try:
        with np.errstate(all="ignore"):
            found = list(comparisons(function, arguments, order))
    except PullbackError as error:
        raise ConfigurationError(f"{name}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise _failure(f"calling {name}", error) from None
    if not any(comparison.wrong.size for comparison in found):
        raise ConfigurationError(f"{name}: it returned no floating-point numbers, so there is nothing to check.")
    if any(np.isnan(comparison.numeric).any() for comparison in found):
        raise ConfigurationError(
            f"{name}: it is not finite at these inputs, so it has no derivatives there. Choose others with --range, "
            "such as `--range 0.1 2`, or with --seed."
        )
    return found


def _failure(doing: str, error: BaseException) -> ConfigurationError:
    """An error in the user's code: what it was and on which line, as they would find it in a traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_ours(f.filename)]
    where = f"{frames[-1].filename}:{frames[-1].lineno}: in {frames[-1].name}: " if frames else ""
    return ConfigurationError(f"{doing} raised an error: {where}{type(error).__name__}: {error}")


def _is_ours(filename: str) -> bool:
    package = str(Path(__file__).parents[1])
    return filename.startswith((package, "<frozen"))


def _row(found: Comparison, arguments: tuple[Any, ...]) -> list[str]:
    difference = np.abs(found.derivatives - found.numeric)
    size = np.maximum(np.abs(found.derivatives), np.abs(found.numeric))
    relative = np.divide(difference, size, out=np.zeros_like(difference), where=size > 0)
    number = found.argument.removeprefix("argument ")
    shape = "x".join(map(str, arguments[int(number)].shape)) or "scalar"
    worst = f"{_output(found)} by {number}{found.worst_index}"
    verdict = "WRONG" if found.wrong.any() else "ok"
    errors = [f"{np.max(values, initial=0.0):.1e}" for values in (difference, relative)]
    return [number, shape, str(found.order), _MODES[found.mode], *errors, worst, verdict]


def _output(found: Comparison) -> str:
    """The output's name in the table; from the second order on, the outputs are gradients."""
    short = "out" if found.order == 1 else "grad"
    return found.worst_output.replace("the output", short).replace("output", short)


def _explained(found: Comparison) -> str:
    return (
        f"{found.argument}, {_MODES[found.mode]} mode, order {found.order}: the derivative of {found.worst_output} by "
        f"element {found.worst_index or '[]'} is {found.derivatives[found.worst]:.8g}, central differences give "
        f"{found.numeric[found.worst]:.8g}; {int(found.wrong.sum())} of {found.wrong.size} are wrong"
    )
