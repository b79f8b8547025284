"""Hooks: functions of the user's that see, and may replace, a tensor's cotangent during a walk."""

from __future__ import annotations

import weakref
from typing import Any, Callable

from .graph import Node

changes = [0]  # how often a hook was put somewhere or taken away
hooks: weakref.WeakKeyDictionary[Node, list[Callable[[Any], Any]]] = weakref.WeakKeyDictionary()


def hooks_of(nodes: list[Node]) -> dict[Node, list[Callable[[Any], Any]]]:
    """The hooks on any of `nodes` and their inputs."""
    inputs = (parent for node in nodes for parent in node.inputs)
    return {node: list(hooks[node]) for node in (*nodes, *inputs) if node in hooks}


class HookHandle:
    """Returned by `Tensor.register_hook`; `remove()` takes the hook away."""

    def __init__(self, node: Node, hook: Callable[[Any], Any]) -> None:
        self._node = weakref.ref(node)
        self._hook = hook

    def remove(self) -> None:
        node = self._node()
        if node is not None and self._hook in hooks.get(node, ()):
            changes[0] += 1
            hooks[node].remove(self._hook)
            if not hooks[node]:
                del hooks[node]


def register(node: Node, hook: Callable[[Any], Any]) -> HookHandle:
    changes[0] += 1
    hooks.setdefault(node, []).append(hook)
    return HookHandle(node, hook)
