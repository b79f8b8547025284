"""Signatures as they are read: types are short, and left out where the list of parameters has them."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

from .names import function_of

_WIDTH = 76
_BLANK = "\0"  # one that no line is broken at
_SHORT = {
    r"\btyping\.|\bnp\.": "",
    r"\b(ArrayLike|Operand)\b": "array",
    r"\bstr \| os\.PathLike\[str\]|\bPath \| str\b|\bstr \| Path\b": "path",
    r"\bCallable(\[.*\])?": "callable",
    r"\bSequence\[(\w+)\]": r"sequence of \1",
    r"\bIterable\[(\w+)\]": r"iterable of \1",
    r"\bDerivative\[.*\]|\bValueAndDerivative\[.*\]|\bFunction\b": "callable",
}
#: Classes that are not made by calling them.
NOT_CALLED = {"Tensor", "random.State", "backends.Kernels"}


def short(annotation: Any) -> str:
    """A type for people; nothing, where it says nothing."""
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    for pattern, instead in _SHORT.items():
        text = re.sub(pattern, instead, text)
    text = text.strip("'\"")
    return "" if re.fullmatch(r"Any( \| None)?", text) or len(text) > 40 else text


def parameters_of(value: Any) -> list[inspect.Parameter] | None:
    """The parameters, those of a call: without `self`; None for what is not called."""
    if isinstance(value, property):
        return None
    called = getattr(value, "__func__", value)
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        return None
    if isinstance(value, type) and [str(p).partition(":")[0] for p in parameters] == ["*args", "**kwargs"]:
        return []  # a module without a constructor of its own
    return parameters[1:] if parameters and parameters[0].name in ("self", "cls") else parameters


def signature(shown: str, value: Any, with_types: bool) -> str:
    """`shown` is what is called; a property is shown with its type alone."""
    parameters = parameters_of(value)
    made = "" if isinstance(value, type) else _result(function_of(value))
    if parameters is None:
        return shown + (f": {made}" if made else "")
    arguments = list(_arguments(parameters, with_types))
    end = f") -> {made}" if made and made != "None" else ")"
    line = f"{shown}({', '.join(arguments)}{end}"
    if len(line) <= _WIDTH or not arguments:
        return line
    if with_types:
        return f"{shown}(\n" + "".join(f"    {argument},\n" for argument in arguments) + end
    lines = textwrap.wrap(", ".join(argument.replace(" ", _BLANK) for argument in arguments), _WIDTH - 4)
    return f"{shown}(\n" + "".join(f"    {line}\n" for line in lines).replace(_BLANK, " ") + end


def _result(function: Any) -> str:
    try:
        return short(inspect.signature(function).return_annotation)
    except (TypeError, ValueError):
        return ""


def _arguments(parameters: list[inspect.Parameter], with_types: bool) -> Any:
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    is_named_only = False
    for number, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            is_named_only = True
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_named_only:
            is_named_only = True
            yield "*"
        kind = short(parameter.annotation) if with_types else ""
        text = stars.get(parameter.kind, "") + parameter.name + (f": {kind}" if kind else "")
        if parameter.default is not inspect.Parameter.empty:
            text += f"{' = ' if kind else '='}{_default(parameter.default)}"
        yield text
        after = parameters[number + 1] if number + 1 < len(parameters) else None
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            if after is None or after.kind is not inspect.Parameter.POSITIONAL_ONLY:
                yield "/"


def _default(value: Any) -> str:
    if isinstance(value, type) or callable(value):
        return str(getattr(value, "__name__", "..."))
    text = repr(value)
    return "..." if " at 0x" in text or len(text) > 40 else text
