"""Value and gradient of a sample by PyTorch and by JAX, which are loaded when first asked for."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from .harness import Arrays
from .sample import Sample


@cache
def _torch() -> Any:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch


@cache
def _jax() -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def torch_outputs(sample: Sample) -> tuple[list[Any], list[Any]]:
    """The arguments as variables, and the outputs that can have a gradient."""
    torch = _torch()
    tensors = [torch.tensor(argument, requires_grad=True) for argument in sample.arguments]
    outputs = _listed(sample.torch(*tensors))  # type: ignore[misc]
    return tensors, [out for out in outputs if out.is_floating_point() or out.is_complex()]


def by_torch(sample: Sample, cotangents: Arrays) -> tuple[list[np.ndarray], list[np.ndarray]]:
    torch = _torch()
    tensors, outputs = torch_outputs(sample)
    pairs = [(out, torch.tensor(c)) for out, c in zip(outputs, cotangents) if out.requires_grad]
    gradients = torch.autograd.grad(
        [out for out, _ in pairs], tensors, [c for _, c in pairs], allow_unused=True, materialize_grads=True
    )
    return [out.numpy(force=True) for out in outputs], [g.numpy(force=True) for g in gradients]


def by_jax(sample: Sample, cotangents: Arrays) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """One compilation for value and gradient. JAX's gradients are plain transposes: conjugated in and out."""
    jax = _jax()

    def run(arguments: Any, seeds: Any) -> Any:
        def floating(*xs: Any) -> list[Any]:
            outputs = _listed(sample.jax(*xs))  # type: ignore[misc]
            return [out for out in outputs if jax.numpy.issubdtype(out.dtype, jax.numpy.inexact)]

        outputs, pull = jax.vjp(floating, *arguments)
        return outputs, pull([seed.reshape(out.shape) for seed, out in zip(seeds, outputs)])

    outputs, gradients = jax.jit(run)(sample.arguments, [np.conj(c) for c in cotangents])
    return [np.asarray(out) for out in outputs], [np.conj(np.asarray(g)) for g in gradients]
