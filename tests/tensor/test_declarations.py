"""What type checkers are told about Tensor is what it has."""

from __future__ import annotations

from scripts import declare_tensor


def test_declarations_are_those_of_the_class():
    assert declare_tensor.PATH.read_text() == declare_tensor.text(), "run `python scripts/declare_tensor.py`"
