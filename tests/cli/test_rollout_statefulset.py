"""Rollouts of a StatefulSet on the command line, in all of its states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Kubepy

MANIFEST = """
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "db:1"}]}
"""
COMPLETE = "partitioned roll out complete: {} new pods have been updated..."
OBSERVED = "Waiting for statefulset spec update to be observed..."
BROKEN = '{"spec":{"template":{"metadata":{"annotations":{"kubepy.dev/outcome":"crash-loop"}}}}}'


@pytest.fixture
def db(folder: Path, bare: Kubepy) -> Kubepy:
    """A function that runs a command in a cluster with a ready StatefulSet of three replicas."""
    assert bare("init", "--nodes=1").status == 0
    (folder / "db.yaml").write_text(MANIFEST)
    assert bare("create", "-f", "db.yaml").status == 0
    assert bare("rollout", "status", "sts/db").out.splitlines()[-1] == COMPLETE.format(3)
    return bare


def patch(db: Kubepy, text: str) -> None:
    assert db("patch", "sts/db", "--type=merge", "-p", text).status == 0


def images(db: Kubepy) -> str:
    return db("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}").out


def lines(done: Done) -> list[str]:
    return done.out.splitlines()


def test_rollout_is_followed_to_its_end(db: Kubepy) -> None:
    assert db("set", "image", "sts/db", "c=db:2").out == "statefulset.apps/db image updated\n"
    assert lines(db("rollout", "status", "sts/db")) == [OBSERVED, COMPLETE.format(3)]
    assert images(db) == "db:2 db:2 db:2"


def test_canary_is_complete_when_pods_above_its_partition_are(db: Kubepy) -> None:
    patch(db, '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}')
    db("set", "image", "sts/db", "c=db:2")
    assert lines(db("rollout", "status", "sts/db"))[-1] == COMPLETE.format(1)
    assert images(db) == "db:1 db:1 db:2"


def test_partition_beyond_all_pods_is_complete_with_none(db: Kubepy) -> None:
    patch(db, '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":9}}}}')
    db("set", "image", "sts/db", "c=db:2")
    assert db("rollout", "status", "sts/db").out.splitlines()[-1] == COMPLETE.format(0)


def test_broken_rollout_is_stuck_until_its_pod_is_deleted(db: Kubepy) -> None:
    patch(db, BROKEN)
    stuck = db("rollout", "status", "sts/db", "--timeout=1s")
    assert (lines(stuck)[-1], stuck.err, stuck.status) == (
        "Waiting for 1 pods to be ready...",
        "error: timed out waiting for the condition\n",
        1,
    )
    assert db("rollout", "undo", "sts/db") == Done("statefulset.apps/db rolled back\n", "", 0)
    assert db("rollout", "status", "sts/db", "--timeout=1s").status == 1
    db("delete", "pod", "db-2")
    assert lines(db("rollout", "status", "sts/db"))[-1] == COMPLETE.format(3)


def test_rollout_status_without_rolling_update_block_names_revisions(
    folder: Path, bare: Kubepy
) -> None:
    bare("init", "--nodes=1")
    (folder / "db.yaml").write_text(f"{MANIFEST}  updateStrategy: {{type: RollingUpdate}}\n")
    bare("create", "-f", "db.yaml")
    name = bare("rollout", "status", "sts/db").out.split()[-1].removesuffix("...")
    assert bare("rollout", "status", "sts/db").out == (
        f"statefulset rolling update complete 3 pods at revision {name}...\n"
    )
    patch(bare, BROKEN)
    assert (
        lines(bare("rollout", "status", "sts/db", "--timeout=1s"))[-1]
        == "Waiting for 1 pods to be ready..."
    )


def test_rollout_status_of_on_delete_daemonset_is_an_error(db: Kubepy) -> None:
    patch(db, '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}')
    assert db("rollout", "status", "sts/db") == Done(
        "", "error: rollout status is only available for RollingUpdate strategy type\n", 1
    )


def test_restart_replaces_every_pod(db: Kubepy) -> None:
    before = db("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").out.split()
    assert db("rollout", "restart", "sts/db").out == "statefulset.apps/db restarted\n"
    assert db("rollout", "status", "sts/db").status == 0
    assert not set(before) & set(
        db("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").out.split()
    )


def history(db: Kubepy) -> list[tuple[str, ...]]:
    return [
        tuple(line.split(maxsplit=1))
        for line in lines(db("rollout", "history", "sts/db"))[2:]
        if line
    ]


def test_going_back_renumbers_revision_and_keeps_its_cause(db: Kubepy) -> None:
    db("annotate", "sts/db", "kubernetes.io/change-cause=second")
    db("set", "image", "sts/db", "c=db:2")
    db("rollout", "status", "sts/db")
    assert history(db) == [("1", "<none>"), ("2", "second")]
    db("rollout", "undo", "sts/db", "--to-revision=1")
    assert lines(db("rollout", "status", "sts/db"))[-1] == COMPLETE.format(3)
    assert (history(db), images(db)) == ([("2", "second"), ("3", "<none>")], "db:1 db:1 db:1")
    assert "Image:\tdb:2" in db("rollout", "history", "sts/db", "--revision=2").out.replace(
        "      ", "\t"
    )


def rewrite_first_revision(db: Kubepy, folder: Path, change: Callable[[Any], None]) -> None:
    """Store the data of revision 1 as another server would have written it."""
    items = json.loads(db("get", "controllerrevisions", "-o", "json").out)["items"]
    [revision] = [one for one in items if one["revision"] == 1]
    del revision["metadata"]["resourceVersion"]
    change(revision["data"])
    (folder / "revision.json").write_text(json.dumps(revision))
    assert db("replace", "--force", "-f", "revision.json").status == 0


def write_null_timestamp(data: Any) -> None:
    data["spec"]["template"]["metadata"]["creationTimestamp"] = None


def pod_uids(db: Kubepy) -> str:
    return db("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").out


def test_rollout_of_revision_that_old_server_wrote_is_complete_and_restarts_nothing(
    db: Kubepy, folder: Path
) -> None:
    before = pod_uids(db)
    rewrite_first_revision(db, folder, write_null_timestamp)
    db("controller", "--once")
    assert db("rollout", "status", "sts/db").status == 0
    assert (history(db), pod_uids(db)) == ([("1", "<none>")], before)
    shown = db("rollout", "history", "sts/db", "--revision=1", "-o", "yaml").out
    assert "image: db:1" in shown
    assert "null" not in shown


def test_undo_to_revision_that_old_server_wrote_makes_new_one(db: Kubepy, folder: Path) -> None:
    db("set", "image", "sts/db", "c=db:2")
    db("rollout", "status", "sts/db")
    rewrite_first_revision(db, folder, write_null_timestamp)
    planned = db("rollout", "undo", "sts/db", "--dry-run=client").out
    assert "Image:" in planned
    assert "db:1" in planned
    assert db("rollout", "undo", "sts/db").out == "statefulset.apps/db rolled back\n"
    assert lines(db("rollout", "status", "sts/db"))[-1] == COMPLETE.format(3)
    assert (history(db), images(db)) == (
        [("1", "<none>"), ("2", "<none>"), ("3", "<none>")],
        "db:1 db:1 db:1",
    )


def test_undo_to_present_template_in_other_words_is_sent_and_changes_nothing(
    db: Kubepy, folder: Path
) -> None:
    rewrite_first_revision(db, folder, write_null_timestamp)
    before = pod_uids(db)
    assert (
        db("rollout", "undo", "sts/db", "--to-revision=1").out
        == "statefulset.apps/db rolled back\n"
    )
    db("controller", "--once")
    assert (history(db), pod_uids(db)) == ([("1", "<none>")], before)


def test_history_names_revision_that_keeps_no_template(db: Kubepy, folder: Path) -> None:
    db("set", "image", "sts/db", "c=db:2")
    db("rollout", "status", "sts/db")
    rewrite_first_revision(db, folder, lambda data: data["spec"].update(template="none"))
    name = db(
        "get", "controllerrevisions", "-o", "jsonpath={.items[?(@.revision==1)].metadata.name}"
    ).out
    assert history(db) == [("1", "<none>"), ("2", "<none>")]
    failed = Done("", f"error: unable to parse history {name}\n", 1)
    assert db("rollout", "history", "sts/db", "--revision=1") == failed


@pytest.mark.parametrize(
    ("words", "done"),
    [
        (["undo", "sts/db"], Done("", "error: no last revision to roll back to\n", 1)),
        (
            ["undo", "sts/db", "--to-revision=1"],
            Done(
                "statefulset.apps/db skipped rollback (current template already matches revision "
                "1)\n",
                "",
                0,
            ),
        ),
        (
            ["undo", "sts/db", "--to-revision=7"],
            Done("", "error: unable to find specified revision 7 in history\n", 1),
        ),
        (
            ["history", "sts/db", "--revision=7"],
            Done("", "error: unable to find the specified revision\n", 1),
        ),
        (
            ["pause", "sts/db"],
            Done("", 'error: statefulsets.apps "db" pausing is not supported\n', 1),
        ),
    ],
)
def test_unsupported_rollout_is_reported(db: Kubepy, words: list[str], done: Done) -> None:
    assert db("rollout", *words) == done


@pytest.mark.parametrize(
    ("flags", "done"),
    [
        (["--current-replicas=3"], Done("statefulset.apps/db scaled\n", "", 0)),
        (["--current-replicas=2"], Done("", "error: Expected replicas to be 2, was 3\n", 1)),
        (["--timeout=5s"], Done("statefulset.apps/db scaled\n", "", 0)),
    ],
)
def test_scaling_may_be_bound_to_what_is_there(db: Kubepy, flags: list[str], done: Done) -> None:
    assert db("scale", "sts/db", "--replicas=1", *flags) == done
    replicas: Any = db("get", "sts/db", "-o", "jsonpath={.spec.replicas}").out
    assert replicas == ("1" if done.status == 0 else "3")


def test_scaling_may_be_bound_to_version(db: Kubepy) -> None:
    version = db("get", "sts/db", "-o", "jsonpath={.metadata.resourceVersion}").out
    assert db("scale", "sts/db", "--replicas=2", f"--resource-version={version}").status == 0
    refused = db("scale", "sts/db", "--replicas=1", f"--resource-version={version}")
    assert (
        refused.status,
        refused.err.startswith(f"error: Expected resource version to be {version}, was "),
    ) == (1, True)
