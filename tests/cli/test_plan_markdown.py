"""``kubepy plan -o markdown``: what a comment says, how a forge reads it, and that names of others
stay names."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kubepy import Cluster
from kubepy.cli import plan_markdown
from kubepy.cli.plan_markdown import Section, code, fold, shorten, text_of
from tests.cli.conftest import Kubepy
from tests.cli.test_plan import rolled_out

# Elements that the document itself has.
OWN = {
    "p", "strong", "code", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "details",
    "summary", "pre", "hr",
}  # fmt: skip
HOSTILE = (
    "@mallory `x` ```` | a\\|b <script>alert(1)</script> </details> [a](b) ![i](j) *c* #1 &lt;"
)


class Elements(HTMLParser):
    """The elements of a document, and its text outside of ``code``.

    :ivar names: of all elements; ``texts``: those in no code, ``code``: those in it.
    """

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.texts: list[str] = []
        self.code: list[str] = []
        self._open: list[str] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.code if "code" in self._open else self.texts).append(data)


def markdown(cluster: Cluster, words: str, stdin: str = "", status: int = 0) -> str:
    result = cluster.run(f"plan -o markdown {words}", stdin=stdin)
    assert result.status == status, result.stderr
    return result.stdout


# --- what it says ---------------------------------------------------------------------------------


def test_rollout_has_verdict_table_and_folded_waves() -> None:
    text = markdown(rolled_out(), "set image deploy/web web=web:2")
    lines = text.splitlines()
    assert lines[0] == "✅ **Finishes after 15s; the last step is after 18s.** Exit status 0."
    assert lines[2] == "Plan of <code>kubepy set image deploy/web web=web:2</code>"
    assert "| <code>deployment web</code> | 3 replaced | 3/3 | 3 | after 15s |" in lines
    assert "deployment.apps/web image updated" in lines
    assert any(line.startswith("after 18s") for line in lines)
    elements = Elements(text)
    assert set(elements.names) <= OWN
    assert elements.names.count("details") == 2
    assert elements.names.count("tr") == 2


def test_harm_is_listed_with_object_time_before_and_after() -> None:
    cluster = rolled_out()
    cluster.run("expose deployment web --port=80", check=True)
    lines = markdown(cluster, "delete pods --all", status=3).splitlines()
    assert lines[0] == (
        "⚠️ **Finishes after 5s.** It hurts: <code>deployment web (outage)</code>, "
        "<code>service web (unreachable)</code>. Exit status 3."
    )
    assert "- <code>deployment web</code>: **outage** now, for 5s: 3/3 → 0/3 available" in lines
    assert "- <code>service web</code>: **unreachable** now, for 5s: 3 → 0 ready endpoints" in lines


def test_harm_that_does_not_count_is_said_to() -> None:
    text = markdown(rolled_out(), "--fail-on= delete pods --all")
    assert text.startswith("✅ **Finishes after 5s.** Exit status 0.\n")
    assert ": outage now, for 5s: 3/3 → 0/3 available (does not count)\n" in text


def test_workload_that_does_not_finish_has_its_reasons() -> None:
    text = markdown(rolled_out(), "--for=2s scale deploy/web --replicas=5", status=2)
    assert text.startswith("❌ **Does not finish within 2s.** Exit status 2.\n")
    assert "**never-finishes** now: 3/3 → 3/5 available: it is not ready (not-ready)\n" in text
    assert "\n  - deployment web: 3 of 5 replicas available\n" in text
    assert "| never |\n" in text


def test_apply_shows_what_changes_in_place_of_its_output() -> None:
    cluster = rolled_out()
    manifest = cluster.run("get deployment web -o yaml").stdout.replace("web:1", "web:2")
    secret = "\n---\n{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: hunter2}}"
    text = markdown(cluster, "apply -f -", manifest + secret)
    assert "\n```diff\n--- deployment web\n+++ deployment web\n@@ " in text
    assert "\n-      - image: web:1\n+      - image: web:2\n" in text
    assert "\n--- /dev/null\n+++ secret s\n" in text
    assert "\n+  p: '***'\n" in text
    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text
    assert "resourceVersion" not in text
    assert "configured" not in text


def test_conditions_and_runs_are_shown() -> None:
    words = "--runs=3 --ready-after=5s..20s --fail-if='available <= 1.0' rollout restart deploy/web"
    text = markdown(rolled_out(), words, status=3)
    assert "- <code>deployment web</code>: <code>available &#60;= 1.0</code>\n" in text
    assert "<summary>All runs</summary>" in text
    assert "\n3 runs, of which 3 finish." in text


def test_nothing_that_happens_is_said_to() -> None:
    text = markdown(rolled_out(), "")
    expected = "✅ **Nothing is under way.** Exit status 0.\n\nPlan of what is under way\n"
    assert text == expected


# --- names of others ------------------------------------------------------------------------------


@pytest.mark.parametrize("show", [code, text_of])
def test_hostile_text_is_shown_as_it_is(show: object) -> None:
    assert callable(show)
    for before in ("", "words ", "| a | b |\n| --- | --- |\n| c | "):
        elements = Elements(f"{before}{show(HOSTILE)}{' |' if '|' in before else ''}\n")
        assert set(elements.names) <= OWN
        shown = "".join(elements.code if show is code else elements.texts).replace("\u200b", "")
        assert HOSTILE in shown
        assert elements.names.count("td") in (0, 2)


@pytest.mark.parametrize("mention", ["@mallory", "@org/team", "x @mallory", "#12", "!3", "&4"])
def test_mentions_and_references_are_in_code_or_broken(mention: str) -> None:
    assert set(Elements(code(mention)).names) == {"p", "code"}
    shown = "".join(Elements(text_of(mention)).texts)
    assert not re.search(r"[@#!&]\w", shown)


def test_underscores_within_words_stay_readable() -> None:
    assert code("a_file_name") == "<code>a_file_name</code>"
    for text in ("_a_", "__a__", "x _a_b_ y", "(_a_)"):
        for show in (code, text_of):
            assert "em" not in Elements(show(text)).names
            assert "strong" not in Elements(show(text)).names


def test_line_breaks_and_controls_are_escaped() -> None:
    for show in (code, text_of):
        shown = show("a\n\n# b\r\n\u202e\x1b[0m")
        assert "\n" not in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_addresses_become_no_links() -> None:
    for show in (code, text_of):
        assert "://" not in show("https://evil.example/x www.evil.example")
        assert "www." not in show("https://evil.example/x www.evil.example")


def test_fence_is_longer_than_any_in_it() -> None:
    section = fold("Title", ["`" * 5, "</details>", "a\nb"])
    elements = Elements(section.text)
    assert elements.names == ["details", "summary", "pre", "code"]
    assert "".join(elements.code) == f"{'`' * 5}\n</details>\na\\nb\n"


def test_hostile_manifests_and_conditions_stay_in_their_places() -> None:
    cluster = rolled_out()
    lines = "\n".join(f"    {line}" for line in ("```", "</details>", "@mallory", "~~~", "# a"))
    manifests = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: a, annotations: {{"a.b/c": "<img src=x>"}}}}
data:
  text: |
{lines}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: '@mallory|`x`<b>'}}
rules: []
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: bad}}
spec:
  selector: {{matchLabels: {{app: bad}}}}
  template:
    metadata: {{labels: {{app: bad}}}}
    spec: {{containers: [{{name: bad, image: '@mallory/<b>`x`|y'}}]}}
"""
    condition = 'name == "<b>" || name == "bad" || "@mallory" == "|"'
    result = cluster.run(
        ["plan", "-o", "markdown", "--fail-if", condition, "apply", "-f", "-"], stdin=manifests
    )
    assert result.status == 2, result.stderr
    elements = Elements(result.stdout)
    assert set(elements.names) <= OWN
    assert not re.search(r"@\w", "".join(elements.texts))
    assert condition in "".join(elements.code)
    assert elements.names.count("tr") == 2


def test_hostile_names_of_branches_and_paths_stay_in_their_places(
    bare: Kubepy, folder: Path
) -> None:
    branch = "@mallory|`x`<b>"
    path = "d|`<img src=x>`@mallory"
    (folder / path).mkdir()
    (folder / path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    for words in (["init", "-q", "-b", branch], ["add", "-A"], ["commit", "-q", "-m", "a"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], check=True)
    done = bare(
        "--state", "memory:", "plan", "-o", "markdown", "--from", branch, "--to", branch, "-f", path
    )
    elements = Elements(done.out)
    assert set(elements.names) <= OWN, done
    assert "@mallory" not in "".join(elements.texts)
    assert branch in elements.code


# --- length ---------------------------------------------------------------------------------------


def test_long_plan_leaves_out_waves_before_the_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = rolled_out(replicas=9)
    manifest = cluster.run("get deployment web -o yaml").stdout.replace("web:1", "web:2")
    most = len(markdown(cluster, "apply -f -", manifest)) - 200
    monkeypatch.setattr(plan_markdown, "MOST_CHARACTERS", most)
    text = markdown(cluster, "apply -f -", manifest)
    assert most - 200 < len(text) <= most + 1
    assert "+      - image: web:2\n" in text
    assert re.search(r"\n\d+ lines are left out: the comment would be too long\.\n", text)
    assert set(Elements(text).names) <= OWN


def test_long_diff_and_many_workloads_leave_room_for_the_verdict() -> None:
    cluster = Cluster.temporary(nodes=3)
    manifests = "".join(
        f"""
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: c-{number}}}
data: {{text: "{"x" * 2_000}"}}
"""
        for number in range(300)
    )
    text = markdown(cluster, "apply -f -", manifests)
    assert len(text) <= plan_markdown.MOST_CHARACTERS + 1
    assert text.startswith("✅ **No workload changes.**")
    assert " lines are left out: the comment would be too long.\n" in text


def test_sections_are_shortened_in_their_order() -> None:
    first, second = Section(["a" * 100] * 400), Section(["b" * 100] * 400, noun=("row", "rows"))
    shorten([first, second])
    assert second.kept is None
    assert len(first.text) + len(second.text) + 4 <= plan_markdown.MOST_CHARACTERS
    assert len(first.text) + len(second.text) > plan_markdown.MOST_CHARACTERS - 200
    third = Section(["c" * 100] * 700)
    shorten([first, second, third])
    assert first.kept == 0
    assert second.kept == 0
    assert third.kept is not None
    assert third.text.endswith(
        f"\n{700 - third.kept} lines are left out: the comment would be too long."
    )
    assert "400 rows are left out" in second.text
    second.kept = 399
    assert "\n1 row is left out: " in second.text
