"""The source of the modules that define public names, as plain pages with an anchor at each line."""

from __future__ import annotations

import ast
import functools
import html
import importlib
import inspect
from pathlib import Path
from typing import Any

import pullback as pb

from .names import Public, function_of

FOLDER = Path(pb.__file__).parent


@functools.cache
def file_of(module: str) -> Path:
    """The file of a module, which is named without `pullback.`."""
    path = FOLDER / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def page_of(module: str) -> str:
    """The address of a module's page in the site."""
    return f"source/pullback/{file_of(module).relative_to(FOLDER).with_suffix('.html').as_posix()}"


@functools.cache
def definitions(module: str) -> dict[str, int]:
    """The lines at which a module defines names, those in classes with these in front."""
    found: dict[str, int] = {}

    def visit(statements: list[ast.stmt], owner: str) -> None:
        for node in statements:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[owner + node.name] = node.lineno
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{owner}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]:
                    found.setdefault(owner + name.id, node.lineno)
            elif isinstance(node, ast.If | ast.Try):
                visit([*node.body, *node.orelse], owner)

    visit(ast.parse(file_of(module).read_text()).body, "")
    return found


def place(value: Any, item: Public | None = None) -> tuple[str, int] | None:
    """The module and the line that define a function, a class, a method, or else a public name."""
    value = function_of(value)
    value = inspect.unwrap(value) if inspect.isroutine(value) else value
    value = getattr(value, "__func__", value)  # functions of `pb.random` are those of its generator
    if inspect.isfunction(value) or isinstance(value, type):
        module, name = str(value.__module__).removeprefix("pullback").lstrip("."), value.__qualname__
    elif item is not None:
        module, name = item.module, item.name.rpartition(".")[2]
    else:
        return None
    line = definitions(module).get(name) or definitions(module).get(f"{name}_")  # `bool` is `bool_` at its definition
    if line is None and inspect.isfunction(value):
        line = value.__code__.co_firstlineno
    return None if line is None else (module, line)


def link_to(place: tuple[str, int]) -> str:
    return f"{page_of(place[0])}#L-{place[1]}"


def highlighted(code: str, language: str) -> str:
    """Code as HTML; as it is, where Pygments is not installed."""
    try:
        pygments = importlib.import_module("pygments")
        lexers = importlib.import_module("pygments.lexers")
        formatters = importlib.import_module("pygments.formatters")
    except ModuleNotFoundError:
        return html.escape(code)
    return str(pygments.highlight(code, lexers.get_lexer_by_name(language), _formatter(formatters)))


@functools.cache
def _formatter(formatters: Any) -> Any:
    return formatters.HtmlFormatter(nowrap=True)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>{title} - Pullback</title>
<link rel="icon" href="{up}assets/images/favicon.png">
<link rel="stylesheet" href="{up}assets/source.css">
<script src="{up}assets/source.js" data-site="{up}"></script>
</head>
<body>
<header><p><a href="{up}index.html">Pullback</a> / <a href="{up}reference/index.html">Reference</a> / source</p>
<h1>{title}</h1>
<p>{names}</p></header>
<pre class="highlight"><code>{code}</code></pre>
</body>
</html>
"""


def source_page(module: str, links: dict[str, str]) -> str:
    """The page of a module; `links` lead from the names that it defines to the reference."""
    path = page_of(module)
    up = "../" * path.count("/")
    code = file_of(module).read_text()
    lines = highlighted(code, "python").rstrip("\n").split("\n")
    shown = "\n".join(f'<span id="L-{number}">{line or " "}</span>' for number, line in enumerate(lines, 1))
    names = " ".join(f'<a href="{up}{link}"><code>pb.{name}</code></a>' for name, link in sorted(links.items()))
    return _PAGE.format(title=path.removeprefix("source/").replace(".html", ".py"), up=up, names=names, code=shown)
