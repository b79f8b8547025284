"""Hooks: functions of the user's that see, and may replace, a tensor's cotangent during a walk."""

from __future__ import annotations

import weakref
from typing import Any, Callable

from .graph import Node

changes = [0]  # how often a hook was put somewhere or taken away
hooked: weakref.WeakSet[Node] = weakref.WeakSet()  # nodes that have hooks, which they hold themselves


def hooks_of(nodes: list[Node]) -> dict[Node, list[Callable[[Any], Any]]]:
    """The hooks on any of `nodes` and their inputs."""
    inputs = (parent for node in nodes for parent in node.inputs)
    return {node: list(node.hooks) for node in (*nodes, *inputs) if node in hooked}


def hooks_on(node: Node) -> list[Callable[[Any], Any]]:
    """The hooks on a node, in the order in which they are called."""
    return list(node.hooks) if node in hooked else []


class HookHandle:
    """Returned by `Tensor.register_hook`; `remove()` takes the hook away."""

    def __init__(self, node: Node, hook: Callable[[Any], Any]) -> None:
        self._node = weakref.ref(node)
        self._hook = hook

    def remove(self) -> None:
        node = self._node()
        if node is not None and self._hook in hooks_on(node):
            changes[0] += 1
            node.hooks.remove(self._hook)
            if not node.hooks:
                hooked.discard(node)


def register(node: Node, hook: Callable[[Any], Any]) -> HookHandle:
    changes[0] += 1
    if node not in hooked:
        node.hooks = []
        hooked.add(node)
    node.hooks.append(hook)
    return HookHandle(node, hook)
