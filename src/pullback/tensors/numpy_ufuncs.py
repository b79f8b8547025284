"""NumPy's ufuncs in terms of Pullback's functions, for tensors that need a gradient."""

from __future__ import annotations

import math
import sys
from typing import Any, Callable

import numpy as np

import pullback as pb

from ..autodiff.apply import kept_arrays
from ..autodiff.base import PYTHON_SCALARS
from ..operations import OPERATIONS
from . import numpy_ufunc_methods as methods
from .numpy_protocols import in_numpy, in_tensors, refuse_output
from .numpy_stepwise import method_of
from .numpy_values import as_numpys, have_values, rehearse, valued
from .tensor import Tensor


def _of_operations() -> tuple[dict[str, str], dict[str, str]]:
    """By NumPy's and by SciPy's name of a ufunc: the name of the operation that does the same."""
    named: dict[str, str] = {}
    special: dict[str, str] = {}
    for name, operation in OPERATIONS.items():
        ufunc = getattr(np, name, None)
        for other in (*([ufunc.__name__] if isinstance(ufunc, np.ufunc) else []), *operation.numpy):
            named[other] = name
        special.update(dict.fromkeys(operation.scipy, name))
    return named, special


_NAMED, _SPECIAL = _of_operations()
#: Those whose results are no numbers that could have a gradient.
_VALUES_ALONE = frozenset(
    name for name in _NAMED if OPERATIONS[_NAMED[name]].dtypes in ("bitwise", "comparison", "logical", "test")
)


# -- ufuncs made of several functions --------------------------------------------------------------


def _cbrt(x: Any) -> Any:
    return pb.sign(x) * pb.pow(pb.abs(x), 1.0 / 3.0)


def _fmod(x: Any, y: Any) -> Any:
    return x - pb.trunc(pb.divide(x, y)) * y


def _heaviside(x: Any, at_zero: Any) -> Any:
    x, at_zero = pb.asarray(x), pb.asarray(at_zero)
    return pb.where(pb.equal(x, 0), at_zero, pb.astype(pb.greater(x, 0), at_zero.dtype))


def _first_unless_nan(choose: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        return pb.where(pb.isnan(y), x, pb.where(pb.isnan(x), y, choose(x, y)))

    return function


def _float_power(x: Any, y: Any) -> Any:
    x, y = (pb.asarray(np.asarray(v)) if type(v) in PYTHON_SCALARS else operand(v) for v in (x, y))
    target = "complex128" if "complex" in (x.dtype.kind, y.dtype.kind) else "float64"
    return pb.pow(pb.astype(x, pb.dtypes.get(target)), pb.astype(y, pb.dtypes.get(target)))


_COMPOSED: dict[str, Callable[..., Any]] = {
    "cbrt": _cbrt,
    "clip": lambda x, low, high: pb.clip(pb.asarray(x), low, high),  # what the method of an array calls
    "deg2rad": lambda x: x * (math.pi / 180),
    "degrees": lambda x: x * (180 / math.pi),
    "divmod": lambda x, y: (pb.floor_divide(x, y), pb.remainder(x, y)),
    "fabs": lambda x: pb.abs(x),
    "expm1": lambda x: pb.expm1(x),
    "floor_divide": lambda x, y: pb.floor_divide(x, y),
    "exp2": lambda x: pb.pow(2.0, x),
    "float_power": _float_power,
    "fmax": _first_unless_nan(lambda x, y: pb.maximum(x, y)),
    "fmin": _first_unless_nan(lambda x, y: pb.minimum(x, y)),
    "fmod": _fmod,
    "heaviside": _heaviside,
    "ldexp": lambda x, n: x * pb.pow(2.0, pb.astype(operand(n), operand(x).dtype)),
    "logaddexp2": lambda x, y: pb.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2),
    "matvec": lambda x, y: pb.matmul(x, y[..., None])[..., 0],
    "modf": lambda x: (x - pb.trunc(x), pb.trunc(x)),
    "rad2deg": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
    "vecmat": lambda x, y: pb.matmul(pb.conj(x)[..., None, :], y)[..., 0, :],
}


def _sign_of_gamma(x: Any) -> Any:
    return pb.where(x < 0, 1 - 2 * pb.remainder(pb.floor(x), 2), pb.ones_like(x))


def _beta(x: Any, y: Any) -> Any:
    return _sign_of_gamma(x) * _sign_of_gamma(y) * _sign_of_gamma(x + y) * pb.exp(_betaln(x, y))


def _betaln(x: Any, y: Any) -> Any:
    return pb.gammaln(x) + pb.gammaln(y) - pb.gammaln(x + y)


def _huber(delta: Any, x: Any) -> Any:
    size = pb.abs(x)
    return pb.where(size <= delta, x * x / 2, delta * (size - delta / 2))


#: SciPy's that are several functions of ours. SciPy computes their values.
_SPECIAL_COMPOSED: dict[str, Callable[..., Any]] = {
    "beta": _beta,
    "betaln": _betaln,
    "cosm1": lambda x: -2 * pb.square(pb.sin(x / 2)),
    "entr": lambda x: -pb.xlogy(x, x),
    "exp10": lambda x: pb.pow(10.0, x),
    "exprel": lambda x: pb.exprel(x),
    "gamma": lambda x: _sign_of_gamma(x) * pb.exp(pb.gammaln(x)),
    "huber": _huber,
    "kl_div": lambda x, y: pb.xlogy(x, x / y) - x + y,
    "log1p": lambda x: pb.log1p(x),
    "rel_entr": lambda x, y: pb.xlogy(x, x / y),
    "xlog1py": lambda x, y: x * pb.log1p(y),
}

#: What to write for some that have no gradient.
_RELATIVES = {
    "binom": "`scipy.special.gammaln`", "erfcinv": "`scipy.special.erfinv(1 - x)`",
    "loggamma": "`scipy.special.gammaln`",
    "ndtri": "`np.sqrt(2) * scipy.special.erfinv(2 * p - 1)`", "poch": "`scipy.special.gammaln`",
    "rgamma": "`1 / scipy.special.gamma(x)`",
}  # fmt: skip


def _with_values_of(ufunc: Any, composed: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs: valued(ufunc, lambda: composed(*map(_floating, inputs)), inputs, {})


def _floating(x: Any) -> Any:
    """An argument of SciPy's, which computes with float64 where no dtype is said."""
    x = pb.asarray(np.asarray(x)) if type(x) in PYTHON_SCALARS else pb.asarray(operand(x))
    return x if x.dtype.kind in ("float", "complex") else pb.astype(x, pb.float64)


def _is_special(ufunc: Any) -> bool:
    return getattr(sys.modules.get("scipy.special"), ufunc.__name__, None) is ufunc


def _missing(ufunc: Any) -> str:
    name, relative = f"the ufunc `{ufunc.__name__}`", None
    if _is_special(ufunc):
        name, relative = f"scipy.special.{ufunc.__name__}", _RELATIVES.get(ufunc.__name__)
    return (
        f"{name} has no gradient here. {f'Write it with {relative}, or m' if relative else 'M'}ake it an operation of "
        "your own with `pb.custom_op` (docs/custom_operations.md). Pass `t.detach()` if its result is meant to be a "
        "constant, without a gradient."
    )


#: Ufuncs of which NumPy computes the values: those that are several functions of ours, and those without a gradient.
_COMPUTED = frozenset(getattr(np, name) for name in (*_COMPOSED, *_VALUES_ALONE) if name != "clip")


def operand(x: Any) -> Any:
    """An argument of a NumPy function as a tensor or Python number; lists have NumPy's dtype, not our default one."""
    if isinstance(x, Tensor) or type(x) in PYTHON_SCALARS:
        return x
    if isinstance(x, (list, tuple)) and any(isinstance(leaf, Tensor) for leaf in pb.tree.leaves(x)):
        return pb.asarray(x)
    return pb.asarray(np.asarray(x))


_found: dict[Any, Callable[..., Any]] = {}


def _function(ufunc: Any) -> Callable[..., Any]:
    """Pullback's function for a ufunc."""
    found = _found.get(ufunc)
    if found is None:
        name = ufunc.__name__
        if name in _COMPOSED:
            found = _COMPOSED[name]
        elif getattr(np, name, None) is ufunc and name in _NAMED:
            found = getattr(pb, _NAMED[name])
        elif name in _SPECIAL and _is_special(ufunc):
            found = getattr(pb, _SPECIAL[name])
        elif name in _SPECIAL_COMPOSED and _is_special(ufunc):
            found = _with_values_of(ufunc, _SPECIAL_COMPOSED[name])
        else:
            raise NotImplementedError(_missing(ufunc))
        _found[ufunc] = found
    return found


def is_accepted(ufunc: Any) -> bool:
    """Whether there is a function for a ufunc."""
    try:
        return _function(ufunc) is not None
    except NotImplementedError:
        return False


def call(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc or one of its methods on tensors; NotImplementedError says what cannot be done."""
    if method == "__call__":
        inputs = kept_arrays(inputs)
    if method == "__call__" and not kwargs and ufunc not in _COMPUTED:
        function = _function(ufunc)
        if ufunc is np.tanh and inputs[0].dtype.kind == "complex":  # zeros at infinity have other signs
            return valued(ufunc, lambda: function(*inputs), inputs, kwargs)
        try:
            return function(*[x if type(x) is Tensor else operand(x) for x in inputs])
        except Exception as error:
            raise as_numpys(error, ufunc, inputs, kwargs) from error
    name = ufunc.__name__
    run = method_of(ufunc, method)
    if name in _VALUES_ALONE and method != "at" and have_values((inputs, kwargs)):
        return in_tensors(run(*in_numpy(inputs), **in_numpy(kwargs)))
    if method == "__call__" and kwargs.get("where", True) is not True:
        raise NotImplementedError(
            f"np.{name}: `where=` is not supported on a tensor that requires a gradient. "
            "Write `np.where(mask, result, otherwise)`."
        )
    handler = METHODS.get(method)
    if handler is None:
        raise NotImplementedError(f"np.{name}.{method} has no gradient here.")
    options = {key: value for key, value in kwargs.items() if key not in ("casting", "order", "subok", "signature")}
    if method == "at":
        rehearse(run, inputs, kwargs)
        return handler(ufunc, *inputs)
    return valued(run, lambda: handler(ufunc, *inputs, **options), inputs, kwargs)


def _in_dtype(x: Any, dtype: Any) -> Any:
    if dtype is None or type(x) in PYTHON_SCALARS or x.dtype == np.dtype(dtype):
        return x
    if x.dtype.kind == "complex" and np.dtype(dtype).kind != "c":
        x = pb.real(x)
    return pb.astype(x, pb.dtypes.get(np.dtype(dtype)))


def _call(ufunc: Any, *inputs: Any, dtype: Any = None, where: Any = True, **options: Any) -> Any:
    if options:
        raise NotImplementedError(
            f"np.{ufunc.__name__}: `{next(iter(options))}=` is not supported on a tensor that requires a gradient."
        )
    return _function(ufunc)(*(_in_dtype(operand(x), dtype) for x in inputs))


def _reduce(
    ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    x = _in_dtype(pb.asarray(operand(array)), dtype)
    return methods.reduce(_function(ufunc), ufunc.__name__, x, axis, keepdims, initial, where)


def _accumulate(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    axis = axis[0] if isinstance(axis, tuple) else 0 if axis is None else axis
    return methods.accumulate(_function(ufunc), ufunc.__name__, _in_dtype(pb.asarray(operand(array)), dtype), axis)


def _reduceat(ufunc: Any, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    x = _in_dtype(pb.asarray(operand(array)), dtype)
    return methods.reduceat(_function(ufunc), ufunc.__name__, x, indices, axis)


def _outer(ufunc: Any, x: Any, y: Any, dtype: Any = None) -> Any:
    x, y = (_in_dtype(pb.asarray(operand(part)), dtype) for part in (x, y))
    return _function(ufunc)(pb.reshape(x, x.shape + (1,) * y.ndim), y)


def _at(ufunc: Any, target: Any, index: Any, value: Any = None) -> None:
    if not isinstance(target, Tensor):
        refuse_output(target, f"np.{ufunc.__name__}.at")
    if ufunc.__name__ not in ("add", "subtract"):
        raise NotImplementedError(
            f"np.{ufunc.__name__}.at has no gradient here; np.add.at and np.subtract.at have. "
            "If no index occurs twice, write `x[index] = f(x[index], value)`."
        )
    value = operand(value)
    target[...] = pb.index_add(target, index, value if ufunc.__name__ == "add" else -value)


METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "reduceat": _reduceat, "at": _at,
}  # fmt: skip
