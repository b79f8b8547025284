"""How a sample is differentiated: by reverse mode, by forward mode, and by differences of its values.

A sample's outputs are contracted with random cotangents c to the real number Re(sum(conj(c) * out)). Its gradient
is what `backward` with the cotangent c gives, for real and for complex functions alike, so one check serves both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff import forward
from pullback.autodiff.engine import walk
from pullback.autodiff.graph import Node
from pullback.autodiff.tables import TENSORS

Function = Callable[..., Any]
Arrays = Sequence[np.ndarray]

STEPS = (2e-3, 2e-4, 2e-5)
FORWARD_TOLERANCE = 1e-9
NOISE = 1e-6  # what is smaller than this counts as zero: differences of rounding errors


# -- values --------------------------------------------------------------------------------------


def variables(arrays: Arrays, tracked: Sequence[bool] | None = None) -> list[pb.Tensor]:
    """Tensors that borrow `arrays`, layout included; those that are `tracked` (all by default) require a gradient."""
    flags = tracked if tracked is not None else [True] * len(arrays)
    return [pb.asarray(x).set_requires_grad(True) if flag else pb.asarray(x) for x, flag in zip(arrays, flags)]


def outputs_of(function: Function, tensors: Sequence[pb.Tensor]) -> list[pb.Tensor]:
    """The outputs of `function` that can have a gradient at all."""
    result = function(*tensors)
    outputs = [result] if isinstance(result, pb.Tensor) else list(result)
    return [out for out in outputs if out.dtype.kind in ("float", "complex")]


def raw(tensor: pb.Tensor) -> np.ndarray:
    return np.asarray(tensor._backend.to_numpy(tensor._raw))


def values(function: Function, arrays: Arrays) -> list[np.ndarray]:
    return [raw(out) for out in outputs_of(function, [pb.asarray(x) for x in arrays])]


def like(generator: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Random numbers of the shape and the kind (real or complex, precision) of `array`, none of them near zero."""

    def numbers() -> np.ndarray:
        magnitude = generator.uniform(0.5, 1.5, array.shape)
        return magnitude * generator.choice([-1.0, 1.0], array.shape)

    drawn = numbers() + 1j * numbers() if np.iscomplexobj(array) else numbers()
    return np.asarray(drawn).astype(array.dtype)


def cotangents_for(generator: np.random.Generator, outputs: Arrays) -> list[np.ndarray]:
    return [like(generator, out) for out in outputs]


def inner(a: Arrays, b: Arrays) -> float:
    """The real inner product over all the arrays."""
    return float(sum(np.real(np.sum(np.conj(x) * y)) for x, y in zip(a, b)))


def shifted(arrays: Arrays, directions: Arrays, amount: float) -> list[np.ndarray]:
    return [x + amount * u for x, u in zip(arrays, directions)]


# -- differences of values -----------------------------------------------------------------------


def derivative(value: Callable[[float], Any]) -> tuple[Any, float]:
    """The derivative of `value` at 0 and an estimate of its error.

    Central differences at h, h/2 and h/4 are extrapolated to h = 0, which leaves an error of order h**6. Where the
    estimate is bad, because a kink is near or the function is steep, smaller steps are tried.
    """
    best: Any = None
    error = np.inf
    for step in STEPS:
        column = [(value(h) - value(-h)) / (2 * h) for h in (step, step / 2, step / 4)]
        second = [(4 * b - a) / 3 for a, b in itertools.pairwise(column)]
        found = (16 * second[1] - second[0]) / 15
        estimate = float(np.max(np.abs(found - second[1]), initial=0.0))
        if best is None or estimate < error:
            best, error = found, estimate
        if error <= 1e-9 * (1.0 + float(np.max(np.abs(found), initial=0.0))):
            break
    return best, error


def coordinates(arrays: Arrays) -> Iterator[tuple[int, tuple[int, ...], list[np.ndarray]]]:
    """A unit direction for every coordinate (and for the imaginary part of every complex one)."""
    for i, array in enumerate(arrays):
        for index in np.ndindex(array.shape):
            for unit in (1.0, 1j) if np.iscomplexobj(array) else (1.0,):
                directions = [np.zeros_like(x) for x in arrays]
                directions[i][index] = unit
                yield i, index, directions


# -- reverse mode --------------------------------------------------------------------------------


def reverse(
    function: Function,
    arrays: Arrays,
    cotangents: Arrays,
    tracked: Sequence[bool] | None = None,
) -> list[np.ndarray | None]:
    """The gradients of the contraction with `cotangents`; None for an argument that is not tracked."""
    tensors = variables(arrays, tracked)
    return pulled(outputs_of(function, tensors), cotangents, tensors)


def pulled(
    outputs: Sequence[pb.Tensor], cotangents: Arrays, tensors: Sequence[pb.Tensor], retain_graph: bool = False
) -> list[np.ndarray | None]:
    """Walk from `outputs` to `tensors`: through `pb.backward` from one output, else from all of them in one walk."""
    if len(outputs) == 1:
        if outputs[0]._node is None:
            found: Any = {}
        else:
            grads = pb.backward(outputs[0], cotangents[0], retain_graph=retain_graph)
            found = {t._node: raw(grads[t]) for t in tensors if t in grads}
    else:
        seeds = [(out._node, np.conj(c)) for out, c in zip(outputs, cotangents) if out._node is not None]
        found = {node: np.conj(g) for node, g in walk(seeds, retain_graph=retain_graph).items()} if seeds else {}
    return [None if t._node is None else found.get(t._node, np.zeros_like(raw(t))) for t in tensors]


def quadratic(outputs: Sequence[pb.Tensor], cotangents: Arrays, curvatures: Arrays) -> pb.Tensor:
    """The loss Re(sum(conj(c) * out + d * out**2 / 2)): its cotangent depends on the output.

    So the second derivative sees both how a rule depends on the inputs and how it depends on its cotangent.
    """
    total: Any = None
    for out, c, d in zip(outputs, cotangents, curvatures):
        term = TENSORS.sum(out * pb.asarray(np.conj(c)) + out * out * pb.asarray(d / 2), None, False)
        if term.dtype.kind == "complex":
            term = TENSORS.real(term)
        total = term if total is None else total + term
    return total


def quadratic_gradient(function: Function, arrays: Arrays, cotangents: Arrays, curvatures: Arrays) -> list[Any]:
    """The gradient of `quadratic` from one first-order walk with the cotangent that this loss has at `arrays`."""
    tensors = variables(arrays)
    outputs = outputs_of(function, tensors)
    at_point = [c + np.conj(d * raw(out)) for out, c, d in zip(outputs, cotangents, curvatures)]
    return pulled(outputs, at_point, tensors)


def reverse_over_reverse(
    function: Function, arrays: Arrays, cotangents: Arrays, curvatures: Arrays, directions: Arrays
) -> list[np.ndarray]:
    """The Hessian of `quadratic` times `directions`."""
    tensors = variables(arrays)
    loss = quadratic(outputs_of(function, tensors), cotangents, curvatures)
    if loss._node is None:
        return [np.zeros_like(x) for x in arrays]
    grads = pb.backward(loss, create_graph=True)
    contraction: Any = None
    for t, u in zip(tensors, directions):
        if t in grads:
            term = TENSORS.sum(grads[t] * pb.asarray(np.conj(u)), None, False)
            if term.dtype.kind == "complex":
                term = TENSORS.real(term)
            contraction = term if contraction is None else contraction + term
    if contraction is None or contraction._node is None:
        return [np.zeros_like(x) for x in arrays]
    second = pb.backward(contraction)
    return [raw(second[t]) if t in second else np.zeros_like(x) for t, x in zip(tensors, arrays)]


# -- forward mode --------------------------------------------------------------------------------


def pushed(function: Function, tensors: Sequence[pb.Tensor], tangents: Arrays) -> tuple[list[Any], list[Any]]:
    """The outputs of `function` and their tangents (None where an output does not move)."""
    level = forward.next_level()
    duals = [forward.dual(t, pb.asarray(u), level) for t, u in zip(tensors, tangents)]
    outputs = outputs_of(function, duals)
    return [forward.primal_at(o, level) for o in outputs], [forward.tangent_at(o, level) for o in outputs]


def forward_mode(function: Function, arrays: Arrays, tangents: Arrays) -> list[np.ndarray]:
    outputs, moved = pushed(function, [pb.asarray(x) for x in arrays], tangents)
    return [np.zeros_like(raw(o)) if t is None else raw(t) for o, t in zip(outputs, moved)]


def reverse_over_forward(
    function: Function, arrays: Arrays, cotangents: Arrays, curvatures: Arrays, directions: Arrays
) -> list[np.ndarray]:
    tensors = variables(arrays)
    level = forward.next_level()
    duals = [forward.dual(t, pb.asarray(u), level) for t, u in zip(tensors, directions)]
    loss = quadratic(outputs_of(function, duals), cotangents, curvatures)
    moved = forward.tangent_at(loss, level)
    if moved is None or moved._node is None:
        return [np.zeros_like(x) for x in arrays]
    grads = pb.backward(moved)
    return [raw(grads[t]) if t in grads else np.zeros_like(x) for t, x in zip(tensors, arrays)]


def forward_over_reverse(
    function: Function, arrays: Arrays, cotangents: Arrays, curvatures: Arrays, directions: Arrays
) -> list[np.ndarray]:
    tensors = variables(arrays)
    level = forward.next_level()
    duals = [forward.dual(t, pb.asarray(u), level) for t, u in zip(tensors, directions)]
    loss = quadratic(outputs_of(function, duals), cotangents, curvatures)
    gradients = forward.vjp_of([loss], [TENSORS.ones_like(forward.primal_at(loss, level))], tensors)
    moved = [None if g is None else forward.tangent_at(g, level) for g in gradients]
    return [np.zeros_like(x) if t is None else np.conj(raw(t)) for t, x in zip(moved, arrays)]


# -- comparing -----------------------------------------------------------------------------------


def size_of(arrays: Arrays) -> float:
    """The largest magnitude in any of the arrays."""
    return float(max((np.max(np.abs(x), initial=0.0) for x in arrays), default=0.0))


def assert_close(found: Arrays, expected: Arrays, tolerance: float, what: str, floor: float = 0.0) -> None:
    """Each array within `tolerance`, relative to its largest element; `floor` is an absolute allowance on top."""
    assert len(found) == len(expected), f"{what}: {len(found)} arrays instead of {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected)):
        assert a.shape == b.shape, f"{what} {i}: shape {a.shape} instead of {b.shape}"
        if a.size == 0:
            continue
        assert np.array_equal(np.isfinite(a), np.isfinite(b)), f"{what} {i}: not finite\nfound\n{a}\nexpected\n{b}"
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        allowed = tolerance * max(size_of([a]), size_of([b])) + floor
        error = size_of([a - b])
        assert error <= allowed, f"{what} {i}: differs by {error:.3g}, allowed {allowed:.3g}\nfound\n{a}\nexpected\n{b}"


def assert_same(found: float, expected: float, tolerance: float, what: str, scale: float = 0.0) -> None:
    """Two numbers that agree relative to their size, or to `scale` where what they add up is larger."""
    allowed = tolerance * max(abs(found), abs(expected), scale, NOISE)
    assert np.isfinite(allowed), f"{what}: {found!r} instead of {expected!r}"
    assert abs(found - expected) <= allowed, f"{what}: {found!r} instead of {expected!r} (allowed {allowed:.3g})"


def nodes_of(tensors: Sequence[pb.Tensor]) -> set[Node]:
    """Every recorded node (no leaves) that leads to `tensors`."""
    stack = [t._node for t in tensors if t._node is not None]
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node not in seen and node.recipe is not None:
            seen.add(node)
            stack.extend(node.inputs)
    return seen
