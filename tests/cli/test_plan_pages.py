"""``kubepy plan -o html`` and ``-o svg``: what they show, that they stand alone, and that names of
others stay names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from kubepy import Cluster
from tests.cli.test_plan import rolled_out

SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """A page: the texts of elements by their id, and every address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: dict[str, str] = {}
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.harm: list[str] = []
        self._id = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        values = dict(attrs)
        self.addresses += [str(values[name]) for name in ("href", "src") if name in values]
        if values.get("id"):
            self._id = str(values["id"])

    def handle_data(self, data: str) -> None:
        self.ids[self._id] = self.ids.get(self._id, "") + data


def hurt() -> Cluster:
    cluster = rolled_out()
    cluster.run("expose deployment web --port=80", check=True)
    return cluster


def shown(cluster: Cluster, form: str, words: str, status: int) -> str:
    result = cluster.run(f"plan -o {form} {words}")
    assert result.status == status, result.stderr
    return result.stdout


def test_page_has_verdict_harm_table_and_picture() -> None:
    text = shown(hurt(), "html", "delete pods --all", 3)
    page = Page(text)
    assert page.ids["verdict"].startswith(
        "Finishes after 5s. It hurts: deployment web (outage), service web (unreachable). "
        "Exit status 3."
    )
    assert page.ids["harm"].split("\n")[1:3] == [
        "deployment web: outage now, for 5s: 3/3 → 0/3 available",
        "service web: unreachable now, for 5s: 3 → 0 ready endpoints",
    ]
    assert "deployment web3 replaced0/33after 5s" in page.ids["planned"]
    assert 'class="harm"' in text
    assert "<title>Plan of kubepy delete pods --all: " in text
    assert text.index('id="verdict"') < text.index('id="planned"') < text.index('id="drawing"')


def test_page_needs_no_network() -> None:
    text = shown(hurt(), "html", "delete pods --all", 3)
    assert [address for address in Page(text).addresses if not address.startswith("#")] == []
    assert "default-src 'none'" in text
    assert not re.search(r"url\((?!#)|@import", text)


def test_picture_is_svg_with_the_harm_marked() -> None:
    root = ElementTree.fromstring(shown(hurt(), "svg", "delete pods --all", 3))
    assert root.tag == f"{SVG}svg"
    title = root.findtext(f"{SVG}title")
    assert title is not None
    assert title.startswith("Plan of kubepy delete pods --all: 2026-")
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    assert "outage" in texts
    assert "unreachable" in texts


def test_plan_without_harm_marks_nothing() -> None:
    text = shown(rolled_out(), "svg", "set image deploy/web web=web:2", 0)
    assert "harm" not in text


@pytest.mark.parametrize("form", ["html", "svg"])
def test_picture_names_what_a_revision_brings(form: str) -> None:
    text = shown(rolled_out(), form, "set env deploy/web LEVEL=debug", 0)
    assert ">web:1, env " in text


@pytest.mark.parametrize("form", ["html", "svg"])
def test_nothing_that_happens_is_a_picture_too(form: str) -> None:
    text = shown(rolled_out(), form, "", 0)
    assert "Plan of what is under way" in text
    if form == "html":
        assert Page(text).ids["verdict"].startswith("Nothing is under way. Exit status 0.")


def test_long_title_has_room_in_the_picture() -> None:
    words = "annotate deployment web " + " ".join(f"k{number}=v" for number in range(40))
    root = ElementTree.fromstring(shown(rolled_out(), "svg", words, 0))
    titles = [
        element.text or "" for element in root.iter(f"{SVG}text") if element.get("class") == "title"
    ]
    assert len(titles) == 1
    assert titles[0].endswith("...")
    assert len(titles[0]) <= 100


def test_hostile_texts_are_no_elements() -> None:
    cluster = rolled_out()
    hostile = 'name == "</script><img src=x onerror=alert(1)>" || name == "web"'
    words = ["plan", "--fail-if", hostile, "set", "image", "deploy/web", "web=<b>/<img>"]
    for form in ("html", "svg"):
        result = cluster.run([*words[:1], "-o", form, *words[1:]])
        assert result.status in (2, 3), result.stderr
        page = Page(result.stdout)
        assert "img" not in page.names
        assert "b" not in page.names
        if form == "svg":
            ElementTree.fromstring(result.stdout)
