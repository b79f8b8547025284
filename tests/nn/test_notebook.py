"""What a notebook shows of a module: its tree, with true counts, bounded, and never an error."""

from __future__ import annotations

import re

import numpy as np

import pullback as pb
from pullback import nn

from ..train.test_report import EVIL, Outline, said


def words(module):
    return said(module._repr_html_())


class Block(nn.Module):
    def __init__(self, width):
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return self.mix(self.norm(x))


class Net(nn.Module):
    def __init__(self, blocks=12):
        self.blocks = [Block(8) for _ in range(blocks)]
        self.head = nn.Linear(8, 2)
        self.head_again = self.head
        self.scale = nn.Parameter(pb.ones(()))
        self.mask = pb.zeros((3,), dtype="int64")

    def forward(self, x):
        return x


def test_the_tree_has_shapes_and_bytes():
    text = words(Net())
    total = 12 * (16 + 72) + 18 + 1
    assert text.startswith(f"Net|{total:,} parameters|")
    for expected in (
        f"{(4 * total + 24) / 1024:.4g} KiB",  # the shared head counts once
        "scale|scalar|float32|4 B",
        "mask|3|int64|24 B|buffer",
        "blocks.0 \u2013 blocks.11|12 \u00d7|Block|88 parameters \u00b7 352 B each",
        "weight|8 \u00d7 8|float32|256 B",
        "head|Linear|in_features=8, out_features=2, bias=True \u00b7 18 parameters \u00b7 72 B|",
        "head_again|Linear|(the same as head)",
    ):
        assert expected in text, expected


def test_layers_that_differ_are_shown_each():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3))
    assert "0 \u2013 1|2 \u00d7|Linear" in words(model)
    model[1].freeze()
    assert "0|Linear" in words(model) and "1|Linear" in words(model) and "frozen" in words(model)


def test_equal_texts_with_other_shapes_are_not_one():
    class Scale(nn.Module):
        def __init__(self, size):
            self.factor = nn.Parameter(pb.ones(size))

    assert "0|Scale" in words(nn.Sequential(Scale(2), Scale(3)))


def test_a_large_model_is_shown_in_part():
    model = nn.Sequential(*[nn.Linear(1, width) for width in range(1, 3001)])
    text = model._repr_html_()
    assert len(text) < 200_000 and re.search(r"and 2,[89]\d\d more", text)
    Outline(text)


def test_a_deep_model_and_one_inside_itself_end():
    model = nn.Sequential(nn.ReLU())
    for _ in range(60):
        model = nn.Sequential(model)
    assert len(words(model)) < 10_000
    loop = Block(2)
    loop.me = loop
    assert "(the same as all of it)" in words(loop)


def test_names_are_escaped():
    class Hostile(nn.Module):
        def __init__(self):
            self.parts = {EVIL: nn.Linear(1, 1)}

        def extra_repr(self):
            return EVIL

    outline = Outline(Hostile()._repr_html_())
    assert not {"script", "img"} & set(outline.tags) and "alert(1)" in "".join(outline.words)


def test_an_error_inside_is_no_error_outside():
    class Broken(nn.Module):
        def extra_repr(self):
            raise RuntimeError("no")

    assert Outline(Broken()._repr_html_()).words == ["<Broken>"]


def test_trees_of_other_things_than_tensors_are_shown():
    shapes = pb.tree.map(np.shape, nn.Linear(3, 2))
    assert "weight|tuple" in words(shapes) or "Linear" in words(shapes)
    gradients = pb.grad(lambda m: m(pb.ones((1, 3))).sum())(nn.Linear(3, 2))
    assert "weight|2 \u00d7 3" in words(gradients)


def test_gradients_and_modes_are_left_as_they_are():
    model = Net().eval()
    model.head(pb.ones((1, 8))).sum().backward()
    before = model.head.weight.grad
    assert "evaluation mode" in words(model)
    assert model.head.weight.grad is before and not model.training
