"""The site that `make site` has built: complete, whole, and without anything from other hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from tests.site.player import ROOT

BUILT = ROOT / "build" / "site"
DOCS = ROOT / "docs"
PAGES = sorted(path for path in BUILT.rglob("*.html") if "browser" not in path.parts)
# Elements that load what they name, and the attribute that names it.
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect"}


class Page(NamedTuple):
    """What a page of HTML names.

    :param anchors: the ids of its elements.
    :param links: where its links lead.
    :param loaded: what a browser loads with it.
    """

    anchors: frozenset[str]
    links: tuple[str, ...]
    loaded: tuple[str, ...]


class Reader(HTMLParser):
    """Collects what a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors += [values[name] for name in ("id", "name") if name in values]
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "link" and LOADING_LINKS & set(values.get("rel", "").split()):
            self.loaded.append(values["href"])


@lru_cache
def read(path: Path) -> Page:
    reader = Reader()
    reader.feed(path.read_text())
    return Page(frozenset(reader.anchors), tuple(reader.links), tuple(reader.loaded))


def test_every_page_of_docs_is_there() -> None:
    names = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    names = {re.sub("README$", "index", name) for name in names}
    built = {path.relative_to(BUILT).with_suffix("").as_posix() for path in PAGES}
    assert names - built == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BUILT)))
def test_page_loads_nothing_from_other_hosts(page: Path) -> None:
    assert [name for name in read(page).loaded if urlsplit(name).netloc] == []
    for name in read(page).loaded:
        if not name.startswith(("/", "data:")):
            assert (page.parent / urlsplit(name).path).exists(), name


def test_styles_load_nothing_from_other_hosts() -> None:
    sheets = list(BUILT.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        assert re.findall(r"""url\(["']?(?:https?:)?//[^)]*\)""", sheet.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BUILT)))
def test_links_of_page_lead_somewhere(page: Path) -> None:
    if page.name != "404.html":  # its links are those of no folder
        assert list(broken_links(page)) == []


def broken_links(page: Path) -> Iterator[str]:
    for link in read(page).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if target.is_dir():
            target /= "index.html"
        is_ours = target in PAGES
        if not target.exists() or (
            is_ours and parts.fragment and unquote(parts.fragment) not in read(target).anchors
        ):
            yield link


def test_search_finds_words_of_pages() -> None:
    index = json.loads((BUILT / "search.json").read_text())
    text = json.dumps(index)
    for words in ("kubepy.dev/ready-after", "My shell script", "crash-loop", "KUBEPY_STATE"):
        assert words in text
