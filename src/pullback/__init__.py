"""Automatic differentiation and training for every array library.

`pullback` is an array API namespace: its functions work on tensors, and on arrays of any known library.

Words that docstrings use alike: an *array* is a tensor, an array of NumPy, PyTorch, JAX or CuPy, a number or a nested
list of numbers; a *dtype* is one of `pb.float32`, `pb.int64`, ... or its name; a *device* is "numpy", "torch:cuda",
"jax:cpu" and so on (see `pb.device`); a *tree* is any nesting of dicts, lists, tuples and modules (see `pb.tree`);
`axis` counts from 0, or from the end with negative numbers; `keepdims` keeps axes that are reduced, with size one.
"""

import typing as _typing
from types import ModuleType as _Module

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
from . import backends as backends, random as random, tree as tree
from .autodiff.custom import BackwardOp as BackwardOp, custom_op as custom_op
from .autodiff.gradients import Gradients as Gradients, backward as backward
from .autodiff.graph import GradCell as GradCell
from .autodiff.guard import guard as guard
from .backends import device as device, set_default_device as set_default_device
from .dtypes import (
    bfloat16 as bfloat16,
    bool_ as _bool,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from .errors import (
    AxisError as AxisError,
    ConfigurationError as ConfigurationError,
    DeviceError as DeviceError,
    DtypeError as DtypeError,
    FileFormatError as FileFormatError,
    GradientError as GradientError,
    GraphConsumedError as GraphConsumedError,
    IndexingError as IndexingError,
    LinearAlgebraError as LinearAlgebraError,
    NumericalInstabilityError as NumericalInstabilityError,
    PullbackError as PullbackError,
    ShapeError as ShapeError,
    TraceError as TraceError,
    VmapError as VmapError,
)
from .pytorch_names import tell_of_imports as _tell_of_imports
from .modes import enable_grad as enable_grad, no_grad as no_grad
from .tensors.tensor import Tensor as Tensor
from .tensors.quantized import QuantizedTensor as QuantizedTensor, quantize as quantize
from .transforms import *
from .transforms.decorator import Autodiff as Autodiff

bool = _bool
__version__ = "0.1.0"

if _typing.TYPE_CHECKING:  # by this name: type checkers do not know others
    from . import (
        data as data,
        fft as fft,
        linalg as linalg,
        models as models,
        nn as nn,
        optim as optim,
        peft as peft,
        quant as quant,
        train as train,
        typing as typing,
    )
    from .autodiff.autocast import autocast as autocast
    from .backends.determinism import deterministic as deterministic
    from .bridges.jax_functions import from_jax as from_jax
    from .bridges.jax_transforms import to_jax as to_jax
    from .bridges.torch_autograd import to_torch as to_torch
    from .bridges.torch_functions import from_torch as from_torch
    from .compiler.calling.compiled import compile as compile
    from .compiler.calling.verification import compiled as compiled
    from .autodiff.checkpointing import (
        BalancedCheckpointing as BalancedCheckpointing,
        BudgetCheckpointing as BudgetCheckpointing,
        NoCheckpointing as NoCheckpointing,
        checkpoint as checkpoint,
        checkpointing as checkpointing,
    )
    from .files.tensors import load as load, save as save
    from .functions.attention import *
    from .functions.control_flow import cond as cond, scan as scan, while_loop as while_loop
    from .functions.convolution import *
    from .functions.discretization import *
    from .functions.distances import *
    from .functions.embeddings import *
    from .functions.integration import *
    from .functions.losses import *
    from .functions.normalization import *
    from .functions.pooling import *
    from .functions.quantiles import *
    from .functions.running import *
    from .functions.scan import *
    from .functions.patches import *
    from .functions.scattering import *
    from .functions.selective_scan import *
    from .functions.statistics import *
    from .mlp import Mlp as Mlp, MlpGradients as MlpGradients, Scratch as Scratch
    from .tape import GradientTape as GradientTape
    from .transforms.checking import gradcheck as gradcheck
    from .transforms.per_example import per_example_grad as per_example_grad, per_example_norms as per_example_norms

_SUBMODULES = ("data", "fft", "linalg", "models", "nn", "optim", "peft", "quant", "train", "typing")
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
        "functions.quantiles": "quantile",
        "functions.running": "cummax cummin logcumsumexp",
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
    "distances",
    "embeddings",
    "integration",
    "patches",
    "scattering",
    "statistics",
)  # functions, likewise

if not _typing.TYPE_CHECKING:  # type checkers know the names without it

    def __getattr__(name: str) -> _typing.Any:
        from importlib import import_module

        if name == "__all__":
            return __dir__()
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


def _native_kernels() -> _typing.Any:
    from .compiler.eager import native_result

    return native_result


backends.numpy.native.provide(_native_kernels)  # the compiler is above the backends, and imported for large arrays
_tell_of_imports()


def __dir__() -> list[str]:
    from importlib import import_module

    families = [import_module(f"{__name__}.functions.{family}").__all__ for family in _NETWORKS]
    submodules = ("backends", "random", "tree", *_SUBMODULES)
    here = [name for name, x in globals().items() if not name.startswith("_") and not isinstance(x, _Module)]
    return sorted({*here, *submodules, *_LATER}.union(*families))
