"""Linear recurrences by `jax.lax.scan` on processors, where it takes a single pass; elsewhere by the portable kernels.

All is one compiled call, in which XLA joins what is before and behind.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

_HALF = (jnp.dtype(jnp.float16), jnp.dtype(jnp.bfloat16))


def scan_kernels(general: Any, joined: Any) -> dict[str, Any]:
    """Kernels by operation; `general(name)` is the portable one, `joined(function, static)` one call of a function."""

    def recurrence(x: Any, factor: Any, axis: Any, reverse: bool = False) -> Any:
        if x.shape[axis[0]] < 2:
            return x.astype(jnp.result_type(x, factor))
        portable = lambda x, factor: general("recurrence")(x, jnp.broadcast_to(factor, x.shape), axis, reverse)
        by_steps = partial(_by_steps, axis=axis[0], reverse=reverse)
        return jax.lax.platform_dependent(x, factor, cpu=by_steps, default=portable)

    return {
        "recurrence": joined(recurrence, (2, 3)),
        "ssm_scan": joined(general("ssm_scan"), (3, 4)),
        "ssm_scan_gradient": joined(general("ssm_scan_gradient"), (4, 5, 6, 7, 8)),
    }


def _by_steps(x: Any, factor: Any, axis: int, reverse: bool) -> Any:
    """out[i] = x[i] + factor[i] out[i-1], one slice after the other; half precision is added up in float32."""
    dtype = jnp.result_type(x, factor)
    wide = jnp.dtype(jnp.float32) if dtype in _HALF else dtype
    rows, factors = (jnp.moveaxis(part, axis, 0) for part in (x, jnp.broadcast_to(factor, x.shape)))
    first = -1 if reverse else 0
    rest = slice(None, -1) if reverse else slice(1, None)

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        state = now[1].astype(wide) * state + now[0]
        return state, state.astype(dtype)

    start = rows[first]
    states = jax.lax.scan(step, start.astype(wide), (rows[rest], factors[rest]), reverse=reverse)[1]
    parts = [states, start[None].astype(dtype)] if reverse else [start[None].astype(dtype), states]
    return jnp.moveaxis(jnp.concatenate(parts), 0, axis)
