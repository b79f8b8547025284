"""The reference tells every public name once, and its links lead to what they say."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from collections import Counter
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
from website.reference.source import file_of, place
from website.reference.text import paragraphs

FILES = reference.pages()
TEXTS = {name: text for name, text in FILES.items() if name.endswith(".md")}
MODULES = ("nn", "optim", "linalg", "random", "train", "train.metrics", "models", "finetune", "backends", "typing")


def anchors(text: str) -> list[str]:
    return re.findall(r"^#+ .*\{ #(\S+)", text, re.MULTILINE) + re.findall(r' id="([^"]+)"', text)


ANCHORS = {name: anchors(text) for name, text in FILES.items()}


def name_of(page: str) -> str:
    return page.removeprefix("reference/").removesuffix(".md")


def test_every_public_name_is_on_one_page():
    count = Counter(anchor for name in TEXTS for anchor in ANCHORS[name])
    assert [anchor for anchor, times in count.items() if times > 1] == []
    assert [name for name, item in surface().items() if not all(count[f"pb.{n}"] for n in (name, *item.aliases))] == []
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


@pytest.mark.parametrize("page", sorted(TEXTS), ids=name_of)
def test_pages_are_full(page):
    text = TEXTS[page]
    assert re.match(r"# .+\n\n\S", text), "a title and what the page is about"
    for part in re.split(r"^#{2,4} ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        assert len(re.sub(r"<[^>]+>|\s", "", rest)) > 10 or rest.strip() == "", heading


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


@pytest.mark.parametrize("page", sorted(FILES))
def test_links_lead_somewhere_and_elements_are_closed(page):
    built = page.replace(".md", ".html")
    content = re.sub(r"^```.*?^```|`[^`\n]*`", "", FILES[page], flags=re.MULTILINE | re.DOTALL)
    links = Links(FILES[page] if page.endswith(".html") else content)
    assert links.open == []
    for link in links.found:
        target, _, anchor = posixpath.normpath(posixpath.join(posixpath.dirname(built), link)).partition("#")
        name = target if target in FILES else target.replace(".html", ".md")
        if target != "index.html":
            assert name in FILES, link
            assert not anchor or anchor in ANCHORS[name], link


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
    assert signature("pb.conv2d", pb.conv2d, with_types=False).startswith(
        "pb.conv2d(\n    x,\n    weight,\n    bias=None,"
    )
    assert signature("pb.add", pb.add, with_types=True) == "pb.add(x: array, y: array) -> Tensor"
    assert signature("pb.nn.ReLU", pb.nn.ReLU, with_types=False) == "pb.nn.ReLU()"


def test_texts_of_docstrings_become_html():
    html = paragraphs(["Less is `x < y`:", "", "    indented", "", "- one", "- two", "", ">>> 1 + 1", "2"])
    assert html.startswith("<p>Less is <code>x &lt; y</code>:</p>\n")
    assert "<ul><li>one</li><li>two</li></ul>" in html
    assert html.count("<pre>") == 2
