"""Guards: what a traced function has read of Python's state, and whether it would read the same again.

With equal reads Python repeats itself. A `Recorder` listens while the function runs; what is about to be read is noted
before it is. `Guards` are made of the notes: run right after the trace they find effects, run before a call changes.
"""

from . import library, values
from .guard_set import Guards
from .listening import Listener, listening
from .recorder import Recorder

__all__ = ["Guards", "Listener", "Recorder", "library", "listening", "values"]
