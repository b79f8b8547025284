"""Names of PyTorch's lead to the names here."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import pullback as pb
from pullback.pytorch_names import _INSTEAD


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("pullback", "cat", "`pb.concat`"),
        ("pullback", "manual_seed", "`pb.random.seed`"),
        ("pullback.nn", "functional", "functions are in `pb`"),
        ("pullback.optim", "lr_scheduler", "`pb.optim.schedules`"),
        ("pullback.data", "DataLoader", "`pb.data.Batches`"),
    ],
)
def test_the_error_says_what_to_write(module, name, words):
    with pytest.raises(AttributeError, match=rf"module '{module}' has no attribute '{name}'. Write .*{words}"):
        getattr(import_module(module), name)


@pytest.mark.parametrize("module", sorted(_INSTEAD))
def test_other_names_are_plainly_missing(module):
    with pytest.raises(AttributeError, match=rf"^module '{module}' has no attribute 'nothing'$"):
        _ = import_module(module).nothing
    assert not hasattr(import_module(module), "__nothing__")


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in _INSTEAD for name in _INSTEAD[module]])
def test_what_is_to_be_written_exists(module, name):
    assert name not in dir(import_module(module))
    for path in re.findall(r"pb((?:\.\w+)+)", _INSTEAD[module][name]):
        found = pb
        for part in path[1:].split("."):
            found = getattr(found, part)
