"""Pods that take time, in a cluster with its own clock and with the system's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.clock import format_time
from kubepy.api.objects.pods import get_condition, is_pod_ready
from kubepy.apiserver.request import MERGE_PATCH, DeleteOptions, Patch
from kubepy.controlplane import build_manager
from kubepy.controlplane.open import open_cluster
from kubepy.storage import FolderError
from tests.stores import disagreements

Object = dict[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)


class Paced:
    """A cluster in a folder whose own time goes from one due moment to the next."""

    def __init__(self, folder: Path, settings: str = "", start: datetime = START) -> None:
        self.folder = folder
        folder.mkdir()
        self.settings = settings
        self._write_settings(settings)
        self.cluster = open_cluster(folder, create=True)
        self.cluster.clock.own = start
        self.manager = build_manager(self.cluster)

    def _write_settings(self, settings: str) -> None:
        (self.folder / "kubepy.yaml").write_text(f"formatVersion: 1\n{settings}")

    @property
    def client(self) -> Any:
        return self.cluster.client

    @property
    def seconds(self) -> float:
        return (self.cluster.clock.now() - START).total_seconds()

    def restart(self, settings: str | None = None) -> None:
        """Go on in another process, with other settings perhaps."""
        now = self.cluster.clock.own
        self.cluster.close()
        if settings is not None:
            self._write_settings(settings)
        self.cluster = open_cluster(self.folder)
        self.cluster.clock.own = now
        self.manager = build_manager(self.cluster)

    def settle(self) -> None:
        assert self.manager.run_until_settled().failures == []

    def until(self, seconds: float, watch: Callable[[], object] = lambda: None) -> None:
        """Stop at everything that falls due up to a moment; ``watch`` is called after each."""
        end = START + timedelta(seconds=seconds)
        self.settle()
        watch()
        while (
            due := next(iter(self.manager.run_until_settled().due), None)
        ) is not None and due.time <= end:
            self.cluster.clock.own = due.time
            self.settle()
            watch()
        self.cluster.clock.own = end
        self.settle()

    def nodes(self, *names: str, **annotations: str) -> None:
        for name in names:
            meta = {"name": name, "annotations": annotated(annotations)}
            self.client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        self.settle()

    def pod(
        self, name: str, spec: Object | None = None, *, settle: bool = True, **annotations: str
    ) -> None:
        spec = {"containers": [{"name": "c", "image": "c:1"}], **(spec or {})}
        meta = {"name": name, "namespace": "default", "annotations": annotated(annotations)}
        self.client.create(
            "pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
            namespace="default",
        )
        if settle:
            self.settle()

    def workload(
        self, resource: str, kind: str, spec: Object, image: str = "c:1", **annotations: str
    ) -> None:
        template = {
            "metadata": {"labels": {"app": "web"}, "annotations": annotated(annotations)},
            "spec": {"containers": [{"name": "c", "image": image}]},
        }
        self.client.create(
            f"{resource}.apps",
            {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
            },
            namespace="default",
        )
        self.settle()

    def annotate(self, resource: str, name: str, **annotations: str) -> None:
        patch = Patch(MERGE_PATCH, {"metadata": {"annotations": annotated(annotations)}})
        self.client.patch(resource, name, patch, namespace="" if resource == "nodes" else "default")
        self.settle()

    def set_image(self, resource: str, image: str) -> None:
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
        self.client.patch(f"{resource}.apps", "web", Patch(MERGE_PATCH, patch), namespace="default")
        self.settle()

    def get(self, name: str) -> Object:
        pod: Object = self.client.get("pods", name, namespace="default")
        return pod

    def pods(self) -> list[Object]:
        return list(self.client.list("pods", namespace="default").items)

    def ready_time(self, name: str) -> float | None:
        """Return when the pod became ready, None if it is not."""
        condition: Object = get_condition(self.get(name), "Ready") or {}
        if condition.get("status") != "True":
            return None
        return (datetime.fromisoformat(condition["lastTransitionTime"]) - START).total_seconds()

    def delete(self, name: str, grace: int | None = None) -> None:
        self.client.delete(
            "pods", name, namespace="default", options=DeleteOptions(grace_period_seconds=grace)
        )
        self.settle()


def annotated(annotations: dict[str, str]) -> dict[str, str]:
    return {f"kubepy.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}


@pytest.fixture
def new_paced(tmp_path: Path) -> Iterator[Callable[..., Paced]]:
    made: list[Paced] = []

    def build(settings: str = "", start: datetime = START) -> Paced:
        made.append(Paced(tmp_path / f"state{len(made)}", settings, start))
        return made[-1]

    yield build
    for paced in made:
        assert disagreements(paced.cluster.store) == []
        paced.cluster.close()


@pytest.fixture
def paced(new_paced: Callable[..., Paced]) -> Paced:
    paced = new_paced()
    paced.nodes("a", "b")
    return paced


# --- moments --------------------------------------------------------------------------------------


def test_fraction_of_second_is_counted(new_paced: Callable[..., Paced]) -> None:
    """A timestamp has whole seconds; what is counted from it is counted from its moment."""
    paced = new_paced(start=START + timedelta(seconds=0.7))
    paced.nodes("a")
    paced.pod("runs", {"restartPolicy": "Never"}, ready_after="2s", runs_for="5s")
    paced.pod("loops", outcome="crash-loop*3, ready")
    paced.pod("stops", stops_after="3s")
    paced.delete("stops")
    seen: list[tuple[float, str]] = []

    def watch() -> None:
        for pod in paced.pods():
            status = pod["status"]
            container = status["containerStatuses"][0]
            state = (
                f"{pod['metadata']['name']} {status['phase']} {is_pod_ready(pod)} "
                f"{container['restartCount']}"
            )
            if state not in (text for _, text in seen):
                seen.append((paced.seconds, state))
        names = {pod["metadata"]["name"] for pod in paced.pods()}
        if "stops" not in names and "gone" not in (text for _, text in seen):
            seen.append((paced.seconds, "gone"))

    paced.until(2, watch)
    paced.restart()
    paced.until(60, watch)
    assert seen == [
        (0.7, "loops Running False 1"),
        (0.7, "runs Running False 0"),
        (0.7, "stops Running True 0"),
        (2.7, "runs Running True 0"),
        (3.7, "gone"),
        (5.7, "runs Succeeded False 0"),
        (10.7, "loops Running False 2"),
        (30.7, "loops Running True 3"),
    ]


def test_moments_are_forgotten_with_their_pods(new_paced: Callable[..., Paced]) -> None:
    paced = new_paced(start=START + timedelta(seconds=0.7))
    paced.nodes("a")
    paced.pod("p", ready_after="2s")
    paced.pod("q", outcome="crash-loop")
    kubelet: Any = paced.manager.queues.reconcilers[0]
    assert len(kubelet.remember()["moments"]) == 2
    paced.until(500)
    assert [len(moments) for moments in kubelet.remember()["moments"].values()] == [4]
    paced.delete("q")
    assert "moments" not in kubelet.remember()


def test_crash_loop_costs_one_write_a_restart_and_no_event(paced: Paced) -> None:
    paced.pod("p", outcome="crash-loop")
    paced.until(600)
    restarts, revision = (
        paced.get("p")["status"]["containerStatuses"][0]["restartCount"],
        paced.client.revision(),
    )
    paced.until(600 + 3000)
    assert paced.get("p")["status"]["containerStatuses"][0]["restartCount"] == restarts + 10
    assert paced.client.revision() == revision + 10
    assert [
        event["reason"] for event in paced.client.list("events", namespace="default").items
    ] == []


def test_timer_of_crash_loop_repeats_once_back_off_is_longest(paced: Paced) -> None:
    paced.pod("p", outcome="crash-loop")
    single = []
    paced.until(
        300,
        lambda: single.append(
            any(
                reconciler.queue.next_single_due()
                for reconciler in paced.manager.queues.reconcilers
            )
        ),
    )
    assert single == [True, True, True, False]


def test_process_that_starts_anew_without_checkpoint_goes_on(paced: Paced) -> None:
    paced.pod("slow", ready_after="20s")
    paced.pod("loops", outcome="crash-loop*3, ready")
    paced.pod("pulls", outcome="image-pull-backoff*2, ready")
    paced.until(12)
    paced.cluster.store.set_values({"manager.checkpoint": ""})
    paced.restart()
    paced.until(60)
    assert [paced.ready_time(name) for name in ("slow", "loops", "pulls")] == [20, 30, 30]


# --- workloads ------------------------------------------------------------------------------------


def test_rollout_of_daemon_set_takes_its_time_node_by_node(new_paced: Callable[..., Paced]) -> None:
    paced = new_paced()
    paced.nodes("a", "b", "c", "d")
    paced.workload("daemonsets", "DaemonSet", {}, ready_after="5s", stops_after="3s")
    paced.until(10)
    paced.set_image("daemonsets", "c:2")
    unready: list[int] = []
    paced.until(
        10 + 31.9,
        lambda: unready.append(
            sum(
                not is_pod_ready(pod) or "deletionTimestamp" in pod["metadata"]
                for pod in paced.pods()
            )
        ),
    )
    assert max(unready) == 1
    assert not all(is_pod_ready(pod) for pod in paced.pods())
    paced.until(10 + 32)
    assert all(
        is_pod_ready(pod) and pod["spec"]["containers"][0]["image"] == "c:2" for pod in paced.pods()
    )


def test_stateful_set_starts_its_pods_one_after_the_other(paced: Paced) -> None:
    paced.workload(
        "statefulsets", "StatefulSet", {"replicas": 4, "serviceName": "web"}, ready_after="5s"
    )
    paced.until(60)
    assert [paced.ready_time(f"web-{ordinal}") for ordinal in range(4)] == [5, 10, 15, 20]


def test_deployment_waits_for_readiness_and_then_for_min_ready_seconds(paced: Paced) -> None:
    spec = {
        "replicas": 2,
        "minReadySeconds": 10,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }
    paced.workload("deployments", "Deployment", spec, ready_after="5s")
    paced.until(30)
    paced.set_image("deployments", "c:2")
    available: list[int] = []
    paced.until(
        30 + 29.9,
        lambda: available.append(
            paced.client.get("deployments.apps", "web", namespace="default")["status"].get(
                "availableReplicas", 0
            )
        ),
    )
    assert min(available) == 2
    assert len(paced.pods()) == 3
    paced.until(30 + 30)
    assert {pod["spec"]["containers"][0]["image"] for pod in paced.pods()} == {"c:2"}


def test_crash_loop_that_recovers_lets_rollout_go_on(paced: Paced) -> None:
    paced.workload(
        "deployments",
        "Deployment",
        {"replicas": 1},
        outcome="crash-loop*4, ready",
        ready_after="5s",
    )
    paced.until(74.9)
    status = paced.client.get("deployments.apps", "web", namespace="default")["status"]
    assert status.get("availableReplicas") is None
    paced.until(75)
    assert (
        paced.client.get("deployments.apps", "web", namespace="default")["status"][
            "availableReplicas"
        ]
        == 1
    )


def test_pod_of_job_is_ready_and_ends(paced: Paced) -> None:
    template = {
        "metadata": {"annotations": annotated({"ready_after": "2s", "runs_for": "6s"})},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c:1"}]},
    }
    paced.client.create(
        "jobs.batch",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {"completions": 2, "template": template},
        },
        namespace="default",
    )
    ready: list[tuple[float, int]] = []
    paced.until(
        30,
        lambda: ready.append(
            (
                paced.seconds,
                paced.client.get("jobs.batch", "j", namespace="default")["status"].get("ready", 0),
            )
        ),
    )
    # The Job's status counts ready pods at most once a second.
    assert [(at, number) for at, number in ready if number] != []
    status = paced.client.get("jobs.batch", "j", namespace="default")["status"]
    assert (status["succeeded"], status["completionTime"]) == (
        2,
        format_time(START + timedelta(seconds=12)),
    )


# --- nodes and settings ---------------------------------------------------------------------------


def test_annotation_of_node_takes_effect_on_its_pods(new_paced: Callable[..., Paced]) -> None:
    paced = new_paced()
    paced.nodes("a", ready_after="1h")
    paced.pod("p")
    paced.pod("own", ready_after="3s")
    paced.until(10)
    assert (paced.ready_time("p"), paced.ready_time("own")) == (None, 3)
    paced.annotate("nodes", "a", ready_after="20s", stops_after="4s")
    paced.until(30)
    assert paced.ready_time("p") == 20
    paced.delete("p")
    paced.until(33.9)
    assert len(paced.pods()) == 2
    paced.until(34)
    assert len(paced.pods()) == 1


def test_defaults_of_settings_hold_and_may_change(new_paced: Callable[..., Paced]) -> None:
    paced = new_paced("kubelet: {readyAfter: 1h, stopsAfter: 7s, runsFor: 9s, exitCode: 3}\n")
    paced.nodes("a")
    paced.pod("p")
    paced.until(10)
    assert paced.ready_time("p") is None
    paced.restart("kubelet: {readyAfter: 20s}\n")
    paced.until(30)
    assert paced.ready_time("p") == 20
    paced.restart("kubelet: {outcome: 'crash-loop*2, ready'}\n")
    paced.pod("q")
    paced.until(60)
    assert (
        paced.ready_time("p") == 20
        or paced.get("p")["status"]["containerStatuses"][0]["restartCount"] == 2
    )
    assert paced.ready_time("q") == 40


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "kubelet: 5s",
            "kubelet: must be a map of outcome, readyAfter, stopsAfter, runsFor, exitCode",
        ),
        (
            "kubelet: {ready-after: 5s}",
            "kubelet.ready-after: unknown setting: must be one of outcome, readyAfter",
        ),
        (
            "kubelet: {readyAfter: soon}",
            'kubelet.readyAfter: "soon": it must be a duration such as 5s, or a range such as',
        ),
        ("kubelet: {readyAfter: 5}", 'kubelet.readyAfter: "5": it must be a duration'),
        ("kubelet: {stopsAfter: [5s]}", "kubelet.stopsAfter: must be a string"),
        ("kubelet: {exitCode: 256}", 'kubelet.exitCode: "256": it must be a number from 0 to 255'),
        ("kubelet: {outcome: perfect}", 'kubelet.outcome: Outcome "perfect" is not known'),
        (
            "kubelet: {outcome: 'crash-loop*3'}",
            'kubelet.outcome: "crash-loop*3": the last outcome lasts',
        ),
    ],
)
def test_settings_that_cannot_be_read_are_refused(
    tmp_path: Path, settings: str, message: str
) -> None:
    (tmp_path / "kubepy.yaml").write_text(f"formatVersion: 1\n{settings}\n")
    with pytest.raises(FolderError) as error:
        open_cluster(tmp_path)
    assert str(error.value).startswith(f"kubepy.yaml: {message}")


def test_draws_follow_seed_and_name_whatever_the_order(new_paced: Callable[..., Paced]) -> None:
    times = []
    for names in (["p", "q", "r", "s"], ["s", "r", "q", "p"]):
        paced = new_paced("seed: 7\n")
        paced.nodes("a")
        for name in names:
            paced.pod(name, ready_after="2s..60s", stops_after="500ms..20s")
        paced.until(60)
        for name in names:
            paced.delete(name)
        gone: dict[str, float] = {}
        paced.until(
            90,
            lambda gone=gone, paced=paced: gone.update(  # type: ignore[misc]
                {
                    name: paced.seconds
                    for name in "pqrs"
                    if name not in {pod["metadata"]["name"] for pod in paced.pods()}
                    and name not in gone
                }
            ),
        )
        times.append(gone)
    assert times[0] == times[1]
    assert len(set(times[0].values())) == 4


# --- deletion -------------------------------------------------------------------------------------


def test_forced_deletion_is_at_once_and_grace_period_is_the_limit(paced: Paced) -> None:
    for name in ("forced", "short", "long"):
        paced.pod(name, {"terminationGracePeriodSeconds": 8}, stops_after="1m")
    paced.delete("forced", 0)
    paced.delete("short", 2)
    paced.delete("long")
    assert [pod["metadata"]["name"] for pod in paced.pods()] == ["long", "short"]
    assert all(is_pod_ready(pod) for pod in paced.pods())
    paced.until(2)
    assert [pod["metadata"]["name"] for pod in paced.pods()] == ["long"]
    paced.until(7.9)
    assert len(paced.pods()) == 1
    paced.until(8)
    assert paced.pods() == []


def test_pod_with_finalizer_has_ended_when_it_has_stopped_and_stays(paced: Paced) -> None:
    paced.pod("p", stops_after="5s")
    paced.client.patch(
        "pods",
        "p",
        Patch(MERGE_PATCH, {"metadata": {"finalizers": ["example.org/x"]}}),
        namespace="default",
    )
    paced.delete("p")
    paced.until(4.9)
    assert paced.get("p")["status"]["phase"] == "Running"
    paced.until(5)
    assert paced.get("p")["status"]["phase"] == "Failed"
    paced.client.patch(
        "pods", "p", Patch(MERGE_PATCH, {"metadata": {"finalizers": None}}), namespace="default"
    )
    assert paced.pods() == []


def test_pod_on_its_way_survives_its_node(paced: Paced) -> None:
    paced.pod("p", {"nodeName": "a"}, ready_after="20s", stops_after="5s")
    paced.until(5)
    paced.client.delete("nodes", "a")
    paced.until(30)
    assert paced.ready_time("p") is None
    paced.nodes("a")
    assert paced.ready_time("p") == 30


def test_damaged_time_in_status_stops_nobody_else(paced: Paced) -> None:
    paced.pod("p", ready_after="20s")
    [path] = list(paced.folder.rglob("p.yaml"))
    path.write_text(re.sub(r"startedAt: \S+", "startedAt: soon", path.read_text()))
    paced.pod("q", ready_after="5s", settle=False)
    for seconds in (0, 5, 20):
        paced.cluster.clock.own = START + timedelta(seconds=seconds)
        failures = paced.manager.run_until_settled().failures
        assert {failure.key.name for failure in failures} <= {"p"}
    assert paced.ready_time("q") == 5
    path.unlink()
