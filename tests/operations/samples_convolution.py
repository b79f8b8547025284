"""Convolutions: strides, paddings, dilations, groups, the paths of the NumPy kernel, and complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample, rng

SAMPLES: list[Sample] = []

CASES: dict[str, tuple[int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    # name: spatial axes, shape of x, shape of weight, options
    "1d": (1, (2, 3, 7), (4, 3, 3), {}),
    "1d-stride": (1, (2, 2, 8), (3, 2, 3), {"stride": 2, "padding": 1}),
    "1d-same": (1, (1, 2, 5), (2, 2, 4), {"padding": "same", "dilation": 2}),
    "1d-single": (1, (2, 5), (3, 2, 2), {}),
    "2d": (2, (2, 2, 4, 5), (3, 2, 2, 3), {"padding": (1, 0)}),
    "2d-groups": (2, (2, 4, 4, 4), (6, 2, 3, 3), {"padding": 1, "groups": 2, "stride": (2, 1)}),
    "2d-dilation": (2, (1, 2, 6, 5), (2, 2, 2, 2), {"dilation": (3, 2), "stride": 2}),
    "2d-depthwise": (2, (2, 3, 4, 5), (6, 1, 2, 3), {"groups": 3, "padding": 1}),
    "2d-depthwise-stride": (2, (1, 2, 5, 5), (2, 1, 3, 2), {"groups": 2, "padding": 1, "stride": 2}),
    "2d-pointwise": (2, (1, 2, 8, 8), (3, 2, 1, 1), {}),
    "2d-large-padding": (2, (1, 2, 3, 3), (2, 2, 2, 1), {"padding": 2}),
    "3d": (3, (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"stride": (1, 2, 1), "padding": (0, 1, 1)}),
}
TRANSPOSED: dict[str, tuple[int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1d": (1, (2, 3, 4), (3, 2, 3), {}),
    "1d-stride": (1, (1, 2, 4), (2, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "1d-output-padding": (1, (1, 2, 4), (2, 1, 3), {"dilation": 3, "padding": 2, "output_padding": 2}),
    "2d-groups": (2, (2, 4, 3, 3), (4, 1, 2, 3), {"groups": 2, "stride": (2, 3), "dilation": (2, 1)}),
    "3d": (3, (1, 2, 2, 3, 2), (2, 1, 2, 2, 2), {"stride": (2, 1, 2), "padding": (0, 1, 0)}),
}


def _call(library: str, name: str, options: dict[str, Any]) -> Any:
    def function(*arrays: Any) -> Any:
        if library == "torch":
            from torch.nn import functional as namespace
        else:
            namespace = pb
        return getattr(namespace, name)(*arrays, **options)

    return function


for case, (axes, x_shape, weight_shape, options) in CASES.items():
    draw = rng(case)
    x, weight = draw.standard_normal(x_shape), draw.standard_normal(weight_shape)
    bias = draw.standard_normal(weight_shape[0])
    ours, theirs = (_call(library, f"conv{axes}d", options) for library in ("pullback", "torch"))
    SAMPLES.append(Sample("convolution", case, ours, (x, weight), torch=theirs))
    SAMPLES.append(Sample("biased_convolution", case, ours, (x, weight, bias), torch=theirs))

for case, (axes, x_shape, weight_shape, options) in TRANSPOSED.items():
    draw = rng(case)
    features = weight_shape[1] * options.get("groups", 1)
    arrays = (draw.standard_normal(x_shape), draw.standard_normal(weight_shape), draw.standard_normal(features))
    ours, theirs = (_call(library, f"conv_transpose{axes}d", options) for library in ("pullback", "torch"))
    SAMPLES.append(Sample("convolution_input_gradient", case, ours, arrays, torch=theirs))


def _weight_gradient(y: Any, x: Any) -> Any:
    return TENSORS.convolution_weight_gradient(y, x, (3, 2), (1, 2), ((1, 0), (0, 1)), (1, 1), 2)


def _complex(draw: np.random.Generator, *shape: int) -> np.ndarray:
    return draw.standard_normal(shape) + 1j * draw.standard_normal(shape)


draw = rng("weight gradient")
SAMPLES += [
    Sample(
        "convolution_weight_gradient",
        "2d-groups",
        _weight_gradient,
        (draw.standard_normal((2, 4, 3, 2)), draw.standard_normal((2, 2, 4, 3))),
    ),
    Sample(
        "convolution",
        "complex",
        lambda x, weight: pb.conv1d(x, weight, stride=2, padding=1),
        (_complex(draw, 2, 2, 5), _complex(draw, 3, 2, 3)),
        torch=_call("torch", "conv1d", {"stride": 2, "padding": 1}),
    ),
    Sample(
        "convolution_input_gradient",
        "complex",
        lambda x, weight: pb.conv_transpose1d(x, weight, stride=2),
        (_complex(draw, 1, 2, 3), _complex(draw, 2, 1, 3)),
        torch=_call("torch", "conv_transpose1d", {"stride": 2}),
    ),
]
