"""The same bits in every run, also where libraries are faster without."""

from __future__ import annotations

import importlib.util
import os
import threading
from contextlib import contextmanager
from typing import Any, Iterator

_lock = threading.Lock()
_depth = 0  # of blocks that have been entered, in all threads
_before: Any = None


@contextmanager
def deterministic() -> Iterator[None]:
    """Inside, what runs on GPUs gives the same bits in every run.

    On processors everything does anyway, and compiled programs on GPUs do but for one thing: the gradient of
    attention's queries is added up in whatever order its parts are ready. Inside this block attention's gradient takes
    a slower kernel that keeps an order, and PyTorch's eager kernels are those that
    `torch.use_deterministic_algorithms(True)` chooses; an operation that has none raises PyTorch's error. PyTorch knows
    one such setting for the whole process, so this holds in all threads while one is inside.

    JAX decides when it is imported: set `XLA_FLAGS=--xla_gpu_deterministic_ops=true` for its GPUs.

    >>> import pullback as pb
    >>> with pb.deterministic():
    ...     gradient = pb.grad(lambda x: pb.sum(x * x))(pb.tensor([1.0, 2.0]))
    >>> gradient
    tensor([2., 4.])
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _depth, _before
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    with _lock:
        _depth += 1
        if _depth == 1:
            filling = torch.utils.deterministic
            _before = (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
                filling.fill_uninitialized_memory,
            )
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without which PyTorch refuses to multiply
            torch.use_deterministic_algorithms(True)
            filling.fill_uninitialized_memory = False  # all of it is written to


def _leave() -> None:
    global _depth
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    with _lock:
        _depth -= 1
        if _depth == 0:
            is_on, warns, fills = _before
            torch.use_deterministic_algorithms(is_on, warn_only=warns)
            torch.utils.deterministic.fill_uninitialized_memory = fills
