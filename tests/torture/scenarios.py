"""Kinds of commits: the cluster before them, and the work of a process.

Clusters have a fixed clock and a seed, so that the same work gives the same objects whenever it is
done.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from kubepy.cli.main import main
from kubepy.controlplane import manager
from kubepy.storage import Key
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump

from .scratch import OWN
from .views import (
    Likeness,
    Opener,
    contents_only,
    exactly,
    in_files,
    names_only,
    open_cluster,
    open_store,
    without_revisions,
)

SETTINGS = {"clock": "2026-09-21T14:13:20Z", "seed": 7}
LONG_AGO = 1_780_000_000 * 10**9  # the mtime of files written by hand, in ns
MANIFESTS = Path(__file__).parents[2] / "manifests"
APPLIED = [
    {
        "manager": "kubectl",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
]
MANY = 60

Step = Callable[[Path], None]


@dataclass(frozen=True)
class Scenario:
    """A kind of commit.

    :param steps: commands, each run in a process of its own; faults are injected into the last one.
    :param opener: opens the folder to look at it.
    :param likeness: the part of the objects that must be as in a run without faults: no resource
        versions where edits are seen before they have one, and only names where UIDs are random.
    :param traced: the first step whose calls are recorded for power cuts, if the steps before it
        are edits by hand.
    :param finish: runs the work again after a death, until it is done; returns an error message or
        "".
    """

    name: str
    steps: tuple[Step, ...]
    opener: Opener = open_store
    likeness: Likeness = exactly
    traced: int | None = None
    finish: Callable[[Path], str] | None = None

    @property
    def prepare(self) -> tuple[Step, ...]:
        return self.steps[:-1]

    @property
    def work(self) -> Step:
        return self.steps[-1]


# --- building steps ---


def config_map(
    name: str, value: str = "1", namespace: str = "default", **metadata: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"a": value},
        "metadata": {"name": name, "namespace": namespace, **metadata},
    }


def applied(name: str, value: str = "1", manager: str = "kubectl") -> dict[str, Any]:
    """Return a config map that server-side apply has touched, so that it has a file of managers."""
    return config_map(name, value, managedFields=[{**APPLIED[0], "manager": manager}])


def secret(name: str, value: str) -> dict[str, Any]:
    return {**config_map(name), "kind": "Secret", "data": {"a": value}}


def event(name: str, value: str) -> dict[str, Any]:
    return {**config_map(name, value), "kind": "Event"}


RESOURCES = {"ConfigMap": "configmaps", "Secret": "secrets", "Event": "events"}


def key_of(obj: dict[str, Any]) -> Key:
    return Key(RESOURCES[obj["kind"]], obj["metadata"]["namespace"], obj["metadata"]["name"])


def key(name: str, namespace: str = "default", resource: str = "configmaps") -> Key:
    return Key(resource, namespace, name)


def file_of(
    folder: Path, name: str, namespace: str = "default", resource: str = "configmaps"
) -> Path:
    return folder / "namespaces" / namespace / resource / f"{name}.yaml"


def commit(
    create: Callable[[], list[dict[str, Any]]] = list,
    update: Callable[[], list[dict[str, Any]]] = list,
    delete: tuple[Key, ...] = (),
    meta: tuple[tuple[str, str], ...] = (),
    clock: str = "",
) -> Step:
    """Return a step that is one transaction."""

    def run(folder: Path) -> None:
        store = open_store(folder)
        with store.transaction() as transaction:
            for one in delete:
                transaction.delete(one)
            for obj in update():
                transaction.update(key_of(obj), obj)
            for obj in create():
                transaction.create(key_of(obj), obj)
            for name, value in meta:
                store.set_values({name: value})
            if clock:
                store.set_values(settings={"clock": clock})
        store.close()

    return run


def begin(folder: Path) -> None:
    FolderStore.initialize(folder, SETTINGS)


def settings_only(folder: Path) -> None:
    """Write only ``kubepy.yaml``: a clock and a seed for a cluster that does not exist yet."""
    folder.mkdir()
    (folder / "kubepy.yaml").write_text(dump({"formatVersion": 1, **SETTINGS}))


class Done(NamedTuple):
    """The end of a command: its exit status and output."""

    status: int
    out: str
    err: str

    def __str__(self) -> str:
        return repr((self.err + self.out).strip()[:300])


def command(*words: str, stdin: str = "", status: int = 0) -> Step:
    """Return a step that is a command of ``kubepy``. The step raises RuntimeError on another exit
    status."""

    def run(folder: Path) -> None:
        done = kubepy(folder, *words, stdin=stdin)
        if done.status != status:
            raise RuntimeError(f"kubepy {' '.join(words)} ended with {done.status}: {done}")

    return run


def kubepy(folder: Path, *words: str, stdin: str = "") -> Done:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.multiple(
        manager, BATCH_SECONDS=math.inf, MAX_BATCH_SECONDS=math.inf
    ):  # on slow machines, too
        status = main(
            [f"--state={folder}", *words], stdin=io.StringIO(stdin), stdout=out, stderr=err
        )
    return Done(status, out.getvalue(), err.getvalue())


def write(path: str, text: str) -> Step:
    """Return a step that writes a file by hand."""

    def run(folder: Path) -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        os.utime(target, ns=(LONG_AGO, LONG_AGO))

    return run


def look(folder: Path) -> None:
    """Read the cluster, which records edits."""
    store = open_store(folder)
    store.list("configmaps")
    store.close()


def remove_index(folder: Path) -> None:
    own = folder / OWN
    for name in os.listdir(own):
        os.unlink(own / name)
    own.rmdir()


def all_of(*steps: Step) -> Step:
    """Return several steps as one, in one process."""

    def run(folder: Path) -> None:
        for step in steps:
            step(folder)

    return run


def manifest(name: str) -> str:
    return (MANIFESTS / name).read_text()


COMMENTED = """\
# Who paints what.
apiVersion: v1
kind: ConfigMap
metadata:
  name: commented  # not the other one
  namespace: default
data:
  # a is for apple
  a: "1"
"""
COMMENTED_SET = (
    manifest("nginx-ds.yaml")
    .replace("  template:", "  # the pods\n  template:")
    .replace("image: nginx:1.15", "image: nginx:1.15  # pinned")
    .replace(
        "  name: nginx-ds\n  labels", "  name: nginx-ds  # ours\n  namespace: default\n  labels", 1
    )
)
SERVER_SIDE = manifest("web.yaml")
SERVER_SIDE_CHANGED = (
    SERVER_SIDE.replace("replicas: 3", "replicas: 2")
    .replace("nginx:1.27", "nginx:1.28")
    .replace("  revisionHistoryLimit: 5\n", "")
)
APPLIED_FILES = "---\n".join(
    manifest(name) for name in ("nginx-ds.yaml", "web.yaml", "postgres.yaml")
)

KEPT = commit(
    create=lambda: [
        config_map("kept"),
        config_map("changed"),
        config_map("deleted"),
        config_map("lone", namespace="gone"),
        applied("managed"),
        applied("managed-too"),
        config_map("plain"),
        secret("password", "b2xk"),
        event("old", "1"),
    ]
)
CLUSTER = (settings_only, command("init", "--nodes=3"))
RUNNING = (
    *CLUSTER,
    command("apply", "-f", "-", stdin=manifest("nginx-ds.yaml")),
    command("controller", "--once"),
)


def _many() -> list[dict[str, Any]]:
    return [config_map(f"many-{number}", namespace=f"ns-{number % 3}") for number in range(MANY)]


def _edit_files(folder: Path) -> None:
    """Change files as people do with an editor, git and rm, including the files of managers."""
    for path in (file_of(folder, "changed"), file_of(folder, "managed")):
        edited = path.read_text().replace("'1'", "'2'").replace('"1"', '"2"')
        path.write_text(edited)
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
    file_of(folder, "deleted").unlink()
    write(
        "namespaces/added/configmaps/new.yaml",
        dump(config_map("new", namespace="added", uid="u-1")),
    )(folder)
    write("namespaces/default/configmaps/commented.yaml", COMMENTED)(folder)


def _finish_init(folder: Path) -> str:
    """Run ``init`` again: it must finish, unless there is nothing left to do. Return an error
    message or ""."""
    done = kubepy(folder, "init", "--nodes=3")
    if done.status not in (0, 1) or (done.status == 1 and "already" not in done.err):
        return f"init, run again, ended with {done.status}: {done}"
    settled = kubepy(folder, "controller", "--once")
    return (
        f"controller --once after it ended with {settled.status}: {settled}"
        if settled.status
        else ""
    )


def _spoil(folder: Path) -> None:
    """Damage the folder for ``fsck --repair``: a secret that others may read, managers without an
    object, bad managers."""
    os.chmod(file_of(folder, "password", resource="secrets"), 0o644)
    managed = folder / "namespaces/default/services/.managed"
    (managed / "nobody.yaml").write_text("managedFields: []\n")
    (managed / "web.yaml").write_text("managedFields: [\n")


def _finish_repair(folder: Path) -> str:
    """Repair again and check that nothing is wrong; return an error message or ""."""
    kubepy(folder, "fsck", "--repair")
    done = kubepy(folder, "fsck")
    return f"fsck after fsck --repair ended with {done.status}: {done}" if done.status else ""


STORAGE = (
    Scenario("create", (begin, KEPT, commit(create=lambda: [config_map("new")]))),
    Scenario("update", (begin, KEPT, commit(update=lambda: [config_map("changed", "2")]))),
    Scenario("delete", (begin, KEPT, commit(delete=(key("deleted"),)))),
    Scenario(
        "delete-create",
        (
            begin,
            KEPT,
            commit(delete=(key("deleted"),)),
            commit(create=lambda: [config_map("deleted", "2")]),
        ),
    ),
    Scenario(
        "update-update",
        (
            begin,
            KEPT,
            all_of(
                commit(update=lambda: [config_map("changed", "2")]),
                commit(update=lambda: [config_map("changed", "3")]),
                commit(delete=(key("changed"),)),
            ),
        ),
    ),
    Scenario(
        "mixed",
        (
            begin,
            KEPT,
            commit(
                create=lambda: [
                    config_map("new"),
                    applied("new-managed"),
                    config_map("new", namespace="fresh"),
                ],
                update=lambda: [config_map("changed", "2"), applied("managed", "2", "other")],
                delete=(key("deleted"), key("lone", "gone"), key("managed-too")),
                meta=(("done", "yes"),),
            ),
        ),
    ),
    Scenario("many", (begin, KEPT, commit(create=_many))),
    Scenario(
        "many-deleted",
        (
            begin,
            KEPT,
            commit(create=_many),
            commit(
                delete=tuple(key(f"many-{number}", f"ns-{number % 3}") for number in range(MANY))
            ),
        ),
    ),
    Scenario(
        "folder-made", (begin, KEPT, commit(create=lambda: [config_map("new", namespace="fresh")]))
    ),
    Scenario("folder-removed", (begin, KEPT, commit(delete=(key("lone", "gone"),)))),
    Scenario("managed-new", (begin, KEPT, commit(create=lambda: [applied("new")]))),
    Scenario("managed-gained", (begin, KEPT, commit(update=lambda: [applied("plain", "2")]))),
    Scenario(
        "managed-changed", (begin, KEPT, commit(update=lambda: [applied("managed", "2", "other")]))
    ),
    Scenario(
        "managed-only", (begin, KEPT, commit(update=lambda: [applied("managed", "1", "other")]))
    ),
    Scenario("managed-removed", (begin, KEPT, commit(update=lambda: [config_map("managed", "2")]))),
    Scenario("managed-deleted", (begin, KEPT, commit(delete=(key("managed"), key("managed-too"))))),
    Scenario(
        "events",
        (
            begin,
            KEPT,
            commit(create=lambda: [event("new", "1")], update=lambda: [event("old", "2")]),
            commit(create=lambda: [event("newer", "1")], delete=(key("old", resource="events"),)),
        ),
    ),
    Scenario("meta", (begin, KEPT, commit(meta=(("done", "yes"), ("more", "no"))))),
    Scenario("clock", (begin, KEPT, commit(clock="2026-09-21T15:00:00Z"))),
    Scenario(
        "clock-and-update",
        (
            begin,
            KEPT,
            commit(update=lambda: [config_map("changed", "2")], clock="2026-09-21T15:00:00Z"),
        ),
    ),
    Scenario(
        "secret",
        (
            begin,
            KEPT,
            commit(
                create=lambda: [secret("new", "bmV3")],
                update=lambda: [secret("password", "bmV3ZXI=")],
            ),
        ),
    ),
    Scenario(
        "hand-made",
        (
            begin,
            KEPT,
            write("namespaces/default/configmaps/commented.yaml", COMMENTED),
            look,
            commit(update=lambda: [config_map("commented", "2")]),
        ),
        traced=4,
    ),
    Scenario("edits", (begin, KEPT, _edit_files, look), likeness=without_revisions, traced=3),
    Scenario(
        "edits-and-commit",
        (begin, KEPT, _edit_files, commit(create=lambda: [config_map("later")])),
        likeness=without_revisions,
        traced=3,
    ),
    Scenario("rebuild", (begin, KEPT, remove_index, look), likeness=in_files),
    Scenario(
        "rebuild-and-commit",
        (begin, KEPT, remove_index, commit(update=lambda: [config_map("changed", "2")])),
        likeness=in_files,
    ),
)
COMMANDS = (
    # An init killed before it made its index is finished with an index that counts from another
    # revision.
    Scenario(
        "init",
        (settings_only, command("init", "--nodes=3")),
        open_cluster,
        likeness=without_revisions,
        finish=_finish_init,
    ),
    Scenario(
        "init-new",
        (command("init", "--nodes=3"),),
        open_cluster,
        likeness=names_only,
        finish=_finish_init,
    ),
    Scenario("apply", (*CLUSTER, command("apply", "-f", "-", stdin=APPLIED_FILES)), open_cluster),
    Scenario(
        "apply-changed",
        (*RUNNING, command("apply", "-f", "-", stdin=APPLIED_FILES.replace(":1.15", ":1.16"))),
        open_cluster,
    ),
    Scenario(
        "apply-server-side",
        (*CLUSTER, command("apply", "--server-side", "-f", "-", stdin=SERVER_SIDE)),
        open_cluster,
    ),
    Scenario(
        "apply-server-side-changed",
        (
            *CLUSTER,
            command("apply", "--server-side", "-f", "-", stdin=SERVER_SIDE),
            command("apply", "--server-side", "-f", "-", stdin=SERVER_SIDE_CHANGED),
        ),
        open_cluster,
    ),
    Scenario(
        "apply-server-side-deleted",
        (
            *CLUSTER,
            command("apply", "--server-side", "-f", "-", stdin=SERVER_SIDE),
            command("delete", "-f", "-", "--wait=false", stdin=SERVER_SIDE),
        ),
        open_cluster,
    ),
    Scenario(
        "set-image",
        (*RUNNING, command("set", "image", "ds/nginx-ds", "*=nginx:1.99")),
        open_cluster,
    ),
    Scenario(
        "set-image-commented",
        (
            *CLUSTER,
            write("namespaces/default/daemonsets.apps/nginx-ds.yaml", COMMENTED_SET),
            command("controller", "--once"),
            command("set", "image", "ds/nginx-ds", "*=nginx:1.99"),
        ),
        open_cluster,
        traced=4,
    ),
    Scenario(
        "secret-command",
        (*CLUSTER, command("create", "secret", "generic", "key", "--from-literal=a=b")),
        open_cluster,
    ),
    Scenario(
        "controller-once",
        (
            *RUNNING,
            command("set", "image", "ds/nginx-ds", "*=nginx:1.99"),
            command("controller", "--once"),
        ),
        open_cluster,
    ),
    Scenario(
        "controller-first",
        (
            *CLUSTER,
            command("apply", "-f", "-", stdin=APPLIED_FILES),
            command("controller", "--once"),
        ),
        open_cluster,
    ),
    Scenario(
        "repair",
        (
            *CLUSTER,
            command("apply", "--server-side", "-f", "-", stdin=SERVER_SIDE),
            command("create", "secret", "generic", "password", "--from-literal=a=b"),
            _spoil,
            command("fsck", "--repair"),
        ),
        open_cluster,
        likeness=contents_only,
        traced=5,
        finish=_finish_repair,
    ),
)
ALL = {scenario.name: scenario for scenario in (*STORAGE, *COMMANDS)}
