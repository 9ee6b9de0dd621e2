"""A plain line runs its command at once, and click runs any other: both do the same."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubepy.cli import main as mains
from kubepy.cli.commands import COMMANDS
from kubepy.cli.main import Root
from kubepy.cli.runtime import clicktree
from kubepy.cli.runtime.command import walk
from kubepy.cli.runtime.dispatch import dispatch, plain_line
from kubepy.cli.runtime.factory import Factory
from tests.cli.conftest import Done, Kubepy, run

PLAIN = [
    "get ds",
    "-n default get ds web",
    "get -A ds,deploy -o=wide",
    "get ds -owide",
    "get ds -o name --output yaml",
    "get -Lapp,tier -L owner ds --no-headers=true",
    "get ds -- web -A",
    "get --no_headers ds",
    "get -h=false ds",
    "get ds web nothing",
    "get nothing",
    "get",
    "get ds --chunk-size=1 --v 0",
    "get ds --request-timeout=1y",
    "create",
    "create configmap web --from-literal=a=b --dry-run=client -o yaml",
    "apply view-last-applied ds web",
    "rollout status ds/web --timeout=1s",
    "config current-context",
    "config delete-context",
    "exec -it web -- ls --all",
    "-o wide get ds",
    "plan",
    "plan get ds",
    "plan --runs=1 -- get ds -o name",
    "help rollout undo",
    "__complete get ds --output=",
    "diff -f nothing.yaml",
]
UNUSUAL = [
    "",
    "--version",
    "nothing",
    "get --help",
    "get ds -Ah",
    "get ds --wrong",
    "get ds -Z",
    "get ds -o",
    "get ds --no-headers=maybe",
    "get ds --show",
    "get ds --chunk-size=x",
    "create ns web",
    "create nothing",
    "rollout",
    "rollout nothing",
    "config nothing",
    "exec --help",
    "diff --wrong",
]


def run_by_click(words: list[str]) -> Done:
    out, err = io.StringIO(), io.StringIO()

    def dispatch_to_click(root: Root, words: list[str], factory: Factory) -> None:
        factory.root = root
        clicktree.run(root, words, factory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mains, "dispatch", dispatch_to_click)
        status = mains.main(words, stdin=io.StringIO(), stdout=out, stderr=err)
    return Done(out.getvalue(), err.getvalue(), status)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_line_does_what_click_does(
    bare: Kubepy, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    bare("init", "--nodes=1", "--seed=1")
    bare("clock", "set", "2040-01-01T00:00:00Z")
    expected = run_by_click(line.split())
    monkeypatch.setattr(clicktree, "run", None)
    assert run(*line.split()) == expected


@pytest.mark.parametrize("line", UNUSUAL)
def test_unusual_line_is_left_to_click(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    lines: list[list[str]] = []
    monkeypatch.setattr(clicktree, "run", lambda root, words, factory: lines.append(words))
    dispatch(Root(), line.split(), Factory(io.StringIO(), io.StringIO(), io.StringIO()))
    assert lines == [line.split()]


def test_every_command_is_named_by_a_plain_line() -> None:
    for name, entry in walk(COMMANDS):
        line = plain_line(Root(), name.split())
        assert (line is None) == (entry.load is None), name
        assert line is None or line.path == tuple(name.split())


def test_clicks_runner_runs_commands(kubepy: Kubepy, folder: Path) -> None:
    command = clicktree.ClickCommand(Root())
    out = io.StringIO()
    factory = Factory(stdout=out)
    done = CliRunner().invoke(command, ["get", "namespaces", "-o", "name"], obj=factory)
    assert (done.exit_code, out.getvalue().splitlines()[:1]) == (0, ["namespace/default"])


def test_click_knows_commands_and_flags() -> None:
    command = clicktree.ClickCommand(Root())
    context = command.make_context("kubepy", [], obj=Factory())
    assert command.list_commands(context) == list(COMMANDS)
    get = command.get_command(context, "get")
    assert get is not None
    output = next(option for option in get.get_params(context) if option.name == "output")
    assert output.opts == ["--output", "-o"]


def test_plain_line_imports_no_click(kubepy: Kubepy) -> None:
    code = (
        "import sys; from kubepy.cli.main import main; main(['get', 'ds']); "
        "print('click' in sys.modules); main(['get', '--wrong']); print('click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "True"]
