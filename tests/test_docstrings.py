"""`help()` is enough to call a public name: every docstring says what to pass and shows an example."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, is_typeddict

import pullback as pb
from tests.first_names import FIRST_NAMES

NAMESPACES = (
    "", "nn", "nn.init", "optim", "optim.schedules", "data", "train", "linalg", "fft", "random", "tree", "models",
    "peft", "quant",
)  # fmt: skip
SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Notes", "Examples")
#: Arguments that mean the same everywhere, which the docstring of `pullback` explains.
FAMILIAR = {"x", "y", "x1", "x2", "axis", "keepdims", "dtype", "device", "generator", "shape"}
#: Classes whose methods the engine calls, not users: see `backends.protocol` and `autodiff.checkpointing`.
BACKENDS = {"Autodiff", "NoCheckpointing", "BalancedCheckpointing", "BudgetCheckpointing"}
#: Classes whose methods are shown by examples, too.
SHOWN = {"Tensor", "Gradients", "nn.Module"}


class Entry(NamedTuple):
    """Parameters of one kind and what is said of them; a result has its type for a name."""

    names: list[str]
    kind: str
    said: str


class Docstring(NamedTuple):
    summary: list[str]
    sections: dict[str, list[str]]

    def entries(self, section: str) -> list[Entry]:
        found: list[Entry] = []
        for line in self.sections[section]:
            if line and not line.startswith(" "):
                names, _, kind = line.partition(" : ")
                found.append(Entry(names.split(", "), kind, ""))
            elif found:
                found[-1] = found[-1]._replace(said=f"{found[-1].said} {line.strip()}".strip())
        return found


def parse(text: str) -> Docstring:
    lines = text.splitlines()
    end = lines.index("") if "" in lines else len(lines)
    sections: dict[str, list[str]] = {}
    for line, below in zip(lines, [*lines[1:], ""]):
        if below and set(below) == {"-"}:
            current = sections.setdefault(line, [])
        elif sections and set(line) != {"-"}:
            current.append(line)
    return Docstring(lines[:end], sections)


def members(name: str, value: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, those of our base classes included."""
    for attribute in dir(value):
        found = inspect.getattr_static(value, attribute)
        if isinstance(found, staticmethod | classmethod):
            found = found.__func__
        called = found.fget if isinstance(found, property) else found
        if not attribute.startswith("_") and inspect.isfunction(called):
            if str(getattr(called, "__module__", "")).startswith("pullback"):
                yield f"{name}.{attribute}", found


@functools.cache
def public() -> dict[str, Any]:
    """Public functions and classes by name, and the methods of the classes; what has two names is there once."""
    found: dict[str, Any] = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(f"pullback.{namespace}".rstrip("."))
        for name in sorted(getattr(module, "__all__", dir(module))):
            value = getattr(module, name)
            is_ours = str(getattr(value, "__module__", "")).startswith("pullback")
            is_called = inspect.isroutine(value) or (isinstance(value, type) and not is_typeddict(value))
            if not name.startswith("_") and is_ours and is_called:
                found[f"{namespace}.{name}".lstrip(".")] = value
    classes = [(name, value) for name, value in found.items() if isinstance(value, type)]
    for name, value in sorted(classes, key=lambda pair: len(pair[1].__mro__)):  # a method belongs to a base class
        found |= dict(members(name, value))
    return {name: value for value, name in {value: name for name, value in reversed(found.items())}.items()}


def value_of(name: str) -> Any:
    *owners, last = name.split(".")
    owner: Any = functools.reduce(getattr, owners, pb)
    return inspect.getattr_static(owner, last) if isinstance(owner, type) else getattr(owner, last)


def text_of(name: str) -> str:
    return inspect.getdoc(value_of(name)) or ""


def parameters_of(value: Any) -> list[str]:
    """The names of a function's parameters, as numpydoc writes them."""
    if isinstance(value, property):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    signature = inspect.signature(getattr(value, "__func__", value))
    names = [stars.get(p.kind, "") + p.name for p in signature.parameters.values()]
    if names == ["*args", "**kwargs"] and isinstance(value, type):
        return []  # a module without a constructor of its own
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def is_function(name: str) -> bool:
    """Whether a name is called for itself: a function or a class, no method and no exception."""
    return not isinstance(value_of(name.rpartition(".")[0] or "tensor"), type) and not is_exception(value_of(name))


NAMES = sorted(public())
FUNCTIONS = [name for name in NAMES if is_function(name)]


def pointed_at(text: str, name: str) -> str:
    """The docstrings of the public names that a text mentions, as in "see `pb.conv2d`"."""
    namespace = name.rpartition(".")[0]
    texts = []
    for mentioned in re.findall(r"`([\w.]+)`", text):
        for candidate in (mentioned.removeprefix("pb."), f"{namespace}.{mentioned}"):
            with contextlib.suppress(AttributeError):
                texts.append(text_of(candidate))
    return "\n".join(texts)


def is_named(parameter: str, text: str) -> bool:
    """Whether a text says something of a parameter; letters alone could be anything."""
    word = re.escape(parameter.strip("*"))
    marked = rf"`[^`]*\b{word}\b[^`]*`|\b{word}=|^[\w, ]*\b{word}\b[\w, ]* : "
    return re.search(marked if len(word) < 3 else rf"\b{word}\b", text, re.MULTILINE) is not None


def test_summaries_are_one_sentence_on_one_line():
    summaries = {name: parse(text_of(name)).summary for name in NAMES}
    wrong = {name: lines for name, lines in summaries.items() if len(lines) != 1 or not lines[0].endswith((".", "?"))}
    assert wrong == {}, "the first line of a docstring is a sentence, and the line below it is blank"


def test_docstrings_name_every_parameter():
    """In the text, in that of the class, or in that of what either points to."""
    wrong = {}
    for name in NAMES:
        owner = "" if name in FUNCTIONS else name.rpartition(".")[0]
        if owner in BACKENDS or is_exception(value_of(name)):
            continue
        bases = value_of(owner).__mro__ if owner else ()
        texts = [text_of(name), *(str(inspect.getdoc(base)) for base in bases)]
        known = "\n".join([*texts, *(pointed_at(text, name) for text in texts)])
        wrong[name] = [p for p in parameters_of(value_of(name)) if p not in FAMILIAR and not is_named(p, known)]
    assert {name: missing for name, missing in wrong.items() if missing} == {}, "nothing is said of these parameters"


def test_docstrings_have_an_example():
    """Or they point to one that has."""
    methods = [name for name in NAMES if name.rpartition(".")[0] in SHOWN and inspect.isroutine(value_of(name))]
    wrong = [name for name in FUNCTIONS + methods if ">>>" not in text_of(name) + pointed_at(text_of(name), name)]
    assert wrong == []


def test_sections_are_in_order_and_agree_with_signatures():
    for name in NAMES:
        docstring = parse(text_of(name))
        sections = list(docstring.sections)
        assert sections == [section for section in SECTIONS if section in sections], name
        if "Parameters" in sections:
            entries = docstring.entries("Parameters")
            assert [each for entry in entries for each in entry.names] == parameters_of(value_of(name)), name
            assert [entry.names for entry in entries if not entry.kind] == [], f"{name}: these have no types"


def test_optional_parameters_are_those_whose_default_is_none():
    for name in NAMES:
        docstring, value = parse(text_of(name)), value_of(name)
        for names, kind, _ in docstring.entries("Parameters") if "Parameters" in docstring.sections else ():
            for parameter in names:
                default = inspect.signature(getattr(value, "__func__", value)).parameters[parameter.strip("*")].default
                is_right = "optional" in kind or "None" in kind if default is None else "optional" not in kind
                assert is_right, f"{name}: {parameter} is {default!r} unless given, and its type is said to be {kind}"


def test_first_names_have_all_sections():
    wrong = {}
    for name in FIRST_NAMES:
        value, docstring = value_of(name), parse(text_of(name))
        expected = {"Parameters"} if parameters_of(value) else set()
        if not isinstance(value, type) and inspect.signature(value).return_annotation not in ("None", None):
            expected.add("Returns")
        if expected or ">>>" not in text_of(name):
            expected.add("Examples")
        wrong[name] = sorted(expected - set(docstring.sections))
    assert {name: missing for name, missing in wrong.items() if missing} == {}, "this is missing"
    assert len(set(FIRST_NAMES)) == len(FIRST_NAMES) >= 150
