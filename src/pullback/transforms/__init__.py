"""Transforms of functions: grad, vjp, jvp and what is made of them."""

from __future__ import annotations

from .forward import hessian, hvp, jacfwd, jvp
from .reverse import grad, jacrev, stop_gradient, value_and_grad, vjp
from .vmap import vmap

__all__ = ["grad", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "stop_gradient", "value_and_grad", "vjp", "vmap"]
