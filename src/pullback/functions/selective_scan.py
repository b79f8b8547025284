"""Recurrences of state-space models whose factors depend on the input: Mamba's, and Mamba-2's in products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.checkpointing import checkpoint
from ..autodiff.creation import given as asarray
from ..dtypes import float32
from ..errors import DtypeError, ShapeError
from .activations import silu, softplus
from .control_flow import scan
from .elementwise import exp, positive
from .filled import eye, zeros
from .linear import einsum
from .manipulation import broadcast_to, concat, permute_dims, reshape
from .reductions import cumulative_sum, sum
from .scan import ssm_scan

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = ["selective_scan", "state_space_dual"]

_CHUNK = 64  # steps whose states are there at once


def selective_scan(
    u: Any,
    delta: Any,
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    z: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    initial_state: Any = None,
) -> Any:
    """Mamba's scan: h[t] = exp(delta[t] A) h[t-1] + delta[t] B[t] u[t], which gives y[t] = C[t] h[t] + D u[t].

    A few steps' states are there at once: of the others one in 64 is kept for the gradient, and those in between are
    computed again.

    Parameters
    ----------
    u, delta : array
        (samples, channels, length).
    A : array
        (channels, states).
    B, C : array
        (samples, states, length); (samples, groups, states, length), of which each group of channels has its own; or
        (channels, states) where they are constant in time.
    D : array, optional
        (channels,).
    z : array, optional
        (samples, channels, length): results are multiplied by silu(z).
    delta_bias : array, optional
        (channels,), added to `delta`.
    delta_softplus : bool
        Whether `delta` goes through softplus, after `delta_bias`.
    return_last_state : bool
        Whether the last state is given as well.
    initial_state : array, optional
        (samples, channels, states), by default zero: the last state of what came before.

    Returns
    -------
    Tensor, or (Tensor, Tensor)
        (samples, channels, length) in the dtype of `u`; and (samples, channels, states).

    Examples
    --------
    >>> import pullback as pb
    >>> u, delta = pb.ones((1, 2, 3)), pb.full((1, 2, 3), 0.5)
    >>> pb.selective_scan(u, delta, A=-pb.ones((2, 1)), B=pb.ones((1, 1, 3)), C=pb.ones((1, 1, 3)))
    tensor([[[0.5       , 0.80326533, 0.987205  ],
             [0.5       , 0.80326533, 0.987205  ]]])
    """
    u = _operand("selective_scan", "u", u, 3)
    samples, channels, length = u.shape
    dtype = u.dtype
    A = _operand("selective_scan", "A", A, 2)
    states = A.shape[1]
    wide = {"u": u, "delta": delta, "A": A, "B": B, "C": C, "D": D, "z": z, "delta_bias": delta_bias}
    wide["initial_state"] = initial_state
    shapes = {
        "u": [u.shape], "delta": [u.shape], "A": [(channels, states)], "z": [u.shape], "D": [(channels,)],
        "delta_bias": [(channels,)], "initial_state": [(samples, channels, states)],
    }  # fmt: skip
    for name in ("B", "C"):
        shapes[name] = [(samples, states, length), (channels, states), (samples, _groups(wide[name]), states, length)]
    found = {name: _fitting("selective_scan", name, value, shapes[name]) for name, value in wide.items()}
    groups = max([found[name].shape[1] if found[name].ndim == 4 else 1 for name in ("B", "C")])
    if groups and channels % groups:
        raise ShapeError(f"selective_scan: {channels} channels are not divided by {groups} groups of B or C.")
    grouped = (groups, channels // max(groups, 1))
    step = found["delta"]
    if found["delta_bias"] is not None:
        step = step + found["delta_bias"][:, None]
    step = softplus(step) if delta_softplus else step
    start = found["initial_state"]
    start = zeros((samples, channels, states), dtype=step.dtype, device=u.device) if start is None else start
    factors = reshape(A.astype(step.dtype), (*grouped, states))
    chunk = min(_CHUNK, max(length, 1))
    inputs, constants = {}, {}
    for name in ("u", "delta", "B", "C"):
        value = step if name == "delta" else found[name]
        if value.ndim == 2:
            constants[name] = reshape(value, (*grouped, states))
        else:
            inputs[name] = _chunks(value, chunk, grouped if name in ("u", "delta") else (value.shape[1], 1, states))

    @checkpoint
    def body(state: Tensor, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        now = {**constants, **inputs}
        moved = (now["delta"] * now["u"])[..., None] * now["B"]
        all_states = ssm_scan(moved, exp(now["delta"][..., None] * factors), h0=state, axis=0)
        last = positive(all_states[-1])  # an array of its own: a view would keep the states of all steps
        return last, sum(all_states * now["C"], axis=-1)

    last, outs = scan(body, reshape(start, (samples, *grouped, states)), inputs)
    out = permute_dims(reshape(outs, (outs.shape[0] * chunk, samples, channels))[:length], (1, 2, 0))
    if found["D"] is not None:
        out = out + found["u"] * found["D"][:, None]
    if found["z"] is not None:
        out = out * silu(found["z"])
    out = out.astype(dtype)
    return (out, reshape(last, (samples, channels, states))) if return_last_state else out


def state_space_dual(
    x: Any,
    delta: Any,
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    chunk: int = 64,
    return_last_state: bool = False,
    initial_state: Any = None,
) -> Any:
    """Mamba-2's scan: h[t] = exp(delta[t] A) h[t-1] + delta[t] B[t] x[t]^T, which gives y[t] = C[t] h[t] + D x[t].

    A has one number for each head. Inside of chunks of steps it is computed as products of matrices, as attention with
    a mask of decays; a state for each chunk takes it on.

    Parameters
    ----------
    x : array
        (samples, length, heads, width).
    delta : array
        (samples, length, heads), positive.
    A : array
        (heads,).
    B, C : array
        (samples, length, groups, states): each group of heads has its own.
    D : array, optional
        (heads,).
    chunk : int
        Steps that are computed together.
    return_last_state : bool
        Whether the last state is given as well.
    initial_state : array, optional
        (samples, heads, width, states), by default zero.

    Returns
    -------
    Tensor, or (Tensor, Tensor)
        (samples, length, heads, width) in the dtype of `x`; and (samples, heads, width, states).

    Examples
    --------
    >>> import pullback as pb
    >>> x, delta = pb.ones((1, 3, 1, 1)), pb.full((1, 3, 1), 0.5)
    >>> pb.state_space_dual(x, delta, A=-pb.ones(1), B=pb.ones((1, 3, 1, 1)), C=pb.ones((1, 3, 1, 1)))[0, :, 0, 0]
    tensor([0.5       , 0.80326533, 0.987205  ])
    """
    x = _operand("state_space_dual", "x", x, 4)
    if type(chunk) is not int or chunk < 1:
        raise ShapeError(f"state_space_dual: chunk must be a number of steps, got {chunk!r}.")
    samples, length, heads, width = x.shape
    B = _operand("state_space_dual", "B", B, 4)
    groups, states = B.shape[2:]
    fit = lambda name, value, shape: _fitting("state_space_dual", name, value, [shape])
    dtype, x = x.dtype, fit("x", x, x.shape)
    delta, A = fit("delta", delta, (samples, length, heads)), fit("A", A, (heads,))
    B, C = (fit(name, value, (samples, length, groups, states)) for name, value in (("B", B), ("C", C)))
    D = fit("D", D, (heads,))
    start = fit("initial_state", initial_state, (samples, heads, width, states))
    if not groups or heads % groups:
        raise ShapeError(f"state_space_dual: {heads} heads are not divided by {groups} groups of B and C.")
    chunk = min(chunk, max(length, 1))
    each = heads // groups
    if start is None:
        start = zeros((samples, heads, width, states), dtype=x.dtype, device=x.device)
    start = reshape(start, (samples, groups, each, width, states))
    if not length:
        return (
            (x.astype(dtype), reshape(start, (samples, heads, width, states))) if return_last_state else x.astype(dtype)
        )

    cut = lambda value, *rest: _cut(value, chunk, rest)  # (samples, chunks, chunk, ...)
    moved = cut(x * delta[..., None], groups, each, width)
    steps = cut(delta * A, groups, each)
    decay = exp(cumulative_sum(steps, axis=2))
    keys, queries = cut(B, groups, states), cut(C, groups, states)
    # What is left of step j at step i of a chunk, as products: a difference of sums loses its digits in large ones.
    kept = permute_dims(exp(steps), (0, 1, 3, 4, 2))[..., None]
    begun = broadcast_to(eye(chunk, dtype=kept.dtype, device=x.device), (*kept.shape[:-1], chunk))
    shares = ssm_scan(begun, kept, axis=-2)
    scores = einsum("bcign,bcjgn->bcgij", queries, keys)[:, :, :, None] * shares
    inside = einsum("bcgeij,bcjgep->bcigep", scores, moved)
    # from chunk to chunk
    left = permute_dims(shares[..., -1, :], (0, 1, 4, 2, 3))
    added = einsum("bcjgn,bcjgep->bcgepn", keys, moved * left[..., None])
    factors = decay[:, :, -1, ..., None, None]
    after = ssm_scan(added, factors, h0=start, axis=1)
    before = concat([start[:, None], after[:, :-1]], axis=1)
    outside = einsum("bcign,bcgepn->bcigep", queries, before) * decay[..., None]
    out = reshape(inside + outside, (samples, moved.shape[1] * chunk, heads, width))[:, :length]
    out = (out if D is None else out + x * D[:, None]).astype(dtype)
    return (out, reshape(after[:, -1], (samples, heads, width, states))) if return_last_state else out


def _chunks(value: Tensor, chunk: int, rest: tuple[int, ...]) -> Tensor:
    """(samples, ..., length) as (chunks, chunk, samples, *rest), filled up with zeros."""
    steps = permute_dims(value, (value.ndim - 1, *range(value.ndim - 1)))
    missing = -steps.shape[0] % chunk
    if missing:
        steps = concat([steps, zeros((missing, *steps.shape[1:]), dtype=steps.dtype, device=steps.device)])
    if value.ndim == 3 and len(rest) == 3:  # without groups
        rest = (1, *rest[1:])
    return reshape(steps, (steps.shape[0] // chunk, chunk, value.shape[0], *rest))


def _cut(value: Tensor, chunk: int, rest: tuple[int, ...]) -> Tensor:
    """(samples, length, ...) as (samples, chunks, chunk, *rest), filled up with zeros."""
    samples, length = value.shape[:2]
    missing = -length % chunk
    if missing:
        filler = zeros((samples, missing, *value.shape[2:]), dtype=value.dtype, device=value.device)
        value = concat([value, filler], axis=1)
    return reshape(value, (samples, (length + missing) // chunk, chunk, *rest))


def _operand(caller: str, name: str, value: Any, axes: int) -> Tensor:
    value = asarray(value)
    if value.dtype.kind != "float":
        raise DtypeError(f"{caller}: {name} must be floating-point, got {value.dtype.name}.")
    if value.ndim != axes:
        raise ShapeError(f"{caller}: {name} must have {axes} axes, got the shape {value.shape}.")
    return value


def _groups(value: Any) -> int:
    shape = asarray(value).shape
    return shape[1] if len(shape) == 4 else 1


def _fitting(caller: str, name: str, value: Any, shapes: list[tuple[int, ...]]) -> Any:
    """An operand of one of these shapes, in float32 or wider; None if it is not given."""
    if value is None and name in ("D", "z", "delta_bias", "initial_state"):
        return None
    value = asarray(value)
    if value.dtype.kind != "float":
        raise DtypeError(f"{caller}: {name} must be floating-point, got {value.dtype.name}.")
    if value.shape not in shapes:
        expected = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ShapeError(f"{caller}: {name} has shape {value.shape}, expected {expected}.")
    return value.astype(float32) if value.dtype.itemsize < 4 else value
