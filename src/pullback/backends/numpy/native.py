"""Which kernels and rules run as native code on large arrays, and from how many elements on.

NumPy's kernels are the meaning of everything, and what runs on small arrays and where llvmlite is not installed.
Whether an array is large depends on its shape alone, so a computation repeats itself to the last bit. Who makes native
code (see `compiler/eager`) is above this layer, and asked when the first large array comes.
"""

from __future__ import annotations

import inspect
import os
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Callable, Iterator

from ..heap import keep_freed_memory

#: `maker(what, args, places)` gives what native code makes of `args`, or NotImplemented; `what` is ("kernel", name) or
#: ("rule", operation, input). `places` are arrays for its results, with None for one that is to be allocated, or None.
Maker = Callable[[tuple[str, ...], tuple[Any, ...], Any], Any]

#: Elements from which on native code is faster, calls and all.
_LEAST = 1 << 14
_LEAST_OF_SUMS = 1 << 17
_LEAST_OF_PRODUCTS = 1 << 12
_LEAST_OF_STEPS = 1 << 10

#: Kernels, with the argument to measure and the elements from which on it is large. (Matrix products are in
#: `linear.py`.)
KERNELS = {
    **dict.fromkeys(
        ("gelu", "silu", "sigmoid", "softplus", "log_sigmoid", "elu", "erf", "ndtr", "rotary_embedding"), ("x", _LEAST)
    ),
    "tanh": ("x", 1 << 13),
    "relu": ("x", 1 << 15),
    **dict.fromkeys(("sum", "mean"), ("x", _LEAST_OF_SUMS)),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp"), ("x", _LEAST)),
    **dict.fromkeys(("layer_norm", "rms_norm", "batch_norm", "multiply_add"), ("x", _LEAST)),
    **dict.fromkeys(("cross_entropy", "cross_entropy_gradient", "soft_cross_entropy", "huber_loss"), ("x", _LEAST)),
    "binary_cross_entropy_with_logits": ("x", _LEAST),
    **dict.fromkeys(("max_pool", "pool_scatter"), ("x", _LEAST_OF_PRODUCTS)),
    **dict.fromkeys(("lstm_steps", "gru_steps", "rnn_steps"), ("h", _LEAST_OF_STEPS)),
    **dict.fromkeys(("lstm_steps_gradient", "gru_steps_gradient", "rnn_steps_gradient"), ("g_h", _LEAST_OF_STEPS)),
    **dict.fromkeys(("unpack_int4", "unpack_nf4", "unpack_float8"), ("codes", _LEAST)),
    **dict.fromkeys(("pack_nf4", "pack_float8"), ("x", _LEAST)),
    "take_transposed": ("value", _LEAST),
    "ssm_scan": ("x", _LEAST_OF_STEPS),
    "ssm_scan_gradient": ("g", _LEAST_OF_STEPS),
    "sum_of_squares": ("x", 10_001),  # BLAS has one thread up to there
    **dict.fromkeys(("attention", "attention_gradient"), ("q", _LEAST_OF_PRODUCTS)),
    **dict.fromkeys(("convolution", "biased_convolution"), ("x", _LEAST_OF_PRODUCTS)),
    **dict.fromkeys(("convolution_input_gradient", "convolution_weight_gradient"), ("g", _LEAST_OF_PRODUCTS)),
}

#: The same for gradient rules that are several passes over memory, by operation and input.
RULES = {
    **{(name, "x"): ("x", _LEAST) for name in ("gelu", "silu", "softplus", "log_sigmoid", "elu", "leaky_relu")},
    **{(name, "x"): ("out", _LEAST) for name in ("relu", "sigmoid", "tanh", "softmax", "log_softmax")},
    **{(name, "x"): ("x", _LEAST) for name in ("erf", "ndtr", "logsumexp", "mse_loss", "huber_loss")},
    **{(name, "x"): ("x", _LEAST) for name in ("soft_cross_entropy", "binary_cross_entropy_with_logits")},
    **{(name, "joint"): ("x", _LEAST) for name in ("layer_norm", "rms_norm", "batch_norm")},
    ("dropout", "x"): ("g", _LEAST),
}

_find_maker: Callable[[], Maker] | None = None
_maker: Maker | None = None
_is_allowed: ContextVar[bool] = ContextVar(
    "pullback_native", default=os.environ.get("PULLBACK_NATIVE_KERNELS", "1") != "0"
)


def provide(find_maker: Callable[[], Maker]) -> None:
    """Have native code made by what `find_maker()` gives; it is asked once, when there is a large array."""
    global _find_maker
    _find_maker = find_maker


is_allowed = _is_allowed.get


@contextmanager
def native_kernels(allowed: bool) -> Iterator[None]:
    """Inside, large arrays go through native code or, if that is not `allowed`, through NumPy alone."""
    token = _is_allowed.set(allowed)
    try:
        yield
    finally:
        _is_allowed.reset(token)


def on_large(what: tuple[str, ...], plain: Callable[..., Any], args: tuple[Any, ...], places: Any = None) -> Any:
    """What `plain(*args)` gives, by native code if there is any for it, which writes to `places`: see `Maker`."""
    global _maker
    if is_allowed():
        if _maker is None and _find_maker is not None:
            _maker = _find_maker()
            keep_freed_memory()
        if _maker is not None:
            made = _maker(what, args, places)
            if made is not NotImplemented:
                return made
    return plain(*args)


def plain_kernel(kernel: Any) -> Any:
    """NumPy's own kernel, where `kernel` may leave its work to native code."""
    return getattr(kernel, "plain", kernel)


def sized(what: tuple[str, ...], plain: Any, measured: str, least: int) -> Any:
    """`plain`, which leaves its work to native code where the argument `measured` has at least `least` elements.

    `into(places, *args)` of it does the same, and may write results to `places`: those that are in it then.
    """
    function = inspect.unwrap(plain)
    is_portable = type(function) is partial  # of a namespace; or, on blocks, of a formula
    if is_portable:
        formula = next((arg for arg in function.args if callable(arg)), function.func)
    code = (formula if is_portable else function).__code__
    names = ", ".join(code.co_varnames[is_portable : code.co_argcount])
    source = (
        f"def chosen({names}):\n"
        f"    if {measured}.size >= {least}:\n"
        f"        return on_large(what, plain, ({names},))\n"
        f"    return plain({names})\n"
        f"def into(places, {names}):\n"
        f"    if {measured}.size >= {least}:\n"
        f"        return on_large(what, plain, ({names},), places)\n"
        f"    return plain({names})"
    )
    scope: dict[str, Any] = {"plain": plain, "what": what, "on_large": on_large, "__name__": __name__}
    exec(source, scope)  # made of argument names alone
    chosen: Any = scope["chosen"]
    chosen.__defaults__ = None if is_portable else function.__defaults__
    chosen.plain = plain
    chosen.into = scope["into"]
    return chosen
