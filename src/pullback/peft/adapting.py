"""Putting adapters into a model, merging them with its weights, and taking them out."""

from __future__ import annotations

from typing import Iterator, TypeVar

from .. import modes
from ..errors import ConfigurationError
from ..nn.linear import Linear
from ..nn.module import Module
from ..random import Generator
from ..tensors.tensor import Tensor
from .config import LoraConfig
from .layer import ADAPTER, LoraLinear, attach
from .targets import find_layers

Model = TypeVar("Model", bound=Module)


def add_lora(model: Model, config: LoraConfig, seed: int | None = None) -> Model:
    """Freeze a model and give its layers adapters that are learned in its place; the model computes what it did before.

    Layers stay the same objects, with the same names and weights; nothing of them is copied. Adapters of weights in
    half precision are in float32.

    Parameters
    ----------
    model : Module
        Of any kind, with `pb.nn.Linear` in it.
    config : LoraConfig
        Sizes, options and places of the adapters.
    seed : int, optional
        For the first values of the adapters, else the default generator's numbers are used.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.nn.Sequential(pb.nn.Linear(4, 8), pb.nn.ReLU(), pb.nn.Linear(8, 2))
    >>> pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="0"), seed=0)
    Sequential(
      (0): LoraLinear(in_features=4, out_features=8, bias=True, LoRA of rank 2)
      (1): ReLU()
      (2): Linear(in_features=8, out_features=2, bias=True)
    )
    >>> [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    ['0.lora_A', '0.lora_B']
    """
    check_new(model, config)
    return put_in(model, config, find_layers(model, config.targets), seed)


def check_new(model: Module, config: LoraConfig) -> None:
    """Refuse what no adapters can be put into."""
    modes.refuse_in_trace("Putting adapters into a model changes what its layers are. Do it before the call.")
    if not isinstance(model, Module) or not isinstance(config, LoraConfig):
        raise ConfigurationError(
            f"add_lora: expected a pb.nn.Module and a pb.peft.LoraConfig, got {type(model).__name__} and "
            f"{type(config).__name__}."
        )
    for name, _ in adapted(model):
        raise ConfigurationError(
            f"{type(model).__name__} has adapters already ({name!r} has one). Take them out by "
            f"`pb.peft.remove(model)`, after `pb.peft.merge(model)` if what they have learned is to stay."
        )


def put_in(model: Model, config: LoraConfig, layers: dict[str, Linear], seed: int | None) -> Model:
    """Freeze `model` and give these of its layers adapters."""
    generator = None if seed is None else Generator(seed)
    sizes = {name: config.sizes(name) for name in layers}
    model.freeze()
    for name, layer in layers.items():
        attach(layer, config, *sizes[name], generator)
    return model


def adapted(model: Module) -> Iterator[tuple[str, LoraLinear]]:
    """The layers with adapters, and their whole names."""
    return ((name, module) for name, module in model.named_modules() if isinstance(module, LoraLinear))


def adapted_layers(model: Module) -> dict[str, LoraLinear]:
    """The same, of a model that must have some."""
    found = dict(adapted(model))
    if not found:
        raise ConfigurationError(f"{type(model).__name__} has no adapters. Put some in by `pb.peft.add_lora`.")
    return found


def adapter_state(model: Module) -> dict[str, Tensor]:
    """The adapters' parameters by their names in the model; they share memory with it until one of the two is written.

    `model.load_state_dict(state, strict=False)` writes them back.

    >>> import pullback as pb
    >>> model = pb.nn.Sequential(pb.nn.Linear(4, 8))
    >>> _ = pb.peft.add_lora(model, pb.peft.LoraConfig(rank=2, targets="0"))
    >>> {name: tensor.shape for name, tensor in pb.peft.adapter_state(model).items()}
    {'0.lora_A': (2, 4), '0.lora_B': (8, 2)}
    """
    return {
        f"{name}.{part}": tensor.detach()
        for name, layer in adapted_layers(model).items()
        for part in ADAPTER
        if (tensor := getattr(layer, part)) is not None
    }


def merge(model: Model) -> Model:
    """Write the adapters into the weights, so that the model computes the same without their cost.

    The weights that were are kept beside them for `unmerge`, until `remove` makes it final. A merged adapter is not
    learned.

    Parameters
    ----------
    model : Module
        With adapters.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.peft.add_lora(pb.nn.Sequential(pb.nn.Linear(4, 4)), pb.peft.LoraConfig(rank=2, targets="0"), seed=1)
    >>> with pb.no_grad():
    ...     model[0].lora_B[...] = 1.0
    >>> x = pb.ones((1, 4))
    >>> before = model(x)
    >>> bool(abs(pb.peft.merge(model)(x) - before).max() < 1e-5)
    True
    """
    layers = adapted_layers(model)
    for name, layer in layers.items():
        weight = vars(layer).get("weight")  # which a quantized layer has not
        places = [place for owner, module in model.named_modules() for place in _places(owner, module, weight)]
        if len(places) > 1:
            raise ConfigurationError(
                f"merge: the weight of {name!r} is used in several places ({', '.join(places)}), and the others must "
                f"not change. Leave its adapter beside it."
            )
    for layer in layers.values():
        layer.merge()
    return model


def _places(name: str, module: Module, tensor: Tensor | None) -> list[str]:
    """The names of a tensor in the model, as far as the module of this name holds it itself."""
    return [f"{name}.{path}".lstrip(".") for path, value in module._entries() if value is tensor is not None]


def unmerge(model: Model) -> Model:
    """Undo `merge`: the weights have the very values that they had before.

    Parameters
    ----------
    model : Module
        With merged adapters.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.peft.add_lora(pb.nn.Sequential(pb.nn.Linear(4, 4)), pb.peft.LoraConfig(rank=2, targets="0"))
    >>> weight = model[0].weight.clone()
    >>> bool((pb.peft.unmerge(pb.peft.merge(model))[0].weight == weight).all())
    True
    """
    for layer in adapted_layers(model).values():
        layer.unmerge()
    return model


def remove(model: Model) -> Model:
    """Take the adapters out; what was merged stays in the weights, for good.

    Parameters
    ----------
    model : Module
        With adapters, merged or not.

    Returns
    -------
    Module
        The model itself, which stays frozen.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.peft.add_lora(pb.nn.Sequential(pb.nn.Linear(4, 4)), pb.peft.LoraConfig(rank=2, targets="0"))
    >>> pb.peft.remove(pb.peft.merge(model))
    Sequential(
      (0): Linear(in_features=4, out_features=4, bias=True)
    )
    """
    for layer in adapted_layers(model).values():
        layer.take_out()
    return model
