"""The passes that a program goes through on its way to a GPU, beside those that every target has."""

from __future__ import annotations

from ...targets.cuda.target import TARGET
from ..passes import optimize
from ..passes.added_rows import with_added_rows
from ..passes.channels_last import with_channels_last
from ..passes.joined_losses import with_joined_losses
from ..program import Program

FLOPS_PER_BYTE = 128  # that a GPU computes in a product while it reads a byte, in half precision


def prepared(program: Program) -> Program:
    """`program` optimised for a GPU."""
    optimized = with_channels_last(optimize(program), TARGET.abilities.channels_last)
    return with_added_rows(with_joined_losses(optimized))
