"""The built-in checks, on small clusters with the real controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api import errors
from kubepy.api.meta import name_of
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import MERGE_PATCH, Patch
from kubepy.controllers.deployment import rolling
from kubepy.fuzz.builtin_checks import BUILTINS
from kubepy.fuzz.checks import CheckSuite, Violation, builtin
from kubepy.insight.prediction import is_settled
from kubepy.storage import Key

Obj = dict[str, Any]
PACE = {"kubelet": {"readyAfter": "5s", "stopsAfter": "2s"}}
WEB = Key("deployments.apps", "default", "web")
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
"""


class Run:
    """A run on a fork of a cluster.

    :param before: command lines that lead to its beginning.
    """

    def __init__(
        self, *before: str, checks: tuple[str, ...] = BUILTINS, settle: bool = True
    ) -> None:
        cluster = Cluster.temporary(nodes=3, settings=PACE)
        for line in before:
            assert cluster.run(line.split()).status == 0
        if before and settle:
            cluster.settle()
        assert cluster._local is not None
        local = cluster._local.fork(is_prediction=True)
        self.suite = CheckSuite([builtin(name) for name in checks], local)
        self.cluster = Cluster(local.observed(self.suite.note))

    @property
    def local(self) -> LocalCluster:
        assert self.cluster._local is not None
        return self.cluster._local

    @property
    def client(self) -> Client:
        return self.local.client

    def command(self, line: str, stdin: str = "") -> None:
        result = self.cluster.run(line.split(), stdin=stdin)
        assert result.status == 0, result.stderr

    def pods(self) -> list[str]:
        return [name_of(pod) for pod in self.client.list("pods").items]

    def finish(self) -> Violation | None:
        self.suite.finish(settled=is_settled(self.local))
        return self.suite.violation


MAKE = "create deployment web --image=web:1 --replicas=4"


# --- bounds


@pytest.mark.parametrize(
    "line",
    [
        "set image deploy/web web=web:2",
        "scale deploy/web --replicas=1",
        "scale deploy/web --replicas=9",
        "delete deploy/web",
        "rollout restart deploy/web",
    ],
)
def test_real_controllers_are_not_accused(line: str) -> None:
    run = Run(MAKE)
    run.command(line)
    run.cluster.settle()
    assert run.finish() is None


def test_workload_that_comes_up_is_not_accused() -> None:
    run = Run()
    run.command(MAKE)
    run.cluster.settle()
    assert run.finish() is None


def test_bounds_names_the_write_that_takes_one_pod_too_many() -> None:
    run = Run(MAKE)
    first, second, *_ = run.pods()
    start = run.client.revision()
    run.cluster.advance("30s")
    run.client.delete("pods", first, namespace="default")
    allowed = run.client.revision()
    run.client.delete("pods", second, namespace="default")
    deleted = run.client.revision()
    run.cluster.settle()
    violation = run.finish()
    assert violation is not None
    assert start < allowed < deleted
    assert violation[:5] == (
        "bounds",
        30.0,
        violation.moment,
        Key("pods", "default", second),
        deleted,
    )
    assert violation.message == (
        "deployments.apps default/web had 2 available pods of 4, where its strategy allows no "
        "fewer than 3"
    )


def test_bounds_of_pods_that_count_as_unavailable_anew_names_the_write_of_their_owner() -> None:
    run = Run(MAKE)
    run.cluster.advance("10s")
    patch = Patch(MERGE_PATCH, {"spec": {"minReadySeconds": 100}})
    run.client.patch("deployments.apps", "web", patch, namespace="default")
    run.cluster.settle()
    violation = run.finish()
    assert violation is not None
    assert violation.key is not None
    assert violation.key.resource == "replicasets.apps"
    assert violation.revision > 0


@pytest.mark.parametrize("extra", [0, 1])
def test_bounds_finds_a_controller_that_takes_one_pod_too_many(
    monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    allowed = rolling.max_unavailable
    monkeypatch.setattr(rolling, "max_unavailable", lambda obj: allowed(obj) + extra)
    run = Run(MAKE)
    run.command("set image deploy/web web=web:2")
    run.cluster.settle()
    violation = run.finish()
    assert (violation is not None) == bool(extra)
    if violation is not None:
        assert violation.check == "bounds"
        assert violation.key is not None
        assert violation.key.resource == "pods"
        assert violation.revision > 0


def stateful_set() -> Obj:
    containers = [{"name": "db", "image": "db:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": containers},
            },
        },
    }


@pytest.mark.parametrize("count", [1, 2])
def test_bounds_of_a_budget_count_where_the_strategy_sets_none(count: int) -> None:
    run = Run(checks=("bounds",))
    run.command("apply -f -", BUDGET)
    run.client.create("statefulsets.apps", stateful_set())
    run.cluster.settle()
    for name in run.pods()[:count]:
        run.client.delete("pods", name, namespace="default")
    run.cluster.settle()
    violation = run.finish()
    assert (violation is not None) == (count == 2)
    if violation is not None:
        assert violation.message == (
            "statefulsets.apps default/db had 1 available pods of 3, where its budget web allows "
            "no fewer than 2"
        )


def test_rollout_that_is_under_way_at_the_beginning_is_not_accused() -> None:
    run = Run(MAKE, "set image deploy/web web=web:2", settle=False)
    run.cluster.settle()
    assert run.finish() is None


def test_workload_that_lacks_pods_at_the_beginning_is_not_accused() -> None:
    cluster = Run(MAKE).cluster
    for name in [name_of(pod) for pod in Run(MAKE).client.list("pods").items][:2]:
        cluster.run(["delete", "pod", name, "--wait=false"])
    assert cluster._local is not None
    local = cluster._local.fork(is_prediction=True)
    suite = CheckSuite([builtin("bounds")], local)
    Cluster(local.observed(suite.note)).settle()
    suite.finish(settled=True)
    assert suite.violation is None


def test_pods_that_fail_by_themselves_are_not_accused() -> None:
    run = Run(MAKE, checks=("bounds",))
    for name in run.pods()[:3]:
        pod = run.client.get("pods", name, namespace="default")
        conditions = [
            {**condition, "status": "False"} if condition["type"] == "Ready" else condition
            for condition in pod["status"]["conditions"]
        ]
        patch = Patch(MERGE_PATCH, {"status": {"conditions": conditions}})
        run.client.patch("pods", name, patch, namespace="default", subresource="status")
    assert run.finish() is None
    run.client.delete("pods", run.pods()[3], namespace="default")
    assert run.finish() is None  # while others fail, nobody can say


# --- settles


def test_run_that_comes_to_rest_settles() -> None:
    run = Run(MAKE, checks=("settles",))
    run.command("set image deploy/web web=web:2")
    run.cluster.settle()
    assert run.finish() is None


def test_settles_names_what_is_due() -> None:
    run = Run(MAKE, checks=("settles",))
    run.command("set image deploy/web web=web:2")
    run.cluster.advance("1s")
    run.suite.finish(settled=False)
    violation = run.suite.violation
    assert violation is not None
    assert violation.check == "settles"
    assert violation.key is None
    assert violation.message.startswith("At the end something was still due: ")


# --- owners


def owned(owner: Obj, **fields: Any) -> Obj:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
        **fields,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "owned", "namespace": "default", "ownerReferences": [reference]},
    }


def secret(run: Run, name: str = "owner") -> Obj:
    obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
    }
    return run.client.create("secrets", obj)


def test_object_whose_owner_is_there_is_not_accused() -> None:
    run = Run()
    run.client.create("configmaps", owned(secret(run)))
    assert run.finish() is None


@pytest.mark.parametrize(
    "fields", [{}, {"uid": "another"}, {"name": "another"}], ids=["gone", "uid", "name"]
)
def test_object_whose_owner_does_not_exist_is_accused(fields: Obj) -> None:
    run = Run(checks=("owners",))
    owner = secret(run)
    run.client.create("configmaps", owned(owner, **fields))
    if not fields:
        run.client.delete("secrets", "owner", namespace="default")
    violation = run.finish()
    assert violation is not None
    assert violation.key is None
    assert violation.message.startswith(
        "At the end configmaps default/owned names an owner that does not exist: Secret "
    )


def test_owner_that_was_missing_at_the_beginning_is_not_accused() -> None:
    before = Run(checks=())
    before.client.create("configmaps", owned(secret(before), uid="another"))
    local = before.local.fork(is_prediction=True)
    suite = CheckSuite([builtin("owners")], local)
    patch = Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}})
    local.client.patch("configmaps", "owned", patch, namespace="default")
    suite.finish(settled=True)
    assert suite.violation is None


def test_garbage_collector_takes_such_objects_away() -> None:
    run = Run()
    run.client.create("configmaps", owned(secret(run), uid="another"))
    run.cluster.settle()
    assert run.finish() is None
    assert [name_of(obj) for obj in run.client.list("configmaps").items] == []


def test_owner_of_a_kind_that_is_not_served_is_not_missed() -> None:
    run = Run(checks=("owners",))
    run.client.create("configmaps", owned(secret(run), kind="Mystery", uid="another"))
    assert run.finish() is None


# --- failures of syncs


def failures(check: str) -> tuple[Run, Callable[[Exception], Violation | None]]:
    run = Run(checks=(check,))

    def fail(error: Exception) -> Violation | None:
        run.suite.note_failure("worker", WEB, error)
        return run.suite.violation

    return run, fail


def conflict() -> errors.Conflict:
    return errors.Conflict("changed meanwhile")


def test_conflict_storm_is_more_than_twenty_in_a_row() -> None:
    run, fail = failures("no-conflict-storm")
    for _ in range(20):
        assert fail(conflict()) is None
    run.suite.note_success("worker", WEB)
    for _ in range(20):
        assert fail(conflict()) is None
    violation = fail(conflict())
    assert violation is not None
    assert violation.key == WEB
    assert violation.message == (
        "The controller worker failed 21 times in a row at deployments.apps default/web with "
        "Conflict: changed meanwhile"
    )


def test_conflicts_of_other_objects_and_controllers_are_counted_apart() -> None:
    run, fail = failures("no-conflict-storm")
    for number in range(60):
        run.suite.note_failure("worker", WEB._replace(name=f"web-{number % 3}"), conflict())
        run.suite.note_failure(f"worker-{number % 3}", WEB, conflict())
    assert run.suite.violation is None
    assert fail(errors.NotFound("gone")) is None


@pytest.mark.parametrize(
    ("error", "is_accused"),
    [
        (conflict(), False),
        (errors.NotFound("no"), False),
        (errors.InternalError("oh"), True),
        (KeyError("spec"), True),
    ],
)
def test_internal_error_is_all_but_an_answer_of_the_api(error: Exception, is_accused: bool) -> None:
    _, fail = failures("no-internal-error")
    violation = fail(error)
    assert (violation is not None) == is_accused


# --- the digest


def test_digest_of_bounds_tells_the_states_of_a_rollout_apart() -> None:
    run = Run(MAKE, checks=("bounds",))
    digests = [run.suite.digest()]
    run.command("set image deploy/web web=web:2")
    for _ in range(10):
        run.cluster.advance("4s")
        digests.append(run.suite.digest())
    assert len(set(digests)) > 3
    assert digests[-1] == digests[-2]
