"""What MkDocs calls while it builds the site: pages are run, the reference is added, names lead to it."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
for folder in (ROOT, ROOT / "src"):  # MkDocs runs this file by its path
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from website import reference  # noqa: E402
from website.execution import Output, PageError, Run, blocks, run_alone  # noqa: E402

LOG = logging.getLogger("mkdocs.hooks.pullback")
CACHE = ROOT / ".cache" / "pages"
#: Files beside the docs that are pages of the site.
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

_runs: dict[str, Run] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run all pages, and add what is made: their figures, the reference, and the style."""
    code = _digest(*sorted([*(ROOT / "src").rglob("*.py"), ROOT / "website" / "execution.py"]))
    for file in sorted(files.documentation_pages(), key=lambda file: file.src_uri):
        if file.abs_src_path is None or not blocks(file.content_string):
            continue
        start = time.perf_counter()
        try:
            run = _run(Path(file.abs_src_path), file.src_uri.removesuffix(".md").replace("/", "-"), code)
        except PageError as error:
            raise PluginError(str(error)) from None
        _runs[file.src_uri] = run
        LOG.info("%s: run in %.1f s", file.src_uri, time.perf_counter() - start)
        for name, picture in _figures(file.src_uri, run).items():
            files.append(File.generated(config, name, content=picture))
    for beside, name in BESIDE.items():
        files.append(File.generated(config, name, content=(ROOT / beside).read_text()))
    start = time.perf_counter()
    for name, text in reference.pages().items():
        files.append(File.generated(config, name, content=text))
    LOG.info("reference: made in %.1f s", time.perf_counter() - start)
    for asset in sorted([*(ROOT / "website" / "assets").glob("*.css"), *(ROOT / "website" / "assets").glob("*.js")]):
        files.append(File.generated(config, f"assets/{asset.name}", content=asset.read_text()))
    return files


def _run(page: Path, name: str, code: str) -> Run:
    """Run a page; what it made is kept until the page or Pullback changes."""
    kept = CACHE / f"{name}.{_digest(page)[:16]}-{code[:16]}.json"
    if not kept.exists():
        run = run_alone(page)
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob(f"{name}.*.json"):
            old.unlink()
        kept.write_text(json.dumps(asdict(run)))
        return run
    content = json.loads(kept.read_text())
    outputs = [Output(output["text"], [tuple(figure) for figure in output["figures"]]) for output in content["outputs"]]
    return Run(outputs, content["seconds"], content["machine"])


def _digest(*files: Path) -> str:
    sums = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256(" ".join(sums).encode()).hexdigest()


def _figures(page: str, run: Run) -> dict[str, str]:
    """Names of a page's figures, below the folder of the docs, and the pictures."""
    folder, _, name = page.removesuffix(".md").rpartition("/")
    pictures = [picture for output in run.outputs for _, picture in output.figures]
    return {f"{folder}/figures/{name}-{n}.svg".lstrip("/"): picture for n, picture in enumerate(pictures, 1)}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Below each block stands what it printed and drew; at the end, where and how long the page ran."""
    markdown = _links(markdown, page.file.src_uri)
    run = _runs.get(page.file.src_uri)
    if run is None:
        return _consoles(markdown)
    name = Path(page.file.src_uri).stem
    figure, end, parts = 0, 0, []
    found = blocks(markdown)
    if len(found) != len(run.outputs):
        raise PluginError(f"{page.file.src_uri}: {len(found)} blocks of code, {len(run.outputs)} outputs")
    for block, output in zip(found, run.outputs):
        parts.append(markdown[end : block.end])
        end = block.end
        shown = []
        if output.text.strip():
            shown.append(f"```{{ .text .output .no-copy }}\n{output.text.rstrip()}\n```")
        for title, _ in output.figures:
            figure += 1
            shown.append(f"![{title}](figures/{name}-{figure}.svg){{ .figure }}")
        for part in shown:
            parts.append("\n\n" + "\n".join(block.indent + line for line in part.split("\n")))
    parts.append(markdown[end:])
    if any(not block.has_prompts for block in found):
        parts.append(f"\n\n---\n\n<small>This page ran in {run.seconds:.1f} s: {run.machine}.</small>\n")
    return _consoles("".join(parts))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Names in code lead to the reference, whose own links are made already; examples copy without prompts."""
    html = reference.copyable(html)
    return html if page.file.src_uri.startswith("reference/") else reference.linked(html, page.file.dest_uri)


def _consoles(markdown: str) -> str:
    """Blocks with prompts are highlighted as such: what is copied of them is the code alone."""
    return re.sub(r"^( *```)python(\n *>>> )", r"\1pycon\2", markdown, flags=re.MULTILINE)


def _links(markdown: str, page: str) -> str:
    """Links to files beside the docs lead to their pages; those out of the repository's folder, to these."""
    up = "../" * page.count("/")
    for beside, name in BESIDE.items():
        markdown = markdown.replace(f"]({up}../{beside}", f"]({up}{name}")
    if page in BESIDE.values():
        markdown = re.sub(r"\]\(docs/", "](", markdown)
    return re.sub(rf"\]\({re.escape(up)}\.\./README\.md(#[^)]*)?\)", f"]({up}index.md)", markdown)


def on_config(config: MkDocsConfig) -> Any:
    """The reference stands behind the guides."""
    _runs.clear()
    place = next((n for n, part in enumerate(config.nav or [], 1) if "Guides" in part), len(config.nav or []))
    (config.nav or []).insert(place, {"Reference": reference.nav()})
    return config
