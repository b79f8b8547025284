"""Constructors take PyTorch's arguments: the same names, places and defaults."""

from __future__ import annotations

import inspect

import pytest

from pullback import nn

from ..backends.installed import optional

torch = optional("torch")

LAYERS = sorted(
    name
    for name, value in vars(nn).items()
    if isinstance(value, type) and issubclass(value, nn.Module) and hasattr(torch.nn, name) and name != "Module"
)
#: Ours need not be given: which axis is meant is plain for Softmax, "relu" names the function, Softplus is exact.
OTHER_DEFAULTS = {
    ("Softmax", "dim"), ("LogSoftmax", "dim"), ("TransformerEncoderLayer", "activation"),
    ("TransformerDecoderLayer", "activation"), ("Softplus", "threshold"),
}  # fmt: skip
NAMED_OTHERWISE = {"Sequential": {"modules": "args"}}


LEFT_OUT = ("self", "size_average", "reduce")  # the last two have long been replaced by `reduction`


def parameters(cls):
    if cls.__init__ is object.__init__:
        return {}
    return {k: p for k, p in inspect.signature(cls.__init__).parameters.items() if k not in LEFT_OUT}


def theirs(name):
    if name in ("GRU", "LSTM", "RNN"):
        found = {k: p for k, p in parameters(torch.nn.RNNBase).items() if k != "mode"}
        if name == "RNN":  # documented so: the nonlinearity comes fourth
            extra = inspect.Parameter("nonlinearity", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="tanh")
            items = list(found.items())
            found = dict([*items[:3], ("nonlinearity", extra), *items[3:]])
        return found
    return parameters(getattr(torch.nn, name))


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_are_torchs(name):
    ours, other = parameters(getattr(nn, name)), theirs(name)
    for place, (key, parameter) in enumerate(ours.items()):
        key = NAMED_OTHERWISE.get(name, {}).get(key, key)
        assert key in other, f"{key} is no argument of torch.nn.{name}"
        if (name, key) in OTHER_DEFAULTS:
            continue
        expected = other[key].default
        if name in ("ModuleList", "ModuleDict"):
            expected = ()
        elif name == "AvgPool1d" and key == "stride":
            expected = None
        assert parameter.default == expected, key
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            assert list(other)[place] == key, f"{key} is in another place"


@pytest.mark.parametrize(
    "name",
    [
        "MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder", "TransformerDecoderLayer",
        "TransformerDecoder",
    ],
)  # fmt: skip
def test_calls_are_torchs(name):
    ours, other = (list(inspect.signature(getattr(library, name).forward).parameters) for library in (nn, torch.nn))
    assert ours == other


def test_every_layer_is_compared():
    assert len(LAYERS) > 60
