"""pb.tree: taking containers apart and putting them together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pullback as pb

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Layer:
    weight: Any
    size: int = field(metadata={"static": True}, default=3)
    bias: Any = None

    def __post_init__(self):
        assert self.weight != "made by __init__", "unflatten must not run __init__"


@dataclass
class Slotted:
    __slots__ = ("a", "b")
    a: Any
    b: Any


_trees = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Layer, inner, bias=inner)
        | st.builds(Slotted, inner, inner)
    ),
    max_leaves=12,
)


@given(_trees)
@settings(max_examples=150, deadline=None)
def test_unflatten_undoes_flatten(tree):
    leaves, structure = pb.tree.flatten(tree)
    assert pb.tree.unflatten(structure, leaves) == tree
    assert pb.tree.structure(pb.tree.map(lambda x: x + 1, tree)) == structure
    assert hash(structure) == hash(pb.tree.structure(tree))
    assert len(pb.tree.paths(tree)) == len(leaves) == structure.leaf_count


@given(_trees)
@settings(max_examples=100, deadline=None)
def test_paths_lead_to_the_leaves(tree):
    for path, leaf in zip(pb.tree.paths(tree), pb.tree.leaves(tree)):
        assert eval(f"tree{path}", {"tree": tree}) is leaf


def test_dicts_have_sorted_leaves_and_keep_their_order():
    a, b = {"w": 1, "b": 2}, {"b": 20, "w": 10}
    assert pb.tree.leaves(a) == [2, 1]
    assert pb.tree.structure(a) == pb.tree.structure(b)
    assert pb.tree.map(lambda x, y: x + y, a, b) == {"w": 11, "b": 22}
    assert list(pb.tree.map(lambda x, y: x + y, a, b)) == ["w", "b"]


def test_keys_that_cannot_be_compared():
    tree = {"a": 1, 2: 3, None: 4, (1, "x"): 5}
    leaves, structure = pb.tree.flatten(tree)
    assert pb.tree.unflatten(structure, leaves) == tree
    assert leaves == pb.tree.leaves(dict(reversed(list(tree.items()))))


def test_other_dicts_keep_their_type():
    ordered = OrderedDict([("b", 1), ("a", 2)])
    assert pb.tree.map(lambda x: x * 2, ordered) == OrderedDict([("b", 2), ("a", 4)])
    by_default = defaultdict(list, {"b": 1})
    again = pb.tree.map(lambda x: x, by_default)
    assert type(again) is defaultdict
    assert again["new"] == []
    assert pb.tree.structure(ordered) != pb.tree.structure(dict(ordered))


def test_none_is_a_container_without_leaves():
    assert pb.tree.leaves([None, 1, None]) == [1]
    assert pb.tree.map(lambda x: x + 1, (None, 1)) == (None, 2)
    assert pb.tree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]


def test_arrays_strings_and_unknown_types_are_leaves():
    x = np.ones(3)
    thing = object()
    assert pb.tree.leaves(("ab", x, thing, {1, 2}, pb.float32)) == ["ab", x, thing, {1, 2}, pb.float32]


def test_static_fields_belong_to_the_structure():
    assert pb.tree.leaves(Layer(1, size=5, bias=2)) == [1, 2]
    assert pb.tree.structure(Layer(1, size=5)) != pb.tree.structure(Layer(1, size=6))
    assert pb.tree.map(lambda x: x + 1, Layer(1, size=5)) == Layer(2, size=5)
    structure = pb.tree.structure(Layer(1))
    assert pb.tree.unflatten(structure, ["made by __init__"]).weight == "made by __init__"


def test_registered_types():
    class Pair:
        def __init__(self, left, right, name):
            self.left, self.right, self.name = left, right, name

    assert len(pb.tree.leaves(Pair(1, 2, "p"))) == 1
    pb.tree.register(Pair, lambda p: ((p.left, p.right), p.name), lambda name, children: Pair(*children, name))
    doubled = pb.tree.map(lambda x: 2 * x, {"pair": Pair(1, [2, 3], "p")})
    assert (doubled["pair"].left, doubled["pair"].right, doubled["pair"].name) == (2, [4, 6], "p")
    assert pb.tree.structure(Pair(1, 2, "p")) != pb.tree.structure(Pair(1, 2, "q"))
    assert repr(pb.tree.structure(Pair(1, 2, "p"))) == "Structure(Pair(*, *))"
    assert pb.grad(lambda p: p.left * p.right)(Pair(2.0, 3.0, "p")).left == 3.0
    with pytest.raises(TypeError, match="expected a class"):
        pb.tree.register("Pair", None, None)


def test_depth_is_not_limited():
    tree: Any = 1.0
    for i in range(20_000):
        tree = [tree] if i % 2 else {"k": tree}
    leaves, structure = pb.tree.flatten(tree)
    assert leaves == [1.0]
    again = pb.tree.unflatten(structure, [2.0])
    assert pb.tree.structure(again) == structure
    assert len(repr(structure)) > 20_000
    assert hash(structure) == hash(pb.tree.structure(again))
    other: Any = (1.0,)
    for i in range(20_000):
        other = [other] if i % 2 else {"k": other}
    with pytest.raises(pb.ShapeError, match="a leaf in the first, a tuple of 1"):
        pb.tree.map(lambda x, y: x, tree, other)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, r"at `tree\['a'\]`: a list of 2 in the first, a list of 3 in tree 2"),
        ({"a": 1}, {"b": 1}, r"at the top: a dict with keys 'a' in the first, a dict with keys 'b'"),
        ([1, {"x": (1, 2)}], [1, {"x": 3}], r"at `tree\[1\]\['x'\]`: a tuple of 2 in the first, a leaf"),
        ([1, None], [1, 2], r"at `tree\[1\]`: None in the first, a leaf"),
        (Layer(1, size=5), Layer(1, size=6), r"a Layer with size=5 in the first, a Layer with size=6"),
        ([Point(1, 2)], [(1, 2)], r"at `tree\[0\]`: a Point of 2 in the first, a tuple of 2"),
        (Layer(1, bias=[2]), Layer(1, bias={}), r"at `tree\.bias`: a list of 1 in the first, an empty dict"),
    ],
)
def test_a_mismatch_is_shown_with_its_path(a, b, text):
    with pytest.raises(pb.ShapeError, match=text):
        pb.tree.map(lambda x, y: x, a, b)


def test_wrong_number_of_leaves():
    structure = pb.tree.structure([1, 2])
    with pytest.raises(pb.ShapeError, match="has 2 leaves, 3 were given"):
        pb.tree.unflatten(structure, [1, 2, 3])


def test_structures_print_as_the_tree_they_came_from():
    tree = {"p": Point(1, (2,)), "l": Layer(1, bias=None), "n": []}
    expected = "Structure({'l': Layer(weight=*, bias=None), 'n': [], 'p': Point(x=*, y=(*,))})"
    assert repr(pb.tree.structure(tree)) == expected
