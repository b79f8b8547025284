"""`pb.compile`: from a function to programs, one for each kind of arguments, and their calls."""

from .compiled import Compiled, compile
from .verification import compiled

__all__ = ["Compiled", "compile", "compiled"]
