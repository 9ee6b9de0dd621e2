"""Project files hold: README, docs, manifests, completions, help, the sample cluster."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.cli.commands import COMMANDS
from kubepy.cli.main import main
from kubepy.cli.runtime.command import walk

PROJECT = Path(__file__).parents[1]
BINARIES = Path(sys.executable).parent
KUBEPY = str(BINARIES / "kubepy")
ALL_COMMANDS = [path for path, entry in walk(COMMANDS) if entry.summary]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{BINARIES}:/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        text=True,
        capture_output=True,
        env=environment,
        check=False,
    )


def outcome(command: str, folder: Path) -> str:
    done = run(command, folder)
    return f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_command_help_exists_for_every_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == 0
    printed = capsys.readouterr()
    assert "Usage:" in printed.out
    assert printed.err == ""


def test_docs_list_every_command() -> None:
    made = subprocess.run(
        [sys.executable, "tools/list_commands.py"],
        cwd=PROJECT,
        text=True,
        capture_output=True,
        check=True,
    )
    assert (PROJECT / "docs" / "commands.md").read_text() == made.stdout, "run `make docs`"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_what_command_prints(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    kept = PROJECT / "completions" / f"kubepy.{shell}"
    assert kept.read_text() == capsys.readouterr().out, "run `make completions`"


def console_commands() -> list[str]:
    tour = (PROJECT / "docs" / "tour.md").read_text()
    return [
        line[2:]
        for block in re.findall(r"```console\n(.*?)```", tour, re.S)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def test_commands_of_the_tour_work_on_sample_cluster(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "state", tmp_path / "state", ignore=shutil.ignore_patterns(".kubepy"))
    run(
        "git init -q . && git add -A && git -c user.name=x -c user.email=x@localhost commit -qm "
        "sample",
        tmp_path,
    )
    failed = [
        outcome(command, tmp_path)
        for command in console_commands()
        if run(command, tmp_path).returncode
    ]
    assert console_commands()
    assert failed == []
    assert run("kubepy fsck", tmp_path).returncode == 0


def test_sample_cluster_is_settled_and_sound(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "state", tmp_path / "state", ignore=shutil.ignore_patterns(".kubepy"))
    assert run("kubepy controller --once", tmp_path).stdout == ""
    assert (
        run("kubepy get ds nginx-ds -o jsonpath={.status.numberAvailable}", tmp_path).stdout == "3"
    )


PAGES = [*PROJECT.glob("*.md"), *sorted((PROJECT / "docs").rglob("*.md"))]
MANIFESTS = sorted((PROJECT / "manifests").glob("*.yaml"))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_manifest_comes_up(manifest: Path, tmp_path: Path) -> None:
    assert run("kubepy init --nodes=0", tmp_path).returncode == 0
    applied = run(f"kubepy apply -f {PROJECT}/manifests/nodes.yaml -f {manifest}", tmp_path)
    assert applied.returncode == 0, applied.stderr
    assert applied.stderr == ""
    settled = run(
        "kubepy controller --once --quiet-for=5s && kubepy get pods -A --no-headers", tmp_path
    )
    assert settled.returncode == 0, settled.stderr
    pods = [
        line.split()[2:4] for line in settled.stdout.splitlines() if re.search(r" \d+/\d+ ", line)
    ]
    assert [state for state in pods if state != ["1/1", "Running"]] == []


def test_links_in_docs_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert broken == []


PACKAGES = (
    "kubepy|tests|tools|docs|storage|api|apiserver|runtime|controllers|controlplane|"
    "scheduler|kubelet|cli"
)


def test_files_named_in_docs_exist() -> None:
    """Find the paths of the package and its tests in docs; `apiserver/pkg/…` is upstream's."""
    named = [
        (page, path)
        for page in PAGES
        for path in re.findall(rf"`((?:{PACKAGES})/[\w./]+)`", page.read_text())
    ]
    missing = [
        f"{page.name}: {path}"
        for page, path in named
        if not path.startswith("apiserver/pkg/")
        and not (PROJECT / path).exists()
        and not (PROJECT / "kubepy" / path).exists()
    ]
    assert named
    assert missing == []


def test_first_plan_of_readme_is_what_reader_gets(tmp_path: Path) -> None:
    shown = re.search(r"```text\n(\$ kubepy .*?)```", (PROJECT / "README.md").read_text(), re.S)
    assert shown is not None
    printed = ""
    for command in re.findall(r"^\$ (.*)$", shown[1], re.M):
        done = run(command, tmp_path)
        printed += f"$ {command}\n{done.stdout}{done.stderr}"
    assert "\n$ kubepy plan " in printed
    assert printed == shown[1]


def test_makefile_runs_tests_of_every_folder() -> None:
    """Continuous integration runs the unit and the acceptance tests: a folder that is in neither
    is tested by nobody."""
    rules = (PROJECT / "Makefile").read_text()
    lists = re.findall(r"^(?:UNIT|ACCEPTANCE) := (.*)$", rules, re.MULTILINE)
    named = {word for words in lists for word in words.split()}
    folders = {
        f"tests/{path.relative_to(PROJECT / 'tests').parts[0]}"
        for path in PROJECT.glob("tests/*/**/test_*.py")
    }
    assert folders - named == set()
