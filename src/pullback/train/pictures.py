"""Small pictures: PNG files, and a grid of images with words below them."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any, Sequence

import numpy as np

from ..errors import DtypeError, ShapeError
from ..markup import escaped

__all__ = ["image_grid", "png"]

_CELL, _GAP, _CAPTION, _MARGIN = 72, 14, 20, 16
_KINDS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's number for so many channels
_STYLE = (
    ".pictures text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;text-anchor:middle;"
    "fill:#374151}.pictures image{image-rendering:pixelated}.pictures .paper{fill:#fff}"
    ".pictures .frame{fill:none;stroke:#d1d5db}.pictures .wrong{stroke:#dc2626;stroke-width:2.5}"
    ".pictures text.wrong{fill:#dc2626;stroke:none;font-weight:600}"
    "@media (prefers-color-scheme:dark){.pictures .paper{fill:#16191f}.pictures text{fill:#d1d5db}"
    ".pictures .frame{stroke:#4b5563}.pictures .wrong{stroke:#f87171}.pictures text.wrong{fill:#f87171}}"
)


def png(pixels: Any) -> bytes:
    """The bytes of a PNG file of `pixels`, a uint8 array of shape (height, width), or with 1 to 4 channels last.

    One channel is grey, two are grey and opacity, three are red, green and blue, four have opacity too.

    >>> import numpy as np, pullback as pb
    >>> pb.train.png(np.zeros((8, 8), np.uint8))[:4]
    b'\\x89PNG'
    """
    array = np.asarray(pixels)
    if array.dtype != np.uint8:
        raise DtypeError(f"png: expected an array of uint8, got {array.dtype}.")
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[-1] not in _KINDS or 0 in array.shape:
        raise ShapeError(f"png: expected shape (height, width) or (height, width, 1 to 4), got {np.shape(pixels)}.")
    height, width, channels = array.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # the zero before every row says: as it is
    rows[:, 1:] = array.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _KINDS[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def image_grid(
    images: Any, captions: Sequence[object], *, wrong: Sequence[bool] | None = None, columns: int = 8
) -> str:
    """Images with a caption below each, as the text of an SVG file; those that are `wrong` are marked in red.

    `images` has shape (count, height, width), or channels last, and `captions` an entry for each. Bytes are shown as
    they are; other numbers so that the least of all is black and the greatest white. `columns` is the number of images
    in a row.

    >>> import numpy as np, pullback as pb
    >>> svg = pb.train.image_grid(np.eye(8)[None], ["1, not 7"], wrong=[True])
    >>> svg.count("<image"), "1, not 7" in svg
    (1, True)
    """
    pixels = _bytes(np.asarray(images))
    if pixels.ndim not in (3, 4):
        raise ShapeError(
            f"image_grid: expected images of shape (count, height, width) or (count, height, width, channels), "
            f"got {pixels.shape}."
        )
    marks = [False] * len(pixels) if wrong is None else list(wrong)
    if not len(pixels) == len(captions) == len(marks):
        raise ShapeError(
            f"image_grid: {len(pixels)} images need as many captions and marks, got {len(captions)} captions"
            + (f" and {len(marks)} marks." if wrong is not None else ".")
        )
    columns = max(1, min(columns, len(pixels)))
    rows = -(-len(pixels) // columns)
    width = 2 * _MARGIN + columns * (_CELL + _GAP) - _GAP
    height = 2 * _MARGIN + rows * (_CELL + _CAPTION + _GAP) - _GAP if rows else 2 * _MARGIN
    cells = []
    for index, (image, caption, bad) in enumerate(zip(pixels, captions, marks)):
        left = _MARGIN + index % columns * (_CELL + _GAP)
        top = _MARGIN + index // columns * (_CELL + _CAPTION + _GAP)
        mark = " wrong" if bad else ""
        cells.append(
            f'<image x="{left}" y="{top}" width="{_CELL}" height="{_CELL}" '
            f'href="data:image/png;base64,{b64encode(png(image)).decode()}"/>'
            f'<rect class="frame{mark}" x="{left}" y="{top}" width="{_CELL}" height="{_CELL}"/>'
            f'<text class="caption{mark}" x="{left + _CELL / 2:g}" y="{top + _CELL + 15}">{escaped(caption)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pictures" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}"><style>{_STYLE}</style><rect class="paper" width="{width}" height="{height}"/>'
        f"{''.join(cells)}</svg>\n"
    )


def _bytes(images: Any) -> Any:
    if images.dtype == np.uint8:
        return images
    values = images.astype(np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    return np.rint((values - low) * (255.0 / (high - low or 1.0))).astype(np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
