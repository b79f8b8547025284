"""Discrete Fourier transforms along one axis. Those along several are made of these.

The matrix of a transform is symmetric, so its transpose is itself. An input is cut off or filled up to `n` first;
the transpose of that fills up or cuts off.
"""

from __future__ import annotations

from functools import partial
from typing import Any

SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def rules(xp: Any, op: Any) -> None:
    op = partial(op, batch="leading", linear="x", autocast="float32", dtypes="complex", standard="fft")

    op(
        "fft", "x", "n axis norm",
        x=lambda g, x_shape, n, axis, norm: xp.resize(xp.fft(g, n, axis, norm), x_shape[axis], axis),
    )  # fmt: skip
    op(
        "ifft", "x", "n axis norm",
        x=lambda g, x_shape, n, axis, norm: xp.resize(xp.ifft(g, n, axis, norm), x_shape[axis], axis),
    )  # fmt: skip

    # Half a spectrum stands for the whole: all but the first frequency (and the last, if n is even) count twice.
    def rfft_x(g: Any, x_shape: Any, n: int, axis: int, norm: str) -> Any:
        halved = xp.weigh_middle(xp.conj(g), n, axis, 0.5)
        return xp.resize(xp.irfft(halved, n, axis, SWAPPED[norm]), x_shape[axis], axis)

    def irfft_x(g: Any, x_shape: Any, n: int, axis: int, norm: str) -> Any:
        doubled = xp.weigh_middle(xp.conj(xp.rfft(g, n, axis, SWAPPED[norm])), n, axis, 2.0)
        return xp.resize(doubled, x_shape[axis], axis)

    op("rfft", "x", "n axis norm", dtypes="floating", real=True, x=rfft_x)
    op("irfft", "x", "n axis norm", x=irfft_x)
