"""Where in the user's code something was asked for."""

from __future__ import annotations

import os
import sys

from ...autodiff.graph import user_frame


def user_site(depth: int = 1) -> str:
    """The innermost line above that is not Pullback's own, as "file.py:41"."""
    frame = user_frame(sys._getframe(depth))
    if frame is None:
        return "somewhere"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
