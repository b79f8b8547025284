"""Samples: discrete Fourier transforms."""

from __future__ import annotations

from typing import Any

import pullback as pb

from .sample import Sample
from .samples_shape import SAMPLES as _SHAPE_SAMPLES, _jax, _torch, add as _add

SAMPLES: list[Sample] = []


def both(operation: str, case: str, name: str, shape: Any, references: bool = True, **options: Any) -> None:
    """The function `name` of pullback.fft; PyTorch calls the axes `dim`."""
    torch_options = {{"axis": "dim", "axes": "dim"}.get(key, key): value for key, value in options.items()}
    _add(
        operation, case, lambda x: getattr(pb.fft, name)(x, **options), shape,
        torch=(lambda x: getattr(_torch().fft, name)(x, **torch_options)) if references else None,
        jax=(lambda x: getattr(_jax().fft, name)(x, **options)) if references else None,
    )  # fmt: skip
    SAMPLES.append(_SHAPE_SAMPLES.pop())


for _name in ("fft", "ifft"):
    both(_name, "plain", _name, (1j, 2, 3))
    both(_name, "longer", _name, (1j, 3), n=5)
    both(_name, "shorter", _name, (1j, 2, 4), n=3)
    both(_name, "axis-ortho", _name, (1j, 3, 2), axis=0, norm="ortho")
    both(_name, "forward", _name, (1j, 4), norm="forward")
    both(_name, "real-input", _name, (4,))
for _name, _shape in (("rfft", ()), ("irfft", (1j,))):
    both(_name, "even", _name, (*_shape, 2, 4), n=4)
    both(_name, "odd", _name, (*_shape, 2, 3), n=5)
    both(_name, "default", _name, (*_shape, 4))
    both(_name, "longer", _name, (*_shape, 3), n=8)
    both(_name, "shorter", _name, (*_shape, 5), n=3)
    both(_name, "axis-ortho", _name, (*_shape, 3, 2), axis=0, norm="ortho")
    both(_name, "forward", _name, (*_shape, 4), norm="forward")
    both(_name, "one", _name, (*_shape, 2), n=1)
    both(_name, "two", _name, (*_shape, 3), n=2)
both("irfft", "hfft", "hfft", (1j, 3), n=5)
both("irfft", "hfft-ortho", "hfft", (1j, 3, 2), axis=0, norm="ortho")
both("rfft", "ihfft", "ihfft", (5,))
both("rfft", "ihfft-forward", "ihfft", (4,), norm="forward")
both("fft", "fftn", "fftn", (1j, 2, 3))
both("fft", "fftn-sizes", "fftn", (1j, 2, 3), s=(3, 2), axes=(0, 1), norm="ortho")
both("ifft", "ifftn", "ifftn", (1j, 2, 2, 2), axes=(0, 2))
both("rfft", "rfftn", "rfftn", (2, 4))
both("rfft", "rfftn-sizes", "rfftn", (3, 4), s=(2, 5), axes=(1, 0))
both("irfft", "irfftn", "irfftn", (1j, 2, 3))
both("irfft", "irfftn-sizes", "irfftn", (1j, 2, 3), s=(3, 5), axes=(0, 1), norm="forward")
both("roll", "fftshift", "fftshift", (3, 4))
both("roll", "ifftshift", "ifftshift", (1j, 3, 4))
both("fft2", "two-axes", "fft2", (1j, 2, 2, 3), norm="ortho")
both("ifft2", "two-axes", "ifft2", (1j, 2, 3), s=(3, 2))
both("rfft", "rfft2", "rfft2", (3, 4), axes=(1, 0))
both("irfft2", "two-axes", "irfft2", (1j, 3, 3), s=(2, 5))
