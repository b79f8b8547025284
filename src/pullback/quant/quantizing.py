"""Making layers of models quantized ones."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Sequence, TypeVar

from .. import modes
from ..autodiff.base import created
from ..backends.portable.packed import Form, Packed
from ..dtypes import float32
from ..errors import ConfigurationError
from ..nn.linear import Linear
from ..nn.module import Module
from ..nn.state import nearest
from ..tensors.quantized import quantize as quantize_tensor
from ..tensors.tensor import Tensor
from .layer import QuantizationAwareLinear, QuantizedLinear
from .rounding import checked

Model = TypeVar("Model", bound=Module)

#: What stays as it is if nothing else is said: the layer of a language model's output.
HEAD = ("lm_head", "*.lm_head")


def packed(weight: Tensor, scheme: str = "int8") -> Packed:
    """The matrix `weight` in the parts of a scheme, those with a scale for each row; scales are in float32.

    >>> import pullback as pb
    >>> pb.quant.packed(pb.asarray([[1.27, -0.5]])).parts
    (tensor([[127, -50]], dtype=int8), tensor([[0.01]]))
    """
    values = weight.detach()
    quantized = quantize_tensor(values.astype(float32), scheme, axis=0)
    raw = quantized._raw
    form = Form(scheme, raw.axis, tuple(raw.shape), values.dtype.name)
    return Packed(tuple([created(part) for part in raw.parts]), form)


def quantize(model: Model, scheme: str = "int8", skip: str | Sequence[str] = HEAD) -> Model:
    """Freeze a model and keep the weights of its linear layers in a quantization scheme; returns the model.

    Layers stay the same objects. Their weights are expanded where they are used; nothing of them is learned, but
    adapters beside them can be (`pb.peft.add_lora`).

    Parameters
    ----------
    model : Module
        Of any kind, with `pb.nn.Linear` in it.
    scheme : str
        "int8": 8-bit integers with a scale for each row; "fp8": floating-point numbers of 8 bits (e4m3), likewise.
        "int4": 4-bit integers with a scale for each 64 weights; "nf4": 4 bits in levels for normally distributed
        weights, with scales of 8 bits (4.13 bits for a weight in all).
    skip : str or list of str
        Names of layers, or patterns, that stay as they are: by default the layer of a language model's output.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.nn.Sequential(pb.nn.Linear(64, 64), pb.nn.ReLU(), pb.nn.Linear(64, 2))
    >>> pb.quant.quantize(model, skip=["2"])
    Sequential(
      (0): QuantizedLinear(in_features=64, out_features=64, bias=True, int8)
      (1): ReLU()
      (2): Linear(in_features=64, out_features=2, bias=True)
    )
    """
    modes.refuse_in_trace("Quantizing a model changes what its layers are. Do it before the call.")
    checked(scheme)
    layers = plain_layers(model, skip, "quantize")
    for name, layer in layers:
        if isinstance(layer, QuantizationAwareLinear) and layer.scheme != scheme:
            raise ConfigurationError(f"quantize: {name!r} was prepared for {layer.scheme!r}, not for {scheme!r}.")
    made = []
    for name, layer in layers:
        try:
            made.append(packed(layer.weight, scheme))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    model.freeze()
    for (_, layer), weight in zip(layers, made):
        become_quantized(layer, weight)
    return model


def dequantize(model: Model) -> Model:
    """Make quantized layers plain ones, with the values that their weights stand for.

    Parameters
    ----------
    model : Module
        With quantized layers.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.quant.dequantize(pb.quant.quantize(pb.nn.Sequential(pb.nn.Linear(3, 2))))
    Sequential(
      (0): Linear(in_features=3, out_features=2, bias=True)
    )
    """
    modes.refuse_in_trace("Dequantizing a model changes what its layers are. Do it before the call.")
    layers = {name: module for name, module in model.named_modules() if isinstance(module, QuantizedLinear)}
    for name, layer in layers.items():
        if type(layer) is not QuantizedLinear:
            raise ConfigurationError(
                f"dequantize: {name!r} is a {type(layer).__name__}. Take adapters out first, by `pb.peft.remove`."
            )
    for layer in layers.values():
        become_plain(layer, layer.weight)
    return model


def prepare(model: Model, scheme: str = "int8", skip: str | Sequence[str] = HEAD) -> Model:
    """Let a model learn with the rounding that `pb.quant.quantize(model, scheme)` will do.

    Weights stay floating-point parameters; layers compute with what is left of them in the scheme, and gradients pass
    the rounding as if it were not there. Quantizing changes nothing of what the model computes then.

    Parameters
    ----------
    model : Module
        Of any kind, with `pb.nn.Linear` in it.
    scheme : str
        "int8", "fp8", "int4" or "nf4", as in `pb.quant.quantize`.
    skip : str or list of str
        Names of layers, or patterns, that stay as they are: by default the layer of a language model's output.

    Returns
    -------
    Module
        The model itself.

    Examples
    --------
    >>> import pullback as pb
    >>> model = pb.quant.prepare(pb.nn.Sequential(pb.nn.Linear(4, 4)), "nf4")
    >>> x = pb.ones((1, 4))
    >>> learned = model(x).detach()
    >>> bool(abs(pb.quant.quantize(model, "nf4")(x) - learned).max() < 1e-6)
    True
    """
    modes.refuse_in_trace("Preparing a model changes what its layers are. Do it before the call.")
    checked(scheme)
    for _, layer in plain_layers(model, skip, "prepare"):
        layer.__class__ = QuantizationAwareLinear
        assert isinstance(layer, QuantizationAwareLinear)
        layer.scheme = scheme
    return model


def plain_layers(model: Module, skip: str | Sequence[str], what: str) -> list[tuple[str, Linear]]:
    """The linear layers of a model and their whole names, all of which must be plain ones, or know of quantization."""
    skip = (skip,) if isinstance(skip, str) else tuple(skip)
    linear = {name: module for name, module in model.named_modules() if isinstance(module, Linear)}
    for pattern in () if skip == HEAD else skip:
        if not any(fnmatchcase(name, pattern) for name in linear):
            raise ConfigurationError(
                f"{what}: no linear layer of {type(model).__name__} matches {pattern!r} in skip. "
                f"{nearest(pattern, linear)}".rstrip()
            )
    layers = [
        (name, module) for name, module in linear.items() if not any(fnmatchcase(name, pattern) for pattern in skip)
    ]
    for name, layer in layers:
        if type(layer) not in (Linear, QuantizationAwareLinear):
            raise ConfigurationError(
                f"{what}: {name!r} is a {type(layer).__name__}. Quantize a model before it gets adapters, and once."
            )
    if not layers:
        raise ConfigurationError(f"{what}: {type(model).__name__} has no linear layers beside {', '.join(skip)}.")
    return layers


def become_quantized(layer: Linear, weight: Packed) -> None:
    """Make a linear layer one of this weight; it stays the same object, in all places where it is."""
    del layer.weight
    layer.__class__ = QuantizedLinear
    assert isinstance(layer, QuantizedLinear)
    layer.hold(weight)


def become_plain(layer: QuantizedLinear, weight: Tensor) -> None:
    """Make a quantized layer a plain one of this weight, frozen; it stays the same object."""
    for name in (*layer.form.part_names, "form"):
        delattr(layer, name)
    layer.__class__ = Linear  # type: ignore[assignment]
    layer.register_parameter("weight", weight)
