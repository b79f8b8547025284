"""Samples made from samples: the same operation on other shapes, and on complex numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.autodiff.tables import TENSORS
from pullback.operations import OPERATIONS, Operation

from .harness_samples import FAMILY_OF, SAMPLES, by_operation, is_complex, is_elementwise
from .sample import Sample, rng

SHAPES_OF_ONE = [((),), ((1,),), ((0,),), ((3, 0, 2),), ((2, 1, 3),)]
SHAPES_OF_TWO = [
    ((), ()),
    ((), (3,)),
    ((3,), ()),
    ((1,), (3,)),
    ((2, 1), (3,)),
    ((2, 1, 3), (4, 1)),
    ((1, 1), (1,)),
    ((0,), (1,)),
    ((2, 0), ()),
    ((3, 0, 2), (3, 1, 1)),
]
SHAPES_OF_THREE = [(a, b, a) for a, b in SHAPES_OF_TWO] + [(a, b, b) for a, b in SHAPES_OF_TWO]


def filled(shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    """An array of `shape` with some of the given values, which are where the operation is smooth."""
    return np.array(np.resize(values.ravel(), shape) if values.size else np.zeros(shape, values.dtype))


def on_tensors(operation: Operation) -> Any:
    """The operation as a function of its differentiable inputs, with default options; other inputs are made up."""

    def function(*tensors: Any) -> Any:
        given = iter(tensors)
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
        inputs = [
            next(given) if name in operation.differentiable else _constant(operation.name, shape)
            for name in operation.inputs
        ]
        return getattr(TENSORS, operation.name)(*inputs)

    return function


def _constant(name: str, shape: tuple[int, ...]) -> Any:
    """The exponents of `zeta`, and the masks of others."""
    from pullback import asarray

    values = [2.5, 1.5, 3.0] if name == "zeta" else [True, False, False, True, True]
    return asarray(np.array(np.resize(values, shape)))


def elementwise_shapes() -> Iterator[Sample]:
    """Every elementwise operation on 0-d, empty and single elements, and on shapes that broadcast."""
    for name, samples in by_operation().items():
        if not is_elementwise(samples[0]):
            continue
        operation = OPERATIONS[name]
        has_defaults = all(option in operation.defaults for option in operation.static)
        count = len(operation.differentiable) if has_defaults else len(samples[0].arguments)
        sample = next((s for s in samples if len(s.arguments) == count), samples[0])  # for values it is smooth at
        function = on_tensors(operation) if has_defaults else sample.function
        for shapes in {1: SHAPES_OF_ONE, 2: SHAPES_OF_TWO, 3: SHAPES_OF_THREE}[count]:
            arguments = tuple(filled(shape, x) for shape, x in zip(shapes, sample.arguments))
            yield Sample(name, " ".join(map(str, shapes)), function, arguments, tolerance=sample.tolerance)


AXES: list[tuple[tuple[int, ...], Any]] = [
    ((), None),
    ((1,), None),
    ((1,), (-1,)),
    ((0,), None),
    ((0,), (-1,)),
    ((3, 0, 2), (-1,)),
    ((3, 0, 2), (-2,)),
    ((3, 0, 2), None),
    ((2, 1, 3), (-2,)),
    ((2, 1, 3), (-1, -3)),
    ((2, 1, 3), None),
    ((2, 3), (-1,)),
]


def reductions() -> Iterator[tuple[Operation, Sample]]:
    """The operations with `axis` and `keepdims`, each with its first sample."""
    for name, samples in by_operation().items():
        operation = OPERATIONS.get(name)
        if operation is not None and {"axis", "keepdims"} <= set(operation.static) and len(operation.inputs) == 1:
            others = set(operation.static) - {"axis", "keepdims"}
            if others <= set(operation.defaults):
                yield operation, samples[0]


def reduction_shapes() -> Iterator[Sample]:
    for operation, sample in reductions():
        for shape, axis in AXES:
            if axis is None and "axis" not in operation.defaults:
                axis = tuple(range(-len(shape), 0))
            for keepdims in (False, True):

                def function(x: Any, name: str = operation.name, axis: Any = axis, keepdims: bool = keepdims) -> Any:
                    return getattr(TENSORS, name)(x, axis=axis, keepdims=keepdims)

                case = f"{shape} axis={axis} keepdims={keepdims}"
                arguments = (filled(shape, sample.arguments[0]),)
                yield Sample(operation.name, case, function, arguments, tolerance=sample.tolerance)


def complex_versions() -> Iterator[Sample]:
    """The real samples at complex arguments; those of decompositions are complex where that makes sense already."""
    for sample in SAMPLES:
        if is_complex(sample) or FAMILY_OF[sample.name] == "linalg":
            continue
        generator = rng(sample.name + " complex")
        arguments = tuple(np.array(x + 0.3j * generator.uniform(0.5, 1.0, x.shape)) for x in sample.arguments)
        yield Sample(
            sample.operation, sample.case + " complex", sample.function, arguments, sample.torch,
            orders=sample.orders, tolerance=sample.tolerance,
        )  # fmt: skip
