"""A state folder on other systems: names that they can hold, and line ends that git changes."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy.cli.main import main
from kubepy.storage.folder.paths import MAX_COMPONENT, SUFFIX, decode, encode

# What Windows refuses in a name, and its devices, which it finds whatever the ending.
FORBIDDEN = set('<>:"/\\|?*') | {chr(code) for code in range(32)}
DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}
NAMES = st.text(min_size=1, max_size=300) | st.text("conCONauxnl.:01 Web-", min_size=1, max_size=8)


@given(NAMES)
def test_encoded_name_is_one_that_windows_can_hold(name: str) -> None:
    file = encode(name) + SUFFIX

    assert not FORBIDDEN & set(file)
    assert file.split(".")[0].lower() not in DEVICES
    assert not file.endswith((".", " "))
    assert not file.startswith(".")
    assert len(file.encode()) <= MAX_COMPONENT + len(SUFFIX)


@given(NAMES, NAMES)
def test_encoded_names_differ_by_more_than_case(one: str, other: str) -> None:
    if one != other:
        assert encode(one).casefold() != encode(other).casefold()


@pytest.mark.parametrize("name", ["web", "kube-root-ca.crt", "a.b", "node-1", "0", "x_y"])
def test_usual_name_stays_as_it_is(name: str) -> None:
    assert encode(name) == name


def test_names_that_differ_by_case_have_paths_of_their_own() -> None:
    spellings = ["".join(letters) for letters in itertools.product("wW", "eE", "bB")]

    assert len({encode(name).casefold() for name in spellings}) == len(spellings)


@pytest.mark.parametrize("component", ["Web", "CON", "a%3a", "nul.txt", ".hidden", "end."])
def test_name_that_is_spelled_otherwise_is_no_objects(component: str) -> None:
    assert decode(component) is None


def run(state: Path, line: str) -> str:
    """Run a command line; return what it prints."""
    out = io.StringIO()
    status = main(
        [f"--state={state}", *line.split()],
        program="kubepy",
        stdin=io.StringIO(),
        stdout=out,
        stderr=out,
    )
    assert status == 0, out.getvalue()
    return out.getvalue()


def test_folder_with_windows_line_ends_is_read_and_stays(tmp_path: Path) -> None:
    state = tmp_path / "state"
    run(state, "init --clock=2026-01-01T00:00:00Z --seed=1")
    run(state, "create configmap colours --from-literal=a=red")
    run(state, "create deployment web --image=web:1")
    run(state, "controller --for=30s")
    before = run(state, "get configmaps,deployments,pods -o yaml")
    files = [path for path in state.rglob("*.yaml") if ".kubepy" not in path.parts]
    for path in files:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    written = {path: path.read_bytes() for path in files}

    after = run(state, "get configmaps,deployments,pods -o yaml")
    run(state, "controller --once")

    assert without_versions(after) == without_versions(before)
    assert {path: path.read_bytes() for path in files} == written
    assert run(state, "fsck").endswith("no problems\n")


def without_versions(text: str) -> list[str]:
    """Return the lines without resource versions, which each edit of a file raises."""
    return [line for line in text.splitlines() if "resourceVersion:" not in line]


def test_edit_of_file_with_windows_line_ends_keeps_them(tmp_path: Path) -> None:
    state = tmp_path / "state"
    run(state, "init --nodes=0")
    run(state, "create configmap colours --from-literal=a=red --from-literal=b=green")
    path = state / "namespaces/default/configmaps/colours.yaml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    run(state, "label configmap colours tier=one")

    assert b"tier: one\r\n" in path.read_bytes()
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
