"""Pictures: PNG files read back by an independent decoder, and grids of them."""

from __future__ import annotations

import math
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from base64 import b64decode

import numpy as np
import pytest

import pullback as pb
from pullback.train import image_grid, png

NAN = math.nan
SVG = "{http://www.w3.org/2000/svg}"


def decoded(data):
    """The pixels of a PNG file without filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8 and not rows[:, 0].any() and list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("shape", [(1, 1), (8, 5), (5, 8, 1), (3, 4, 2), (7, 3, 3), (2, 9, 4)])
def test_a_png_holds_the_pixels(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)[::-1]
    np.testing.assert_array_equal(decoded(png(pixels)), pixels.reshape(*shape[:2], -1))


@pytest.mark.parametrize(
    ("pixels", "error"),
    [
        (np.zeros((2, 2)), pb.DtypeError),
        (np.zeros(3, np.uint8), pb.ShapeError),
        (np.zeros((2, 2, 5), np.uint8), pb.ShapeError),
        (np.zeros((0, 2), np.uint8), pb.ShapeError),
    ],
)
def test_png_refuses_what_is_no_picture(pixels, error):
    with pytest.raises(error, match="png: expected"):
        png(pixels)


@pytest.mark.parametrize("columns", [1, 3, 8])
def test_an_image_grid_shows_every_image_and_marks_the_wrong_ones(columns):
    images = np.arange(5 * 4 * 4, dtype=np.float64).reshape(5, 4, 4)
    captions = ["1", "<b>", 7, "a & b", '"x"']
    root = ElementTree.fromstring(image_grid(images, captions, wrong=[0, 1, 0, 0, 1], columns=columns))
    assert [text.text for text in root.iter(f"{SVG}text")] == ["1", "<b>", "7", "a & b", '"x"']
    assert ["wrong" in text.get("class") for text in root.iter(f"{SVG}text")] == [False, True, False, False, True]
    places = [(image.get("x"), image.get("y")) for image in root.iter(f"{SVG}image")]
    assert len(set(places)) == 5 and len({x for x, _ in places}) == min(columns, 5)
    last = list(root.iter(f"{SVG}image"))[-1].get("href").removeprefix("data:image/png;base64,")
    np.testing.assert_array_equal(decoded(b64decode(last))[..., 0], np.rint(images[-1] * 255 / 79))


@pytest.mark.parametrize(
    "images", [np.zeros((2, 3, 3)), np.full((2, 3, 3), NAN), np.zeros((2, 3, 3, 3), np.uint8), pb.ones((2, 3, 3))]
)
def test_an_image_grid_of_constant_bad_coloured_or_tensor_images(images):
    assert ElementTree.fromstring(image_grid(images, ["a", "b"])) is not None


def test_an_image_grid_needs_a_caption_for_every_image():
    with pytest.raises(pb.ShapeError, match=r"2 images .* 1 captions"):
        image_grid(np.zeros((2, 3, 3)), ["a"])
    with pytest.raises(pb.ShapeError, match="count, height, width"):
        image_grid(np.zeros((3, 3)), ["a"] * 3)
    assert "<image" not in image_grid(np.zeros((0, 3, 3)), [])
