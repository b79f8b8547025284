"""Text of docstrings as HTML, and names in texts as links."""

from __future__ import annotations

import html
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterable

from .classes import address_of
from .source import highlighted

_CODE = re.compile(r"<pre\b.*?</pre>|<a\b.*?</a>|<h[1-6]\b.*?</h[1-6]>|<code>(?P<code>[^<]+)</code>", re.DOTALL)
_NAME = re.compile(r"@?(?P<name>[A-Za-z_][\w.]*)(?P<call>\(.*\))?:?", re.DOTALL)


def named_here(text: str) -> str | None:
    """What a piece of code on a page of the site names: `pb.grad`, `pb.grad(f)`, `pullback.nn.Linear`."""
    match = _NAME.fullmatch(text)
    if not match or match["name"].partition(".")[0] not in ("pb", "pullback"):
        return None
    return address_of(match["name"].partition(".")[2])


def named_in(owner: str, parameters: Iterable[str]) -> Callable[[str], str | None]:
    """What a piece of code in the docstring of `owner` names: a name of its class, of its namespace, or of `pb`."""
    spaces = [owner.rpartition(".")[0], owner, owner.rpartition(".")[0].rpartition(".")[0], ""]
    spaces = list(dict.fromkeys(spaces))
    own = {parameter.strip("*") for parameter in parameters}

    def address(text: str) -> str | None:
        match = _NAME.fullmatch(text)
        if not match or match["name"] in own:
            return None
        if match["name"].partition(".")[0] in ("pb", "pullback"):
            found = named_here(text)
        else:
            wanted = [f"{space}.{match['name']}".lstrip(".") for space in spaces]
            found = next((place for place in map(address_of, wanted) if place and "#" in place), None)
        return None if found and found.endswith(f"#pb.{owner}") else found

    return address


def linked(text: str, page: str, address: Callable[[str], str | None] = named_here) -> str:
    """HTML of a page, with code that names something public as a link to its place in the reference."""

    def replaced(match: re.Match[str]) -> str:
        place = match["code"] and address(html.unescape(match["code"]))
        return f'<a class="ref" href="{relative(place, page)}">{match[0]}</a>' if place else match[0]

    return _CODE.sub(replaced, text)


def copyable(text: str) -> str:
    """HTML whose examples with prompts copy as code that runs: without prompts, outputs and tracebacks."""

    def replaced(match: re.Match[str]) -> str:
        shown = html.unescape(re.sub(r"<[^>]+>", "", match["code"]))
        found = re.findall(r"^>>> .*(?:\n\.\.\.(?: .*)?$)*", shown, re.MULTILINE)
        run = "\n".join(line[4:] for block in found for line in block.split("\n"))
        return f'<div data-copy="{html.escape(run)}"{match[0][4:]}' if run else match[0]

    return re.sub(r'<div class="[^"]*highlight[^>]*><pre>(?P<code>.*?)</pre>', replaced, text, flags=re.DOTALL)


def relative(place: str, page: str) -> str:
    """An address in the site, from a page of it."""
    return posixpath.relpath(place, posixpath.dirname(page) or ".")


def inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def paragraphs(lines: list[str]) -> str:
    """Paragraphs, lists, examples and indented code."""
    parts = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    return "\n".join(_block(part) for part in parts if part.strip())


def _block(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return code(textwrap.dedent(text), "pycon")
    if text.startswith("    "):
        return code(textwrap.dedent(text), "text")
    if text.startswith("- "):
        items = re.split(r"\n(?=- )", text)
        return "<ul>" + "".join(f"<li>{inline(' '.join(item[2:].split()))}</li>" for item in items) + "</ul>"
    return f"<p>{inline(' '.join(text.split()))}</p>"


def code(text: str, language: str) -> str:
    shown = highlighted(text.rstrip(), language).rstrip()
    return f'<div class="highlight" data-search-exclude><pre><code>{shown}\n</code></pre></div>'
