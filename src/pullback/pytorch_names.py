"""What to write instead of names that PyTorch, JAX or autograd have and Pullback has not.

The tables are read when such a name is asked for; those of methods when the classes are made.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Iterable, Mapping

#: By module, or by class. A text that begins with a capital letter is a sentence, others are code.
_INSTEAD = {
    "pullback": {
        "Array": "pb.Tensor",
        "FloatTensor": "pb.tensor(values, dtype=pb.float32)",
        "Generator": "pb.random.Generator",
        "LongTensor": "pb.tensor(values, dtype=pb.int64)",
        "Size": "tuple",
        "absolute": "pb.abs",
        "addmm": "z + x @ y",
        "amp": "pb.autocast` and `pb.optim.LossScaler",
        "arccos": "pb.acos",
        "arccosh": "pb.acosh",
        "arcsin": "pb.asin",
        "arcsinh": "pb.asinh",
        "arctan": "pb.atan",
        "arctan2": "pb.atan2",
        "arctanh": "pb.atanh",
        "array": "pb.tensor` (a copy) or `pb.asarray",
        "as_tensor": "pb.asarray",
        "asanyarray": "pb.asarray",
        "autograd": "pb.grad`, `pb.backward`, `pb.vjp`, `pb.custom_op",
        "baddbmm": "z + x @ y",
        "bernoulli": "pb.random.bernoulli",
        "bitwise_not": "pb.bitwise_invert",
        "bmm": "pb.matmul",
        "cat": "pb.concat",
        "cdouble": "pb.complex128",
        "cfloat": "pb.complex64",
        "cholesky": "pb.linalg.cholesky",
        "chunk": "pb.array_split",
        "clamp": "pb.clip",
        "clamp_max": "pb.minimum",
        "clamp_min": "pb.maximum",
        "clone": "x.clone()",
        "concatenate": "pb.concat",
        "cross": "pb.linalg.cross",
        "cuda": 'pb.asarray(x, device="torch:cuda")',
        "custom_gradient": "pb.custom_op",
        "custom_jvp": "pb.custom_op",
        "custom_vjp": "pb.custom_op",
        "default_device": "pb.set_default_device",
        "det": "pb.linalg.det",
        "detach": "x.detach()",
        "device_get": "x.numpy()",
        "device_put": "pb.asarray(x, device=...)",
        "dist": "pb.linalg.vector_norm(x - y)",
        "distributions": "pb.random",
        "div": "pb.divide",
        "double": "pb.float64",
        "elementwise_grad": "pb.grad(lambda x: f(x).sum())",
        "eq": "pb.equal",
        "float": "pb.float32",
        "fmod": "pb.remainder",
        "from_numpy": "pb.asarray",
        "func": "pb.grad`, `pb.vmap`, `pb.jacrev`, `pb.nn.functional_call",
        "gather": "pb.take_along_axis",
        "ge": "pb.greater_equal",
        "ger": "pb.outer",
        "get_rng_state": "pb.random.get_state",
        "grad_and_aux": "pb.grad(f, has_aux=True)",
        "gt": "pb.greater",
        "half": "pb.float16",
        "hessian_vector_product": "pb.hvp",
        "index_select": "pb.take",
        "inference_mode": "pb.no_grad",
        "int": "pb.int32",
        "inverse": "pb.linalg.inv",
        "invert": "pb.bitwise_invert",
        "is_tensor": "isinstance(x, pb.Tensor)",
        "jacobian": "pb.jacrev",
        "jit": "pb.compile",
        "lax": "pb.scan`, `pb.cond`, `pb.while_loop",
        "le": "pb.less_equal",
        "left_shift": "pb.bitwise_left_shift",
        "lgamma": "pb.gammaln",
        "linearize": "pb.jvp",
        "logdet": "pb.linalg.slogdet",
        "long": "pb.int64",
        "lt": "pb.less",
        "make_hvp": "pb.hvp",
        "make_jvp": "pb.jvp",
        "make_vjp": "pb.vjp",
        "manual_seed": "pb.random.seed",
        "masked_select": "x[mask]",
        "matrix_power": "pb.linalg.matrix_power",
        "matrix_rank": "pb.linalg.matrix_rank",
        "mm": "pb.matmul",
        "mod": "pb.remainder",
        "movedim": "pb.moveaxis",
        "mul": "pb.multiply",
        "mv": "pb.matmul",
        "narrow": "x[start:end]",
        "ne": "pb.not_equal",
        "neg": "pb.negative",
        "norm": "pb.linalg.norm",
        "normal": "pb.random.normal",
        "numel": "x.size",
        "numpy": "Functions of NumPy's take tensors: write `import numpy as np`, or the same names in `pb`",
        "permute": "pb.permute_dims",
        "pinverse": "pb.linalg.pinv",
        "pmap": "pb.vmap",
        "power": "pb.pow",
        "primitive": "pb.custom_op",
        "qr": "pb.linalg.qr",
        "rand": "pb.random.uniform",
        "rand_like": "pb.random.uniform(x.shape)",
        "randint": "pb.random.integers",
        "randn": "pb.random.normal",
        "randn_like": "pb.random.normal(x.shape)",
        "randperm": "pb.random.permutation",
        "remat": "pb.checkpoint",
        "repeat_interleave": "pb.repeat",
        "right_shift": "pb.bitwise_right_shift",
        "select": "x[:, i]",
        "set_grad_enabled": "pb.no_grad` or `pb.enable_grad",
        "set_rng_state": "pb.random.set_state",
        "short": "pb.int16",
        "slogdet": "pb.linalg.slogdet",
        "solve": "pb.linalg.solve",
        "sub": "pb.subtract",
        "svd": "pb.linalg.svd",
        "swapdims": "pb.swapaxes",
        "t": "x.T",
        "take_along_dim": "pb.take_along_axis",
        "tensor_split": "pb.array_split",
        "tree_map": "pb.tree.map",
        "tree_util": "pb.tree",
        "true_divide": "pb.divide",
        "unbind": "pb.unstack",
        "unflatten": "pb.reshape",
        "unique": "pb.unique_values",
        "unsqueeze": "pb.expand_dims",
        "use_deterministic_algorithms": "pb.deterministic",
        "utils": "pb.data` for data and `pb.checkpoint",
        "view_as_real": "pb.stack([pb.real(x), pb.imag(x)], axis=-1)",
    },
    "pullback.data": {
        "DataLoader": "pb.data.Batches",
        "Dataset": "A dataset is a class of your own with `__len__` and `__getitem__`",
        "IterableDataset": "Anything that gives batches each time it is iterated takes its place",
        "TensorDataset": "pb.data.ArrayDataset",
    },
    "pullback.nn": {
        "Buffer": "self.register_buffer(name, tensor)",
        "ParameterDict": "A dict of parameters is part of a module: write `self.weights = {...}`",
        "ParameterList": "A list of parameters is part of a module: write `self.weights = [...]`",
        "Transformer": "pb.nn.TransformerEncoder` and `pb.nn.TransformerDecoder",
        "UpsamplingBilinear2d": 'pb.nn.Upsample(size, mode="bilinear", align_corners=True)',
        "UpsamplingNearest2d": "pb.nn.Upsample",
        "functional": "pb.relu`, `pb.cross_entropy` and so on: functions are in `pb",
        "initializers": "pb.nn.init",
        "swish": "pb.silu",
        "utils": "pb.optim.clip_global_norm` or `pb.optim.clip_value",
        **dict.fromkeys(
            ("ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"), "pb.pad"
        ),
        **dict.fromkeys(
            ("CircularPad1d", "CircularPad2d", "CircularPad3d"), 'pb.pad(x, widths, mode="wrap")'
        ),
        **dict.fromkeys(
            ("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"), 'pb.pad(x, widths, mode="reflect")'
        ),
        **dict.fromkeys(
            ("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"), 'pb.pad(x, widths, mode="edge")'
        ),
    },
    "pullback.optim": {
        "CosineAnnealingLR": "pb.optim.schedules.Cosine",
        "ExponentialLR": "pb.optim.schedules.Exponential",
        "LambdaLR": "pb.optim.Scheduler(optimizer, function)",
        "LinearLR": "pb.optim.schedules.Linear",
        "MultiStepLR": "pb.optim.Scheduler(optimizer, function)",
        "OneCycleLR": "pb.optim.schedules.OneCycle",
        "ReduceLROnPlateau": "pb.optim.schedules.Plateau",
        "StepLR": "pb.optim.schedules.Step",
        "clip_by_global_norm": "pb.optim.clip_global_norm",
        "clip_grad_norm_": "pb.optim.clip_global_norm",
        "clip_grad_value_": "pb.optim.clip_value",
        "lr_scheduler": "pb.optim.schedules` with `pb.optim.Scheduler",
        "swa_utils": "pb.optim.ExponentialMovingAverage",
    },
    "Tensor": {
        "H": "pb.conj(t).mT",
        "absolute": "pb.abs(t)",
        "adjoint": "pb.conj(t).mT",
        "argwhere": "pb.stack(t.nonzero(), axis=-1)",
        "baddbmm": "t + x @ y",
        "bfloat16": "t.astype(pb.bfloat16)",
        "bitwise_not": "~t",
        "block_until_ready": "Leave it out: results are waited for where they are read",
        "bmm": "t @ other",
        "bool": 't.astype("bool")',
        "byte": "t.astype(pb.uint8)",
        "cdouble": "t.astype(pb.complex128)",
        "cfloat": "t.astype(pb.complex64)",
        "cholesky": "pb.linalg.cholesky(t)",
        "chunk": "pb.array_split(t, parts, axis=...)",
        "clamp": "t.clip(lowest, highest)",
        "clamp_max": "pb.minimum(t, highest)",
        "clamp_min": "pb.maximum(t, lowest)",
        "contiguous": "Leave it out: how elements lie in memory makes no difference to what can be done with them",
        "copy_": "t[...] = other",
        "cpu": 't.to_device("torch:cpu")` or `t.to_device("numpy")',
        "cross": "pb.linalg.cross(t, other)",
        "cuda": 't.to_device("torch:cuda")',
        "det": "pb.linalg.det(t)",
        "detach_": "t = t.detach()",
        "dim": "t.ndim",
        "dist": "pb.linalg.vector_norm(t - other)",
        "div": "t / other",
        "double": "t.astype(pb.float64)",
        "element_size": "t.itemsize",
        "eq": "t == other",
        "expand": "t.broadcast_to(...)",
        "expand_as": "t.broadcast_to(other.shape)",
        "fill": "t[...] = value",
        "fill_": "t[...] = value",
        "fill_diagonal_": "pb.where(pb.eye(n) > 0, value, t)",
        "float": "t.astype(pb.float32)",
        "fmod": "t % other",
        "gather": "t.take_along_axis(indices, axis=...)",
        "ge": "t >= other",
        "ger": "t.outer(other)",
        "get_device": "t.device",
        "grad_fn": "t.backward_op",
        "gt": "t > other",
        "half": "t.astype(pb.float16)",
        "index_add_": "t.index_add(...)",
        "index_copy_": "t[indices] = values",
        "index_fill_": "t[indices] = value",
        "index_put": "t[indices] = values",
        "index_put_": "t[indices] = values",
        "index_select": "t.take(indices, axis=...)",
        "int": "t.astype(pb.int32)",
        "inverse": "pb.linalg.inv(t)",
        "is_complex": 't.dtype.kind == "complex"',
        "is_contiguous": "Leave it out: how elements lie in memory makes no difference to what can be done with them",
        "is_cuda": "t.device",
        "is_floating_point": 't.dtype.kind == "float"',
        "is_nonzero": "bool(t)",
        "le": "t <= other",
        "lgamma": "t.gammaln()",
        "logdet": "pb.linalg.slogdet(t)",
        "long": "t.astype(pb.int64)",
        "lt": "t < other",
        "mH": "pb.conj(t).mT",
        "masked_fill": "pb.masked_fill(t, mask, value)",
        "masked_fill_": "t[mask] = value",
        "masked_scatter_": "t[mask] = values",
        "masked_select": "t[mask]",
        "matrix_power": "pb.linalg.matrix_power(t, n)",
        "mm": "t @ other",
        "movedim": "t.moveaxis(source, destination)",
        "mul": "t * other",
        "multinomial": "pb.random.categorical",
        "mv": "t @ other",
        "narrow": "t[start:end]",
        "ndimension": "t.ndim",
        "ne": "t != other",
        "neg": "-t",
        "nelement": "t.size",
        "new_empty": "pb.empty(shape, dtype=t.dtype, device=t.device)",
        "new_full": "pb.full(shape, value, dtype=t.dtype, device=t.device)",
        "new_ones": "pb.ones(shape, dtype=t.dtype, device=t.device)",
        "new_tensor": "pb.tensor(values, dtype=t.dtype, device=t.device)",
        "new_zeros": "pb.zeros(shape, dtype=t.dtype, device=t.device)",
        "norm": "pb.linalg.norm(t)",
        "normal_": "t[...] = pb.random.normal(t.shape)",
        "numel": "t.size",
        "permute": "t.transpose(...)",
        "pin_memory": "Leave it out: `pb.data.Batches(..., prefetch=2)` makes batches ready beside the steps",
        "pinverse": "pb.linalg.pinv(t)",
        "power": "t**other",
        "qr": "pb.linalg.qr(t)",
        "random_": "t[...] = pb.random.integers(low, high, t.shape)",
        "repeat_interleave": "t.repeat(counts, axis=...)",
        "requires_grad_": "t.requires_grad = True",
        "reshape_as": "t.reshape(other.shape)",
        "resize_": "t = t.reshape(...)",
        "retain_grad": "t.register_hook(function)",
        "scatter_": "t.put_along_axis(...)",
        "scatter_add_": "t.scatter_add(...)",
        "select": "t[:, i]",
        "short": "t.astype(pb.int16)",
        "slogdet": "pb.linalg.slogdet(t)",
        "solve": "pb.linalg.solve(t, b)",
        "sub": "t - other",
        "svd": "pb.linalg.svd(t)",
        "swapdims": "t.swapaxes(a, b)",
        "t": "t.T",
        "t_": "t = t.T",
        "take_along_dim": "t.take_along_axis(indices, axis=...)",
        "tensor_split": "pb.array_split(t, parts, axis=...)",
        "to": 't.to_device("torch:cuda")` or, for a dtype, `t.astype(pb.float64)',
        "to_dense": "Leave it out: all tensors are dense",
        "true_divide": "t / other",
        "type": "t.dtype` or `t.astype(...)",
        "type_as": "t.astype(other.dtype)",
        "unbind": "t.unstack(axis=...)",
        "unflatten": "t.reshape(...)",
        "uniform_": "t[...] = pb.random.uniform(t.shape)",
        "unique": "t.unique_values()",
        "unsqueeze": "pb.expand_dims(t, axis=...)` or `t[None]",
        "unsqueeze_": "t = pb.expand_dims(t, axis=...)",
        "view": "t.reshape(...)",
        "view_as": "t.reshape(other.shape)",
        "where": "pb.where(condition, t, other)",
        "zero_": "t[...] = 0",
        **{f"{name}_": f"t {sign}= other" for name, sign in {"add": "+", "sub": "-", "mul": "*", "div": "/"}.items()},
        "clamp_": "t[...] = t.clip(lowest, highest)",
        "pow_": "t **= other",
        "squeeze_": "t = t.squeeze()",
        "transpose_": "t = t.swapaxes(a, b)",
        **{
            f"{name}_": f"t[...] = pb.{name}(t)"
            for name in (
                "abs", "ceil", "cos", "exp", "floor", "log", "relu", "reciprocal", "round", "sigmoid", "sign", "sin",
                "sqrt", "square", "tanh", "tril", "triu", "trunc",
            )
        },
    },
    "Module": {
        "add_module": "setattr(module, name, part)",
        "bfloat16": "module.astype(pb.bfloat16)",
        "compile": "pb.compile(step)",
        "cpu": 'module.to_device("torch:cpu")` or `module.to_device("numpy")',
        "cuda": 'module.to_device("torch:cuda")',
        "double": "module.astype(pb.float64)",
        "float": "module.astype(pb.float32)",
        "get_buffer": "dict(module.named_buffers())[name]",
        "get_parameter": "dict(module.named_parameters())[name]",
        "get_submodule": "dict(module.named_modules())[name]",
        "half": "module.astype(pb.float16)",
        "register_backward_hook": "module.register_forward_hook(...)` and in it `output.register_hook(...)",
        "register_full_backward_hook": "module.register_forward_hook(...)` and in it `output.register_hook(...)",
        "register_module": "setattr(module, name, part)",
        "requires_grad_": "module.freeze()` or `module.unfreeze()",
        "share_memory": "Leave it out: threads share what they are given",
        "to": 'module.to_device("torch:cuda")` or, for a dtype, `module.astype(pb.float64)',
        "type": "module.astype(...)",
    },
}  # fmt: skip
#: Methods of PyTorch's tensors that are functions here, if they are there at all: the function is what to write.
_METHODS = (
    "allclose", "amax", "amin", "cdist", "cov", "cross_entropy", "cummax", "cummin", "diag", "diag_embed",
    "erfinv", "fliplr", "flipud", "glu", "hardswish", "hstack", "isclose", "lerp", "logaddexp2", "logcumsumexp",
    "logit", "masked_fill", "mish", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum", "nll_loss",
    "one_hot", "pixel_shuffle", "prelu", "quantile", "relu6", "rot90", "rsqrt", "scatter", "scatter_reduce",
    "selu", "tril", "triu", "unfold", "vstack",
)  # fmt: skip
#: Submodules whose functions other libraries have at the top.
_PARTS = ("linalg", "fft", "random")
#: Arguments of PyTorch's functions, and of autograd's.
_KEYWORDS = {
    "argnum": "argnums=",
    "dim": "axis=",
    "dims": "axis=",
    "in_dims": "in_axes=",
    "keepdim": "keepdims=",
    "out_dims": "out_axes=",
    "requires_grad": "pb.{function}(...).set_requires_grad(True)",
    "set_to_none": "Leave it out: gradients are filled with zeros and keep their memory",
    "start_dim": "start_axis=",
    "end_dim": "end_axis=",
    "unbiased": "correction=",
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have.

    >>> from pullback.pytorch_names import missing
    >>> print(missing("pullback", "cat"))
    module 'pullback' has no attribute 'cat'. Write `pb.concat`.
    """
    instead = _INSTEAD[module].get(name)
    if instead is None and module != "pullback" and _is_function(name):  # `jax.nn.relu`
        instead = f"pb.{name}"
    if instead is None and module == "pullback" and not name.startswith("_"):  # `fft2`
        instead = next((f"pb.{part}.{name}" for part in _PARTS if _is_public(part, name)), None)
    message = f"module {module!r} has no attribute {name!r}{_advice(instead)}"
    if instead is not None:
        return AttributeError(message, name=name)
    return AttributeError(message, name=name, obj=sys.modules[module])  # Python looks there for a name like it


def _is_public(part: str, name: str) -> bool:
    return name in import_module(f"{__package__}.{part}").__all__


class Missing:
    """In place of a method that another library's class has: asking for it is an error that says what to write.

    Found only where a class and its instances have nothing else of that name; so what they have costs nothing more.
    """

    __slots__ = ("_kind", "_name")

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        self._name = name

    def __get__(self, thing: Any, cls: type) -> Any:
        name = self._name
        instead = _INSTEAD[self._kind].get(name)
        if instead is None and _is_function(name):
            instead = f"pb.{name}(t, ...)"
        who = f"type object {cls.__name__!r}" if thing is None else f"{cls.__name__!r} object"
        raise AttributeError(f"{who} has no attribute {name!r}{_advice(instead)}", name=name)


def tell_of_missing(cls: type) -> None:
    """Give a class what says so where somebody asks for a name that it lacks."""
    kind = cls.__name__
    for name in (*_INSTEAD[kind], *(_METHODS if kind == "Tensor" else ())):
        if not hasattr(cls, name):
            setattr(cls, name, Missing(kind, name))


def present(thing: Any, names: Iterable[str]) -> list[str]:
    """Those of an object's `names` that are not missing, for `dir`."""
    own = getattr(thing, "__dict__", ())

    def is_there(name: str) -> bool:
        found = next((vars(base)[name] for base in type(thing).__mro__ if name in vars(base)), None)
        return type(found) is not Missing or name in own

    return [name for name in names if is_there(name)]


def unexpected(function: str, keywords: Mapping[str, Any]) -> TypeError:
    """The error for keyword arguments that a function does not have.

    >>> from pullback.pytorch_names import unexpected
    >>> print(unexpected("sum", {"dim": 1}))
    sum() got an unexpected keyword argument 'dim'. Write `axis=`.
    """
    name = next(iter(keywords))
    instead = _KEYWORDS.get(name, "").format(function=function) or None
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{_advice(instead)}")


def _is_function(name: str) -> bool:
    return not name.startswith("_") and callable(getattr(sys.modules["pullback"], name, None))


def _advice(instead: str | None) -> str:
    if instead is None:
        return ""
    return f". {instead}." if instead[0].isupper() else f". Write `{instead}`."
