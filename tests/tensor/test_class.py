"""The class Tensor can be read: all that it has stands in the bodies of the classes that it is made of.

What it has not, and says what to write instead of, stands in the table of `pytorch_names.py`.
"""

from __future__ import annotations

import ast
import inspect

import pytest

import pullback as pb
from pullback.pytorch_names import Missing

_PYTHONS_OWN = {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__hash__"}
_PYTHONS_OWN |= {"__static_attributes__", "__firstlineno__", "__annotate_func__", "__annotations_cache__"}


@pytest.mark.parametrize("cls", pb.Tensor.__mro__[:-1], ids=lambda cls: cls.__name__)
def test_everything_stands_in_the_class_body(cls):
    (tree,) = ast.parse(inspect.getsource(cls)).body
    written = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        written |= {target.id for target in targets if isinstance(target, ast.Name)}
    there = {name for name, value in vars(cls).items() if not isinstance(value, Missing)}
    assert there - _PYTHONS_OWN - set(cls.__slots__) <= written


@pytest.mark.parametrize("cls", pb.Tensor.__mro__[1:-1], ids=lambda cls: cls.__name__)
def test_the_parts_of_the_class_have_no_memory_of_their_own(cls):
    assert vars(cls)["__slots__"] == () or cls is pb.Tensor.__mro__[-2]
