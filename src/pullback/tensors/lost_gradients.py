"""What is said where a gradient would be lost: who asked for plain numbers, and what to write instead."""

from __future__ import annotations

from types import FrameType
from typing import Any, Never

import numpy as np

from ..autodiff.base import refuse_tracked
from ..autodiff.callers import caller
from .numpy_functions import entry_of

PAGE = "the page on NumPy code in the documentation (docs/numpy.md)"
CUSTOM = "make it an operation of your own with `pb.custom_op` (docs/custom_operations.md)"
_STACK = "join tensors with `np.stack` or `pb.asarray` instead of `np.array`"

_MATH = {
    "dist": "np.linalg.norm(x - y)", "erf": "pb.erf(t)", "erfc": "pb.erfc(t)", "fsum": "np.sum(np.stack([t, u]))",
    "gamma": "scipy.special.gamma(t)", "lgamma": "pb.gammaln(t)", "prod": "np.prod(np.stack([t, u]))",
    "sumprod": "np.dot(t, u)",
}  # fmt: skip

_NUMPY = {
    **dict.fromkeys(("array", "asanyarray", "asarray", "ascontiguousarray", "matrix"), _STACK),
    **dict.fromkeys(("CClass", "RClass"), "write `np.concatenate([t, u])` or `np.column_stack([t, u])`"),
    **dict.fromkeys(("interp", "pad", "select"), "pass the array as a tensor too, `pb.asarray(a)`"),
    "apply_along_axis": "write the function for whole arrays, or join the results of a loop with `np.stack`",
    "arange": "write `start + step * np.arange(n)`",
    "fromiter": "join tensors with `np.stack`",
    "frompyfunc": "write the function for whole arrays, or join the results of a loop with `np.stack`",
    "full": "write `np.full(shape, t, like=t)` or `pb.full(shape, t)`",
    "full_like": "write `np.full(a.shape, t, like=t)` or `pb.full(a.shape, t)`",
    "vectorize": "write the function for whole arrays, or join the results of a loop with `np.stack`",
}

#: What to write for a function of SciPy's, by its name after "scipy.".
_SCIPY = {
    "integrate.cumulative_trapezoid": "`np.cumsum((y[1:] + y[:-1]) / 2 * np.diff(x))`",
    "integrate.odeint": "a loop of steps (docs/tutorials/ode.md)",
    "integrate.quad": "a sum over points and weights, such as those of `np.polynomial.legendre.leggauss`",
    "integrate.solve_ivp": "a loop of steps (docs/tutorials/ode.md)",
    "integrate.trapezoid": "`np.trapezoid` or `pb.trapezoid`",
    "interpolate.interp1d": "`np.interp`",
    "linalg.cho_factor": "`np.linalg.cholesky`",
    "linalg.cho_solve": "`pb.linalg.cholesky_solve`",
    "linalg.cholesky": "`np.linalg.cholesky` (the lower triangle; SciPy's default is the upper one)",
    "linalg.expm": "`pb.linalg.matrix_exp`",
    "linalg.lu": "`pb.linalg.lu`",
    "linalg.solve_triangular": "`pb.linalg.solve_triangular`",
    "linalg.svdvals": "`np.linalg.svdvals`",
    "signal.convolve": "`np.convolve`", "signal.fftconvolve": "`np.convolve`",
    "spatial.distance.cdist": "`pb.cdist`",
    "special.log_softmax": "`pb.log_softmax`",
    "special.logsumexp": "`pb.logsumexp`",
    "special.polygamma": "`pb.polygamma`",
    "special.softmax": "`pb.softmax`",
    "special.softplus": "`pb.softplus`",
    "special.zeta": "`pb.zeta`",
    "stats.norm.cdf": "`scipy.special.ndtr((x - mean) / std)`",
    "stats.norm.logcdf": "`scipy.special.log_ndtr((x - mean) / std)`",
    "stats.norm.logpdf": "its formula, `-((x - mean) / std) ** 2 / 2 - np.log(std) - np.log(2 * np.pi) / 2`",
    "stats.norm.pdf": "its formula, `np.exp(-((x - mean) / std) ** 2 / 2) / (std * np.sqrt(2 * np.pi))`",
}  # fmt: skip


def refuse_conversion(tensor: Any, what: str, frame: FrameType) -> Never:
    """Refuse to make a number or an array of a tensor that needs a gradient; `frame` is where it was asked for."""
    asked = caller(frame)
    instead = _STACK if what == "numpy.asarray" else "use functions of NumPy or Pullback"
    if asked.is_assignment:
        what, instead = f"{asked.name or 'array'}[...] = t", _of_assignment(asked.name or "out")
    elif asked.library:
        what, instead = _INSTEAD[asked.library](asked.name.partition(".")[2], what)
    refuse_tracked(tensor, what, instead)
    raise AssertionError("a tensor without a gradient can be converted")


def _of_assignment(name: str) -> str:
    return (
        f"write `{name} = np.zeros_like(t, shape=n)` instead of `{name} = np.zeros(n)`: it makes an array that has "
        "gradients, with the dtype of `t`"
    )


def _of_builtins(name: str, what: str) -> tuple[str, str]:
    if name in ("float", "int", "complex"):
        return f"{name}()", f"leave `{name}()` out"
    return what, _STACK if what == "numpy.asarray" else "use functions of NumPy or Pullback"


def _of_math(name: str, what: str) -> tuple[str, str]:
    written = _MATH.get(name) or (f"np.{name}(t)" if hasattr(np, name) else "")
    return f"math.{name}", f"write `{written}`" if written else "use functions of NumPy or Pullback, not of `math`"


def _of_numpy(name: str, what: str) -> tuple[str, str]:
    last = name.rpartition(".")[2]
    if name in ("copyto", "fill_diagonal"):
        return f"np.{name}", _of_assignment("out")
    shown = {"RClass": "np.r_", "CClass": "np.c_"}.get(last, f"np.{name}")
    if last in _NUMPY:
        return shown, _NUMPY[last]
    if name.startswith("random."):
        return shown, "draw numbers that do not depend on it, such as `mean + std * np.random.normal(size=n)`"
    if isinstance(getattr(np, name, None), type) and issubclass(getattr(np, name), np.generic):
        return shown, f"leave `np.{name}()` out, or write `t.astype(np.{name})`"
    if _takes_tensors(name):
        return shown, f"pass `np.stack([t, u])` to `np.{name}` instead of a list: NumPy makes an array of a list first"
    return shown, f"write it with functions that take tensors: see {PAGE}"


def _of_array(name: str, what: str) -> tuple[str, str]:
    if name in ("fill", "put", "__setitem__"):
        return f"ndarray.{name}", _of_assignment("out")
    instead = "write `np.dot(a, t)` or `a @ t`" if name == "dot" else f"write `np.{name}(a, t)`"
    return f"ndarray.{name}", instead if hasattr(np, name) else _STACK


def _takes_tensors(name: str) -> bool:
    """Whether there is a gradient of a function of NumPy's."""
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part, None)
        if isinstance(function, np.ufunc):
            return True
    return callable(function) and not isinstance(function, type) and entry_of(function).is_differentiable


def _of_scipy(name: str, what: str) -> tuple[str, str]:
    package = name.partition(".")[0]
    if name in _SCIPY:
        instead = f"write {_SCIPY[name]}"
    elif package in ("linalg", "fft") and _takes_tensors(name):
        instead = f"write `np.{name}`"
    elif package == "sparse":
        instead = f"write `a.toarray() @ x`, or {CUSTOM}"
    elif package == "optimize":
        instead = f"{CUSTOM}; the functions that SciPy calls must return plain numbers"
    else:
        instead = f"write it with NumPy's functions, or {CUSTOM}"
    return f"scipy.{name}", instead


def _of_scikit_learn(name: str, what: str) -> tuple[str, str]:
    return f"sklearn.{name}", f"write it with NumPy's functions, or {CUSTOM}"


def _of_pandas(name: str, what: str) -> tuple[str, str]:
    return f"pandas.{name}", "compute with tensors"


def _of_picture(library: str) -> Any:
    return lambda name, what: (f"{library}.{name}", "")


_INSTEAD = {
    "builtins": _of_builtins, "math": _of_math, "ndarray": _of_array, "numpy": _of_numpy, "pandas": _of_pandas,
    "scipy": _of_scipy, "sklearn": _of_scikit_learn,
    **{library: _of_picture(library) for library in ("matplotlib", "plotly", "seaborn")},
}  # fmt: skip
