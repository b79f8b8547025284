"""What to write instead of names that PyTorch, JAX, autograd, Keras or MyGrad have and Pullback has not.

The tables are read when such a name is asked for; those of methods when the classes are made.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import signature
from typing import Any, Iterable, Mapping, Self

import numpy as np

#: PyTorch's schedulers, under all names by which they are asked for.
_SCHEDULERS = {
    "ChainedScheduler": "pb.optim.Scheduler(optimizer, lambda step: first(step) * second(step))",
    "ConstantLR": "pb.optim.Scheduler(optimizer, lambda step: factor if step < total else 1.0)",
    "CosineAnnealingLR": "pb.optim.Scheduler(optimizer, pb.optim.schedules.Cosine(total))",
    "CosineAnnealingWarmRestarts": (
        "pb.optim.Scheduler(optimizer, lambda step: (1 + math.cos(math.pi * (step % period) / period)) / 2)"
    ),
    "CyclicLR": "pb.optim.Scheduler(optimizer, function)",
    "ExponentialLR": "pb.optim.Scheduler(optimizer, pb.optim.schedules.Exponential(gamma))",
    "LRScheduler": "pb.optim.Scheduler(optimizer, schedule)",
    "LambdaLR": "pb.optim.Scheduler(optimizer, function)",
    "LinearLR": "pb.optim.Scheduler(optimizer, pb.optim.schedules.Linear(total, start, end))",
    "MultiStepLR": "pb.optim.Scheduler(optimizer, lambda step: gamma ** sum(step >= one for one in milestones))",
    "MultiplicativeLR": "pb.optim.Scheduler(optimizer, function)",
    "OneCycleLR": "pb.optim.Scheduler(optimizer, pb.optim.schedules.OneCycle(total))` with the optimizer's `lr=max_lr",
    "PolynomialLR": "pb.optim.Scheduler(optimizer, lambda step: max(0.0, 1 - step / total) ** power)",
    "ReduceLROnPlateau": "pb.optim.Scheduler(optimizer, pb.optim.schedules.Plateau())` and `scheduler.step(metric)",
    "SequentialLR": "pb.optim.Scheduler(optimizer, schedule)` whose schedule has a `warmup=",
    "StepLR": "pb.optim.Scheduler(optimizer, pb.optim.schedules.Step(every, gamma))",
}
#: By module, or by class. A text that begins with a capital letter is a sentence, others are code.
_INSTEAD = {
    "pullback": {
        "Array": "pb.Tensor",
        "BoolTensor": "pb.tensor(values, dtype=pb.bool)",
        "DoubleTensor": "pb.tensor(values, dtype=pb.float64)",
        "FloatTensor": "pb.tensor(values, dtype=pb.float32)",
        "Generator": "pb.random.Generator",
        "GradScaler": "pb.optim.LossScaler",
        "HalfTensor": "pb.tensor(values, dtype=pb.float16)",
        "IntTensor": "pb.tensor(values, dtype=pb.int32)",
        "LongTensor": "pb.tensor(values, dtype=pb.int64)",
        "Model": "pb.nn.Module",
        "Module": "pb.nn.Module",
        "PRNGKey": "pb.random.Generator",
        "Sequential": "pb.nn.Sequential",
        "Size": "tuple",
        "Trainer": "pb.train.Trainer",
        "Variable": "pb.tensor(values, requires_grad=True)",
        "absolute": "pb.abs",
        "add_sequence": "x + y + z",
        "addcdiv": "x + value * y / z",
        "addcmul": "x + value * y * z",
        "addmm": "z + x @ y",
        "addmv": "z + x @ y",
        "addr": "z + pb.outer(x, y)",
        "adjoint": "pb.conj(x).mT",
        "aminmax": "pb.amin` and `pb.amax",
        "amp": "pb.autocast` and `pb.optim.LossScaler",
        "apply_updates": "optimizer.step(gradients)",
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
        "astensor": "pb.asarray",
        "autograd": "pb.grad`, `pb.backward`, `pb.vjp`, `pb.custom_op",
        "baddbmm": "z + x @ y",
        "bernoulli": "pb.random.bernoulli",
        "bitwise_not": "pb.bitwise_invert",
        "block_until_ready": "Leave it out: results are waited for where they are read",
        "bmm": "pb.matmul",
        "bool_": "pb.bool",
        "broadcast_tensors": "pb.broadcast_arrays",
        "bucketize": "pb.searchsorted(boundaries, x)",
        "callbacks": "pb.train.Callback",
        "cartesian_prod": 'pb.stack(pb.meshgrid(x, y, indexing="ij"), axis=-1).reshape((-1, 2))',
        "cast": "x.astype(dtype)",
        "cat": "pb.concat",
        "cdouble": "pb.complex128",
        "celu": "alpha * pb.elu(x / alpha)",
        "cfloat": "pb.complex64",
        "chain_matmul": "np.linalg.multi_dot",
        "check_grads": "pb.gradcheck",
        "cholesky": "pb.linalg.cholesky",
        "chunk": "pb.array_split",
        "clamp": "pb.clip",
        "clamp_max": "pb.minimum",
        "clamp_min": "pb.maximum",
        "clone": "x.clone()",
        "complex": "x + 1j * y",
        "concatenate": "pb.concat",
        "constant": "pb.tensor",
        "constant_pad_nd": "pb.pad",
        "convert_to_tensor": "pb.asarray",
        "cosine_embedding_loss": "pb.cosine_similarity",
        "cross": "pb.linalg.cross",
        "cuda": (
            'Write `device="torch:cuda"` where a device is named, and `torch.cuda.is_available()` with PyTorch imported'
        ),
        "custom_gradient": "pb.custom_op",
        "custom_jvp": "pb.custom_op",
        "custom_vjp": "pb.custom_op",
        "debug_nans": 'pb.guard("raise")',
        "default_device": "pb.set_default_device",
        "defjvp": "pb.custom_op",
        "defvjp": "pb.custom_op",
        "deriv": "pb.jacfwd",
        "det": "pb.linalg.det",
        "detach": "x.detach()",
        "device_count": "pb.backends.devices",
        "device_get": "x.numpy()",
        "device_put": "pb.asarray(x, device=...)",
        "devices": "pb.backends.devices",
        "disable_jit": "Leave out `pb.compile`: a function that is not compiled runs as it is written",
        "dist": "pb.linalg.vector_norm(x - y)",
        "distributions": "pb.random",
        "div": "pb.divide",
        "dot_product_attention": "pb.scaled_dot_product_attention",
        "double": "pb.float64",
        "dropout1d": "pb.nn.Dropout1d(p)(x)",
        "dropout2d": "pb.nn.Dropout2d(p)(x)",
        "dropout3d": "pb.nn.Dropout3d(p)(x)",
        "elementwise_grad": "pb.grad(lambda x: f(x).sum())",
        "enable_x64": "pb.set_default_dtype(pb.float64)",
        "entr": "-pb.xlogy(x, x)",
        "eq": "pb.equal",
        "execute_op": "pb.custom_op",
        "float": "pb.float32",
        "fmod": "pb.remainder",
        "fori_loop": "pb.scan",
        "frac": "x - pb.trunc(x)",
        "frobenius_norm": "pb.linalg.matrix_norm",
        "from_numpy": "pb.asarray",
        "func": "pb.grad`, `pb.vmap`, `pb.jacrev`, `pb.nn.functional_call",
        "function": "pb.compile",
        "gather": "pb.take_along_axis",
        "gaussian_nll_loss": "((x - target)**2 / var + pb.log(var)).mean() / 2",
        "ge": "pb.greater_equal",
        "ger": "pb.outer",
        "get_default_dtype": "pb.default_dtype",
        "get_rng_state": "pb.random.get_state",
        "grad_and_aux": "pb.grad(f, has_aux=True)",
        "grad_named": "pb.grad",
        "gru": "pb.nn.GRU",
        "gt": "pb.greater",
        "gumbel_softmax": "pb.softmax((x + pb.random.gumbel(x.shape)) / tau)",
        "half": "pb.float16",
        "hard_sigmoid": "pb.hardsigmoid",
        "hard_silu": "pb.hardswish",
        "hard_swish": "pb.hardswish",
        "hard_tanh": "pb.clip(x, -1, 1)",
        "hardshrink": "pb.where(pb.abs(x) > 0.5, x, 0)",
        "hardtanh": "pb.clip(x, -1, 1)",
        "hessian_tensor_product": "pb.hvp",
        "hessian_vector_product": "pb.hvp",
        "holomorphic_grad": "pb.jacrev",
        "identity": "pb.eye",
        "image": "pb.interpolate",
        "index_copy": "x = x.clone()` and `x[indices] = values",
        "index_fill": "x = x.clone()` and `x[indices] = value",
        "index_put": "x = x.clone()` and `x[indices] = values",
        "index_select": "pb.take",
        "inference_mode": "pb.no_grad",
        "int": "pb.int32",
        "intp": "pb.int64",
        "inverse": "pb.linalg.inv",
        "invert": "pb.bitwise_invert",
        "is_complex": 'pb.isdtype(x.dtype, "complex floating")',
        "is_floating_point": 'pb.isdtype(x.dtype, "real floating")',
        "is_nonzero": "bool(x)",
        "is_tensor": "isinstance(x, pb.Tensor)",
        "jacobian": "pb.jacrev",
        "jit": "pb.compile",
        "jnp": "Functions of NumPy's take tensors: write `import numpy as np`, or the same names in `pb`",
        "kthvalue": "pb.sort(x)[..., k - 1]",
        "lax": "pb.scan`, `pb.cond`, `pb.while_loop",
        "layers": "pb.nn",
        "le": "pb.less_equal",
        "left_shift": "pb.bitwise_left_shift",
        "lgamma": "pb.gammaln",
        "linear_transpose": "pb.vjp",
        "linearize": "pb.jvp",
        "local_devices": "pb.backends.devices",
        "log1mexp": "pb.log(-pb.expm1(-x))",
        "logdet": "pb.linalg.slogdet",
        "logmeanexp": "pb.logsumexp(x) - math.log(x.size)",
        "logsigmoid": "pb.log_sigmoid",
        "long": "pb.int64",
        "losses": "pb.mse_loss`, `pb.cross_entropy",
        "lstm": "pb.nn.LSTM",
        "lt": "pb.less",
        "make_ggnvp": "pb.jvp` and `pb.vjp",
        "make_hvp": "pb.hvp",
        "make_jaxpr": "program = pb.compile(f)` and, after a call, `program.source",
        "make_jvp": "pb.jvp",
        "make_vjp": "pb.vjp",
        "manual_seed": "pb.random.seed",
        "margin_ranking_loss": "pb.relu(margin - target * (x - y)).mean()",
        "masked_select": "x[mask]",
        "matrix_power": "pb.linalg.matrix_power",
        "matrix_rank": "pb.linalg.matrix_rank",
        "mem_guard_off": "Leave it out: arrays are not locked",
        "metrics": "pb.train.metrics",
        "mgrid": "pb.meshgrid",
        "mm": "pb.matmul",
        "mod": "pb.remainder",
        "modified_bessel_i0": "pb.i0",
        "modified_bessel_i1": "pb.i1",
        "movedim": "pb.moveaxis",
        "msort": "pb.sort(x, axis=0)",
        "mul": "pb.multiply",
        "multi_matmul": "np.linalg.multi_dot",
        "multigrad_dict": "pb.grad",
        "multiply_sequence": "x * y * z",
        "mv": "pb.matmul",
        "narrow": "x[start:end]",
        "ndarray": "pb.Tensor",
        "ndtri": "2**0.5 * pb.erfinv(2 * x - 1)",
        "ne": "pb.not_equal",
        "neg": "pb.negative",
        "nnet": "Layers are in `pb.nn`, functions such as `pb.relu` in `pb`",
        "no_autodiff": "pb.no_grad",
        "norm": "pb.linalg.norm",
        "normal": "pb.random.normal",
        "nuclear_norm": 'pb.linalg.matrix_norm(x, ord="nuc")',
        "numel": "x.size",
        "numpy": "Functions of NumPy's take tensors: write `import numpy as np`, or the same names in `pb`",
        "ogrid": "pb.meshgrid",
        "optimizers": "pb.optim",
        "pairwise_distance": "pb.linalg.vector_norm(x - y, axis=-1)",
        "pdist": "pb.cdist(x, x)[np.triu_indices(len(x), 1)]",
        "permute": "pb.permute_dims",
        "pinverse": "pb.linalg.pinv",
        "pmap": "pb.vmap",
        "poisson_nll_loss": "(pb.exp(x) - target * x).mean()",
        "polar": "x * pb.exp(1j * angle)",
        "power": "pb.pow",
        "primitive": "pb.custom_op",
        "psi": "pb.digamma",
        "pure_callback": "pb.custom_op",
        "qr": "pb.linalg.qr",
        "rand": "pb.random.uniform",
        "rand_like": "pb.random.uniform(x.shape)",
        "randint": "pb.random.integers",
        "randint_like": "pb.random.integers(low, high, x.shape)",
        "randn": "pb.random.normal",
        "randn_like": "pb.random.normal(x.shape)",
        "randperm": "pb.random.permutation",
        "range": "pb.arange",
        "reduce_mean": "pb.mean",
        "reduce_sum": "pb.sum",
        "remat": "pb.checkpoint",
        "repeat_interleave": "pb.repeat",
        "right_shift": "pb.bitwise_right_shift",
        "rsub": "y - x",
        "scalar_tensor": "pb.tensor",
        "select": "x[:, i]",
        "set_grad_enabled": "pb.no_grad` or `pb.enable_grad",
        "set_rng_state": "pb.random.set_state",
        "sgn": "pb.sign",
        "short": "pb.int16",
        "single": "pb.float32",
        "slogdet": "pb.linalg.slogdet",
        "soft_margin_loss": "pb.softplus(-target * x).mean()",
        "soft_sign": "x / (1 + pb.abs(x))",
        "softmin": "pb.softmax(-x)",
        "softshrink": "x - pb.clip(x, -0.5, 0.5)",
        "softsign": "x / (1 + pb.abs(x))",
        "solve": "pb.linalg.solve",
        "split_with_sizes": "pb.split(x, sizes=...)",
        "squareplus": "(x + pb.sqrt(x * x + 4)) / 2",
        "std_mean": "pb.std` and `pb.mean",
        "sub": "pb.subtract",
        "svd": "pb.linalg.svd",
        "swapdims": "pb.swapaxes",
        "swish": "pb.silu",
        "switch": "pb.cond",
        "symeig": "pb.linalg.eigh",
        "t": "x.T",
        "take_along_dim": "pb.take_along_axis",
        "tanhshrink": "x - pb.tanh(x)",
        "tensor_jacobian_product": "pb.vjp",
        "tensor_split": "pb.array_split",
        "threshold": "pb.where(x > threshold, x, value)",
        "to_dlpack": "Leave it out: `from_dlpack` of any library takes tensors",
        "top_k": "pb.topk",
        "trapz": "pb.trapezoid",
        "tree_map": "pb.tree.map",
        "tree_util": "pb.tree",
        "triangular_solve": "pb.linalg.solve_triangular",
        "triplet_margin_loss": "pb.relu(near - far + margin).mean()` where `near = pb.linalg.norm(x - y, axis=-1)",
        "true_divide": "pb.divide",
        "unbind": "pb.unstack",
        "unflatten": "pb.reshape",
        "unique": "pb.unique_values",
        "unsqueeze": "pb.expand_dims",
        "upsample": "pb.interpolate",
        "upsample_bilinear": "pb.interpolate",
        "upsample_nearest": "pb.interpolate",
        "use_deterministic_algorithms": "pb.deterministic",
        "utils": "pb.data` for `utils.data`, `pb.checkpoint` for `utils.checkpoint",
        "var_mean": "pb.var` and `pb.mean",
        "vector_jacobian_product": "pb.vjp",
        "vectorize": "pb.vmap",
        "view_as_complex": "x[..., 0] + 1j * x[..., 1]",
        "view_as_real": "pb.stack([pb.real(x), pb.imag(x)], axis=-1)",
        "xlog1py": "pb.xlogy(x, 1 + y)",
    },
    "pullback.data": {
        "DataLoader": "pb.data.Batches",
        "default_collate": "Leave it out: `pb.data.Batches` stacks samples array by array",
        "Dataset": "A dataset is a class of your own with `__len__` and `__getitem__`",
        "IterableDataset": "Anything that gives batches each time it is iterated takes its place",
        "TensorDataset": "pb.data.ArrayDataset",
    },
    "pullback.linalg": {
        "LinAlgError": "pb.LinearAlgebraError",
        "cho_factor": "pb.linalg.cholesky",
        "cho_solve": "pb.linalg.cholesky_solve",
        "cholesky_ex": "pb.linalg.cholesky",
        "cond": "np.linalg.cond",
        "expm": "pb.linalg.matrix_exp",
        "inv_ex": "pb.linalg.inv",
        "lu_factor": "pb.linalg.lu",
        "lu_solve": "pb.linalg.solve",
        "multi_dot": "np.linalg.multi_dot",
        "pinvh": "pb.linalg.pinv",
        "tensorinv": "np.linalg.tensorinv",
        "tensorsolve": "np.linalg.tensorsolve",
        "vander": "np.vander",
    },
    "pullback.nn": {
        "AveragePooling1D": "pb.nn.AvgPool1d",
        "AveragePooling2D": "pb.nn.AvgPool2d",
        "BatchNormalization": "pb.nn.BatchNorm1d` or `pb.nn.BatchNorm2d",
        "Buffer": "self.register_buffer(name, tensor)",
        "Conv2DTranspose": "pb.nn.ConvTranspose2d",
        "CosineEmbeddingLoss": "pb.cosine_similarity",
        "DataParallel": "Leave it out: a model is on one device",
        "Dense": "pb.nn.Linear(inputs, outputs)",
        "EmbeddingBag": "pb.embedding_bag(indices, weight)",
        "Fold": "pb.fold",
        "GaussianNLLLoss": "((x - target)**2 / var + pb.log(var)).mean() / 2",
        "GlobalAveragePooling2D": "pb.nn.AdaptiveAvgPool2d(1)",
        "GroupNormalization": "pb.nn.GroupNorm",
        "Input": "Leave it out: a layer is told how many features come in",
        "LayerNormalization": "pb.nn.LayerNorm",
        "LazyConv1d": "pb.nn.Conv1d",
        "LazyConv2d": "pb.nn.Conv2d",
        "LazyLinear": "pb.nn.Linear(inputs, outputs)",
        "MarginRankingLoss": "pb.relu(margin - target * (x - y)).mean()",
        "MaxPooling1D": "pb.nn.MaxPool1d",
        "MaxPooling2D": "pb.nn.MaxPool2d",
        "Model": "pb.nn.Module",
        "PairwiseDistance": "pb.linalg.vector_norm(x - y, axis=-1)",
        "ParameterDict": "A dict of parameters is part of a module: write `self.weights = {...}`",
        "ParameterList": "A list of parameters is part of a module: write `self.weights = [...]`",
        "PixelShuffle": "pb.pixel_shuffle",
        "PixelUnshuffle": "pb.pixel_unshuffle",
        "PoissonNLLLoss": "(pb.exp(x) - target * x).mean()",
        "SoftMarginLoss": "pb.softplus(-target * x).mean()",
        "Softmax2d": "pb.nn.Softmax(dim=-3)",
        "SyncBatchNorm": "pb.nn.BatchNorm1d` or `pb.nn.BatchNorm2d",
        "Transformer": "pb.nn.TransformerEncoder` and `pb.nn.TransformerDecoder",
        "TripletMarginLoss": "pb.relu(near - far + margin).mean()` where `near = pb.linalg.norm(x - y, axis=-1)",
        "Unflatten": "pb.reshape",
        "Unfold": "pb.unfold",
        "UpSampling2D": "pb.nn.Upsample",
        "UpsamplingBilinear2d": 'pb.nn.Upsample(size, mode="bilinear", align_corners=True)',
        "UpsamplingNearest2d": "pb.nn.Upsample",
        "functional": "import pullback as F` and then `F.relu`, `F.cross_entropy` and so on: functions are in `pb",
        "initializers": "pb.nn.init",
        "parameter": "pb.nn.Parameter",
        "swish": "pb.silu",
        "utils": (
            "Write `pb.optim.clip_global_norm` for `clip_grad_norm_`, `pb.optim.clip_value` for `clip_grad_value_`, "
            "`pb.stack` of what `pb.pad` gives for `pad_sequence`, `gain * pb.normalize(weight)` for `weight_norm`"
        ),
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
        "GradScaler": "pb.optim.LossScaler",
        "Adadelta": "pb.optim.Adagrad` or `pb.optim.RMSprop",
        "Adamax": "pb.optim.Adam",
        "Nadam": "pb.optim.NAdam",
        "SparseAdam": "pb.optim.Adam",
        "adam": "pb.optim.Adam",
        "adamw": "pb.optim.AdamW",
        "apply_updates": "optimizer.step(gradients)",
        "clip_by_global_norm": "pb.optim.clip_global_norm",
        "clip_grad_norm_": "pb.optim.clip_global_norm",
        "clip_grad_value_": "pb.optim.clip_value",
        "cosine_decay_schedule": "pb.optim.schedules.Cosine",
        "exponential_decay": "pb.optim.schedules.Exponential",
        "lr_scheduler": "pb.optim.schedules` with `pb.optim.Scheduler",
        "rmsprop": "pb.optim.RMSprop",
        "sgd": "pb.optim.SGD",
        "swa_utils": "pb.optim.ExponentialMovingAverage",
        "warmup_cosine_decay_schedule": "pb.optim.schedules.Cosine(total, warmup=...)",
        **_SCHEDULERS,
    },
    "pullback.optim.schedules": {**_SCHEDULERS, "Scheduler": "pb.optim.Scheduler"},
    "pullback.random": {
        "PRNGKey": "pb.random.Generator(seed)",
        "RandomState": "pb.random.Generator(seed)",
        "SeedGenerator": "pb.random.Generator(seed)",
        "beta": "pb.asarray(np.random.default_rng(seed).beta(...))",
        "binomial": "pb.asarray(np.random.default_rng(seed).binomial(...))",
        "cauchy": "pb.tan(pb.pi * (pb.random.uniform(shape) - 0.5))",
        "default_rng": "pb.random.Generator(seed)",
        "dirichlet": "pb.asarray(np.random.default_rng(seed).dirichlet(...))",
        "fold_in": "pb.random.Generator(seed).split(n)[i]",
        "gamma": "pb.asarray(np.random.default_rng(seed).gamma(...))",
        "key": "pb.random.Generator(seed)",
        "key_data": "generator.state",
        "laplace": "pb.random.exponential(shape) - pb.random.exponential(shape)",
        "logistic": "pb.logit(pb.random.uniform(shape))",
        "lognormal": "pb.exp(pb.random.normal(shape))",
        "manual_seed": "pb.random.seed",
        "multivariate_normal": "mean + pb.linalg.cholesky(covariance) @ pb.random.normal(mean.shape)",
        "poisson": "pb.asarray(np.random.default_rng(seed).poisson(...))",
        "rademacher": "2 * pb.random.bernoulli(0.5, shape) - 1",
        "rand": "pb.random.uniform",
        "randint": "pb.random.integers",
        "randn": "pb.random.normal",
        "random": "pb.random.uniform",
        "random_integers": "pb.random.integers",
        "random_sample": "pb.random.uniform",
        "ranf": "pb.random.uniform",
        "sample": "pb.random.uniform",
        "set_seed": "pb.random.seed",
        "shuffle": "pb.random.permutation",
        "standard_exponential": "pb.random.exponential",
        "standard_normal": "pb.random.normal",
        "truncated_normal": "pb.nn.init.trunc_normal_",
    },
    "Tensor": {
        "H": "pb.conj(t).mT",
        "absolute": "pb.abs(t)",
        "addcdiv": "t + value * x / y",
        "addcmul": "t + value * x * y",
        "addmm": "t + x @ y",
        "adjoint": "pb.conj(t).mT",
        "aminmax": "pb.amin(t)` and `pb.amax(t)",
        "argwhere": "pb.stack(t.nonzero(), axis=-1)",
        "assign": "t[...] = values",
        "assign_add": "t += values",
        "assign_sub": "t -= values",
        "at": "Write `t[indices] = values`: nobody else sees the write",
        "baddbmm": "t + x @ y",
        "bernoulli": "pb.random.bernoulli(t)",
        "bernoulli_": "t[...] = pb.random.bernoulli(p, t.shape)",
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
        "clamp_": "t[...] = t.clip(lowest, highest)",
        "clamp_max": "pb.minimum(t, highest)",
        "clamp_min": "pb.maximum(t, lowest)",
        "clear_graph": "Leave it out: `t.backward()` lets the graph go",
        "clip_": "t[...] = t.clip(lowest, highest)",
        "contiguous": "Leave it out: how elements lie in memory makes no difference to what can be done with them",
        "copy_": "t[...] = other",
        "cpu": 'Leave it out where tensors are on the processor; from a GPU write `t.to_device("numpy")`',
        "cross": "pb.linalg.cross(t, other)",
        "cuda": 't.to_device("torch:cuda")',
        "data_ptr": "t.data",
        "det": "pb.linalg.det(t)",
        "detach_": "t = t.detach()",
        "dim": "t.ndim",
        "dist": "pb.linalg.vector_norm(t - other)",
        "div": "t / other",
        "divide_": "t /= other",
        "double": "t.astype(pb.float64)",
        "element_size": "t.itemsize",
        "eq": "t == other",
        "expand": "t.broadcast_to(...)",
        "expand_as": "t.broadcast_to(other.shape)",
        "exponential_": "t[...] = pb.random.exponential(t.shape)",
        "fill": "t[...] = value",
        "fill_": "t[...] = value",
        "fill_diagonal_": "pb.where(pb.eye(n) > 0, value, t)",
        "flags": "t.numpy().flags",
        "float": "t.astype(pb.float32)",
        "floor_divide_": "t //= other",
        "fmod": "t % other",
        "frac": "t - pb.trunc(t)",
        "gather": "t.take_along_axis(indices, axis=...)",
        "ge": "t >= other",
        "ger": "t.outer(other)",
        "get_device": "t.device",
        "grad_fn": "t.backward_op",
        "gt": "t > other",
        "half": "t.astype(pb.float16)",
        "hardshrink": "pb.where(pb.abs(t) > 0.5, t, 0)",
        "index_add_": "t.index_add(...)",
        "index_copy_": "t[indices] = values",
        "index_fill": "t[indices] = value",
        "index_fill_": "t[indices] = value",
        "index_put": "t[indices] = values",
        "index_put_": "t[indices] = values",
        "index_select": "t.take(indices, axis=...)",
        "int": "t.astype(pb.int32)",
        "inverse": "pb.linalg.inv(t)",
        "is_complex": 't.dtype.kind == "complex"',
        "is_contiguous": "Leave it out: how elements lie in memory makes no difference to what can be done with them",
        "is_cpu": "t.device",
        "is_cuda": "t.device",
        "is_floating_point": 't.dtype.kind == "float"',
        "is_nonzero": "bool(t)",
        "kthvalue": "pb.sort(t)[..., k - 1]",
        "le": "t <= other",
        "lerp_": "t[...] = pb.lerp(t, other, weight)",
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
        "msort": "pb.sort(t, axis=0)",
        "mul": "t * other",
        "multinomial": "pb.random.categorical",
        "multiply_": "t *= other",
        "mv": "t @ other",
        "narrow": "t[start:end]",
        "ndimension": "t.ndim",
        "ne": "t != other",
        "neg": "-t",
        "neg_": "t[...] = -t",
        "nelement": "t.size",
        "new_empty": "pb.empty(shape, dtype=t.dtype, device=t.device)",
        "new_full": "pb.full(shape, value, dtype=t.dtype, device=t.device)",
        "new_ones": "pb.ones(shape, dtype=t.dtype, device=t.device)",
        "new_tensor": "pb.tensor(values, dtype=t.dtype, device=t.device)",
        "new_zeros": "pb.zeros(shape, dtype=t.dtype, device=t.device)",
        "norm": "pb.linalg.norm(t)",
        "normal_": "t[...] = pb.random.normal(t.shape)",
        "null_grad": "t.zero_grad()",
        "null_gradients": "Leave it out: `t.backward()` lets the graph go",
        "numel": "t.size",
        "permute": "t.transpose(...)",
        "pin_memory": "Leave it out: `pb.data.Batches(..., prefetch=2)` makes batches ready beside the steps",
        "pinverse": "pb.linalg.pinv(t)",
        "pow_": "t **= other",
        "power": "t**other",
        "qr": "pb.linalg.qr(t)",
        "random_": "t[...] = pb.random.integers(low, high, t.shape)",
        "remainder_": "t %= other",
        "repeat_interleave": "t.repeat(counts, axis=...)",
        "requires_grad_": "t.requires_grad = True",
        "reshape_as": "t.reshape(other.shape)",
        "resize_": "t = t.reshape(...)",
        "retain_grad": "t.register_hook(function)",
        "scatter_": "t.put_along_axis(...)",
        "scatter_add_": "t.scatter_add(...)",
        "select": "t[:, i]",
        "sgn": "pb.sign(t)",
        "sharding": "t.device",
        "short": "t.astype(pb.int16)",
        "slogdet": "pb.linalg.slogdet(t)",
        "solve": "pb.linalg.solve(t, b)",
        "split_with_sizes": "pb.split(t, sizes=...)",
        "squeeze_": "t = t.squeeze()",
        "storage": "t.data",
        "stride": "t.numpy().strides",
        "strides": "t.numpy().strides",
        "sub": "t - other",
        "subtract_": "t -= other",
        "svd": "pb.linalg.svd(t)",
        "swapdims": "t.swapaxes(a, b)",
        "t": "t.T",
        "t_": "t = t.T",
        "take_along_dim": "t.take_along_axis(indices, axis=...)",
        "tensor_split": "pb.array_split(t, parts, axis=...)",
        "to": (
            "Leave it out on the processor, where tensors begin; "
            'for a GPU write `t.to_device("torch:cuda")`, for a dtype `t.astype(pb.float64)`'
        ),
        "to_dense": "Leave it out: all tensors are dense",
        "tobytes": "t.numpy().tobytes()",
        "tofile": "t.numpy().tofile(path)",
        "transpose_": "t = t.swapaxes(a, b)",
        "true_divide": "t / other",
        "true_divide_": "t /= other",
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
        "call": "Write `forward` in a class of your own, and `module(x)` to call it",
        "compile": "pb.compile(step)",
        "count_params": "module.num_parameters()",
        "cpu": 'Leave it out where the model is on the processor; from a GPU write `module.to_device("numpy")`',
        "cuda": 'module.to_device("torch:cuda")',
        "double": "module.astype(pb.float64)",
        "evaluate": "pb.train.Trainer(module, loss, optimizer).evaluate(batches)",
        "fit": "pb.train.Trainer(module, loss, optimizer).fit(batches, epochs=...)",
        "float": "module.astype(pb.float32)",
        "get_buffer": "dict(module.named_buffers())[name]",
        "get_parameter": "dict(module.named_parameters())[name]",
        "get_submodule": "dict(module.named_modules())[name]",
        "get_weights": "module.state_dict()",
        "half": "module.astype(pb.float16)",
        "load_weights": "module.load_state_dict(pb.load(path))",
        "predict": "module.eval()` and, in `with pb.no_grad():`, `module(x)",
        "register_backward_hook": "module.register_forward_hook(...)` and in it `output.register_hook(...)",
        "register_full_backward_hook": "module.register_forward_hook(...)` and in it `output.register_hook(...)",
        "register_module": "setattr(module, name, part)",
        "requires_grad_": "module.freeze()` or `module.unfreeze()",
        "save_weights": "pb.save(module.state_dict(), path)",
        "set_weights": "module.load_state_dict(state)",
        "share_memory": "Leave it out: threads share what they are given",
        "summary": "print(module)",
        "to": (
            "Leave it out on the processor, where models begin; "
            'for a GPU write `module.to_device("torch:cuda")`, for a dtype `module.astype(pb.float64)`'
        ),
        "trainable_variables": "module.parameters()",
        "trainable_weights": "module.parameters()",
        "type": "module.astype(...)",
    },
}  # fmt: skip
#: Methods of other libraries' arrays that are functions here or of NumPy's: the function is what to write.
_METHODS = (
    "allclose", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argpartition", "bincount", "cdist", "cholesky_solve", "choose", "corrcoef", "cov", "cross_entropy",
    "cummax", "cummin", "deg2rad", "diag", "diag_embed", "diagflat", "eig", "erfinv", "exp2", "fliplr",
    "flipud", "float_power", "fmax", "fmin", "glu", "hardswish", "heaviside", "histogram", "hsplit", "hstack",
    "isclose", "isneginf", "isposinf", "isreal", "ldexp", "lerp", "logaddexp2", "logcumsumexp", "logit",
    "lstsq", "lu", "masked_fill", "matrix_exp", "mish", "nan_to_num", "nanmean", "nanmedian", "nanquantile",
    "nansum", "nll_loss", "one_hot", "partition", "pixel_shuffle", "prelu", "ptp", "quantile", "rad2deg",
    "relu6", "rot90", "rsqrt", "scatter", "scatter_reduce", "selu", "sinc", "tril", "triu", "unfold", "vsplit",
    "vstack",
)  # fmt: skip
#: Submodules whose functions other libraries have at the top.
_PARTS = ("linalg", "fft", "random")
#: Arguments of PyTorch's functions, and of NumPy's, JAX's and autograd's.
_KEYWORDS = {
    "argnum": "argnums=",
    "dim": "axis=",
    "dim1": "axis1=",
    "dim2": "axis2=",
    "dims": "axis=",
    "in_dims": "in_axes=",
    "keepdim": "keepdims=",
    "loc": "mean=",
    "maxval": "high=",
    "minval": "low=",
    "num_samples": "count=",
    "out_dims": "out_axes=",
    "replacement": "replace=",
    "requires_grad": "pb.{function}(...).set_requires_grad(True)",
    "scale": "std=",
    "size": "shape=",
    "start_dim": "start_axis=",
    "end_dim": "end_axis=",
    "unbiased": "correction=",
}
_SIZES = "A number is how many parts there are, not their size; a list of sizes is `sizes=`"
_VALUES_ALONE = "Write `axis=`: values alone come back, and `pb.arg{function}(x, axis=...)` gives their places"
#: The same, of one function, or of one class.
_KEYWORDS_OF = {
    "compile": {
        "backend": "Leave it out: the device of the tensors says what is compiled for",
        "disable": "Leave out `pb.compile` instead",
        "dynamic": "Leave it out: another shape makes another program; `max_traces=` limits how many",
        "fullgraph": "Leave it out: a function is always one program, and what cannot be in it is an error",
        "mode": "Leave it out: there is one way to compile",
        "options": "Leave it out: there is one way to compile",
    },
    "Parameter": {
        "requires_grad": (
            "Leave it out: a parameter requires a gradient. A tensor that requires none is a buffer where a module has "
            "it, and `model.freeze(name)` stops a parameter"
        )
    },
    "load": {
        "map_location": "device=",
        "weights_only": "Leave it out: these files hold tensors alone",
    },
    "max": {"dim": _VALUES_ALONE.format(function="max")},
    "median": {"dim": "Write `axis=`: values alone come back, of an even number the mean of the two in the middle"},
    "min": {"dim": _VALUES_ALONE.format(function="min")},
    "sort": {"dim": "Write `axis=`: values alone come back, and `pb.argsort(x, axis=...)` gives their places"},
    "Tensor.sort": {
        "dim": "Write `pb.sort(t, axis=...)` and `pb.argsort(t, axis=...)`: `t.sort(axis=...)` sorts `t` itself"
    },
    "split": {
        "dim": f"Write `axis=`. {_SIZES}",
        "split_size": _SIZES,
        "split_size_or_sections": _SIZES,
    },
}
#: Arguments of PyTorch's, Keras's and optax's layers and optimizers, and what ours have in their place, if anything.
_OPTIONS = {
    "axis": "dim",
    "beta_1": "betas",
    "b1": "betas",
    "epsilon": "eps",
    "filters": "out_channels",
    "foreach": "Leave it out: parameters are updated together where that is faster",
    "fused": "Leave it out: `pb.compile` makes one function of a whole step",
    "inplace": "Leave it out: memory that nobody else sees is used again",
    "learning_rate": "lr",
    "lr_lambda": "schedule",
    "rate": "p",
    "strides": "stride",
    "units": "out_features",
}
_OPTIONS_OF = {
    "Batches": {
        "batch_sampler": "A dataset of your own says with `__len__` and `__getitem__` what is in it, and in what order",
        "collate_fn": "collate",
        "generator": "seed",
        "num_workers": "prefetch",
        "persistent_workers": "Leave it out: `prefetch=2` makes batches ready in a thread",
        "pin_memory": "Leave it out: `prefetch=2` makes batches ready beside the steps",
        "prefetch_factor": "prefetch",
        "sampler": "A dataset of your own says with `__len__` and `__getitem__` what is in it, and in what order",
        "timeout": "Leave it out: batches are made in a thread of this process",
        "worker_init_fn": "Leave it out: batches are made in a thread of this process",
    },
    "Trainer": {
        "accumulate_grad_batches": "accumulate",
        "amp": "autocast",
        "device": "Leave it out: batches go to where the model is, and `model.to_device(...)` moves that",
        "ema": "average",
        "fp16": "autocast",
        "gradient_accumulation_steps": "accumulate",
        "gradient_clip_val": "clip_norm",
        "lr_scheduler": "schedule",
        "max_grad_norm": "clip_norm",
        "scheduler": "schedule",
    },
}
#: Arguments of PyTorch's schedulers, and what our schedules have in their place, if they have it.
_OF_SCHEDULES = {
    "T_max": "total",
    "anneal_strategy": "linear",
    "div_factor": "initial",
    "end_factor": "end",
    "epochs": "total",
    "factor": "decay",
    "final_div_factor": "final",
    "pct_start": "rise",
    "start_factor": "start",
    "step_size": "every",
    "steps_per_epoch": "total",
    "total_iters": "total",
    "total_steps": "total",
    "eta_min": "Write `minimum=eta_min / lr`: it is a factor on the base rate",
    "min_lr": "Write `minimum=min_lr / lr`: it is a factor on the base rate",
    "max_lr": "Leave it out: the highest rate is the optimizer's `lr=`",
    "last_epoch": "Leave it out: `scheduler.load_state_dict(state)` goes on from where another one was",
    "verbose": "Leave it out: `scheduler.last_lr` has the rates",
    **dict.fromkeys(
        ("base_momentum", "cycle_momentum", "max_momentum"), "Leave it out: momentum and betas stay as they are"
    ),
}
#: Functions that take several axes by the name of `axes`.
_OF_AXES = frozenset(
    [
        "fft2",
        "fftn",
        "fftshift",
        "ifft2",
        "ifftn",
        "ifftshift",
        "irfft2",
        "irfftn",
        "permute_dims",
        "rfft2",
        "rfftn",
        "tensordot",
        "transpose",
    ]
)


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have.

    >>> from pullback.pytorch_names import missing
    >>> print(missing("pullback", "cat"))
    module 'pullback' has no attribute 'cat'. Write `pb.concat`.
    """
    instead = _instead(module, name)
    message = f"module {module!r} has no attribute {name!r}{_advice(instead)}"
    if instead is not None:
        return AttributeError(message, name=name)
    return AttributeError(message, name=name, obj=sys.modules[module])  # Python looks there for a name like it


def _instead(module: str, name: str) -> str | None:
    """What to write in place of a name that a module of ours does not have."""
    instead = _INSTEAD[module].get(name)
    if instead is None and module != "pullback" and _is_function(name):  # `jax.nn.relu`
        instead = f"pb.{name}"
    if instead is None and module == "pullback" and not name.startswith("_"):  # `fft2`
        if part := _part_of(name):
            instead = f"pb.{part}.{name}"
        elif _is_of_numpy(name):  # `nan_to_num`
            instead = f"np.{name}"
    return instead


class Imports:
    """The last of Python's finders of modules: `import` of a name that has another one here says what to write.

    An AttributeError says so too, but `from pullback.data import DataLoader` would put a bare ImportError in its place.

    >>> from pullback.data import DataLoader
    Traceback (most recent call last):
    ImportError: cannot import name 'DataLoader' from 'pullback.data'. Write `pb.data.Batches`.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        module, _, last = name.rpartition(".")
        if module in _INSTEAD and (instead := _instead(module, last)) is not None:
            raise ImportError(f"cannot import name {last!r} from {module!r}{_advice(instead)}", name=name)


def tell_of_imports() -> None:
    """Have failing imports of names in these tables say what to write."""
    sys.meta_path.append(Imports)


def _part_of(name: str) -> str | None:
    """The submodule that has a function of this name."""
    return next((part for part in _PARTS if name in import_module(f"{__package__}.{part}").__all__), None)


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
        elif instead is None and (part := _part_of(name)):
            instead = f"pb.{part}.{name}(t, ...)"
        elif instead is None and _is_of_numpy(name):
            instead = f"np.{name}(t, ...)"
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
    instead = _KEYWORDS_OF.get(function, {}).get(name) or _KEYWORDS.get(name, "").format(function=function) or None
    if instead == "axis=" and function in _OF_AXES:
        instead = "axes="
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{_advice(instead)}")


def one_shape(function: str, sizes: tuple[Any, ...]) -> TypeError:
    """The error for sizes that are not given as one shape.

    >>> from pullback.pytorch_names import one_shape
    >>> print(one_shape("zeros", (2, 3)))
    zeros() takes one shape. Write `pb.zeros((2, 3))`.
    """
    return TypeError(f"{function}() takes one shape{_advice(f'pb.{function}({sizes!r:.60})')}")


def check_keywords(cls: type, keywords: Mapping[str, Any]) -> None:
    """Refuse a keyword argument of another library's class of this name, and say what to write.

    >>> import pullback as pb
    >>> pb.nn.Softmax(axis=1)
    Traceback (most recent call last):
    TypeError: Softmax() got an unexpected keyword argument 'axis'. Write `dim=`.
    """
    options = _OPTIONS | _OPTIONS_OF.get(cls.__name__, {})
    for name in options.keys() & keywords.keys():
        known = signature(cls.__init__).parameters  # type: ignore[misc]
        ours = options[name]
        if name not in known and (ours in known or ours[0].isupper()):
            advice = f"{ours}=" if ours in known else ours
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}{_advice(advice)}")


def check_schedule(cls: type, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Refuse what a scheduler of PyTorch's takes and the schedule `cls` does not, and say what to write.

    >>> import pullback as pb
    >>> pb.optim.schedules.Cosine(T_max=100)
    Traceback (most recent call last):
    TypeError: Cosine() got an unexpected keyword argument 'T_max'. Write `total=`.
    """
    name = cls.__name__
    if "optimizer" in keywords or any(hasattr(one, "param_groups") for one in args):
        raise TypeError(
            f"{name}() takes no optimizer: it is a function of the number of steps. "
            f"Write `pb.optim.Scheduler(optimizer, pb.optim.schedules.{name}(...))`."
        )
    known = signature(cls.__init__).parameters  # type: ignore[misc]
    for given in keywords:
        ours = _OF_SCHEDULES.get(given)
        if given not in known and ours is not None and (ours in known or ours[0].isupper()):
            advice = f"{ours}=" if ours in known else ours
            raise TypeError(f"{name}() got an unexpected keyword argument {given!r}{_advice(advice)}")


class ScheduleChecked:
    """A schedule whose arguments are looked at before its `__init__` is."""

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        check_schedule(cls, args, keywords)
        return object.__new__(cls)


class KeywordsChecked:
    """A class whose keyword arguments are looked at before its `__init__` is, by whose arguments `help` shows it."""

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        if keywords:
            check_keywords(cls, keywords)
        return object.__new__(cls)


def _is_of_numpy(name: str) -> bool:
    """Whether NumPy has a function of this name, to which tensors can be given."""
    function = getattr(np, name, None) if name in np.__all__ else None
    return callable(function) and not isinstance(function, type)


def _is_function(name: str) -> bool:
    return not name.startswith("_") and callable(getattr(sys.modules["pullback"], name, None))


def _advice(instead: str | None) -> str:
    if instead is None:
        return ""
    return f". {instead}." if instead[0].isupper() else f". Write `{instead}`."
