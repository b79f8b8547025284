"""One call of a NumPy function on tensors that require a gradient, against the same call on arrays."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np

import pullback as pb

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **kwargs: Any) -> Call:
    return args, kwargs


def difference(function: Callable[..., Any], arguments: Call) -> str | None:
    """What is different if all, or only one, of the arrays that can require a gradient are tensors; None if nothing."""
    expected = outcome(function, arguments)
    for choice in choices(arguments):
        found = outcome(function, with_tensors(arguments, choice))
        text = compare(expected, found)
        if text is not None:
            return f"{text} (tensors: {sorted(choice)})"
    return None


def outcome(function: Callable[..., Any], arguments: Call) -> Any:
    """The result of a call, or the exception that it raises."""
    args, kwargs = arguments
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return error


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (tuple, list)):
        for part in x:
            yield from _leaves(part)
    elif isinstance(x, dict):
        yield from _leaves(list(x.values()))
    else:
        yield x


def choices(arguments: Call) -> list[set[int]]:
    """Which of the arrays that can require a gradient, by number, are tensors: all, the first alone, the last alone."""
    count = sum(map(_is_differentiable, _leaves(arguments)))
    return [set(range(count)), *([{0}, {count - 1}] if count > 1 else [])] if count else []


def with_tensors(arguments: Call, choice: set[int]) -> Call:
    """The arguments with the chosen arrays as tensors that require a gradient."""
    count = -1

    def replaced(x: Any) -> Any:
        nonlocal count
        if isinstance(x, (tuple, list)):
            return type(x)([replaced(part) for part in x])
        if isinstance(x, dict):
            return {key: replaced(value) for key, value in x.items()}
        if not _is_differentiable(x):
            return x
        count += 1
        return pb.tensor(x, requires_grad=True) if count in choice else x

    return replaced(arguments)


def public_class(error: BaseException) -> type[BaseException]:
    """The most special class of an error that a caller can name: built in, or NumPy's public ones."""
    return next(
        kind
        for kind in type(error).__mro__
        if getattr(builtins, kind.__name__, None) is kind
        or getattr(np.exceptions, kind.__name__, None) is kind
        or kind is np.linalg.LinAlgError
    )


def compare(expected: Any, found: Any) -> str | None:
    """What is different between two outcomes, in words; None if nothing is."""
    if isinstance(expected, Exception):
        kind = public_class(expected)
        if isinstance(found, kind):
            return None
        raised = (
            f"raised {type(found).__name__}: {found}" if isinstance(found, Exception) else f"returned {found!r:.80}"
        )
        return f"NumPy raises {kind.__name__} ({expected!s:.60}), ours {raised:.160}"
    if isinstance(found, Exception):
        return f"NumPy returns {expected!r:.60}, ours raises {type(found).__name__}: {found!s:.140}"
    if isinstance(expected, (tuple, list)):
        if not isinstance(found, (tuple, list)) or len(expected) != len(found):
            return f"NumPy returns {len(expected)} results, ours {type(found).__name__}"
        if isinstance(expected, list) != isinstance(found, list):
            return f"NumPy returns a {type(expected).__name__}, ours a {type(found).__name__}"
        return next((text for a, b in zip(expected, found) if (text := compare(a, b)) is not None), None)
    if isinstance(found, pb.Tensor):
        found = found.detach().numpy()
    if not isinstance(expected, (np.ndarray, np.generic)):
        return None if expected == found or expected is found else f"NumPy returns {expected!r:.60}, ours {found!r:.60}"
    return _compare_arrays(np.asarray(expected), np.asarray(found))


def _compare_arrays(expected: Any, found: Any) -> str | None:
    if expected.shape != found.shape:
        return f"shape {expected.shape} of NumPy's, {found.shape} of ours"
    if expected.dtype != found.dtype:
        return f"dtype {expected.dtype} of NumPy's, {found.dtype} of ours"
    if expected.dtype.kind == "c":
        pairs = ((expected.real, found.real), (expected.imag, found.imag))
        return next((text for a, b in pairs if (text := _compare_arrays(a, b)) is not None), None)
    if expected.dtype.kind != "f":
        same = np.asarray(expected == found)
    else:
        with np.errstate(all="ignore"):
            near = np.abs(expected - found) <= 4 * np.spacing(np.abs(expected))
        same = np.where(expected == found, np.signbit(expected) == np.signbit(found), near)
        same |= np.isnan(expected) & np.isnan(found)
    if same.all():
        return None
    place = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(same)))
    theirs, ours = np.atleast_1d(expected)[place], np.atleast_1d(found)[place]
    return f"{theirs!r} of NumPy's, {ours!r} of ours at {place}"
