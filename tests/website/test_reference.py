"""The reference tells every public name once, and its links lead to what they say."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import sys
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import pytest

import pullback as pb
from website import reference
from website.reference.classes import address_of, addresses, methods
from website.reference.docstrings import parse
from website.reference.entries import docstring_of
from website.reference.families import PAGES, placed
from website.reference.names import public, surface
from website.reference.signatures import signature
from website.reference.source import file_of, highlighted, place
from website.reference.text import code, paragraphs

MODULES = ("nn", "optim", "linalg", "random", "train", "train.metrics", "models", "finetune", "backends", "typing")


@pytest.fixture(scope="module")
def files():
    """All pages, as they are without Pygments: coloured code takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pygments", None)
        return reference.pages.__wrapped__()


@pytest.fixture(scope="module")
def anchors(files):
    """The anchors of each page."""
    in_headings = re.compile(r"^#+ .*\{ #(\S+)", re.MULTILINE)
    return {name: in_headings.findall(text) + re.findall(r' id="([^"]+)"', text) for name, text in files.items()}


def test_every_public_name_is_on_one_page(anchors):
    count = Counter(anchor for name in anchors if name.startswith("reference/") for anchor in anchors[name])
    assert [anchor for anchor, times in count.items() if times > 1] == []
    absent = [name for name, item in surface().items() if not all(count[f"pb.{n}"] for n in (name, *item.aliases))]
    assert absent == [], "website/reference/families.py says where they stand"
    assert [name for name in public() if address_of(name) is None] == [], "methods, too"


@pytest.mark.parametrize("namespace", MODULES)
def test_what_a_namespace_lists_is_public(namespace):
    """Found in another way: by `dir`, as an interpreter completes names."""
    module = importlib.import_module(f"pullback.{namespace}")
    names = [name for name in dir(module) if name[0] != "_" and not inspect.ismodule(getattr(module, name))]
    assert [name for name in names if f"{namespace}.{name}" not in addresses()] == []


def test_what_the_package_lists_is_public():
    names = [name for name in dir(pb) if not inspect.ismodule(getattr(pb, name))]
    assert [name for name in names if name not in addresses()] == []


def test_every_name_has_a_summary():
    empty = [name for name, item in surface().items() if not docstring_of(name, item.value).summary]
    assert empty == []
    told = [f"{owner}.{name}" for owner, parts in methods().items() for name in parts.told]
    assert [name for name in told if not parse(pb_doc(name)).summary] == []


def pb_doc(name: str) -> str:
    owner, _, method = name.rpartition(".")
    return inspect.getdoc(methods()[owner].told[method]) or ""


def test_pages_say_something_of_everything(files):
    for page in [page for page in files if page.endswith(".md")]:
        title, *parts = re.split(r"^#{1,4} ", files[page], flags=re.MULTILINE)[1:]
        assert re.match(r".+\n\n\S", title), f"{page}: a title and what the page is about"
        for heading, _, rest in [part.partition("\n") for part in parts if "{ #pb." in part]:
            said = re.search(r'<div class="api">.*?<p>(.*?)</p>', rest, re.DOTALL)
            assert said and said[1].strip(), f"{page}: {heading}"


def test_rules_name_what_there_is():
    modules = {item.module for item in surface().values()}
    for page in PAGES:
        assert any(placed()[page.name].values()), page.name
        for rule in [rule for rules in page.sections.values() for rule in rules.split()]:
            module = rule.removesuffix(".*")
            is_known = rule in surface() or any(f"{found}.".startswith(f"{module}.") for found in modules)
            assert is_known, f"{page.name}: {rule}"
    guides = {guide for page in PAGES for guide in page.guides} - {"start"}
    assert [guide for guide in guides if not (reference.DOCS / f"{guide}.md").exists()] == []


def test_definitions_are_where_links_to_the_source_lead():
    wrong = []
    values = [(name, item.value, item) for name, item in surface().items()]
    values += [(f"{owner}.{name}", v, None) for owner, parts in methods().items() for name, v in parts.told.items()]
    for name, value, item in values:
        found = place(value, item)
        if found is None:
            wrong.append(f"{name}: no link")
            continue
        line = file_of(found[0]).read_text().splitlines()[found[1] - 1]
        last = re.escape(name.rpartition(".")[2])
        if not re.search(rf"^\s*(def|class) {last}\b|^[\w, ]*\b{last}_?\b[\w, ]*( =|: )", line):
            wrong.append(f"{name}: {found}: {line}")
    assert wrong == []


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open += [tag] * (tag not in ("meta", "link"))
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}>"


def test_links_lead_somewhere_and_elements_are_closed(files, anchors):
    for page, text in files.items():
        if page.endswith(".md"):
            text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
        links = Links(text)
        assert links.open == [], page
        for link in links.found:
            target, _, anchor = posixpath.normpath(posixpath.join(posixpath.dirname(page), link)).partition("#")
            name = target if target in files else target.replace(".html", ".md")
            assert name in files or target == "index.html", f"{page}: {link}"
            assert not anchor or anchor in anchors[name], f"{page}: {link}"


def test_names_in_code_become_links():
    html = "<p><code>pb.grad</code> <code>pb.nn.Linear(3, 4)</code> <code>x</code> <code>pb.nothing</code></p>"
    made = reference.linked(html, "tutorials/ode.html")
    assert '<a class="ref" href="../reference/transforms.html#pb.grad"><code>pb.grad</code></a>' in made
    assert 'href="../reference/nn_layers.html#pb.nn.Linear"><code>pb.nn.Linear(3, 4)</code></a>' in made
    assert made.count("<a ") == 2
    for untouched in ("<pre><code>pb.grad</code></pre>", '<a href="x"><code>pb.grad</code></a>'):
        assert reference.linked(untouched, "index.html") == untouched


def test_inherited_methods_lead_to_the_class_that_has_them():
    assert address_of("nn.Linear.state_dict") == "reference/nn.html#pb.nn.Module.state_dict"
    assert address_of("errors.ShapeError") == address_of("ShapeError") == "reference/errors.html#pb.ShapeError"
    assert address_of("nn") == "reference/nn.html"
    assert address_of("nn.Linear.nothing") is None


def test_signatures_are_short():
    text = "pb.conv2d(\n    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1\n) -> Tensor"
    assert signature("pb.conv2d", pb.conv2d, with_types=False) == text
    assert signature("pb.add", pb.add, with_types=True) == "pb.add(x: array, y: array) -> Tensor"
    assert signature("pb.nn.ReLU", pb.nn.ReLU, with_types=False) == "pb.nn.ReLU()"


def test_texts_of_docstrings_become_html():
    html = paragraphs(["Less is `x < y`:", "", "    indented", "", "- one", "- two", "", ">>> 1 + 1", "2"])
    assert html.startswith("<p>Less is <code>x &lt; y</code>:</p>\n")
    assert "<ul><li>one</li><li>two</li></ul>" in html
    assert html.count("<pre>") == 2


def test_code_is_coloured_line_by_line():
    pytest.importorskip("pygments")
    lines = highlighted('"""a\nb"""\n', "python").splitlines()
    assert len(lines) == 2 and all(line.count("<span") == line.count("</span>") == 1 for line in lines)
    assert 'class="gp"' in highlighted(">>> 1\n1\n", "pycon")


def test_examples_are_copied_without_prompts():
    shown = ">>> def f(x):\n...     return x < 1\n...\n>>> f(2)\nFalse\n>>> f('')\nTraceback ...:\n    ...\nError: x"
    html = code(shown, "pycon")
    copied = re.search(r'<div data-copy="([^"]*)" class="highlight"', reference.copyable(html))
    assert copied and unescape(copied[1]) == "def f(x):\n    return x < 1\n\nf(2)\nf('')"
    assert reference.copyable(code("x = 1", "python")) == code("x = 1", "python")
