"""Imported pods go on doing what they did: nothing changes at first, and what comes is what was."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.importing.making import ImportOptions
from tests.importing.conftest import import_objects
from tests.importing.lives import DAY, NAMESPACE, NOW, ago, crash_loop, ended, running, uid
from tests.importing.recorded import LIVES, app, deployed

Object = dict[str, Any]


class Imported:
    """An imported cluster, and what tests ask of it."""

    def __init__(self, objects: list[Object]) -> None:
        options = ImportOptions(learns=True, now=NOW)
        self.imported = import_objects(objects, options)
        self.cluster = Cluster(self.imported.cluster)

    def advance(self, seconds: float) -> None:
        self.cluster.advance(timedelta(seconds=seconds))

    def run(self, command: str) -> str:
        result = self.cluster.run(f"{command} -n {NAMESPACE}")
        return result.stdout + result.stderr

    def shown(self) -> dict[str, str]:
        """Return what ``get pods`` shows: readiness, status and restarts, by name."""
        shown = {}
        for line in self.run("get pods --no-headers").splitlines():
            name, ready, status, restarts, *_ = line.split()
            shown[name] = f"{ready} {status} {restarts}"
        return shown

    def state(self) -> dict[str, str]:
        """Return all objects as they are stored."""
        local = self.imported.cluster
        return {
            f"{resource}/{obj['metadata'].get('namespace')}/{obj['metadata']['name']}": repr(obj)
            for resource in local.resources()
            for obj in local.store.list(resource).objects
        }


@pytest.mark.parametrize("life", LIVES)
def test_imported_pod_is_at_rest(life: str) -> None:
    imported = Imported(LIVES[life]())
    before = imported.state()
    imported.advance(0)
    after = imported.state()
    if life == "unschedulable":  # a scheduler that begins tries every pod, and says so
        after = {name: obj for name, obj in after.items() if not name.startswith("events/")}
    assert after == before


# What `get pods` shows at once, ten minutes later and half an hour later.
GO_ON = {
    "crash loop back off": (
        "0/1 CrashLoopBackOff 7",
        "0/1 CrashLoopBackOff 9",
        "0/1 CrashLoopBackOff 13",
    ),
    "crash loop that runs": (
        "1/1 Running 4",
        "0/1 CrashLoopBackOff 7",
        "0/1 CrashLoopBackOff 10",
    ),
    "exits with zero again and again": ("1/1 Running 20", "1/1 Running 20", "1/1 Running 20"),
    "out of memory in a loop": (
        "0/1 CrashLoopBackOff 3",
        "0/1 CrashLoopBackOff 7",
        "0/1 CrashLoopBackOff 11",
    ),
    "image pull back off": ("0/1 ImagePullBackOff 0",) * 3,
    "error of image pull": (
        "0/1 ErrImagePull 0",
        "0/1 ImagePullBackOff 0",
        "0/1 ImagePullBackOff 0",
    ),
    "secret not found": ("0/1 CreateContainerConfigError 0",) * 3,
    "image runs as root": ("0/1 CreateContainerConfigError 0",) * 3,
    "program not found": (
        "0/1 CrashLoopBackOff 5",
        "0/1 CrashLoopBackOff 7",
        "0/1 CrashLoopBackOff 11",
    ),
    "unschedulable": ("0/1 Pending 0",) * 3,
    "missing volume": ("0/1 ContainerCreating 0",) * 3,
    "volume not attached": ("0/1 ContainerCreating 0",) * 3,
    "running and not ready": ("0/1 Running 0",) * 3,
    "init container in crash loop": (
        "0/1 Init:CrashLoopBackOff 4",
        "0/1 Init:CrashLoopBackOff 7",
        "0/1 Init:CrashLoopBackOff 10",
    ),
    "init container that runs": ("0/1 Init:1/2 0",) * 3,
    "sidecar": ("2/2 Running 0",) * 3,
    "contradicting command": ("1/1 Running 0",) * 3,
    "contradicting probe": ("1/1 Running 0",) * 3,
}


@pytest.mark.parametrize("life", GO_ON)
def test_imported_pod_goes_on_as_it_was(life: str) -> None:
    imported = Imported(LIVES[life]())
    shown = []
    for seconds in (0, 600, 1200):
        imported.advance(seconds)
        shown.append(imported.shown()["app-h1-p"])
    assert tuple(shown) == GO_ON[life]


def container_of(imported: Imported, pod: str = "app-h1-p") -> Object:
    obj: Object = imported.cluster.client.get("pods", pod, namespace=NAMESPACE)
    status: Object = obj["status"]["containerStatuses"][0]
    return status


def test_crash_loop_ends_with_the_same_code_and_message_after_as_long() -> None:
    imported = Imported(LIVES["crash loop back off"]())
    imported.advance(600)
    ended = container_of(imported)["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    assert ended["message"] == "panic: DATABASE_URL is not set\n"
    started, finished = ended["startedAt"], ended["finishedAt"]
    assert (started, finished) == ("2026-03-01T10:08:32Z", "2026-03-01T10:08:44Z")


def test_back_off_of_crash_loop_goes_on_where_it_was() -> None:
    imported = Imported(LIVES["crash loop back off"]())
    imported.advance(199)
    assert container_of(imported)["restartCount"] == 7
    imported.advance(1)
    assert container_of(imported)["restartCount"] == 8


def test_container_out_of_memory_is_killed_again_after_as_long() -> None:
    imported = Imported(LIVES["out of memory and running again"]())
    imported.advance(70 * 60)
    status = container_of(imported)
    assert status["restartCount"] == 5
    assert status["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert status["lastState"]["terminated"]["exitCode"] == 137


def test_learned_memory_is_not_shown_as_usage() -> None:
    imported = Imported(LIVES["out of memory and running again"]())
    assert "error" in imported.run("top pod")


def test_sleep_that_ends_every_hour_ends_again() -> None:
    imported = Imported(LIVES["exits with zero again and again"]())
    assert imported.imported.learned == []
    imported.advance(35 * 60)
    assert container_of(imported)["restartCount"] == 21


LOOPS = ("crash-loop", "init-container-failing", "out-of-memory")


@pytest.mark.parametrize(
    ("life", "cause", "words"),
    [
        ("crash loop back off", "crash-loop", "exit code 3"),
        ("image pull back off", "image-pull", "pull access denied"),
        ("secret not found", "secret-missing", 'secret "db" not found'),
        ("init container in crash loop", "init-container-failing", "init container wait ends"),
        ("out of memory in a loop", "out-of-memory", "64Mi"),
        ("running and not ready", "not-ready", "runs, but is not ready"),
        ("program not found", "crash-loop", "128"),
        ("image runs as root", "", "image will run as root"),
        ("volume not attached", "", "volume is attached to another node"),
        ("terminating on silent node", "", "worker-3"),
    ],
)
def test_why_names_the_cause(life: str, cause: str, words: str) -> None:
    imported = Imported(LIVES[life]())
    for seconds in (0, 900):
        imported.advance(seconds)
        if cause in LOOPS and "CrashLoopBackOff" not in imported.shown()["app-h1-p"]:
            imported.advance(35)  # it runs just now
        text = " ".join(imported.run("why pod/app-h1-p").split())
        assert cause in text
        assert words in text


def rolled_out(imported: Imported) -> str:
    return imported.run("rollout status deploy/app --timeout=5m")


@pytest.mark.parametrize(
    "life",
    [
        "crash loop back off",
        "image pull back off",
        "image runs as root",
        "out of memory in a loop",
        "running and not ready",
        "volume not attached",
        "program not found",
        "init container in crash loop",
    ],
)
def test_changed_template_is_free_of_a_failure_until_it_is_undone(life: str) -> None:
    imported = Imported(LIVES[life]())
    imported.run("rollout restart deploy/app")
    assert "successfully rolled out" in rolled_out(imported)
    imported.run("rollout undo deploy/app")
    assert "timed out" in rolled_out(imported)


def test_new_pod_of_the_failing_template_fails_too() -> None:
    imported = Imported(LIVES["crash loop back off"]())
    imported.run("delete pod app-h1-p")
    imported.advance(60)
    [shown] = imported.shown().values()
    assert "CrashLoopBackOff" in shown


def test_new_image_gets_ready_after_the_time_of_its_workload() -> None:
    imported = Imported(LIVES["contradicting command"]())
    imported.run("set image deploy/app app=registry.example.com/shop/app:1.5")
    imported.advance(19)
    assert sorted(imported.shown().values()) == ["0/1 Running 0", "1/1 Running 0"]
    imported.advance(1)
    assert [*imported.shown().values()] == ["1/1 Running 0"]


def test_command_that_the_model_would_end_runs_on_in_new_pods_and_not_another_one() -> None:
    imported = Imported(LIVES["contradicting command"]())
    imported.run("rollout restart deploy/app")
    assert "successfully rolled out" in rolled_out(imported)
    container = {"name": "app", "command": ["sh", "-c", "exit 1"]}
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [container]}}}})
    imported.cluster.run(["patch", "deploy/app", "-n", NAMESPACE, "-p", patch])
    assert "timed out" in rolled_out(imported)


def test_probe_that_succeeded_does_so_in_new_pods_and_not_another_one() -> None:
    imported = Imported(LIVES["contradicting probe"]())
    imported.run("rollout restart deploy/app")
    assert "successfully rolled out" in rolled_out(imported)
    container = {"name": "app", "readinessProbe": {"exec": {"command": ["cat", "/tmp/other"]}}}
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [container]}}}})
    imported.cluster.run(["patch", "deploy/app", "-n", NAMESPACE, "-p", patch])
    assert "timed out" in rolled_out(imported)


def test_identities_of_a_container_stay_while_another_one_restarts() -> None:
    other = {"name": "web", "image": "nginx@sha256:" + "0" * 64}
    objects = deployed(
        {"app": crash_loop("app-h1-p", ended(1, 30, 25), 2, "20s"), "web": running(500)},
        containers=[*app(), other],
        age=505,
    )
    imported = Imported(objects)
    before: Object = imported.cluster.client.get("pods", "app-h1-p", namespace=NAMESPACE)
    imported.advance(60)
    after: Object = imported.cluster.client.get("pods", "app-h1-p", namespace=NAMESPACE)
    assert after["status"]["containerStatuses"][0]["restartCount"] > 2
    assert before["status"]["containerStatuses"][1] == after["status"]["containerStatuses"][1]
    assert after["status"]["containerStatuses"][1]["state"]["running"]["startedAt"] == ago(500)


def test_container_that_is_being_stopped_ends_at_its_deadline() -> None:
    imported = Imported(LIVES["terminating and running still"]())
    imported.advance(39)
    assert imported.shown()["app-h1-p"] == "1/1 Terminating 0"
    imported.advance(1)
    assert "app-h1-p" not in imported.shown()


def test_autoscaler_measures_what_it_has_measured() -> None:
    objects = deployed(
        {"app": running(DAY)}, containers=app(resources={"requests": {"cpu": "200m"}})
    )
    autoscaler: Object = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "app",
            "namespace": NAMESPACE,
            "uid": uid("HorizontalPodAutoscaler", "app"),
            "creationTimestamp": ago(5 * DAY),
        },
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"},
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80},
                    },
                }
            ],
        },
        "status": {
            "currentMetrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "current": {"averageUtilization": 72, "averageValue": "145m"},
                    },
                }
            ],
            "currentReplicas": 1,
            "desiredReplicas": 1,
        },
    }
    imported = Imported([*objects, autoscaler])
    imported.advance(600)
    status: Object = imported.cluster.client.get("hpa", "app", namespace=NAMESPACE)["status"]
    assert status["currentMetrics"] == autoscaler["status"]["currentMetrics"]
    assert status["desiredReplicas"] == 1
