"""What a notebook shows of a module: the tree of its layers with shapes and bytes, to open where one likes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..markup import bytes_text, card, escaped, folded, heading, shape_text, table

if TYPE_CHECKING:
    from .module import Module

_MOST = 200  # modules and tensors that are shown
_DEEPEST = 40  # modules within each other
_PARAMETER = "parameter"


@dataclass
class _Branch:
    """A module as it is shown; equal ones in a row are shown once."""

    kind: str
    about: str = ""
    tensors: list[tuple[str, ...]] = field(default_factory=list)
    children: list[tuple[str, _Branch]] = field(default_factory=list)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict, compare=False)  # of each tensor, once: see `total`
    total: tuple[int, int] = (0, 0)  # numbers that are learned or frozen, and bytes of all tensors


def html(module: Module) -> str:
    """A card about a module."""
    branch = _branch(module)
    frozen = sum(tensor.size for tensor in module.parameters() if not tensor.requires_grad)
    notes = [f"{branch.total[0]:,} parameters", bytes_text(branch.total[1])]
    notes += [f"{frozen:,} of them frozen"] if frozen else []
    notes += sorted({tensor.device for tensor in (*module.parameters(), *module.buffers())} - {"numpy"})
    notes += [] if module.training else ["evaluation mode"]
    about = [branch.about] if branch.about else []
    return card(heading(branch.kind, [*about, *notes]), tree(module))


def tree(module: Module) -> str:
    """What is in a module, without a heading for itself."""
    shown = _Room()
    return shown.inside(_branch(module))


class _Room:
    """How much may still be shown."""

    def __init__(self) -> None:
        self.left = _MOST

    def inside(self, branch: _Branch) -> str:
        rows = branch.tensors[: max(0, self.left)]
        self.left -= len(rows)
        parts = [table(["", "", "", " ", ""], rows)] if rows else []
        omitted = len(branch.tensors) - len(rows)
        for _, same in groupby(branch.children, key=lambda child: _Key(child[1])):
            found = list(same)
            if self.left <= 0:
                omitted += len(found)
                continue
            self.left -= 1
            parts.append(self._child([name for name, _ in found], found[0][1]))
        if omitted:
            parts.append(f'<div style="opacity:.7">and {omitted:,} more</div>')
        return "".join(parts)

    def _child(self, names: list[str], branch: _Branch) -> str:
        count = len(names)
        name = names[0] if count == 1 else f"{names[0]} \u2013 {names[-1]}"
        times = f"{count} \u00d7 " if count > 1 else ""
        numbers, size = branch.total
        what = f"{numbers:,} parameters \u00b7 {bytes_text(size)}" if size else ""
        each = " each" if count > 1 and what else ""
        about = f" {branch.about}" if branch.about else ""
        about += f" \u00b7 {what}{each}" if what else ""
        line = (
            f"<code>{escaped(name)}</code> {times}<b>{escaped(branch.kind)}</b>"
            f'<span style="opacity:.7">{escaped(about)}</span>'
        )
        if branch.tensors or branch.children:
            return folded(line, self.inside(branch))
        return f'<div style="margin:2px 0 0 16px">{line}</div>'


class _Key:
    """Branches in a row that are equal are one group; large ones are compared, never hashed."""

    def __init__(self, branch: _Branch) -> None:
        self.branch = branch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.branch == other.branch


def _branch(module: Module, place: str = "", depth: int = 0, seen: dict[int, str] | None = None) -> _Branch:
    kind = type(module).__name__
    seen = {} if seen is None else seen
    if id(module) in seen:
        return _Branch(kind, f"(the same as {seen[id(module)] or 'all of it'})")
    if depth == _DEEPEST:
        return _Branch(kind, "...")
    seen[id(module)] = place
    branch = _Branch(kind, module.extra_repr())
    for path, value in module._entries():
        if path in module._slots or not hasattr(value, "extra_repr"):
            role = module._kind(path, value) if hasattr(value, "is_leaf") else "value"
            if role is not None:
                branch.tensors.append(_row(path, role, value))
                size = (value.size if role == _PARAMETER else 0, value.nbytes) if role != "value" else (0, 0)
                branch.sizes[id(value)] = size
        else:
            child = _branch(value, f"{place}.{path}" if place else path, depth + 1, seen)
            branch.children.append((path, child))
            branch.sizes |= child.sizes
    counts = branch.sizes.values()
    branch.total = sum(count for count, _ in counts), sum(size for _, size in counts)
    return branch


def _row(path: str, role: str, value: Any) -> tuple[str, ...]:
    if role == "value":  # of a tree whose leaves are not tensors
        return path, type(value).__name__, "", "", ""
    note = "" if role == _PARAMETER and value.requires_grad else "frozen" if role == _PARAMETER else role
    return path, shape_text(value.shape), value.dtype.name, bytes_text(value.nbytes), note
