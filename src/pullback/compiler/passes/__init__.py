"""Optimisation: passes that make of a program another one that computes the same with less.

A pass is a function from a program to a program. It changes nothing in the one it is given, and returns that very one
if it has found nothing to do.
"""

from .pipeline import optimize

__all__ = ["optimize"]
