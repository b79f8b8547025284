"""Automatic differentiation and training for every array library.

`pullback` is an array API namespace: its functions work on tensors, and on arrays of any known library.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from .functions.creation import *
from .functions.filled import *
from .functions.elementwise import *
from .functions.reductions import *
from .functions.manipulation import *
from .functions.indexing import *
from .functions.linear import *
from .functions.sorting import *
from .functions.sets import *
from .functions.data_types import *
from .functions.activations import *
from .functions.normalization import *
from .functions.losses import *
from .functions.convolution import *
from .functions.pooling import *
from .functions.attention import *
from .functions.scan import *
from .functions.special import *
from . import backends, fft, linalg, random, tree
from .autodiff.custom import BackwardOp, custom_op
from .autodiff.decorator import Autodiff
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
)
from .modes import enable_grad, no_grad
from .tensor import conversion as _conversion
from .tensor import numpy_protocols as _numpy_protocols
from .tensor import gradient as _gradient, methods as _methods, operators as _operators, writing as _writing
from .tensor.core import Tensor
from .tensor.quantized import QuantizedTensor, quantize
from .transforms import *

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from . import data, nn, optim, train
    from .autodiff.autocast import autocast
    from .compiler.calling import compile, compiled
    from .autodiff.checkpointing import (
        BalancedCheckpointing,
        BudgetCheckpointing,
        NoCheckpointing,
        checkpoint,
        checkpointing,
    )
    from .files.tensors import load, save
    from .functions.control_flow import cond, scan, while_loop
    from .mlp import Mlp, MlpGradients, Scratch
    from .tape import GradientTape

_SUBMODULES = ("data", "nn", "optim", "train")
_LATER = {  # what a program that only differentiates need not wait for: loaded when first asked for
    "autocast": "autodiff.autocast",
    "compile": "compiler.calling",
    "compiled": "compiler.calling",
    "BalancedCheckpointing": "autodiff.checkpointing",
    "BudgetCheckpointing": "autodiff.checkpointing",
    "NoCheckpointing": "autodiff.checkpointing",
    "checkpoint": "autodiff.checkpointing",
    "checkpointing": "autodiff.checkpointing",
    "load": "files.tensors",
    "save": "files.tensors",
    "cond": "functions.control_flow",
    "scan": "functions.control_flow",
    "while_loop": "functions.control_flow",
    "Mlp": "mlp",
    "MlpGradients": "mlp",
    "Scratch": "mlp",
    "GradientTape": "tape",
}


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise import_module(f"{__name__}.pytorch_names").missing(__name__, name)
    globals()[name] = found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LATER})
