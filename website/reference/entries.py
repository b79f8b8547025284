"""One name of the reference: its signature, and its docstring in parts."""

from __future__ import annotations

import inspect
import re
from typing import Any

from .classes import addresses, methods
from .docstrings import Docstring, parse
from .names import Public, surface
from .signatures import NOT_CALLED, parameters_of, signature
from .source import file_of, link_to, place
from .text import code, inline, linked, named_in, paragraphs, relative

#: What has no docstring of its own.
SAID = {
    "pi": "The ratio of a circle's circumference to its diameter, 3.14159...",
    "e": "Euler's number, 2.71828...",
    "inf": "Infinity.",
    "nan": "Not a number.",
    "newaxis": "None: a new axis of length 1, as an index.",
    "backends.NUMPY": "The backend of NumPy's arrays.",
    "train.Record": "What a callback is told of a step, an epoch or a validation: figures by name.",
    "typing.Operand": "An array, a tensor or a number of Python's: what operations take.",
    "typing.ArrayLike": "An array, a tensor, a number, or a (nested) list or tuple of them.",
    "bool": "True and False.",
}
_MANY = 12
_KINDS = {"int": "integers", "uint": "integers without a sign", "float": "floating-point numbers"}


def docstring_of(name: str, value: Any) -> Docstring:
    """The parts of a docstring; of constants and types, what is said here."""
    if name in SAID:
        return parse(SAID[name])
    if kind := re.fullmatch(r"(u?int|float)(\d+)", name):
        return parse(f"{_KINDS[kind[1]].capitalize()} of {kind[2]} bits.")
    if name == "bfloat16":
        return parse("Floating-point numbers of 16 bits with the range of float32 and fewer digits than float16.")
    if kind := re.fullmatch(r"complex(\d+)", name):
        return parse(f"Complex numbers of two float{int(kind[1]) // 2}.")
    return parse(inspect.getdoc(value) or "")


def summary_of(name: str) -> str:
    """The first line of a docstring, as HTML without links."""
    return inline(" ".join(docstring_of(name, surface()[name].value).summary))


def _summary(value: Any) -> str:
    return inline(" ".join(parse(inspect.getdoc(value) or "").summary))


def table(said: dict[str, str], page: str) -> str:
    """Names as links, and what is said of them; searches find them elsewhere."""
    rows = []
    for name, text in said.items():
        shown = f"<code>pb.{name}</code>" if name in surface() else f"<code>{name.rpartition('.')[2]}</code>"
        rows.append(f'<tr><td><a href="{relative(addresses()[name], page)}">{shown}</a></td><td>{text}</td></tr>')
    head = "<thead><tr><th>Name</th><th>What it is</th></tr></thead>"
    return f'<div class="api-list" data-search-exclude><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def entry(item: Public, level: int, page: str) -> str:
    """A name with its methods, as Markdown: headings, and HTML below them."""
    label = item.name.rpartition(".")[2]
    aliases = "".join(f' <span id="pb.{name}"><code>pb.{name}</code></span>' for name in item.aliases)
    parts = [
        _heading(level, f"pb.{item.name}", label),
        _body(item.name, item.value, item, page, f"<p>Also:{aliases}.</p>" if aliases else ""),
    ]
    if item.name in methods():
        parts.append(_lists(item.name, page))
        for name, value in methods()[item.name].told.items():
            parts.append(_heading(level + 1, f"pb.{item.name}.{name}", f"{label}.{name}"))
            parts.append(_body(f"{item.name}.{name}", value, None, page, ""))
    return "\n\n".join(filter(None, parts))


def _heading(level: int, anchor: str, label: str) -> str:
    shown = anchor if level < 4 and anchor.count(".") < 4 else label
    return f'{"#" * level} `{shown}` {{ #{anchor} data-toc-label="{label}" }}'


def _body(name: str, value: Any, item: Public | None, page: str, more: str) -> str:
    docstring = docstring_of(name, value)
    parameters = [p.name for p in parameters_of(value) or []]
    parts = [f"<p>{inline(' '.join(docstring.summary))}</p>", paragraphs(docstring.description), more]
    for section, lines in docstring.sections.items():
        if section in ("Parameters", "Returns", "Yields", "Raises"):
            parts.append(_fields(section, docstring))
        else:
            parts += [_title(section), paragraphs(lines)] if section != "Examples" else [_examples(lines)]
    text = linked("\n".join(filter(None, parts)), page, named_in(name, parameters))
    return f'<div class="api">\n{_signature(name, value, item, docstring)}\n{text}\n{_source(value, item, page)}</div>'


def _signature(name: str, value: Any, item: Public | None, docstring: Docstring) -> str:
    is_error = isinstance(value, type) and issubclass(value, Exception)
    if name in NOT_CALLED or is_error or name.startswith("typing."):
        return ""
    if item is not None and not (inspect.isroutine(value) or item.is_class):
        return ""
    shown = f"pb.{name}" if item is not None else ".".join(name.split(".")[-2:])
    text = signature(shown, value, "Parameters" not in docstring.sections)
    return code(text, "python").replace('class="highlight"', 'class="highlight signature no-copy"', 1)


def _title(text: str) -> str:
    return f'<p class="api-title">{text}</p>'


def _examples(lines: list[str]) -> str:
    return f"<div data-search-exclude>{_title('Examples')}\n{paragraphs(lines)}</div>"


def _fields(section: str, docstring: Docstring) -> str:
    rows = []
    for found in docstring.entries(section):
        kind = f' <span class="api-kind">{inline(found.kind)}</span>' if found.kind else ""
        names = ", ".join(f"<code>{name}</code>" for name in found.names)
        rows.append(f"<dt>{names}{kind}</dt><dd>{inline(found.said)}</dd>")
    return f'<div data-search-exclude>{_title(section)}\n<dl class="api-fields">{"".join(rows)}</dl></div>'


def _source(value: Any, item: Public | None, page: str) -> str:
    found = place(value, item)
    bases = ""
    if isinstance(value, type):
        known = {public.value: f"pb.{public.name}" for public in surface().values() if public.is_class}
        names = [known.get(base, base.__name__) for base in value.__bases__ if base in known or not _is_ours(base)]
        shown = [f"<code>{name}</code>" for name in names if name not in ("object", "Protocol", "Generic", "dict")]
        bases = linked(f"A kind of {', '.join(shown)}. ", page) if shown else ""
    if not found:
        return f'<p class="api-source" data-search-exclude>{bases}</p>' if bases else ""
    link = relative(link_to(found), page)
    shown_file = "/".join(file_of(found[0]).parts[-2:])
    return f'<p class="api-source" data-search-exclude>{bases}<a href="{link}">Source: {shown_file}</a></p>\n'


def _is_ours(value: type) -> bool:
    return value.__module__.startswith("pullback")


def _lists(name: str, page: str) -> str:
    """The methods that a class shares with others, in lines."""
    parts, lines = methods()[name], []
    if len(parts.told) > 3:
        rows = {f"{name}.{method}": _summary(value) for method, value in parts.told.items()}
        lines.append(table({method: linked(said, page) for method, said in rows.items()}, page))
    if parts.functions:
        links = [_link(f"{name}.{method}", function, page) for method, function in parts.functions.items()]
        lines.append(f"<p>Functions of <code>pb</code> that are methods, too: {', '.join(links)}.</p>")
    if parts.elsewhere:
        links = [_link(f"{name}.{method}", other, page) for method, other in parts.elsewhere.items()]
        lines.append(f"<p>Own form of: {', '.join(links)}.</p>")
    for base, names in parts.inherited.items():
        links = [_link("", f"{base}.{method}", page) for method in names]
        said = ", ".join(links) if len(links) < _MANY else f"{len(links)} methods"
        lines.append(f"<p>From {linked(f'<code>pb.{base}</code>', page)}: {said}.</p>")
    return f'<div class="api-methods" data-search-exclude>{"".join(lines)}</div>' if lines else ""


def _link(anchor: str, target: str | None, page: str) -> str:
    shown = f"<code>{(anchor or target or '').rpartition('.')[2]}</code>"
    if target and target in addresses():
        shown = f'<a href="{relative(addresses()[target], page)}">{shown}</a>'
    return f'<span id="pb.{anchor}">{shown}</span>' if anchor else shown
