"""Automatic differentiation and training for every array library.

`pullback` is an array API namespace: its functions work on tensors, and on arrays of any known library.

Words that docstrings use alike: an *array* is a tensor, an array of NumPy, PyTorch, JAX or CuPy, a number or a nested
list of numbers; a *dtype* is one of `pb.float32`, `pb.int64`, ... or its name; a *device* is "numpy", "torch:cuda",
"jax:cpu" and so on (see `pb.device`); a *tree* is any nesting of dicts, lists, tuples and modules (see `pb.tree`);
`axis` counts from 0, or from the end with negative numbers; `keepdims` keeps axes that are reduced, with size one.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from .autodiff.creation import *
from .functions.filled import *
from .functions.elementwise import *
from .functions.trigonometry import *
from .functions.rounding import *
from .functions.comparisons import *
from .functions.reductions import *
from .functions.manipulation import *
from .functions.indexing import *
from .functions.linear import *
from .functions.sorting import *
from .functions.sets import *
from .functions.data_types import *
from .functions.activations import *
from .functions.special import *
from . import backends, random, tree
from .autodiff.custom import BackwardOp, custom_op
from .autodiff.gradients import Gradients, backward
from .autodiff.graph import GradCell
from .autodiff.guard import guard
from .backends import device, set_default_device
from .dtypes import (
    bfloat16,
    bool_ as bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .errors import (
    AxisError,
    ConfigurationError,
    DeviceError,
    DtypeError,
    FileFormatError,
    GradientError,
    GraphConsumedError,
    IndexingError,
    LinearAlgebraError,
    NumericalInstabilityError,
    PullbackError,
    ShapeError,
    TraceError,
    VmapError,
)
from .modes import enable_grad, no_grad
from .tensors.tensor import Tensor
from .tensors.quantized import QuantizedTensor, quantize
from .transforms import *
from .transforms.decorator import Autodiff

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from . import data, fft, linalg, models, nn, optim, peft, quant, train
    from .autodiff.autocast import autocast
    from .backends.determinism import deterministic
    from .bridges.jax_functions import from_jax
    from .bridges.jax_transforms import to_jax
    from .bridges.torch_autograd import to_torch
    from .bridges.torch_functions import from_torch
    from .compiler.calling import compile, compiled
    from .autodiff.checkpointing import (
        BalancedCheckpointing,
        BudgetCheckpointing,
        NoCheckpointing,
        checkpoint,
        checkpointing,
    )
    from .files.tensors import load, save
    from .functions.attention import *
    from .functions.control_flow import cond, scan, while_loop
    from .functions.convolution import *
    from .functions.discretization import *
    from .functions.losses import *
    from .functions.normalization import *
    from .functions.pooling import *
    from .functions.scan import *
    from .functions.selective_scan import *
    from .mlp import Mlp, MlpGradients, Scratch
    from .tape import GradientTape
    from .transforms.checking import gradcheck
    from .transforms.per_example import per_example_grad, per_example_norms

_SUBMODULES = ("data", "fft", "linalg", "models", "nn", "optim", "peft", "quant", "train")
_LATER = {  # what a program that only differentiates need not wait for: loaded when first asked for
    name: module
    for module, names in {
        "autodiff.autocast": "autocast",
        "autodiff.checkpointing": """
            BalancedCheckpointing BudgetCheckpointing NoCheckpointing checkpoint checkpointing""",
        "backends.determinism": "deterministic",
        "bridges.jax_functions": "from_jax",
        "bridges.jax_transforms": "to_jax",
        "bridges.torch_autograd": "to_torch",
        "bridges.torch_functions": "from_torch",
        "compiler.calling": "compile compiled",
        "files.tensors": "load save",
        "functions.control_flow": "cond scan while_loop",
        "mlp": "Mlp MlpGradients Scratch",
        "tape": "GradientTape",
        "transforms.checking": "gradcheck",
        "transforms.per_example": "per_example_grad per_example_norms",
    }.items()
    for name in names.split()
}
_NETWORKS = (
    "losses",
    "normalization",
    "convolution",
    "pooling",
    "attention",
    "scan",
    "selective_scan",
    "discretization",
)  # functions, likewise


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _LATER:
        globals()[name] = found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return found
    for family in () if name.startswith("_") else _NETWORKS:
        module = import_module(f"{__name__}.functions.{family}")
        if name in module.__all__:
            globals()[name] = found = getattr(module, name)
            return found
    raise import_module(f"{__name__}.pytorch_names").missing(__name__, name)


def _native_kernels() -> _Any:
    from .compiler.eager import native_result

    return native_result


backends.numpy.native.provide(_native_kernels)  # the compiler is above the backends, and imported for large arrays


def __dir__() -> list[str]:
    from importlib import import_module

    families = [import_module(f"{__name__}.functions.{family}").__all__ for family in _NETWORKS]
    return sorted({*globals(), *_SUBMODULES, *_LATER}.union(*families))
