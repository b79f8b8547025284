"""`help()` is enough to call a public name: every docstring says what to pass and shows an example."""

from __future__ import annotations

import contextlib
import inspect
import re
from typing import Any

from tests.first_names import FIRST_NAMES
from website.reference.docstrings import parse
from website.reference.names import public, text_of, value_of

SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Notes", "Examples")
#: Arguments that mean the same everywhere, which the docstring of `pullback` explains.
FAMILIAR = {"x", "y", "x1", "x2", "axis", "keepdims", "dtype", "device", "generator", "shape"}
#: Classes whose methods the engine calls, not users: see `backends.protocol` and `autodiff.checkpointing`.
BACKENDS = {"Autodiff", "NoCheckpointing", "BalancedCheckpointing", "BudgetCheckpointing"}
#: Classes whose methods are shown by examples, too.
SHOWN = {"Tensor", "Gradients", "nn.Module"}


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
