"""Write `src/pullback/tensor/declarations.pyi`: for type checkers, what is attached to Tensor outside its class body.

Operators and methods are attached at import, from the families' modules; a type checker sees none of that. Run this
after adding a method; a test compares the file with the class.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import pullback as pb

FOLDER = Path(__file__).parents[1] / "src" / "pullback" / "tensor"
CORE = FOLDER / "core.py"
PATH = FOLDER / "declarations.pyi"

HEADER = '''\
"""What is attached to Tensor outside its class body, for type checkers. Made by scripts/declare_tensor.py."""

from typing import Any, Callable, Iterable, Iterator, Literal, Sequence

from ..autodiff.custom import BackwardOp
from ..autodiff.hooks import HookHandle
from ..dtypes import DType
from .core import Tensor

class Attached:
'''

# What annotations in the file may name; one that names anything else becomes Any.
KNOWN = {"Any", "Callable", "Iterable", "Iterator", "Literal", "Sequence", "BackwardOp", "HookHandle", "DType"}
KNOWN |= {"Tensor", "None"}
KNOWN |= {"bool", "int", "float", "complex", "str", "bytes", "object", "tuple", "list", "dict", "type"}
RESULTS = {"__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex", "__index__": "int"}
RESULTS |= {"__len__": "int", "__repr__": "str", "__str__": "str", "__format__": "str", "__hash__": "int"}
OPERATORS = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"}
OPERATORS |= {"eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "nvert", "shift"}
# object has these with a narrower type
NARROWER = ("__eq__", "__ne__")


def text() -> str:
    lines = [declaration(name, value) for name, value in sorted(attached().items())]
    return HEADER + "\n".join(lines) + "\n"


def attached() -> dict[str, Any]:
    """The members of Tensor that its class body does not have."""
    body = next(node for node in ast.parse(CORE.read_text()).body if getattr(node, "name", "") == "Tensor")
    own = {node.name for node in ast.walk(body) if isinstance(node, ast.FunctionDef)}
    return {
        name: value
        for name, value in vars(pb.Tensor).items()
        if isinstance(value, FunctionType | property) and name not in own
    }


def declaration(name: str, value: Any) -> str:
    if isinstance(value, property):
        kind = annotation(inspect.signature(value.fget).return_annotation, "Any")
        return f"    @property\n    def {name}(self) -> {kind}: ..."
    signature = inspect.signature(value)
    parameters = [*signature.parameters.values()][1:]
    result = RESULTS.get(name) or annotation(signature.return_annotation, "Tensor")
    if name.strip("_").removeprefix("r").removeprefix("i") in OPERATORS:
        result = "Tensor"  # where it is NotImplemented, Python raises
    ignore = "  # type: ignore[override]" if name in NARROWER else ""
    return f"    def {name}({', '.join(['self', *parameter_list(parameters, name)])}) -> {result}: ...{ignore}"


def parameter_list(parameters: list[inspect.Parameter], name: str) -> list[str]:
    written: list[str] = []
    positional_only = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    has_star = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not has_star:
            written.append("*")
            has_star = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        has_star = has_star or prefix == "*"
        default = "" if p.default is p.empty else " = ..."
        written.append(f"{prefix}{p.name}: {annotation(p.annotation, 'Any')}{default}")
        if positional_only and p is positional_only[-1]:
            written.append("/")
    return written


def annotation(value: Any, otherwise: str) -> str:
    """An annotation as it is written, if the file knows its names; `otherwise` where there is none."""
    if not isinstance(value, str):
        return otherwise
    names = set(re.findall(r"[A-Za-z_][\w.]*", re.sub(r"\"[^\"]*\"|'[^']*'", "", value)))
    return value if names <= KNOWN else "Any"


if __name__ == "__main__":
    PATH.write_text(text())
    print(f"{PATH}: {len(attached())} members")
