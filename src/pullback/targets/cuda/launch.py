"""Launches of kernels of Triton's."""

from __future__ import annotations

from typing import Any, NamedTuple


class Launch(NamedTuple):
    """A kernel of Triton's, how many programs it has, and its arguments."""

    function: Any
    programs: int
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def run(self) -> None:
        self.function[(self.programs,)](*self.arguments, enable_fp_fusion=True, **self.options)

    def compiled(self) -> Any:
        """Triton's kernel, compiled and not loaded."""
        return self.function.warmup(*self.arguments, grid=(self.programs,), enable_fp_fusion=True, **self.options)
