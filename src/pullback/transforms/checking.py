"""`gradcheck`: derivatives against central differences."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, NamedTuple

import numpy as np

from .. import dtypes, tree
from ..autodiff.base import values_of
from ..autodiff.creation import asarray
from ..errors import DtypeError, GradientError, ShapeError
from ..tensors.tensor import Tensor
from .forward import jvp
from .lifting import Arguments, Function, one_hot, refuse_nothing
from .reverse import vjp

__all__ = ["gradcheck"]

_MODES = {"rev": "reverse mode", "fwd": "forward mode"}
_PLAIN = (np.ndarray, np.generic, float, complex)
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)


def gradcheck(
    f: Function,
    args: Any,
    order: int = 1,
    modes: Iterable[str] = ("rev", "fwd"),
    *,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    step: float = _STEP,
) -> bool:
    """Compare the derivatives of `f` at `args`, a tuple of arguments, with central differences; True, or an error.

    A function that takes NumPy's arrays must also give for them what it gives for tensors: slices of tensors are
    values, so a write into one, under a name of its own, changes nothing else.

    Parameters
    ----------
    f : callable
        A function of the arguments, with any output. Arguments and outputs may be trees.
    args : tuple
        Where to compare: float64 or complex128 arrays, since central differences of shorter ones say little.
    order : int
        2 also compares second derivatives: those of the gradient of `f`, for a fixed random combination of its
        outputs.
    modes : iterable of str
        "rev" for reverse mode, "fwd" for forward mode.
    rtol, atol : float
        How far the two may differ: atol + rtol * size.
    step : float
        The step of the differences.

    Returns
    -------
    bool
        True.

    Raises
    ------
    GradientError
        If they differ. The error names the argument and the element where they differ most.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.gradcheck(lambda x, y: np.sin(x) * y, (np.ones(3), np.ones(3)), order=2)
    True
    """
    for found in comparisons(f, args, order, modes, rtol=rtol, atol=atol, step=step):
        if found.wrong.any():
            raise GradientError(
                f"gradcheck: {_MODES[found.mode]}, order {found.order}: the derivative of {found.worst_output} by "
                f"{found.argument}{found.worst_index} is {found.derivatives[found.worst]:.10g}, central differences "
                f"give {found.numeric[found.worst]:.10g}. {int(found.wrong.sum())} of {found.wrong.size} derivatives "
                "by this argument differ."
            )
    return True


class Comparison(NamedTuple):
    """The derivatives of all outputs (rows) by one argument (columns), from a mode and from central differences."""

    order: int
    mode: str
    argument: str
    derivatives: Any
    numeric: Any
    wrong: Any
    worst: tuple[int, int]  # where they differ most, measured by what is allowed there
    worst_output: str
    worst_index: str


def comparisons(
    f: Function,
    args: Any,
    order: int = 1,
    modes: Iterable[str] = ("rev", "fwd"),
    *,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    step: float = _STEP,
) -> Iterator[Comparison]:
    """What `gradcheck` looks at, argument by argument and mode by mode, whether it is right or wrong."""
    modes = tuple(modes)
    if not isinstance(args, (tuple, list)):
        raise ShapeError(
            f"gradcheck: args must be a tuple with an entry for every argument, got {type(args).__name__}."
        )
    unknown = [mode for mode in modes if mode not in _MODES]
    if unknown or order < 1:
        raise ValueError(f"gradcheck: modes are 'rev' and 'fwd' and order at least 1, got {unknown or order!r}.")
    arguments = Arguments("gradcheck", tuple(args), tuple(range(len(args))))
    for i, x in enumerate(arguments.tensors):
        if x.dtype not in (dtypes.float64, dtypes.complex128):
            raise DtypeError(
                f"gradcheck: {arguments.name_of(i)} is {x.dtype.name}; central differences need float64 or complex128. "
                "Write `.astype('float64')`."
            )
    _compare_values(f, args, arguments)
    function = _of_leaves(f, arguments)
    values = [x.detach() for x in arguments.tensors]
    for number in range(1, order + 1):
        yield from _compared(function, values, arguments, number, modes, rtol, atol, step)
        if number < order:
            function = _gradient(function, values)


def _compare_values(f: Function, args: Any, arguments: Arguments) -> None:
    """Refuse a function of NumPy's arrays that computes something else on tensors.

    One that cannot take arrays, because it uses what tensors alone have, is not compared.
    """
    leaves = tree.leaves(args)
    if not all(isinstance(x, _PLAIN) for x in leaves):
        return

    def on_arrays() -> Any:
        with np.errstate(all="ignore"):
            return f(*tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, tuple(args)))

    try:
        expected, again = on_arrays(), on_arrays()
    except Exception:
        return
    if not all(_are_close(x, y) for x, y in zip(tree.leaves(expected), tree.leaves(again)) if isinstance(x, _PLAIN)):
        return  # it gives other values at each call, which is told later
    found = f(*arguments.filled([x.detach() for x in arguments.tensors]))
    for path, x, y in zip(tree.paths(expected), tree.leaves(expected), tree.leaves(found)):
        y = values_of(y) if isinstance(y, Tensor) else y
        if not isinstance(x, _PLAIN) or _are_close(x, y):
            continue  # also what was made a tensor on the way
        raise GradientError(
            f"gradcheck: result{path} of the function is {_shown(x)} for arrays and {_shown(y)} for tensors. A slice "
            "of a tensor is a value of its own: write `u[1:-1] += v` in place of `inner = u[1:-1]; inner += v`, and "
            "`u[0, 1] = v` in place of `u[0][1] = v`. Or the function asks for types, such as `np.ndarray`."
        )


def _are_close(x: Any, y: Any) -> bool:
    scale = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    return np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-6, atol=1e-9 * scale, equal_nan=True)


def _shown(x: Any) -> str:
    return f"an array of shape {x.shape} with sum {x.sum():.10g}" if np.shape(x) else f"{x:.10g}"


def _of_leaves(f: Function, arguments: Arguments) -> Function:
    """`f` as a function from a list of tensors to the list of its floating-point outputs."""

    def function(*tensors: Tensor) -> list[Tensor]:
        result = f(*arguments.filled(tensors))
        refuse_nothing("gradcheck", result)
        outputs = [x if isinstance(x, Tensor) else asarray(x) for x in tree.leaves(result)]
        return [out for out in outputs if out.dtype.kind in ("float", "complex")]

    return function


def _gradient(function: Function, values: list[Tensor]) -> Function:
    """The gradients of a random combination of a function's outputs, in turn as a function of a list of tensors."""
    generator = np.random.default_rng(0)
    cotangents = []
    for out in function(*values):
        given = generator.normal(size=out.shape)
        if out.dtype.kind == "complex":
            given = given + 1j * generator.normal(size=out.shape)
        cotangents.append(asarray(np.asarray(given, dtypes.numpy_dtype(out.dtype)), device=out.device))

    def gradient(*tensors: Tensor) -> list[Tensor]:
        return list(vjp(function, *tensors)[1](cotangents))

    return gradient


def _compared(
    function: Function,
    values: list[Tensor],
    arguments: Arguments,
    order: int,
    modes: tuple[str, ...],
    rtol: float,
    atol: float,
    step: float,
) -> Iterator[Comparison]:
    outputs = [_numbers(out) for out in function(*values)]
    for before, again in zip(outputs, function(*values)):
        if not np.array_equal(before, _numbers(again), equal_nan=True):
            raise GradientError(
                "gradcheck: the function gives other values when it is called again, so it has none to compare."
            )
    sizes = [_coordinates(x).size for x in outputs]
    for i, x in enumerate(values):
        numeric = _numeric(function, values, i, step)
        for mode in modes:
            column = (
                _forward(function, values, i, sum(sizes)) if mode == "fwd" else _reverse(function, values, i, outputs)
            )
            allowed = atol + rtol * np.maximum(np.abs(numeric), np.max(np.abs(numeric), initial=0.0) * 1e-3)
            difference = np.abs(column - numeric)
            wrong = ~(difference <= allowed) & ~(np.isnan(column) & np.isnan(numeric))
            if not wrong.size:
                yield Comparison(order, mode, arguments.name_of(i), column, numeric, wrong, (0, 0), "no output", "")
                continue
            excess = np.nan_to_num(difference / allowed, nan=np.inf)
            excess = np.where(wrong, excess, -1.0) if wrong.any() else excess
            row, place = (int(n) for n in np.unravel_index(int(np.argmax(excess)), wrong.shape))
            output, index = _named_output(outputs, row), _index(x, place)
            yield Comparison(order, mode, arguments.name_of(i), column, numeric, wrong, (row, place), output, index)


# -- everything in real coordinates: complex numbers are two of them ----------------------------------


def _numbers(x: Tensor) -> Any:
    return np.asarray(values_of(x))


def _coordinates(x: Any) -> Any:
    """The elements of an array as real numbers, in order: real parts, then imaginary ones."""
    flat = np.ravel(x)
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _basis(x: Tensor) -> list[Tensor]:
    """The directions of the real coordinates of `x`."""
    directions = [one_hot(x, position) for position in range(x.size)]
    if x.dtype.kind == "complex":
        directions += [one_hot(x, position, 1j) for position in range(x.size)]
    return directions


def _all_coordinates(outputs: Iterable[Any]) -> Any:
    parts = [_coordinates(_numbers(out)) for out in outputs]
    return np.concatenate(parts) if parts else np.zeros(0)


def _numeric(function: Function, values: list[Tensor], i: int, step: float) -> Any:
    """The Jacobian by central differences: a row per coordinate of the outputs, a column per one of value `i`."""
    x = _numbers(values[i])
    columns = []
    for direction in _basis(values[i]):
        unit = _numbers(direction)
        size = step * max(1.0, float(np.abs(x[unit != 0])[0]))
        high, low = x + size * unit, x - size * unit
        ends = [
            _all_coordinates(function(*values[:i], asarray(end, device=values[i].device), *values[i + 1 :]))
            for end in (high, low)
        ]
        columns.append((ends[0] - ends[1]) / (2 * size))
    return np.stack(columns, axis=1) if columns else np.zeros((_all_coordinates(function(*values)).size, 0))


def _forward(function: Function, values: list[Tensor], i: int, rows: int) -> Any:
    def of_one(x: Tensor) -> list[Tensor]:
        return function(*values[:i], x, *values[i + 1 :])

    columns = [_all_coordinates(jvp(of_one, (values[i],), (direction,))[1]) for direction in _basis(values[i])]
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


def _reverse(function: Function, values: list[Tensor], i: int, outputs: list[Any]) -> Any:
    def of_one(x: Tensor) -> list[Tensor]:
        return function(*values[:i], x, *values[i + 1 :])

    results, pullback = vjp(of_one, values[i])
    zeros = [asarray(np.zeros_like(out), device=r.device) for out, r in zip(outputs, results)]
    rows = []
    for k, out in enumerate(results):
        for direction in _basis(out):
            rows.append(_coordinates(_numbers(pullback([*zeros[:k], direction, *zeros[k + 1 :]])[0])))
    return np.stack(rows) if rows else np.zeros((0, _coordinates(_numbers(values[i])).size))


def _index(x: Any, coordinate: int) -> str:
    """A coordinate as it is written after an array's name: "[0, 2]"."""
    part = " (imaginary part)" if coordinate >= x.size else ""
    if x.ndim == 0:
        return part
    return f"[{', '.join(map(str, np.unravel_index(coordinate % x.size, x.shape)))}]{part}"


def _named_output(outputs: list[Any], row: int) -> str:
    for number, out in enumerate(outputs):
        size = _coordinates(out).size
        if row < size:
            return (f"output {number}" if len(outputs) > 1 else "the output") + _index(out, row)
        row -= size
    raise AssertionError(f"there is no row {row}")
