"""Where in the user's code something was asked for."""

from __future__ import annotations

import os
import sys

import numpy as np

from .graph import user_frame

_NUMPY = os.path.dirname(np.__file__) + os.sep


def user_site(depth: int = 1) -> str:
    """The innermost line above that is neither Pullback's own nor NumPy's, as "file.py:41"."""
    frame = user_frame(sys._getframe(depth))
    while frame is not None and frame.f_code.co_filename.startswith(_NUMPY):
        frame = user_frame(frame.f_back)
    if frame is None:
        return "somewhere"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
