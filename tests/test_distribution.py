"""The name under which kubepy is installed, and the addresses that it names: nobody is sent to
strangers.

On PyPI the name kubepy belongs to another project. The distribution is ``kubepy-cluster``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from kubepy.cli import installation
from kubepy.cli.commands import COMMANDS
from kubepy.cli.main import main
from kubepy.cli.runtime.command import walk

PROJECT = Path(__file__).parents[1]
LISTED = subprocess.run(
    ["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True
).stdout
# Texts that people read: what is in the repository but recordings, tests and generated tables.
TEXTS = [
    PROJECT / name
    for name in LISTED.split("\0")
    if name
    and not name.startswith("tests/")
    and not name.endswith((".json", ".b64", ".gz", ".br", ".zst"))
]
PAGES = [path for path in TEXTS if path.suffix in (".md", ".yaml", ".yml", ".toml")]
# Behind --from (uvx) stands the program of that package, which is ours.
BY_NAME = re.compile(
    r"\b(?!uvx --from \S+ kubepy)(install|inject|add|tool run|uvx)\b"
    r"[^\n`&|]*[\s'\"]kubepy(?=['\"\s\[=<>~@,;`)]|$)"
)
EXTRA = re.compile(r"(?<![\w-])kubepy\[")
# Names that are reserved for examples, this machine, addresses in a cluster, and names of XML.
OURS = re.compile(
    r"(127\.0\.0\.1|localhost|10\.\d+\.\d+\.\d+|192\.0\.2\.\d+|"
    r"([\w-]+\.)*(example(\.com|\.org|\.net)?|svc|local)|www\.w3\.org)(:\d+)?"
)
# Those that kubectl prints in its own help and messages.
KUBECTLS = {
    "https://index.docker.io/v1/",
    "https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts",
}
URL = re.compile(r"\b(?:https?|git|ssh)://[\w.-]+(?::\d+)?(?:/[\w./#?=&%+-]*)?")


def foreign(text: str) -> list[str]:
    """Return the URLs in a text that are neither examples nor kubectl's."""
    urls = (found[0] for found in URL.finditer(text))
    return [
        url
        for url in urls
        if url not in KUBECTLS and not OURS.fullmatch(url.partition("://")[2].partition("/")[0])
    ]


def read(path: Path) -> str:
    return path.read_text(errors="replace")


def test_distribution_has_name_of_its_own() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["name"] == installation.DISTRIBUTION == "kubepy-cluster"
    assert distribution("kubepy-cluster").metadata["Name"] == project["name"]


@pytest.mark.parametrize("pattern", [BY_NAME, EXTRA], ids=["install", "extra"])
def test_no_text_tells_to_install_package_of_that_name(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {match[0]}"
        for path in TEXTS
        for match in pattern.finditer(read(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "pip install kubepy",
        "pip install 'kubepy[serve]'",
        "pipx install kubepy==1",
        'uv tool install "kubepy"',
        "uv add kubepy",
        "`pip install kubepy`",
        "uvx kubepy",
        "uvx --from kubepy-cluster --with kubepy kubepy",
    ],
)
def test_pattern_finds_commands_that_install_package_of_that_name(line: str) -> None:
    assert BY_NAME.search(line)


@pytest.mark.parametrize(
    "line",
    ["pip install kubepy-cluster", "uvx --from kubepy-cluster kubepy", "uvx --from a.whl kubepy"],
)
def test_pattern_lets_commands_be_that_install_ours(line: str) -> None:
    assert not BY_NAME.search(line)


def test_no_page_names_addresses_of_others() -> None:
    found = [f"{path.relative_to(PROJECT)}: {url}" for path in PAGES for url in foreign(read(path))]
    assert found == []


def test_no_help_names_addresses_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    for path, _ in walk(COMMANDS):
        main([*path.split(), "--help"])
    assert foreign(capsys.readouterr().out) == []


# --- the command that installs an extra -----------------------------------------------------------

PYTHON = "/opt/env/bin/python"
WHEEL = {"url": "file:///dist/kubepy_cluster-0.1.0-py3-none-any.whl", "archive_info": {}}
CLONE = {"url": "file:///home/me/my%20clone", "dir_info": {"editable": True}}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that makes an environment in which kubepy seems to be installed."""

    def install(origin: object, marker: str = "", has_pip: bool = True) -> None:
        info = tmp_path / "site" / "kubepy_cluster-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Name: kubepy-cluster\nVersion: 0.1.0\n")
        if origin is not None:
            (info / "direct_url.json").write_text(json.dumps(origin))
        if marker:
            (tmp_path / marker).touch()
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        monkeypatch.setattr(sys, "executable", PYTHON)
        monkeypatch.setattr(installation, "find_spec", lambda name: has_pip or None)

    return install


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "'kubepy-cluster[serve]'"),
        (WHEEL, f"'kubepy-cluster[serve] @ {WHEEL['url']}'"),
        (CLONE, "--editable '/home/me/my clone[serve]'"),
        ({"url": "file:///src", "dir_info": {}}, "'/src[serve]'"),
        (
            {
                "url": "https://git.example/k",
                "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "v1"},
                "subdirectory": "py",
            },
            "'kubepy-cluster[serve] @ git+https://git.example/k@v1#subdirectory=py'",
        ),
    ],
)
def test_command_for_extra_takes_it_from_where_kubepy_came_from(
    installed: Callable[..., None], origin: object, command: str
) -> None:
    installed(origin)
    assert installation.command_for("serve") == f"{PYTHON} -m pip install {command}"


@pytest.mark.parametrize(
    ("marker", "has_pip", "command"),
    [
        (installation.PIPX, False, "pipx install --force"),
        (installation.UV_TOOL, False, "uv tool install --force"),
        ("", False, f"uv pip install --python {PYTHON}"),
        ("", True, f"{PYTHON} -m pip install"),
    ],
)
def test_command_for_extra_uses_program_that_made_environment(
    installed: Callable[..., None], marker: str, has_pip: bool, command: str
) -> None:
    installed(WHEEL, marker, has_pip)
    assert (
        installation.command_for("explain")
        == f"{command} 'kubepy-cluster[explain] @ {WHEEL['url']}'"
    )


def test_command_for_extra_of_clone_that_is_not_installed_names_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert installation.command_for("serve").endswith(f" '{PROJECT}[serve]'")


def test_command_for_extra_without_any_trace_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(installation.kubepy, "__file__", str(tmp_path / "kubepy" / "__init__.py"))
    assert installation.missing_extra("serve") == 'the extra "serve" of this installation'
