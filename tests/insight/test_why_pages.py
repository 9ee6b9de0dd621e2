"""Every page of docs/why/ is a test: its commands print what it shows, `why` names its cause, and
its remedies help.

The commands run in a cluster of `kubepy init --nodes=3 --clock=2026-01-01T00:00:00Z --seed=7`, in
this process. `pytest tests/insight/test_why_pages.py --kubepy-update` writes what they print into
the pages; read the change before you commit it.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.insight.why.causes import CAUSES
from kubepy.scripting import Shell

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "why").glob("*.md"))
# They need a webhook that runs, settings of the folder, and an imported cluster.
WITHOUT_EXAMPLE = {"webhook-refused", "pod-limit", "resize-pending", "owner-not-held"}
LINK = re.compile(r"\[([a-z-]+)\]\(why/\1\.md\)")
JSON = re.compile(r"^```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(
    r"^```yaml\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)  # a file that the commands read
EXIT_STATUS = {"done": 0, "stuck": 2, "progressing": 3}


def steps_of(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with what it shows; `> ` continues a command."""
    steps: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append((line[2:].rstrip("\n"), ""))
        elif line.startswith("> "):
            steps[-1] = (f"{steps[-1][0]}\n{line[2:].rstrip()}", "")
        else:
            steps[-1] = (steps[-1][0], steps[-1][1] + line)
    return steps


def why_words(command: str) -> list[str]:
    return shlex.split(command.split("|")[0])[1:]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in WITHOUT_EXAMPLE], ids=lambda page: page.stem
)
def test_page_shows_cause_and_remedies_that_help(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text()
    blocks = CONSOLE.findall(text)
    assert len(blocks) == 1, "a page has one console block"
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    cluster = Cluster.temporary(nodes=3, clock="2026-01-01T00:00:00Z", seed=7)
    shell = Shell(cluster, tmp_path)
    printed, asked = "", ""
    for command, shown in steps_of(blocks[0]):
        result = shell.run(command)
        output = result.stdout + result.stderr
        printed += "$ " + command.replace("\n", "\n> ") + f"\n{output}"
        assert output == shown or request.config.getoption("--kubepy-update"), command
        if command.startswith("kubepy why "):
            asked = command
    assert asked, "the block must ask `kubepy why`"
    if request.config.getoption("--kubepy-update"):
        page.write_text(text.replace(blocks[0], printed))
    check_answer(cluster, why_words(asked), page.stem)


def check_answer(cluster: Cluster, words: list[str], cause: str) -> None:
    """Assert that an answer names a cause and has the documented form, and that its proven remedies
    help."""
    result = cluster.run([*words, "-o", "json"])
    answer = json.loads(result.stdout)
    assert answer["cause"] == cause
    assert result.status == EXIT_STATUS[answer["state"]]
    assert sorted(answer) == [
        "cause",
        "chain",
        "kind",
        "next",
        "object",
        "remedies",
        "sequence",
        "state",
    ]
    assert answer["chain"][0]["object"] == answer["object"]
    for link in answer["chain"]:
        assert link["text"]
        assert not link["text"].endswith(".")
    for remedy in answer["remedies"]:
        if remedy["proven"]:
            assert_helps(cluster.fork(), words, remedy, answer)


def assert_helps(
    cluster: Cluster, words: list[str], remedy: dict[str, Any], answer: dict[str, Any]
) -> None:
    """Assert that a remedy that is really run brings the object to done, or lets it go where it was
    being deleted."""
    cluster.run(remedy["command"], stdin=remedy.get("stdin", ""), check=True)
    if answer["cause"] != "no-controllers":
        cluster.settle()
    after = cluster.run([*words, "-o", "json"])
    is_gone = "(NotFound)" in after.stderr
    assert is_gone or json.loads(after.stdout)["state"] == "done", (remedy, after)


def test_every_cause_has_a_page_and_every_page_is_of_a_cause() -> None:
    assert {page.stem for page in PAGES} == set(CAUSES)


def test_overview_lists_every_cause(request: pytest.FixtureRequest) -> None:
    overview = DOCS / "why.md"
    text, heading, _ = overview.read_text().partition("| cause | means |\n")
    rows = [
        f"| [{cause}](why/{cause}.md) | {summary} |"
        if DOCS / "why" / f"{cause}.md" in PAGES
        else f"| {cause} | {summary} |"
        for cause, summary in CAUSES.items()
    ]
    table = "\n".join([f"{text}| cause | means |", "| --- | --- |", *rows, ""])
    if request.config.getoption("--kubepy-update"):
        overview.write_text(table)
    assert heading
    assert LINK.sub(r"\1", overview.read_text()) == LINK.sub(r"\1", table)


def test_overview_shows_what_commands_print(tmp_path: Path) -> None:
    shell = Shell(Cluster.temporary(nodes=3, clock="2026-01-01T00:00:00Z", seed=7), tmp_path)
    for command, shown in steps_of("".join(CONSOLE.findall((DOCS / "why.md").read_text()))):
        result = shell.run(command)
        assert result.stdout + result.stderr == shown, command


def test_overview_shows_the_json_of_an_answer() -> None:
    cluster = Cluster.temporary(nodes=3, clock="2026-01-01T00:00:00Z", seed=7)
    for command in (
        "create deployment web --image=web:1 --replicas=3",
        "rollout status deployment/web",
        "rollout pause deployment/web",
        "set image deployment/web web=web:2",
    ):
        cluster.run(command, check=True)
    shown = JSON.findall((DOCS / "why.md").read_text())
    assert json.loads(cluster.run("why deployment/web -o json").stdout) == json.loads(shown[0])


def test_causes_are_sorted_phrases_of_one_line() -> None:
    assert list(CAUSES) == sorted(CAUSES)
    for cause, summary in CAUSES.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", cause)
        assert len(summary) <= 80
        assert not summary.endswith(".")
