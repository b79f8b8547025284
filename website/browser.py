"""A headless Chromium reads the whole site: `python -m website.browser [--site FOLDER] [--pictures FOLDER]`.

Every page must load without errors and without the network, show its figures, and fit a phone; search must find what
there is, and code must copy as it can be run.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ROOT = Path(__file__).parents[1]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: What is looked at as a picture: name, page, width, colours.
PICTURES = [
    ("home-light", "index.html", DESK, "light"),
    ("home-dark", "index.html", DESK, "dark"),
    ("home-phone", "index.html", PHONE, "light"),
    ("start-light", "start.html", DESK, "light"),
    ("tutorial-light", "tutorials/ode.html", DESK, "light"),
    ("tutorial-dark", "tutorials/ode.html", DESK, "dark"),
    ("tutorial-phone", "tutorials/ode.html", PHONE, "dark"),
    ("reference-light", "reference/transforms.html", DESK, "light"),
    ("reference-phone", "reference/transforms.html", PHONE, "light"),
    ("how-light", "how_it_works/walk.html", DESK, "light"),
    ("how-dark", "how_it_works/walk.html", DESK, "dark"),
]


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address at which a folder is served while the block runs."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nobody reads a line for each file."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def look_at(page: Page, address: str, name: str) -> list[str]:
    """What is wrong with a page of the site at the width that the window has."""
    wrong: list[str] = []
    listeners = {
        "console": lambda message: wrong.append(f"console: {message.text}") if message.type == "error" else None,
        "pageerror": lambda error: wrong.append(f"script: {error}"),
        "requestfailed": lambda request: (
            None if request.failure == "net::ERR_ABORTED" else wrong.append(f"not loaded: {request.url}")
        ),  # aborted is what the page before was still loading; a file that is not there is an error in the console
        "request": lambda request: (
            None if request.url.startswith((address, "data:", "blob:")) else wrong.append(f"fetched: {request.url}")
        ),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(address + name, wait_until="load")
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > page.viewport_size["width"]:
        wrong.append(f"{width} pixels wide, the window has {page.viewport_size['width']}")
    empty = page.evaluate("[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)")
    wrong.extend(f"no picture: {source}" for source in empty)
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    return [f"{name}: {problem}" for problem in wrong]


def look_at_all(browser: Browser, address: str, names: list[str]) -> list[str]:
    wrong: list[str] = []
    for width in (DESK, PHONE):
        page = browser.new_page(viewport=width)
        for name in names:
            wrong += [f"{problem} (at {width['width']})" for problem in look_at(page, address, name)]
        page.close()
    return wrong


def search(context: BrowserContext, address: str, word: str) -> list[str]:
    """The addresses that a search for a word shows, best first."""
    page = context.new_page()
    page.goto(f"{address}index.html", wait_until="load")
    page.click("[data-md-component=search-query]")
    page.keyboard.type(word)
    page.wait_for_selector(".md-search-result__item a", timeout=20_000)
    found = page.eval_on_selector_all(".md-search-result__item a", "links => links.map(link => link.href)")
    page.close()
    return [str(link).removeprefix(address) for link in found]


def copied(context: BrowserContext, address: str, name: str) -> tuple[str, str]:
    """What the first code of a page copies, and what it shows."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(address + name, wait_until="load")
    block = page.locator(".highlight:has(.k, .kn)").first
    block.hover()
    block.locator("button[data-md-type=copy], .md-clipboard").first.click()
    page.wait_for_timeout(300)
    text = page.evaluate("navigator.clipboard.readText()")
    shown = block.locator("code").inner_text()
    page.close()
    return str(text), str(shown)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m website.browser", description="Look at the built site.")
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="where screenshots go")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args(arguments)
    if options.chromium is None:
        parser.error("no Chromium is on PATH: install one, or name it with --chromium")
    names = sorted(file.relative_to(options.site).as_posix() for file in options.site.rglob("*.html"))
    names = [name for name in names if name != "404.html"]  # it is for servers that have the site at their root
    with served(options.site) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=options.chromium, args=OPTIONS)
        wrong = look_at_all(browser, address, names)
        context = browser.new_context(viewport=DESK)
        found = search(context, address, "ssm_scan")
        if not any("reference/" in link and link.endswith("ssm_scan") for link in found[:5]):
            wrong.append(f"search: ssm_scan leads to {found[:5]}")
        text, shown = copied(context, address, "start.html")
        if text.strip() != shown.strip() or not text.strip():
            wrong.append(f"copy: {text!r} in place of {shown!r}")
        if options.pictures:
            options.pictures.mkdir(parents=True, exist_ok=True)
            for picture, name, width, scheme in PICTURES:
                page = browser.new_page(viewport=width, color_scheme=scheme)
                page.goto(address + name, wait_until="load")
                page.screenshot(path=options.pictures / f"{picture}.png")
                page.close()
        browser.close()
    print("\n".join(wrong) or f"{len(names)} pages, each at two widths: nothing is wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
