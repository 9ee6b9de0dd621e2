"""The html page in a real browser, if there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.api.clock import format_exact_time
from kubepy.api.values.goformat import format_duration
from kubepy.insight import Step, Timeline
from kubepy.insight.picture.drawing import LEFT, Drawing
from kubepy.insight.picture.html import render_html
from kubepy.insight.picture.svg import draw
from kubepy.storage import Key
from tests.insight import timelines
from tests.insight.browser import ARTEFACTS, CHROMIUM, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium here")
ROWS = (
    "[...document.querySelectorAll('%s tbody tr')].map(row => [...row.cells].map(cell => "
    "cell.textContent))"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def show(
    browser: Browser, folder: Path, timeline: Timeline, width: int = 1200, dark: bool = False
) -> None:
    """Open the page of a timeline."""
    page = folder / "timeline.html"
    page.write_text(render_html(timeline))
    browser.requests.clear()
    browser.problems.clear()
    browser.resize(width, 800, dark)
    browser.open(page.as_uri())
    assert browser.problems == []
    assert browser.requests == [page.as_uri()]


def words(browser: Browser) -> str:
    return str(browser.run("document.getElementById('announcement').textContent"))


@pytest.mark.parametrize("make", timelines.ALL.values(), ids=timelines.ALL)
def test_page_shows_the_numbers_and_steps_of_the_timeline(
    make, browser: Browser, tmp_path: Path
) -> None:
    timeline = make()
    show(browser, tmp_path, timeline)
    assert browser.run(ROWS % "#steps") == [
        [
            format_duration((step.at - timeline.since).total_seconds()),
            format_exact_time(step.at),
            step.action,
            f"{step.key.resource}/{step.key.name}",
            step.key.namespace,
            step.node,
            step.revision,
            step.reason,
        ]
        for step in timeline.steps
    ]
    order = Drawing(timeline).workloads
    numbers = [
        (course, [entry for _, entry in course.numbers])
        for course in sorted(timeline.courses, key=lambda course: order.index(course.key))
    ]
    assert [
        [row[place] for place in (0, 2, 3, 5, 6, 7)] for row in browser.run(ROWS % "#workloads")
    ] == [
        [
            f"{course.key.resource}/{course.key.name}",
            *map(
                str,
                (
                    entries[-1].desired,
                    min(entry.available for entry in entries),
                    max(entry.unavailable for entry in entries),
                    max(entry.surge for entry in entries),
                    entries[-1].updated,
                ),
            ),
        ]
        for course, entries in numbers
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_page_fits_its_window(width: int, dark: bool, browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.rolling_deployment(), width, dark)
    browser.settle()
    browser.screenshot(
        ARTEFACTS / f"deployment-{width}-{'dark' if dark else 'light'}.png", whole=True
    )
    assert browser.run("document.documentElement.scrollWidth") <= width
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_page_keys_select_steps_and_zoom(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.rolling_daemonset(2))
    browser.run("document.getElementById('zoom-out').focus()")
    browser.press("Tab")
    browser.run("document.getElementById('picture').focus()")
    browser.press("ArrowRight", "ArrowRight")
    assert words(browser) == "0s: terminating pods/agent-a1 on node-1, step 2 of 13"
    browser.press("ArrowDown")
    assert "pods/agent-b1" in words(browser)
    browser.press("End")
    assert words(browser) == "14s: available pods/agent-b2 on node-2, step 13 of 13"
    path = "document.querySelector('#drawing .r0 path').getAttribute('d')"
    whole = browser.run(path)
    browser.press("+", "+")
    zoomed = browser.wait(f"{path} !== {whole!r} && {path}")
    browser.press("ArrowLeft", shift=True)
    browser.wait(f"{path} !== {zoomed!r}")
    browser.press("0")
    browser.wait(f"{path} === {whole!r}")
    assert browser.problems == []


def test_page_keys_work_before_the_picture_has_the_focus(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.rolling_daemonset(2))
    assert browser.run("document.activeElement === document.body")
    browser.press("ArrowRight")
    assert words(browser).endswith("step 1 of 13")
    browser.press("End", "ArrowRight")
    assert words(browser).endswith("step 2 of 13")  # End scrolls the page
    path = "document.querySelector('#drawing .r0 path').getAttribute('d')"
    whole = browser.run(path)
    browser.press("+")
    browser.wait(f"{path} !== {whole!r}")
    browser.run("document.getElementById('filter').focus()")
    browser.press("0")
    assert browser.run("document.getElementById('filter').value") == "0"
    assert browser.run(path) != whole


def test_page_tells_what_is_under_the_pointer(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.rolling_daemonset(2))
    box = browser.run(
        "(({x, y}) => [x, y])(document.querySelector('.inbar').getBoundingClientRect())"
    )
    browser.point(box[0] + 3, box[1] + 3)
    tip = browser.wait(
        "!document.getElementById('tip').hidden && document.getElementById('tip').innerText"
    )
    assert tip.startswith("agent-a1\n")
    assert "replaced by agent-b1" in tip


TIP = "!document.getElementById('tip').hidden && document.getElementById('tip').innerText"
TEXTS = "[...document.querySelectorAll('#drawing .%s text')].map(text => text.firstChild.data)"


def test_page_of_many_pods_counts_them_by_what_they_did(browser: Browser, tmp_path: Path) -> None:
    timeline = timelines.large(90)
    show(browser, tmp_path, timeline, 1600)
    drawing = draw(timeline, 0)
    fold = drawing.folds[0]
    pods = [row.bar for row in drawing.rows if row.top == fold.top]
    before = sum(bar.start < 0 for bar in pods)
    assert str(before) in browser.run(TEXTS % "names")
    x, y = browser.run(
        "(({x, y}) => [x, y])(document.querySelector('#drawing').getBoundingClientRect())"
    )
    browser.point(x + LEFT + 5, y + (fold.top + fold.bottom) / 2)
    tip = browser.wait(TIP)
    assert tip.splitlines() == [
        fold.text,
        "at the beginning",
        f"{before} pods",
        f"{before} stayed as they were",
    ]
    browser.point(x + 1500, y + (fold.top + fold.bottom) / 2)
    after = sum(bar.end == len(timeline.steps) for bar in pods)
    browser.wait(f"({TIP}).includes('\\n{after} pods')")
    assert browser.problems == []


def test_page_says_beside_diamonds_what_changed(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.rolling_daemonset(2), 1600)
    [note] = browser.run(TEXTS % "notes")
    assert note.endswith("agent:1 to agent:2")
    browser.resize(400, 800)
    browser.wait(f"({TEXTS % 'notes'})[0].endsWith('…')")


def test_page_of_a_week_shows_dates_at_each_zoom(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.week(), 1600)
    browser.screenshot(ARTEFACTS / "week-1600-light.png")
    assert {"Jan 1", "Jan 4", "⋯3d12h⋯"} <= set(browser.run(TEXTS % "ticks"))
    browser.run("document.getElementById('picture').focus()")
    browser.press("Home", "+", "+", "+", "+")
    browser.wait(f"({TEXTS % 'ticks'}).includes('Jan 2')")
    assert browser.problems == []


def test_page_without_steps_and_with_hostile_names_works(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, Timeline(timelines.START, timelines.START, (), ()))
    browser.run("document.getElementById('picture').focus()")
    browser.press("ArrowRight", "ArrowDown", "End", "+", "0", "Escape")
    name = '<img src="https://example.com/x" onerror="document.title = 1">&amp;</script>'
    step = Step(
        timelines.START,
        "created",
        Key("pods", name, name),
        f"replicasets.apps/{name}",
        name,
        name,
        name,
    )
    show(browser, tmp_path, Timeline(timelines.START, timelines.START, (step,), ()))
    browser.run("document.getElementById('picture').focus()")
    browser.press("ArrowRight")
    browser.settle()
    assert browser.run("document.images.length") == 0
    assert browser.run("document.querySelector('#tip strong').textContent") == name
    assert browser.run(ROWS % "#steps")[0][3] == f"pods/{name}"
    assert browser.problems == []


def test_page_filter_and_theme(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.rolling_daemonset(3))
    browser.run(
        "document.getElementById('filter').value = 'node-2 ready';"
        "document.getElementById('filter').dispatchEvent(new Event('input'))"
    )
    assert [row[2:4] for row in browser.run(ROWS % "#steps")] == [["ready", "pods/agent-b2"]]
    browser.run(
        "document.getElementById('theme').click(); document.getElementById('theme').click()"
    )
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    browser.run("document.getElementById('theme').click()")


def test_page_of_a_thousand_pods_zooms_at_once(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, timelines.large(500))
    browser.screenshot(ARTEFACTS / "thousand-pods-1200-light.png")
    took = browser.run("""(async () => {
      const frame = () => new Promise(done => requestAnimationFrame(done));
      const took = [];
      for (let round = 0; round < 5; round++) {
        const before = performance.now();
        document.getElementById("zoom-in").click();
        await frame();
        took.push(performance.now() - before);
      }
      return took.sort((a, b) => a - b)[2];
    })()""")
    assert took < 1500, f"{took} ms"  # 60 on a machine at rest


def test_page_without_javascript_is_the_picture(browser: Browser, tmp_path: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(browser, tmp_path, timelines.stateful())
        browser.screenshot(ARTEFACTS / "statefulset-without-javascript.png")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    size = browser.run(
        "(({width, height}) => [width, height])(document.querySelector('.r0')."
        "getBoundingClientRect())"
    )
    assert min(size) > 10
    assert browser.run("document.getElementById('tools').hidden") is True
