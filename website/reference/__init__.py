"""The API reference: pages made of what is public and its docstrings, as texts by their paths.

Nothing here needs MkDocs; `website.hooks` hands the pages to it.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from .classes import addresses, methods
from .command_line import command_line
from .entries import entry, summary_of, table
from .families import GROUPS, PAGES, Page, placed
from .names import Public, surface
from .source import link_to, page_of, place, source_page
from .text import copyable, linked, named_here

__all__ = ["addresses", "copyable", "linked", "named_here", "nav", "pages", "surface"]

DOCS = Path(__file__).parents[2] / "docs"
COMMAND_LINE = "reference/command_line.md"
#: Who searches for a name finds it here first, and then in the guides.
_FIRST = "---\nsearch:\n  boost: 2\n---\n\n"


@functools.cache
def pages() -> dict[str, str]:
    """All pages by their paths in the site: Markdown of the reference, HTML of the source."""
    found = {"reference/index.md": _index(), COMMAND_LINE: command_line()}
    found |= {page.path: _FIRST + _page(page) for page in PAGES}
    modules: dict[str, dict[str, str]] = {}
    for item in surface().values():
        if (where := place(item.value, item)) is not None:
            modules.setdefault(where[0], {})[item.name] = addresses()[item.name]
        for value in methods()[item.name].told.values() if item.name in methods() else ():
            if (where := place(value)) is not None:
                modules.setdefault(where[0], {})
    return found | {page_of(module): source_page(module, links) for module, links in modules.items()}


def nav() -> list[object]:
    """The reference in the form of MkDocs' `nav`."""
    groups: list[object] = [{name: [{p.title: p.path} for p in group]} for name, group in GROUPS.items()]
    return ["reference/index.md", *groups, {"The command line": COMMAND_LINE}]


def _page(page: Page) -> str:
    parts = [f"# {page.title}", page.said]
    if page.guides:
        links = [f"[{_title(DOCS / f'{name}.md')}](../{name}.md)" for name in page.guides]
        parts.append(f"How to use it: {', '.join(links)}.")
    if page.name == "nn":
        parts.append(_layers(page))
    for title, items in placed()[page.name].items():
        if items:
            parts += [f"## {title}"] * bool(title)
            parts += [_table(items, page.path)] * (len(items) > 1)
            parts += [entry(item, 3 if title else 2, page.path) for item in items]
    return "\n\n".join(parts) + "\n"


def _title(page: Path) -> str:
    """The heading of a page of the docs."""
    found = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE) if page.exists() else None
    return found[1] if found else page.stem.replace("_", " ").capitalize()


def _table(items: list[Public], page: str) -> str:
    return table({item.name: linked(summary_of(item.name), page) for item in items}, page)


def _layers(here: Page) -> str:
    """The names of all layers, section by section."""
    rows = []
    for page in [page for page in GROUPS["Modules"] if page is not here and page.name != "nn_init"]:
        for title, items in placed()[page.name].items():
            names = [linked(f"<code>pb.{item.name}</code>", here.path).replace(">pb.nn.", ">") for item in items]
            rows.append(f"<tr><td>{title}</td><td>{', '.join(names)}</td></tr>")
    table = f"<table><thead><tr><th>Layers</th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"## All layers {{ #layers }}\n\n<div data-search-exclude>{table}</div>"


def _index() -> str:
    parts = [
        "# Reference",
        "Every public name, by what it is for. Search finds them, too. The examples show what they print, and all are "
        "tested. `help(pb.grad)` shows the same in a terminal.",
        "Looking for [layers](nn.md#layers), [optimizers](optim.md#optimizers), [schedules](optim.md#schedules), "
        "[losses](losses.md), [activations](activations.md), [functions of elements](elementwise.md), "
        "[gradients](transforms.md), [the methods of a tensor](tensor.md), [errors](errors.md) or "
        "[the command line](command_line.md)?",
    ]
    for name, group in GROUPS.items():
        parts.append(f"## {name}")
        for page in group:
            items = [item for found in placed()[page.name].values() for item in found]
            parts += [f"### [{page.title}]({page.name}.md)", page.said, _table(items, "reference/index.md")]
    return "\n\n".join(parts) + "\n"
