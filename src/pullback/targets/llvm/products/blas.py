"""The BLAS that is already in the process: the one NumPy multiplies matrices with, bound for native code to call.

NumPy's wheels carry OpenBLAS under names of their own (`scipy_cblas_sgemm64_`), other builds link a system's library
under the plain ones, macOS has Accelerate. A symbol is looked up through NumPy's own extension module, which finds it
in whatever library that is linked with, so there is nothing to guess about files. Where NumPy has none, SciPy's is
taken, which offers its addresses in `scipy.linalg.cython_blas`. Where there is neither, `find()` is None, and products
run on the kernels of `small_products.py` alone.

Code that shares a product between its own threads must keep the library from starting threads as well: see
`Blas.set_threads`, `Blas.get_threads`, and `single_threaded()`.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Callable, Iterator

from llvmlite import ir

from .. import emission
from ..code import F32, F64, I8, I32, VOID

# (prefix, suffix, bits of an integer) of a C interface's names, those of libraries made for NumPy first.
_NAMES = (
    ("scipy_cblas_", "64_", 64),
    ("cblas_", "64_", 64),
    ("cblas_", "_64", 64),
    ("cblas_", "$NEWLAPACK$ILP64", 64),
    ("scipy_cblas_", "", 32),
    ("cblas_", "$NEWLAPACK", 32),
    ("cblas_", "", 32),
)
_THREADS = (
    ("scipy_openblas_", "64_"),
    ("openblas_", "64_"),
    ("openblas_", "_64"),
    ("scipy_openblas_", ""),
    ("openblas_", ""),
)
_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112


@dataclass(frozen=True)
class Blas:
    """Addresses of a library's functions.

    `gemm` has the product of matrices for each dtype, in C's interface or, if `fortran`, in the original one (column
    by column, everything passed by address); integers have `bits` bits. `set_threads` is the address of a
    `void (int32)` and `get_threads` that of an `int32 ()`; both are 0 where the library has no such functions. Setting
    costs a few nanoseconds and holds for the whole process.
    """

    gemm: tuple[tuple[str, int], ...]
    bits: int
    fortran: bool
    set_threads: int
    get_threads: int


def _address_of(dtype: str) -> int:
    blas = find()
    if blas is None:
        raise LookupError("a program was compiled where NumPy or SciPy has a BLAS, and is run where neither has.")
    return dict(blas.gemm)[dtype]


_SYMBOL = "pullback_gemm_"  # the functions' names in code, followed by the dtype
for _dtype in ("float32", "float64"):
    emission.provide(_SYMBOL + _dtype, partial(_address_of, _dtype))


@cache
def find() -> Blas | None:
    """The library to use, or None."""
    return _of_numpy() or _of_scipy()


@contextmanager
def single_threaded() -> Iterator[None]:
    """The library starts no threads of its own inside; afterwards it is as it was."""
    blas = find()
    if blas is None or not blas.set_threads:
        yield
        return
    setter, getter = _thread_functions(blas)
    before = getter()
    setter(1)
    try:
        yield
    finally:
        setter(before)


def emit_gemm(
    b: Any,
    blas: Blas,
    dtype: str,
    size: tuple[Any, Any, Any],
    x: tuple[Any, bool, int],
    y: tuple[Any, bool, int],
    out: tuple[Any, int],
    accumulate: bool,
) -> None:
    """Write a call for out = x @ y (+ out): `size` is (m, n, k) as i64 values.

    An operand is (pointer, whether it is stored transposed, elements from one stored row to the next).
    """
    number = F32 if dtype == "float32" else F64
    whole = ir.IntType(blas.bits)
    m, n, k = (b.trunc(value, whole) if blas.bits < 64 else value for value in size)
    one, beta = number(1.0), number(1.0 if accumulate else 0.0)
    if blas.fortran:  # column by column: the same memory holds the transposed matrices, so out^T = y^T @ x^T
        flags = [I8(ord("T" if matrix[1] else "N")) for matrix in (y, x)]
        values = [*flags, n, m, k, one, y[0], whole(y[2]), x[0], whole(x[2]), beta, out[0], whole(out[1])]
        values = [v if isinstance(v.type, ir.PointerType) else _spilled(b, v) for v in values]
    else:
        flags = [I32(_TRANSPOSED if matrix[1] else _PLAIN) for matrix in (x, y)]
        values = [
            I32(_ROW_MAJOR),
            *flags,
            m,
            n,
            k,
            one,
            x[0],
            whole(x[2]),
            y[0],
            whole(y[2]),
            beta,
            out[0],
            whole(out[1]),
        ]
    kind = ir.FunctionType(VOID, [value.type for value in values])
    b.call(emission.external(b.module, _SYMBOL + dtype, kind), values)


def _spilled(b: Any, value: Any) -> Any:
    """A value's address: a slot made where the function begins, so that a call in a loop does not grow the stack."""
    with b.goto_entry_block():
        slot = b.alloca(value.type)
    b.store(value, slot)
    return slot


def _of_numpy() -> Blas | None:
    from numpy._core import _multiarray_umath

    for library in _libraries(_multiarray_umath.__file__, "numpy.libs"):
        for prefix, suffix, bits in _NAMES:
            single, double = (_address(library, f"{prefix}{letter}gemm{suffix}") for letter in "sd")
            if single and double:
                return Blas((("float32", single), ("float64", double)), bits, False, *_threads(library))
    return None


def _of_scipy() -> Blas | None:
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    addresses = []
    bits = set()
    for name in ("sgemm", "dgemm"):
        capsule = cython_blas.__pyx_capi__[name]
        signature = _capsule_name(capsule)
        addresses.append(_capsule_pointer(capsule, signature))
        bits.add(64 if b"int64" in signature or b"long" in signature or b"blas_int" in signature else 32)
    if len(bits) != 1:
        return None
    threads = (0, 0)
    for library in _libraries(cython_blas.__file__, "scipy.libs"):
        threads = threads if threads[0] else _threads(library)
    return Blas((("float32", addresses[0]), ("float64", addresses[1])), bits.pop(), True, *threads)


def _capsule_name(capsule: Any) -> bytes:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return function(capsule)


def _capsule_pointer(capsule: Any, name: bytes) -> int:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return function(capsule, name)


def _libraries(extension: str | None, beside: str) -> list[ctypes.CDLL]:
    """An extension module as a library, which gives its dependencies' symbols too; on Windows, those as well."""
    if extension is None:
        return []
    libraries = [ctypes.CDLL(extension)]
    if sys.platform == "win32":
        folder = extension
        while not os.path.isdir(os.path.join(folder, beside)) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        libraries += [ctypes.CDLL(path) for path in glob.glob(os.path.join(folder, beside, "*openblas*.dll"))]
    return libraries


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _threads(library: ctypes.CDLL) -> tuple[int, int]:
    for prefix, suffix in _THREADS:
        setter = _address(library, f"{prefix}set_num_threads{suffix}")
        getter = _address(library, f"{prefix}get_num_threads{suffix}")
        if setter and getter:
            return setter, getter
    return 0, 0


@cache
def _thread_functions(blas: Blas) -> tuple[Callable[[int], None], Callable[[], int]]:
    return (
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(blas.set_threads),
        ctypes.CFUNCTYPE(ctypes.c_int32)(blas.get_threads),
    )
