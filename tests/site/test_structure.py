"""The site has every page once, its links lead somewhere, and its words are spelled as in a
dictionary."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.site.player import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import build_site

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ROOT_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)


@pytest.fixture(scope="module")
def navigation() -> list[str]:
    """The pages of the navigation."""
    folder = DOCS
    text = build_site.configuration(build_site.CONFIGURATION.read_text(), folder)
    made = {f'"{page}"' for page in build_site.ROOT_PAGES.values()}
    pages = list(named_pages(tomllib.loads(text)["project"]["nav"]))
    assert not made & set(pages)
    return pages


def named_pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    for inner in entry.values() if isinstance(entry, dict) else entry:
        yield from named_pages(inner)


def test_every_page_is_in_navigation_once(navigation: list[str]) -> None:
    assert sorted(navigation) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


def test_absent_page_is_left_out_of_navigation(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()
    text = '  { "A" = "there.md" },\n  { "B" = "absent.md" },\n  "absent/*.md",\n'
    assert build_site.configuration(text, tmp_path) == '  { "A" = "there.md" },\n'


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and Zensical make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = re.sub(r"[^\w\s-]", "", text.strip().lower())
    return re.sub(r"\s", "-", text)


@lru_cache
def anchors_of(page: Path) -> frozenset[str]:
    text = FENCE.sub("", page.read_text())
    return frozenset(slug(heading) for heading in HEADING.findall(text))


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (
            anchor and path.suffix == ".md" and anchor not in anchors_of(path)
        ):
            broken.append(link)
    assert broken == []


def test_anchors_of_heading() -> None:
    assert slug("Where is …?") == "where-is-"
    assert slug("`kubepy.yaml`: the [settings](a.md)") == "kubepyyaml-the-settings"


def test_words_are_spelled_right() -> None:
    """Look for words that are often misspelled; ``[tool.codespell]`` in pyproject.toml says what is
    left out."""
    texts = [*ROOT.glob("*.md"), *(ROOT / name for name in ("docs", "kubepy", "site", "tools"))]
    command = [sys.executable, "-m", "codespell_lib", *map(str, texts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# --- the tool that builds the site ----------------------------------------------------------------


def test_marked_block_gets_link_that_runs_it() -> None:
    steps = "$ kubepy init --seed=7\nmade\n$ kubepy get 'a b'\n$ kubectl why -A\n"
    text = f"<!-- run -->\n```console\n{steps}```\n"
    made = build_site.page_text(text, "seats/x.md", has_terminal=True)
    assert (
        'href="../browser/index.html#cmd=kubepy%20get%20%27a%20b%27&amp;cmd=kubectl%20why%20-A"'
        in made
    )
    assert made.startswith("```console\n$ kubepy init --seed=7\nmade\n")


@pytest.mark.parametrize(
    ("path", "command", "has_link"),
    [
        ("x.md", "kubepy get pods", False),
        ("why/x.md", "kubepy get pods", True),
        ("why/x.md", "kubepy get pods | head", False),
        ("why/x.md", "kubepy patch pod a -p '{\"a\": 1}'", True),
        ("why/x.md", "ls", False),
        ("why/x.md", "kubepy init --nodes=3", False),
    ],
)
def test_block_has_link_where_terminal_can_run_it(path: str, command: str, has_link: bool) -> None:
    made = build_site.page_text(f"```console\n$ {command}\n```\n", path, has_terminal=True)
    assert ("kubepy-run" in made) == has_link


def test_block_has_no_link_where_there_is_no_terminal() -> None:
    text = "<!-- run -->\n```console\n$ kubepy get pods\n```\n"
    assert build_site.page_text(text, "x.md", has_terminal=False) == text


def test_links_to_pages_of_root_folder_lead_to_their_copies() -> None:
    text = "[a](../../CONTRIBUTING.md#add-a-store) [b](../CHANGELOG.md)"
    made = build_site.page_text(text, "architecture/x.md", has_terminal=False)
    assert made == "[a](../contributing.md#add-a-store) [b](changelog.md)"
