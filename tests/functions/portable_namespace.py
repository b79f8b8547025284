"""A namespace whose network kernels are the portable ones, run by NumPy's kernels for everything else."""

from __future__ import annotations

from pullback.backends.numpy import elementwise, indexing, linear, reductions, shape, sorting
from pullback.backends.protocol import Kernels

PORTABLE = Kernels(*(vars(family) for family in (elementwise, reductions, shape, indexing, linear, sorting)))
