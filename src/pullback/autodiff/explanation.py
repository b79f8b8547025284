"""Errors of kernels as errors of ours: of the same class on every backend, with the operation and what was given."""

from __future__ import annotations

from math import prod
from typing import Any

from numpy import errstate

from .. import backends, dtypes
from ..errors import DeviceError, DtypeError, IndexingError, PullbackError, ShapeError, TraceError
from ..operations import Operation


def describe(raw: Any) -> str:
    """A raw array in an error message: shape and dtype."""
    backend = backends.of(raw)
    return f"{raw!r}" if backend is None else f"{tuple(raw.shape)} {backend.dtype_of(raw).name}"


def explained(operation: Operation, raws: Any, static: Any, error: Exception) -> Exception:
    """A kernel's error as one of ours, with what was given."""
    if isinstance(error, (PullbackError, MemoryError)):
        return error
    if len({b.device_of(raw) for raw in raws if (b := backends.of(raw)) is not None}) > 1:
        return mixture(operation, raws)
    reference = numpy_error(operation, raws, static)
    if reference is not None:
        error = reference
        if isinstance(error, PullbackError):
            return error
    if operation.name in _OF_SOMETHING and (shape := tuple(getattr(raws[0], "shape", (1,)))) and 0 in shape:
        where = f"along axis {static[0]} " if static and static[0] is not None else ""
        return ShapeError(
            f"{operation.name}: there are no elements {where}of a tensor of shape {shape} to choose from."
        )
    if operation.name == "pow" and isinstance(error, (ValueError, OverflowError)) and _are_integers(raws):
        return DtypeError(
            "pow: an integer to a negative power is no integer. Make one of the two floating-point, for example "
            "`x.astype(pb.float64) ** y` or `x ** -1.0`."
        )
    given = ", ".join(describe(raw) for raw in raws)
    options = ", ".join(f"{n}={v!r:.80}" for n, v in zip(operation.static, static))
    text = f"{operation.name}({given}{'; ' + options if options else ''}): {error}"
    if isinstance(error, IndexError):
        return IndexingError(text)
    if isinstance(error, OverflowError):
        return DtypeError(f"{text}. Write `pb.asarray(...)` of it, or convert the tensor with `astype` first.")
    if isinstance(error, (TypeError, AttributeError, NotImplementedError)):
        return DtypeError(text)
    if isinstance(error, ValueError):
        return ShapeError(text)
    if (
        type(operation) is Operation
        and isinstance(error, RuntimeError)
        and reference is None
        and _is_of_library(error, raws)
    ):
        if _says_memory(error):
            return error
        if any(_is_complex(raw) for raw in raws):
            return DtypeError(f"{text} Take the real or imaginary part, or `abs`, first.")
        return DtypeError(text) if _says_dtype(error) else ShapeError(text)
    return error


#: Elements in all inputs of an operation up to which it is tried again on NumPy, to say what is wrong with them.
_MOST_ELEMENTS = 1 << 20


def numpy_error(operation: Operation, raws: Any, static: Any) -> Exception | None:
    """What the NumPy backend says about inputs that another library refused; None if it takes them.

    NumPy is the reference for every backend, for what is an error and of which class, too.
    """
    arrays = [raw for raw in raws if backends.of(raw) is not None]
    found = backends.of(arrays[0])
    if found is backends.NUMPY or found.tensor_class is not None or type(operation) is not Operation:
        return None
    if not all([found.is_concrete(raw) for raw in arrays]) or sum(prod(raw.shape) for raw in arrays) > _MOST_ELEMENTS:
        return None

    def on_host(thing: Any) -> Any:
        if type(thing) is tuple:
            return tuple([on_host(part) for part in thing])
        return thing if backends.of(thing) is None else backends.transfer(thing, "numpy", copy=True)

    host = [on_host(raw) for raw in raws]
    options = [dtypes.numpy_dtype(dtypes.get(x)) if operation.name == "astype" else on_host(x) for x in static]
    kernel = operation.kernel_for(backends.NUMPY)
    try:
        with errstate(all="ignore"):
            kernel(host, *options) if operation.variadic else kernel(*host, *options)
    except Exception as error:
        return error
    return None


def _is_of_library(error: Exception, raws: Any) -> bool:
    """Whether an error of the kernel's comes from a library that has no better class for what is wrong."""
    backend = next((b for raw in raws if (b := backends.of(raw)) is not None), None)
    return backend is not None and backend is not backends.NUMPY and not isinstance(error, RecursionError)


def _says_memory(error: Exception) -> bool:
    return "memory" in str(error) or "CUDA error" in str(error) or "RESOURCE_EXHAUSTED" in str(error)


_DTYPE_WORDS = ("dtype", "type", "not implemented for", "precision", "Half", "Bool", "Long", "Float")


def _says_dtype(error: Exception) -> bool:
    return any(word in str(error) for word in _DTYPE_WORDS)


_OF_SOMETHING = frozenset(("max", "min", "argmax", "argmin"))


def _are_integers(raws: Any) -> bool:
    kinds = [backends.of(raw).dtype_of(raw).kind if hasattr(raw, "dtype") else type(raw).__name__ for raw in raws]
    return all(kind in ("int", "uint", "bool") for kind in kinds)


def _is_complex(raw: Any) -> bool:
    backend = backends.of(raw)
    return backend is not None and backend.is_complex(raw)


def absence(operation: Operation) -> DtypeError:
    return DtypeError(f"{operation.name}: expected a tensor, an array or a number, got None.")


def mixture(operation: Operation, raws: Any) -> PullbackError:
    """What to say of arrays that do not belong together."""
    arrays = [(b, raw) for raw in raws if (b := backends.of(raw)) is not None]
    if not all([backend.is_concrete(raw) for backend, raw in arrays]):
        return TraceError(
            f"{operation.name}: one of the inputs was made while pb.compile traced a function, and has no values. Use "
            "it in that function, in the thread that calls it, and return it from there instead of keeping it."
        )
    names = ", ".join(dict.fromkeys(backend.device_of(raw) for backend, raw in arrays))
    return DeviceError(
        f"{operation.name}: inputs are on different devices ({names}). Move one with `.to_device(...)`, an array of "
        "another library with `pb.asarray(x, device=...)`."
    )
