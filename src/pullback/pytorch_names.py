"""What to write instead of names that PyTorch has and Pullback has not; read when such a name is asked for."""

from __future__ import annotations

_INSTEAD = {
    "pullback": {
        "amp": "pb.autocast` and `pb.optim.LossScaler",
        "bmm": "pb.matmul",
        "cat": "pb.concat",
        "clamp": "pb.clip",
        "cuda": 'pb.asarray(x, device="torch:cuda")',
        "from_numpy": "pb.asarray",
        "gather": "pb.take_along_axis",
        "inference_mode": "pb.no_grad",
        "manual_seed": "pb.random.seed",
        "mm": "pb.matmul",
        "rand": "pb.random.uniform",
        "randn": "pb.random.normal",
        "randperm": "pb.random.permutation",
        "unsqueeze": "pb.expand_dims",
        "utils": "pb.data` for data and `pb.checkpoint",
    },
    "pullback.data": {
        "DataLoader": "pb.data.Batches",
        "Dataset": "a class of your own with `__len__` and `__getitem__",
        "TensorDataset": "pb.data.ArrayDataset",
    },
    "pullback.nn": {
        "functional": "pb.relu`, `pb.cross_entropy` and so on: functions are in `pb",
        "utils": "pb.optim.clip_global_norm` or `pb.optim.clip_value",
    },
    "pullback.optim": {
        "CosineAnnealingLR": "pb.optim.schedules.Cosine",
        "ExponentialLR": "pb.optim.schedules.Exponential",
        "LambdaLR": "pb.optim.Scheduler(optimizer, function)",
        "LinearLR": "pb.optim.schedules.Linear",
        "OneCycleLR": "pb.optim.schedules.OneCycle",
        "ReduceLROnPlateau": "pb.optim.schedules.Plateau",
        "StepLR": "pb.optim.schedules.Step",
        "clip_grad_norm_": "pb.optim.clip_global_norm",
        "clip_grad_value_": "pb.optim.clip_value",
        "lr_scheduler": "pb.optim.schedules` with `pb.optim.Scheduler",
        "swa_utils": "pb.optim.ExponentialMovingAverage",
    },
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have.

    >>> from pullback.pytorch_names import missing
    >>> print(missing("pullback", "cat"))
    module 'pullback' has no attribute 'cat'. Write `pb.concat`.
    """
    instead = _INSTEAD[module].get(name)
    write = f". Write `{instead}`." if instead else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{write}", name=name)
