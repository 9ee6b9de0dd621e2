"""``kubepy fsck`` and its --repair; damage to the index; an ``init`` that was killed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy
from tests.storage.test_faults import unsynced  # noqa: F401  (a fixture)
from tests.torture.deaths import run_killed

SECRET = "state/namespaces/default/secrets/s.yaml"
HINT = 'run "kubepy fsck --repair" to repair what can be repaired safely\n'
REBUILT = "Warning: state/.kubepy/index.db was damaged and is rebuilt from the files\n"


def test_secret_that_git_restored_for_all_to_read_is_told_and_repaired(kubepy: Kubepy) -> None:
    kubepy("create", "secret", "generic", "s", "--from-literal=a=b")
    os.chmod(SECRET, 0o644)
    path = SECRET.removeprefix("state/")
    assert kubepy("fsck") == Done(f"{path}: others can read it (mode 0644)\n", HINT, 1)
    assert kubepy("fsck", "--repair") == Done(
        f"{path}: made private (mode 0600)\nstate: no problems\n", "", 0
    )
    assert kubepy("fsck") == Done("state: no problems\n", "", 0)
    os.chmod(SECRET, 0o644)
    kubepy("label", "secret", "s", "a=b")
    assert stat.S_IMODE(os.stat(SECRET).st_mode) == 0o600


def test_repair_leaves_file_that_cannot_be_object_alone(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "cm", "paint")
    path = folder / "state/namespaces/default/configmaps/paint.yaml"
    path.write_text("{")
    done = kubepy("fsck", "--repair")
    assert (done.status, path.read_text()) == (1, "{")
    assert done.out.startswith("namespaces/default/configmaps/paint.yaml:1: ")


DAMAGES = {
    "schema": lambda data: data[:100] + bytes(200) + data[300:],
    "cut": lambda data: data[:5000],
    "object": lambda data: data.replace(b'"colour":"red"', b'"colour":"rod"'),
    "no-database": lambda data: b"nothing" * 1000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize(
    "words", [["get", "cm", "paint"], ["label", "cm", "paint", "a=b"], ["controller", "--once"]]
)
def test_damaged_index_costs_one_warning(
    paint: Kubepy, folder: Path, damage, words: list[str]
) -> None:  # type: ignore[no-untyped-def]
    index = folder / "state/.kubepy/index.db"
    index.write_bytes(damage(index.read_bytes()))
    done = paint(*words)
    assert (done.status, done.err) == (0, REBUILT)
    assert paint("get", "cm", "paint", "-o", "jsonpath={.data.colour}") == Done("red", "", 0)
    assert paint("fsck") == Done("state: no problems\n", "", 0)


def test_repair_makes_index_anew_that_disagrees_with_itself(paint: Kubepy, folder: Path) -> None:
    with sqlite3.connect(folder / "state/.kubepy/index.db") as connection:
        connection.execute("DELETE FROM changes")
    connection.close()
    done = paint("fsck")
    assert (done.status, done.err) == (1, HINT)
    assert paint("fsck", "--repair") == Done(
        ".kubepy/index.db: rebuilt from the files\nstate: no problems\n", "", 0
    )


@pytest.mark.usefixtures("unsynced")
def test_init_that_was_killed_finishes_when_it_is_run_again(bare: Kubepy, folder: Path) -> None:
    """Kill ``init`` at a sample of points; `make torture` tries them all."""
    points = 0
    for point in range(0, 5000, 23):
        shutil.rmtree(folder / "state", ignore_errors=True)
        killed = run_killed(point, lambda: bare("init", "--nodes=2")).killed
        if not killed:
            break
        done = bare("init", "--nodes=2")
        already = done.err == 'error: there is a cluster in "state" already\n'
        assert already or (done.status, done.err) == (0, ""), done
        assert bare("get", "nodes,sc", "-o", "name").out == (
            "node/node-1\nnode/node-2\nstorageclass.storage.k8s.io/standard\n"
        ), point
        assert bare("fsck") == Done("state: no problems\n", "", 0)
        points += 1
    assert points > 10
    assert bare("init", "--nodes=0").err == 'error: there is a cluster in "state" already\n'
