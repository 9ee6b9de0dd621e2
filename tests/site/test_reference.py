"""docs/reference is what the program has, and its examples are true."""

from __future__ import annotations

import fnmatch
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.settings import parse_settings
from kubepy.storage.folder import manifest
from tests.forkserver import ForkServer
from tests.site import player

sys.path.insert(0, str(player.ROOT / "tools"))
import generate_reference as reference
import generate_reference_texts as texts

DOCS = player.ROOT / "docs"
REFERENCE = DOCS / "reference"


def test_reference_is_up_to_date() -> None:
    written = {
        path.relative_to(REFERENCE).as_posix(): path.read_text() for path in REFERENCE.rglob("*.md")
    }
    assert written == reference.pages(), "run `make docs`"


def test_reference_names_every_command_and_flag() -> None:
    text = "".join(path.read_text() for path in (REFERENCE / "commands").glob("*.md"))
    for line in (DOCS / "commands.md").read_text().splitlines():
        if line.startswith("| `"):
            assert f"\n## kubepy {line.split('`')[1]}\n" in text


def test_name_without_text_is_error() -> None:
    with pytest.raises(reference.DisagreementError, match="settings without a text: odd"):
        reference.must_agree("settings", ["seed", "odd"], ["seed"])
    with pytest.raises(reference.DisagreementError, match="does not have: old"):
        reference.must_agree("settings", ["seed"], ["seed", "old"])


def nested(path: str, value: Any) -> Any:
    """Return the settings in which a setting, by its path, has a value."""
    for part in reversed(path.split(".")):
        name = part.removesuffix("[]")
        value = {name: [value] if part.endswith("[]") else value}
    return value


# The settings that another one needs, and the fields that another field needs.
BESIDE = {"tick": {"clock": "2026-01-01T00:00:00Z"}}
COMPANIONS: dict[str, Any] = {
    "faults.nodes[]": {"downFor": "5m"},
    "faults.pods[]": {"outcome": "pending"},
    "faults.conflicts": {"rate": 0.1},
    "faults.restarts": {"rate": 0.1},
    "faults.lateEvents": {"rate": 0.1, "delay": "1s"},
    "absent[]": {"apiVersion": "v1", "kind": "Secret", "name": "login"},
}


@pytest.mark.parametrize("name", texts.SETTINGS)
def test_example_of_setting_is_taken(name: str, tmp_path: Path) -> None:
    value = manifest.parse(f"value: {texts.SETTINGS[name].example}".encode())[0]["value"]
    section, _, field = name.rpartition(".")
    if section in COMPANIONS:
        name, value = section, COMPANIONS[section] | {field: value}
    (tmp_path / "rules.yaml").write_text("- match: {image: web}\n  runsFor: 5s\n")
    settings = nested(name.replace("SERVICE", "default/policy"), value)
    parse_settings(settings | BESIDE.get(name, {}), str(tmp_path))


@pytest.mark.parametrize(
    "row",
    [row for row in texts.EXIT_STATUSES if row.example],
    ids=lambda row: f"{row.status}-{row.commands}",
)
def test_example_ends_with_its_status(
    row: texts.ExitStatus, tmp_path: Path, fork_server: ForkServer
) -> None:
    environment = player.environment_for(tmp_path, fork_server.program)
    script = f"kubepy init --nodes=3 > /dev/null && {{ {row.example}; }}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == row.status, done.stdout + done.stderr


COMMANDS = """
init --nodes=1 --clock=2026-01-01T00:00:00Z
create configmap colours
apply --server-side -f manifest.yaml
config set-context here --namespace=shop
controller --once -q
"""
MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: applied}
---
apiVersion: v1
kind: Node
metadata: {name: node-9}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  containers:
  - {name: c, image: busybox, command: [sh, -c, "echo hello > /data/greeting; sleep 600"],
     volumeMounts: [{name: data, mountPath: /data}]}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


def files_of_folder(folder: Path, fork_server: ForkServer) -> Iterator[str]:
    """Make a cluster with objects of all sorts, and yield the paths of its files."""
    (folder / "manifest.yaml").write_text(MANIFEST)
    environment = player.environment_for(folder, fork_server.program)
    for line in COMMANDS.strip().splitlines():
        words = [fork_server.program, *shlex.split(line)]
        subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    state = folder / "state"
    for path in state.rglob("*"):
        if path.is_file():
            yield path.relative_to(state).as_posix()


def is_of(row: texts.FileRow, path: str) -> bool:
    """Tell whether a path is one of a row: a star stands for one part of it."""
    parts, patterns = path.split("/"), row.pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))


def test_table_of_files_has_every_file(tmp_path: Path, fork_server: ForkServer) -> None:
    paths = list(files_of_folder(tmp_path, fork_server))
    unknown = [path for path in paths if not any(is_of(row, path) for row in texts.FILES)]
    assert unknown == []
    seen = {row.pattern for row in texts.FILES if any(is_of(row, path) for path in paths)}
    assert seen >= {
        "kubepy.yaml",
        "cluster/*/*.yaml",
        "namespaces/*/*/.managed/*.yaml",
        "volumes/*/files/*",
        ".kubepy/index.db",
        ".kubepy/config",
    }
