"""Checkpointing: keeping less for the walk, and computing the rest again."""

from .budget import BudgetCheckpointing
from .strategies import BalancedCheckpointing, NoCheckpointing, checkpoint, checkpointing

__all__ = ["BalancedCheckpointing", "BudgetCheckpointing", "NoCheckpointing", "checkpoint", "checkpointing"]
