"""The bar of a run in a notebook: a piece of HTML that is replaced while the run goes on."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from ..markup import escaped

if TYPE_CHECKING:
    from .progress import Status

__all__ = ["NotebookBar", "in_notebook"]

_LINES = 5  # of the last epochs, below the bar
_COLOURS = {"": "#2563eb", "finished": "#059669", "stopped": "#d97706", "failed": "#dc2626"}


def in_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter's, whose front ends show HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """What the status says, as the output of a cell."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._handle: Any = None
        self.console = self  # as a bar of rich's has one to print above it

    def print(self, text: str, **how: Any) -> None:
        """Show a line with the bar; the last few stay."""
        self._lines.append(text)

    def refresh(self) -> None:
        """Show how it is now."""
        from IPython.display import HTML, display

        content = HTML(self.html())
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)

    def stop(self) -> None:
        """It stays in the notebook as it is."""

    def html(self) -> str:
        """The bar, what is known of the run, and the last lines; in colours of its own, on whatever is behind it."""
        status = self._status
        ending = status.ending
        colour = _COLOURS[ending.status if ending else ""]
        first, *rest = status.parts()
        share = min(1.0, status.at / status.total) if status.total else float(ending is not None)
        bar = (
            f'<div style="height:6px;border-radius:3px;background:#8883;margin:6px 0;max-width:640px">'
            f'<div style="height:6px;border-radius:3px;width:{100 * share:.4g}%;background:{colour}"></div></div>'
        )
        badge = f'<b style="color:{colour}">{escaped(ending)}</b> \u00b7 ' if ending else ""
        words = " \u00b7 ".join(f'<span style="white-space:nowrap">{escaped(part)}</span>' for part in rest)
        lines = "".join(f"<div>{escaped(line)}</div>" for line in self._lines)
        below = f'<div style="opacity:.65;font-size:12px;margin-top:4px">{lines}</div>' if lines else ""
        return (
            f'<div style="font:13px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums;padding:2px 0">'
            f"{badge}<b>{escaped(first)}</b> \u00b7 {words}{bar}{below}</div>"
        )
