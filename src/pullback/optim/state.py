"""An optimizer's state in PyTorch's form: {"state": {number: {name: value}}, "param_groups": [...]}."""

from __future__ import annotations

from typing import Any, Mapping

from .. import backends, dtypes, modes
from ..autodiff.base import make
from ..errors import ConfigurationError, DtypeError, ShapeError
from ..tensors.tensor import Tensor
from .options import check_options
from .slots import Slot


def saved(optimizer: Any, slots_by_group: list[list[Slot]]) -> dict[str, Any]:
    """What `Optimizer.state_dict` returns."""
    states: dict[int, dict[str, Any]] = {}
    groups = []
    number = 0
    for group, slots in zip(optimizer.param_groups, slots_by_group):
        for i, slot in enumerate(slots, number):
            if slot.step:
                counted = {"step": slot.step} if optimizer.counts_steps else {}
                counted.update(optimizer.step_state(group, slot.step))
                states[i] = {**counted, **{n: b.clone() for n, b in zip(slot.names, slot.buffers)}}
                slot.lent = slot.lent or modes.tracing() is None
        options = {key: value for key, value in group.items() if key != "params"}
        groups.append({**options, "params": list(range(number, number + len(slots)))})
        number += len(slots)
    return {"state": states, "param_groups": groups}


def load(optimizer: Any, slots_by_group: list[list[Slot]], state_dict: Mapping[str, Any]) -> None:
    """What `Optimizer.load_state_dict` does: everything is checked before anything is changed."""
    where = f"{type(optimizer).__name__}.load_state_dict"
    new_options, states = checked_options(optimizer, slots_by_group, state_dict)
    new_states = []
    for own, options, saved_group, slots in zip(
        optimizer.param_groups, new_options, state_dict["param_groups"], slots_by_group
    ):
        for number, slot in zip(saved_group["params"], slots):
            values = states.get(int(number)) or {}
            new_states.append((slot, *_slot_state(optimizer, where, {**own, **options}, slot, values)))
    for own, options in zip(optimizer.param_groups, new_options):
        own.update(options)
    for slot, step, names, buffers in new_states:
        slot.step, slot.names, slot.buffers, slot.lent = step, names, buffers, True
        slot.backend = None  # settles anew


def checked_options(
    optimizer: Any, slots_by_group: list[list[Slot]], state_dict: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[int, Any]]:
    """The options of each group, and the states by number, of a state dict that fits the optimizer's groups."""
    where = f"{type(optimizer).__name__}.load_state_dict"
    if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
        raise ConfigurationError(f'{where}: expected a dict with "state" and "param_groups".')
    groups = state_dict["param_groups"]
    sizes, own_sizes = [len(group["params"]) for group in groups], [len(slots) for slots in slots_by_group]
    if sizes != own_sizes:
        raise ConfigurationError(f"{where}: its groups have {sizes} parameters, the optimizer's have {own_sizes}.")
    new_options = []
    for group in groups:
        options = {key: value for key, value in group.items() if key in optimizer.defaults or key in _EXTRA}
        missing = [key for key in optimizer.defaults if key not in options]
        if missing:
            raise ConfigurationError(
                f"{where}: it has no {', '.join(missing)}: it was saved by another kind of optimizer."
            )
        options = {k: tuple(v) if isinstance(optimizer.defaults.get(k), tuple) else v for k, v in options.items()}
        check_options(where, optimizer.defaults, options)
        new_options.append(options)
    return new_options, {int(number): values for number, values in state_dict["state"].items()}  # JSON has strings


_EXTRA = ("initial_lr", "name")  # what others put into groups and want back; how PyTorch computes is left out


def _slot_state(
    optimizer: Any, where: str, group: dict[str, Any], slot: Slot, values: Mapping[str, Any]
) -> tuple[int, tuple[str, ...], list[Tensor]]:
    """A parameter's number of steps, and its buffers by name, as they are to be taken over."""
    values = {name: value for name, value in values.items() if value is not None}
    step = int(values.pop("step", 1 if values else 0)) if optimizer.counts_steps else int(bool(values))
    if step < 0:
        raise ConfigurationError(f"{where}: the state of {slot.label} is after {step} steps; that cannot be.")
    for name in optimizer.step_state(group, step):
        values.pop(name, None)
    raw = slot.raw
    names = optimizer.buffer_names(group, raw) if values or step else ()
    if set(values) != set(names):
        raise ConfigurationError(
            f"{where}: the state of {slot.label} has {', '.join(values) or 'nothing'}, "
            f"not {', '.join(names) or 'nothing'}."
        )
    backend: Any = backends.of(raw)
    halved = backend.dtype_of(raw).name in ("float16", "bfloat16")
    expected = dtypes.float32 if halved else backend.dtype_of(raw)
    buffers = []
    for name in names:
        template = optimizer.new_buffer(name, group, raw, backend.raw_dtype(expected), backend.xp)
        buffers.append(_fitting(f"{where}: {name} of {slot.label}", values[name], template, expected, halved))
    return step, names, buffers


def _fitting(what: str, value: Any, template: Any, expected: dtypes.DType, halved: bool) -> Tensor:
    """A saved array beside `template`, after checking that it is like it."""
    raw = value._raw if isinstance(value, Tensor) else value
    source: Any = backends.of(raw)
    if source is None:
        raise DtypeError(f"{what} is neither a tensor nor an array but {type(value).__name__}.")
    if tuple(raw.shape) != tuple(template.shape):
        raise ShapeError(f"{what} has shape {tuple(raw.shape)}, not {tuple(template.shape)}.")
    dtype = source.dtype_of(raw)
    if dtype != expected and not (halved and dtype.name in ("float16", "bfloat16")):
        raise DtypeError(f"{what} is {dtype.name}, not {expected.name}.")
    target: Any = backends.of(template)
    moved = backends.transfer(raw, target.device_of(template), True)
    return make(target.xp.astype(moved, template.dtype), None)
