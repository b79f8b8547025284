"""Which layer of a model an error comes from, said in the error's own message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable

from .. import backends
from ..errors import DeviceError, DtypeError, IndexingError, PullbackError, ShapeError
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

#: What a caller of a model can put right by looking at the layer.
NAMED = (ShapeError, DtypeError, DeviceError, IndexingError)


def name_layer(error: PullbackError, module: Module, inputs: Iterable[Any]) -> None:
    """Say in an error that comes out of `module` where in it the layer is that raised it, and what to write.

    Every module on the way out calls this; the first one is the layer, and the last one knows its whole name.
    """
    if not error.args or not isinstance(error.args[0], str):
        return
    state = vars(error)
    layer, message, path = state.get("_layer", (module, error.args[0], ""))
    found = [name for name, part in module.named_modules() if part is layer]
    if found:
        path = found[0]
    state["_layer"] = layer, message, path
    moves = _moves(module, inputs) if isinstance(error, DeviceError) else ""
    text = f"{message.partition('. ')[0].removesuffix('.')}." if moves else message  # which knows nothing of models
    if path:
        text = f"{text.removesuffix('.')}, in {path} ({type(layer).__name__}({layer.extra_repr()}))."
    text += moves
    error.args = (text, *error.args[1:])


def _moves(module: Module, inputs: Iterable[Any]) -> str:
    """What to write where a model and what it was given are not on the same device."""
    own = {tensor.device for tensor in module._all_tensors()}
    given = {place for x in inputs if (place := _device(x)) is not None}
    if len(own) != 1 or len(given) != 1 or own == given:
        return ""
    (own_device,), (given_device,) = own, given
    return (
        f" The model is on {own_device!r}, its input on {given_device!r}: write `model.to_device({given_device!r})`, "
        f"or `model(pb.asarray(x, device={own_device!r}))`."
    )


def _device(x: Any) -> str | None:
    if isinstance(x, Tensor):
        return x.device
    backend: Any = backends.of(x)
    return None if backend is None else str(backend.device_of(x))
