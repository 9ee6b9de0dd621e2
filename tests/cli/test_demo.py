"""``kubepy demo``: the lesson, and challenges in folders."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.demo.lesson import WORKLOADS, remedy_of
from kubepy.demo.scenarios import parse_scenario, shipped_names
from kubepy.demo.verification import verify
from kubepy.demo.workspace import RECORD
from tests.cli.conftest import Kubepy
from tests.cli.test_docs import BLOCK as CONSOLE
from tests.cli.test_docs import RUNNER
from tests.demo.test_scenarios import WHOLE

PAGE = Path(__file__).parents[2] / "docs" / "challenges.md"
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^\$ (.+)$", re.MULTILINE)
QUIET = 60.0  # seconds after which a program that prints nothing has ended


# --- the lesson -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WORKLOADS)
def test_lesson_shows_what_one_gets_by_typing_it(kind: str, bare: Kubepy, folder: Path) -> None:
    done = bare("demo", kind, "--no-wait", "--folder=lesson")
    assert done.status == 0
    text = done.out
    assert "is done: there is nothing to do" in text
    assert f"kubepy rollout undo {kind}/web" in text
    assert "Complete   1/1" in text
    lines = [line for line in text.splitlines() if not is_of_kubectl(line)]
    assert max(map(len, lines)) <= 80
    if kind != "daemonset":
        return
    # The same lines again, in another folder.
    place = folder / "again"
    place.mkdir()
    (place / "web.yaml").write_bytes((folder / "lesson" / "web.yaml").read_bytes())
    name = "web-settings.yaml"
    (place / name).write_bytes((folder / "lesson" / name).read_bytes())
    typed = [line for line in SHOWN.findall(text) if line.startswith("kubepy ")]
    assert len(typed) > 20
    os.chdir(place)
    for line in typed:
        again = bare(*shlex.split(line)[1:])
        assert again.out in text


def is_of_kubectl(line: str) -> bool:
    """Return whether kubectl itself prints a line as long as it is, or a line is a command."""
    return line.startswith(("$ ", "Waiting for "))


def test_remedy_is_proven_and_goes_forward() -> None:
    undo = {"command": ["kubepy", "rollout", "undo", "x"], "proven": True, "kind": "real"}
    no = {"command": ["kubepy", "no"], "proven": False, "kind": "real"}
    model = {"command": ["kubepy", "annotate"], "proven": True, "kind": "simulated"}
    fix = {"command": ["kubepy", "create"], "proven": True, "kind": "real"}
    assert remedy_of({"remedies": [undo, no, model, fix]}) == ["kubepy", "create"]
    assert remedy_of({"remedies": [no, undo]}) == ["kubepy", "rollout", "undo", "x"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo", "job"), '"job" is no lesson: must be one of deployment, daemonset, statefulset'),
        (("demo", "daemonset", "deployment"), "one kind of workload is taken"),
        (("--state=x", "demo"), "--state names a cluster: demo makes one of its own"),
        (("--state=x", "demo", "challenge", "quota"), "--state names a cluster"),
        (("demo", "--folder=full"), "--folder=full: is there already"),
        (("demo", "challenge", "nothing"), "nothing: is no challenge: must be one of account"),
        (("demo", "challenge", "quota", "full"), "full: is there already: name another folder"),
        (("demo", "challenge", "quota", "a", "b"), "too many words"),
        (("demo", "challenge", "--from=none.yaml"), "none.yaml: No such file or directory"),
        (("demo", "grade"), 'no cluster in "state"'),
        (("demo", "hint"), 'no cluster in "state"'),
        (("demo", "verify"), "one file is taken"),
        (("demo", "verify", "full"), "full: Is a directory"),
    ],
)
def test_mistake_is_told_in_one_line(
    words: tuple[str, ...], message: str, bare: Kubepy, folder: Path
) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    before = sorted(os.listdir(folder))
    done = bare(*words)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"error: {message}")
    assert sorted(os.listdir(folder)) == before


def keys_of_terminal(keys: str, folder: Path, **environment: str) -> str:
    """Run the lesson in a terminal, press a key at each prompt, and return what was shown."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kubepy", "demo", "--folder=lesson"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment},
    )
    os.close(follower)
    shown = ""
    pressed = 0
    for piece in pieces_of(leader):
        shown += piece
        while shown.count("q: quit") > pressed and pressed < len(keys):
            os.write(leader, keys[pressed].encode())
            pressed += 1
    assert process.wait(QUIET) == 0
    os.close(leader)
    return shown


def pieces_of(leader: int) -> Iterator[str]:
    end = time.monotonic() + 3 * QUIET
    while time.monotonic() < end:
        readable, _, _ = select.select([leader], [], [], QUIET)
        if not readable:
            return
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the program has ended
            return
        yield piece.decode(errors="replace")


def test_keys_go_on_and_end_it_on_a_terminal(folder: Path) -> None:
    shown = keys_of_terminal(" q", folder)
    assert "\x1b[1;36mA cluster in a folder\x1b[0m" in shown
    assert "A Deployment of three pods" in shown
    assert "What would an update do?" not in shown
    assert "The cluster stays in" in shown


def test_terminal_without_colours_gets_none(folder: Path) -> None:
    shown = keys_of_terminal("q", folder, NO_COLOR="1")
    assert "A cluster in a folder" in shown
    assert "\x1b" not in shown


# --- challenges -----------------------------------------------------------------------------------


def test_challenge_is_graded_on_the_way(bare: Kubepy, folder: Path) -> None:
    told = bare("demo", "challenge", "quota", "--seed=7")
    assert told.status == 0
    assert "  cd quota-7\n" in told.out
    os.chdir(folder / "quota-7")
    namespace = bare("get", "quota", "-A", "-o", "jsonpath={.items[0].metadata.namespace}").out
    name = bare("get", "deploy", "-n", namespace, "-o", "name").out.strip()
    begun = bare("demo", "grade")
    assert begun.status == 2
    assert begun.out.splitlines()[-1] == "Not repaired yet: 3 of 4 checks hold."
    assert begun.out.splitlines()[2].startswith("  not yet  all ")

    assert bare("fork", "wrong").status == 0
    assert bare("--state=wrong", "delete", "quota", "team", "-n", namespace).status == 0
    wrong = bare("--state=wrong", "demo", "grade")
    assert wrong.status == 2
    assert "  broken   the quota is as the platform team has made it\n" in wrong.out
    last = wrong.out.splitlines()[-1]
    assert last == "Wrong: this repair has broken a check that held in the beginning."

    assert bare("set", "resources", name, "-n", namespace, "--requests=cpu=100m").status == 0
    repaired = bare("demo", "grade")
    assert (repaired.status, repaired.out.splitlines()[-1]) == (0, "Repaired: all checks hold.")
    document = json.loads(bare("demo", "grade", "-o", "json").out)
    assert (document["kind"], document["seed"], document["repaired"]) == ("Grade", 7, True)
    assert {check["state"] for check in document["checks"]} == {"holds"}
    assert bare("fsck").status == 0


def test_same_name_and_seed_are_same_cluster(bare: Kubepy, folder: Path) -> None:
    shown: list[str] = []
    for place in ("one", "two"):
        assert bare("demo", "challenge", "taint", place, "--seed=3").status == 0
        listed = bare(f"--state={place}/state", "get", "all,nodes,events", "-A", "-o", "yaml")
        shown.append(listed.out)
    assert shown[0] == shown[1]
    assert len(shown[0]) > 1000


def test_learner_gets_no_solution_but_hints(bare: Kubepy, folder: Path) -> None:
    assert bare("demo", "challenge", "taint", "here").status == 0
    text = (folder / "here" / "state" / RECORD).read_text()
    assert "solution" not in text
    assert "mistakes" not in text
    os.chdir(folder / "here")
    assert bare("demo", "hint").out.startswith("1 of 2: `kubepy why deployment/")
    assert bare("demo", "hint", "2").out.startswith("2 of 2: ")
    for word in ("0", "3", "x", "1.5"):
        done = bare("demo", "hint", word)
        assert (done.status, done.err) == (1, f"error: {word}: must be a number from 1 to 2\n")


def test_challenges_are_listed_and_one_is_drawn(bare: Kubepy, folder: Path) -> None:
    listed = bare("demo", "challenge").out.splitlines()
    assert [line.split()[0] for line in listed] == ["NAME", *shipped_names()]
    assert bare("demo", "challenge", "--seed=4").status == 0
    [made] = os.listdir(folder)
    assert made.rpartition("-")[2] == "4"


def test_file_of_ones_own(bare: Kubepy, folder: Path) -> None:
    path = folder / "size.yaml"
    path.write_text(WHOLE)
    verified = bare("demo", "verify", "size.yaml", "--seeds=1..2")
    assert (verified.status, verified.out) == (0, "size.yaml: no problems with 2 seeds\n")
    assert bare("demo", "challenge", "--from=size.yaml").status == 0
    assert (folder / "size-1" / "state").is_dir()
    path.write_text(WHOLE.replace("--replicas=1", "--replicas=4"))
    verified = bare("demo", "verify", "size.yaml", "--seeds=1..9")
    assert verified.status == 1
    assert "size.yaml: seed " in verified.out
    assert "it is repaired from the beginning" in verified.out
    path.write_text(WHOLE.replace("title:", "titel:"))
    done = bare("demo", "challenge", "--from=size.yaml", "other")
    assert done.err.startswith("error: size.yaml: titel: unknown field: must be one of title, ")
    assert not (folder / "other").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, f"is no challenge: it has no {RECORD}"),
        ("[", "error converting YAML to JSON"),
        ("a: 1", "a: unknown field: must be one of name, seed, began, challenge"),
        ("name: x\nseed: many\nbegan: z\nchallenge: {}", 'seed: "many" is not a whole number'),
        ("name: x\nseed: 1\nbegan: z\nchallenge: {}", "challenge: title: is required"),
    ],
)
def test_damaged_record_is_told(text: str | None, message: str, bare: Kubepy, folder: Path) -> None:
    assert bare("init").status == 0
    if text is not None:
        (folder / "state" / RECORD).write_text(text)
    done = bare("demo", "grade")
    assert (done.status, done.out) == (1, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_page_tells_what_happens(bare: Kubepy, folder: Path) -> None:
    text = PAGE.read_text()
    for block in CONSOLE.findall(text):
        _, steps, _ = RUNNER.parse(block)
        for command, wanted in steps:
            words = shlex.split(command)
            if words[0] == "cd":
                os.chdir(words[1])
                continue
            done = bare(*words[1:])
            assert (done.out.splitlines(), done.err) == (wanted, ""), command


def test_page_shows_python_that_runs() -> None:
    [block] = PYTHON.findall(PAGE.read_text())
    exec(compile(block, str(PAGE), "exec"), {})


def test_page_has_a_whole_challenge(folder: Path) -> None:
    [text] = YAML.findall(PAGE.read_text())
    assert verify(parse_scenario("size", "size.yaml", text), range(1, 4)) == []
