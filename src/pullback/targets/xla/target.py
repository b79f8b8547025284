"""The target of JAX's devices: processors, GPUs and TPUs."""

from __future__ import annotations

import importlib.util
from typing import Any, Callable

from ..llvm.target import TARGET as PROCESSOR


class XlaTarget:
    """Functions of arrays of JAX's, compiled by XLA."""

    name = "xla"

    def missing(self) -> str | None:
        if importlib.util.find_spec("jax") is None:
            return "jax: `pip install jax`"
        return PROCESSOR.missing()  # which looks at guards

    def compile(self, function: Callable[..., Any], shardings: Any = None) -> Callable[..., Any]:
        """`function(given, donated)` as one program, which may write its second result over what is in `donated`.

        `shardings` are those of this second result, if it is to be spread over devices as its inputs are.
        """
        import jax

        if shardings is None:
            return jax.jit(function, donate_argnums=1)
        return jax.jit(function, donate_argnums=1, out_shardings=(None, shardings))


TARGET = XlaTarget()
