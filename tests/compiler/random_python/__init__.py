"""Random Python functions over tensors, each from a seed, as source text: compiled they do what they do as they are.

`python -m tests.compiler.random_python FIRST COUNT` runs some and prints those that fail.
"""

from .program import Program, write_program
from .running import failure_of

__all__ = ["Program", "failure_of", "write_program"]
