"""Saving and loading: values by name, written in place, all of them or none."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from ..backends.installed import optional

torch = optional("torch")


def model():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


def values(module):
    return {name: np.array(t) for name, t in module.state_dict().items()}


def test_state_shares_memory_until_it_is_written():
    module = model()
    state = module.state_dict()
    assert not any(t.requires_grad for t in state.values())
    assert state["0.weight"].data.ctypes.data == module[0].weight.data.ctypes.data
    before = np.array(state["0.weight"])
    with pb.no_grad():
        module[0].weight += 1.0
    assert np.array_equal(state["0.weight"], before)


@pytest.mark.parametrize("convert", [lambda t: t, np.array, lambda t: torch.tensor(np.array(t)), lambda t: t.tolist()])
def test_loading_writes_into_the_same_tensors(convert):
    source, target = model(), model()
    with pb.no_grad():
        source[1].running_mean += 3.0
        source[1].num_batches_tracked += 7
    tensors = [*target.parameters(), *target.buffers()]
    given = {name: convert(t) for name, t in source.state_dict().items()}
    assert target.load_state_dict(given) == ([], [])
    assert all(a is b for a, b in zip(tensors, [*target.parameters(), *target.buffers()]))
    assert all(np.array_equal(t, values(source)[name]) for name, t in values(target).items())
    assert all(p.requires_grad for p in target.parameters())
    with pb.no_grad():
        for tensor in tensors:
            tensor += 1
    assert not np.array_equal(target[0].weight.detach(), source[0].weight.detach())


def test_loading_takes_variables_of_torch():
    theirs = torch.nn.Linear(3, 2)
    ours = nn.Linear(3, 2)
    ours.load_state_dict(dict(theirs.named_parameters()))
    assert np.array_equal(ours.weight.detach(), theirs.weight.detach().numpy())


def test_the_given_arrays_are_copied():
    array = np.zeros((2, 3), np.float32)
    layer = nn.Linear(3, 2, bias=False)
    layer.load_state_dict({"weight": array})
    array += 1.0
    assert (np.asarray(layer.weight.detach()) == 0).all()


def test_floating_point_numbers_are_converted():
    layer = nn.Linear(3, 2, bias=False)
    layer.load_state_dict({"weight": np.full((2, 3), 0.1)})
    assert layer.weight.dtype == pb.float32
    assert np.array_equal(layer.weight.detach(), np.full((2, 3), 0.1, np.float32))


def refused(error, state, *texts, module=None, strict=True):
    module = module or model()
    before = values(module)
    with pytest.raises(error) as caught:
        module.load_state_dict(state, strict=strict)
    for text in texts:
        assert text in str(caught.value), str(caught.value)
    assert all(np.array_equal(t, before[name]) for name, t in values(module).items())


def changed(**changes):
    """A state that fits but for `changes`, where a dot is written as two underscores."""
    state = {name: np.ones_like(t) for name, t in values(model()).items()}
    for name, value in changes.items():
        state[name.replace("__", ".").lstrip("_")] = value
    return state


def without(*names, **more):
    return {name: t for name, t in changed(**more).items() if name not in names}


def test_missing_and_unexpected_names_are_listed_with_close_ones():
    state = without("0.bias", _0__bais=np.ones(2))
    refused(
        pb.ConfigurationError, state, "missing: '0.bias' (shape (2,), float32). Close: '0.bais'.",
        "unexpected: '0.bais'. Close: '0.bias'.", "strict=False", "nothing was written",
    )  # fmt: skip


@pytest.mark.parametrize("state", [without("0.bias"), changed(other=np.ones(1))], ids=["missing", "unexpected"])
def test_names_of_one_side_can_be_left_out(state):
    refused(pb.ConfigurationError, state, "Pass strict=False")
    model().load_state_dict(state, strict=False)


def test_a_wrong_shape_is_named():
    state = changed(_0__weight=np.ones((3, 2)))
    for strict in (True, False):
        refused(pb.ShapeError, state, "'0.weight': shape (3, 2) was given, the model has (2, 3)", strict=strict)


def test_another_kind_of_number_is_named():
    refused(pb.DtypeError, changed(_0__bias=np.ones(2, np.int64)), "'0.bias': int64 was given, the model has float32")
    refused(pb.DtypeError, changed(_1__num_batches_tracked=np.ones(())), "float64 was given, the model has int64")


def test_all_problems_are_named_at_once():
    state = without("0.bias", _0__weight=np.ones((3, 2)), _1__bias=np.ones(2, bool))
    refused(pb.ConfigurationError, state, "missing: '0.bias'", "'0.weight': shape", "'1.bias': bool was given")


def test_no_mapping_is_refused():
    refused(pb.ConfigurationError, [1, 2], "list")
    refused(pb.ConfigurationError, pb.nn.Linear(1, 1), "Linear. Write `module.state_dict()`")


def test_without_strict_only_common_names_are_loaded():
    module = model()
    found = module.load_state_dict({"0.bias": np.full(2, 5.0), "other": np.ones(1)}, strict=False)
    assert found.missing == [name for name in module.state_dict() if name != "0.bias"]
    assert found.unexpected == ["other"]
    assert (np.asarray(module[0].bias.detach()) == 5).all()


class Tied(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


def test_tied_parameters_are_saved_under_every_name_and_need_one():
    source, target = Tied(), Tied()
    state = source.state_dict()
    assert list(state) == ["embedding.weight", "head.weight"]
    for given in (state, {"head.weight": state["head.weight"]}):
        target = Tied()
        target.load_state_dict(given)
        assert target.head.weight is target.embedding.weight
        assert np.array_equal(target.embedding.weight.detach(), state["head.weight"])


def test_tied_parameters_with_different_values_are_refused():
    state = {"embedding.weight": np.zeros((5, 3)), "head.weight": np.ones((5, 3))}
    refused(pb.ConfigurationError, state, "'embedding.weight' and 'head.weight' are one tensor", module=Tied())


def test_the_state_goes_through_a_file(tmp_path):
    source, target = model(), model()
    pb.save(source.state_dict(), tmp_path / "model.safetensors")
    target.load_state_dict(pb.load(tmp_path / "model.safetensors"))
    assert all(np.array_equal(t, values(source)[name]) for name, t in values(target).items())
