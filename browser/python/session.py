"""The session of a page: a cluster in a folder of the tab's memory, and the lines that are typed.

The worker of the page calls these functions. Each answers with JSON.
"""

from __future__ import annotations

import io
import json
import os
import shlex
from pathlib import Path

from kubepy.cli.main import main
from kubepy.quoting import printable

HOME = "/home/pyodide"
STATE = f"{HOME}/state"
PROGRAMS = ("kubectl", "kubepy")
INIT = ("init", "--nodes=3", "--seed=1", "--clock=2026-01-01T00:00:00Z")
# Pods take their time to begin and to stop, so that a timeline has something to show.
SETTINGS = ("kubelet:\n", "kubelet:\n  readyAfter: 2s..8s\n  stopsAfter: 1s..3s\n")
OPERATORS = frozenset(("|", "||", "&", "&&", ";", "<", ">", ">>"))  # of shells
MOST_SHOWN = 1 << 20  # characters of one command's output that a page can show
HELP = """\
kubectl and kubepy work on a cluster in this tab: a folder of YAML files, with the real controllers.

  kubectl create deployment web --image=web:1 --replicas=3
  kubectl rollout status deployment/web
  kubectl set image deployment/web '*=web:2'
  kubepy plan -- scale deployment/web --replicas=1
  kubectl apply -f - <<EOF         lines up to EOF are the standard input

  ls, cat                          the files: manifests to apply, and the cluster's own in state/
  clear, reset                     the screen, the cluster
  Tab, arrows, Ctrl-C, Ctrl-L      complete, history, stop a command, clear the screen
"""


def make() -> None:
    """Make the cluster, when the page is built: its files are part of the page. Raises
    AssertionError."""
    enter()
    answer = _run("kubepy", list(INIT), "")
    assert answer["status"] == 0, answer
    settings = Path(STATE, "kubepy.yaml")
    settings.write_text(settings.read_text(encoding="utf-8").replace(*SETTINGS), encoding="utf-8")


def enter() -> None:
    """Go to the home directory. What lies there is the page's own, also what it has brought."""
    os.environ.update(KUBEPY_STATE=STATE, KUBEPY_TRUST="1", HOME=HOME)
    os.chdir(HOME)


def run(line: str) -> str:
    """Run a line, with a here-document after it where it has one; return the output and the
    status."""
    first, stdin = _without_document(line)
    try:
        words = shlex.split(first, comments=True)
    except ValueError as error:
        return json.dumps(_answer("", f"{error}\n", 2))
    if not words:
        return json.dumps(_answer("", "", 0))
    name, *rest = words
    if operator := next((word for word in rest if word in OPERATORS), None):
        text = f"{operator}: only single commands of kubectl and kubepy run here\n"
        return json.dumps(_answer("", text, 2))
    if name in PROGRAMS:
        return json.dumps(_run(name, rest, stdin))
    own = {"help": _help, "ls": _ls, "cat": _cat}.get(name)
    if own is None:
        text = f"{printable(name)}: not found here: kubectl and kubepy are (help tells more)\n"
        return json.dumps(_answer("", text, 127))
    return json.dumps(own(rest))


def complete(line: str) -> str:
    """Return the words that may come at the end of a line."""
    if " " not in line:
        names = (*PROGRAMS, "help", "ls", "cat", "clear", "reset")
        return json.dumps([name for name in names if name.startswith(line)])
    name = line.split()[0]
    if name not in PROGRAMS:
        return json.dumps(_matching_files(line.rpartition(" ")[2]))
    candidates = str(_run("kubepy", ["__complete", line], "")["stdout"]).split()
    return json.dumps(candidates or _matching_files(line.rpartition(" ")[2]))


def picture(html: bool) -> str:
    """Return the timeline of the cluster as SVG, or as a page; "" where nothing has happened."""
    answer = _run("kubepy", ["timeline", "-A", "-o", "html" if html else "svg"], "")
    return json.dumps(answer["stdout"] if answer["status"] == 0 else "")


def _run(program: str, words: list[str], stdin: str) -> dict[str, object]:
    out, errors = io.StringIO(), io.StringIO()
    status = main(words, program=program, stdin=io.StringIO(stdin), stdout=out, stderr=errors)
    return _answer(out.getvalue(), errors.getvalue(), status)


def _answer(stdout: str, stderr: str, status: int) -> dict[str, object]:
    if len(stdout) > MOST_SHOWN:
        stdout = f"{stdout[:MOST_SHOWN]}\n… {len(stdout) - MOST_SHOWN} more characters\n"
    return {"stdout": stdout, "stderr": stderr, "status": status}


def _without_document(line: str) -> tuple[str, str]:
    """Return the first line of a command, and the here-document that follows it."""
    first, _, rest = line.partition("\n")
    command, mark, word = first.partition("<<")
    if not mark:
        return first, ""
    end = f"\n{word.strip().strip(chr(39) + chr(34))}"
    return command, f"\n{rest}".removesuffix("\n").removesuffix(end)[1:] + "\n"


# --- files ----------------------------------------------------------------------------------------


def _help(_: list[str]) -> dict[str, object]:
    return _answer(HELP, "", 0)


def _ls(words: list[str]) -> dict[str, object]:
    path = words[0] if words else "."
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError as error:
        return _answer("", f"ls: {printable(path)}: {error.strerror}\n", 2)
    shown = [f"{name}/" if os.path.isdir(os.path.join(path, name)) else name for name in names]
    return _answer("".join(f"{printable(name)}\n" for name in shown), "", 0)


def _cat(words: list[str]) -> dict[str, object]:
    text = ""
    for path in words:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
        except OSError as error:
            return _answer(text, f"cat: {printable(path)}: {error.strerror}\n", 1)
    return _answer(text, "", 0)


def _matching_files(start: str) -> list[str]:
    folder, slash, name = start.rpartition("/")
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return []
    return [
        f"{folder}{slash}{found}" + ("/" if os.path.isdir(os.path.join(folder, found)) else "")
        for found in names
        if found.startswith(name) and not found.startswith(".")
    ]
