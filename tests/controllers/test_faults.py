"""Faults from the seed: settings, conflicts, restarts, late watch events, nodes that go down, pods
that fail."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.meta import Object, annotations_of, name_of
from kubepy.apiserver.fault_settings import CONTROLLERS, FaultSettings, parse_faults
from kubepy.apiserver.settings import parse_settings
from kubepy.controlplane import NAMES, build_manager, new_reconcilers
from kubepy.controlplane.faults import WATCH, FaultyReconciler
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Informers, Key
from kubepy.storage import FolderError
from tests.controllers.conftest import Lab
from tests.controllers.daemonset_lab import daemon_set
from tests.controllers.statefulset_objects import SETS, stateful_set, storage_class
from tests.controllers.volume_objects import CLAIMS, CLASSES, claims, phases

DS = "daemonsets.apps"
MakeLab = Callable[[Object], Lab]


@pytest.fixture
def make_lab(tmp_path: Path) -> MakeLab:
    def make(faults: Object) -> Lab:
        lab = Lab(tmp_path / f"state-{len(list(tmp_path.iterdir()))}", faults)
        for number in (1, 2, 3):
            lab.node(f"node-{number}")
        lab.settle()
        return lab

    return make


def advance(lab: Lab, seconds: float) -> None:
    build_manager(lab.cluster).advance(lab.now + timedelta(seconds=seconds))


def ready(lab: Lab, name: str) -> str:
    conditions = lab.client.get("nodes", name)["status"]["conditions"]
    return str(next(one["status"] for one in conditions if one["type"] == "Ready"))


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (3, "faults: must be a map of seed, nodes, pods, conflicts, restarts, lateEvents"),
        (
            {"chaos": 1},
            "faults.chaos: unknown field: must be one of seed, nodes, pods, conflicts, restarts, "
            "lateEvents",
        ),
        ({"seed": [1]}, "faults.seed: must be a number or a string"),
        ({"nodes": []}, "faults.nodes: must be a list with at least one entry"),
        ({"nodes": [{"names": ["a"]}]}, "faults.nodes[0].downFor: is required"),
        (
            {"nodes": [{"downFor": "5"}]},
            'faults.nodes[0].downFor: "5" is not a duration such as 5m, or a range such as 2s..8s',
        ),
        (
            {"nodes": [{"downFor": "5m..1m"}]},
            'faults.nodes[0].downFor: "5m..1m" is not a duration such as 5m, or a range such as '
            "2s..8s",
        ),
        ({"nodes": [{"downFor": "0s"}]}, 'faults.nodes[0].downFor: "0s" is less than 1s'),
        (
            {"nodes": [{"downFor": "500ms..2s"}]},
            'faults.nodes[0].downFor: "500ms..2s" is less than 1s',
        ),
        (
            {"nodes": [{"downFor": "5m", "every": "1m"}]},
            "faults.nodes[0].every: must be longer than downFor",
        ),
        (
            {"nodes": [{"downFor": "5m", "every": "1h..2h"}]},
            'faults.nodes[0].every: "1h..2h" is a range: must be one duration such as 5m',
        ),
        (
            {"nodes": [{"downFor": "5m", "names": [1]}]},
            "faults.nodes[0].names[0]: must be a string",
        ),
        (
            {"pods": [{"outcome": "sad"}]},
            'faults.pods[0].outcome: Outcome "sad" is not known: it must be one of ready, '
            "not-ready, crash-loop, oom-killed, image-pull-backoff, init-crash-loop, init-failed, "
            "failed, succeeded, pending",
        ),
        (
            {"pods": [{"outcome": "failed", "ordinals": [-1]}]},
            'faults.pods[0].ordinals[0]: "-1" is not a number from 0 on',
        ),
        (
            {"pods": [{"outcome": "failed", "selector": {"labels": {}}}]},
            "faults.pods[0].selector.labels: unknown field: must be one of matchLabels, "
            "matchExpressions",
        ),
        (
            {
                "pods": [
                    {
                        "outcome": "failed",
                        "selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]},
                    }
                ]
            },
            'faults.pods[0].selector.matchExpressions: "Near" is not a valid label selector '
            "operator",
        ),
        ({"conflicts": {"rate": 1.5}}, 'faults.conflicts.rate: "1.5" is not a number from 0 to 1'),
        (
            {"conflicts": {"rate": True}},
            'faults.conflicts.rate: "true" is not a number from 0 to 1',
        ),
        ({"conflicts": {}}, "faults.conflicts.rate: is required"),
        (
            {"restarts": {"rate": 0.1, "resources": ["Pods"]}},
            'faults.restarts.resources[0]: "Pods" is not a resource such as pods or '
            "daemonsets.apps",
        ),
        (
            {"conflicts": {"rate": 0.1, "resources": ["pods", "nosuch"]}},
            'faults.conflicts.resources[1]: "nosuch" is not a resource such as pods or '
            "daemonsets.apps",
        ),
        (
            {"conflicts": {"rate": 0.1, "resources": ["nosuch.apps"]}},
            'faults.conflicts.resources[0]: "nosuch.apps" is not a resource such as pods or '
            "daemonsets.apps",
        ),
        (
            {"pods": [{"outcome": "crash-loop*0"}]},
            'faults.pods[0].outcome: "crash-loop*0": the last outcome lasts, '
            "so it takes no number: name what follows, as in crash-loop*3, ready",
        ),
        ({"lateEvents": {"rate": 0.1}}, "faults.lateEvents.delay: is required"),
    ],
)
def test_wrong_setting_is_an_error_with_its_path(faults: Any, message: str) -> None:
    with pytest.raises(FolderError) as error:
        parse_settings({"faults": faults})
    assert str(error.value) == f"kubepy.yaml: {message}"


def test_resources_are_named_as_on_the_command_line() -> None:
    names = ["ds", "pod", "deployments.v1.apps", "widgets.example.com"]
    faults = parse_settings({"faults": {"conflicts": {"rate": 0.1, "resources": names}}}).faults
    assert faults.conflicts.resources == (  # type: ignore[union-attr]
        "daemonsets.apps",
        "pods",
        "deployments.apps",
        "widgets.example.com",
    )


def test_unknown_controller_is_an_error_that_lists_them() -> None:
    with pytest.raises(
        FolderError,
        match=r'restarts.controllers\[0\]: "kubelet" is not a controller: must be one of .*'
        "daemonset-controller",
    ):
        parse_settings({"faults": {"restarts": {"rate": 0.1, "controllers": ["kubelet"]}}})


def test_controllers_that_can_be_afflicted_are_all_but_kubelets() -> None:
    assert tuple(name for name in NAMES if name not in ("kubelet", "node-faults")) == CONTROLLERS


def test_seed_is_that_of_the_faults_before_that_of_the_cluster() -> None:
    faults = {"conflicts": {"rate": 0.1}}
    assert parse_settings({"seed": 5, "faults": faults}).faults.seed == 5  # type: ignore[union-attr]
    assert parse_settings({"seed": 5, "faults": {**faults, "seed": "x"}}).faults.seed == "x"  # type: ignore[union-attr]


def test_draws_are_functions_of_seed_and_subject() -> None:
    faults = FaultSettings("", seed=1)
    draws = [faults.draw("conflict", name) for name in "abcdefgh"]
    assert draws == [faults.draw("conflict", name) for name in "abcdefgh"]
    assert len(set(draws)) == 8
    assert draws != [faults._replace(seed=2).draw("conflict", name) for name in "abcdefgh"]
    assert all(0 <= draw < 1 for draw in draws)


def test_without_faults_no_reconciler_is_wrapped(lab: Lab) -> None:
    context = Context(lab.client, Informers(), lab.cluster.clock, Pacing(), lab.cluster.scheme)
    assert not any(isinstance(one, FaultyReconciler) for one in new_reconcilers(context))


# --- controllers ----------------------------------------------------------------------------------


def test_conflict_leaves_the_object_and_is_tried_again(make_lab: MakeLab) -> None:
    lab = make_lab(
        {"conflicts": {"rate": 0.9, "controllers": ["daemonset-controller"], "resources": [DS]}}
    )
    lab.create(DS, daemon_set(), "default")
    summary = lab.settle()
    assert {(failure.reconciler, failure.error) for failure in summary.failures} == {
        (
            "daemonset-controller",
            'Operation cannot be fulfilled on daemonsets.apps "agent": the object has been '
            "modified; please apply your changes to the latest version and try again",
        )
    }
    advance(lab, 3600)
    assert lab.client.get(DS, "agent", namespace="default")["status"]["numberReady"] == 3
    lab.cluster.close()


def test_restarted_controller_finishes_what_it_began(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    begin = FaultyReconciler._begin

    def count(self: FaultyReconciler) -> None:
        begun.append(self.name)
        begin(self)

    monkeypatch.setattr(FaultyReconciler, "_begin", count)
    lab = make_lab({"restarts": {"rate": 1, "controllers": ["daemonset-controller"]}})
    begun.clear()
    lab.create(DS, daemon_set(), "default")
    lab.settle()
    assert len(begun) > 4  # at each manager's start, and after each write
    assert len(lab.names("pods")) == 3
    assert lab.client.get(DS, "agent", namespace="default")["status"]["numberReady"] == 3
    lab.cluster.close()


def test_late_event_is_missing_from_all_that_the_controller_sees(make_lab: MakeLab) -> None:
    late = {"rate": 1, "delay": "30s", "controllers": ["daemonset-controller"], "resources": [DS]}
    lab = make_lab({"lateEvents": late})
    lab.create(DS, daemon_set(), "default")
    summary = lab.settle()
    assert lab.names("pods") == []
    assert [(due.reconciler, due.key, due.time - lab.now) for due in summary.due] == [
        ("daemonset-controller", Key(WATCH, "", DS), timedelta(seconds=30))
    ]
    advance(lab, 29)
    assert lab.names("pods") == []
    advance(lab, 1)
    assert len(lab.names("pods")) == 3
    lab.cluster.close()


def test_late_events_of_a_deletion_survive_the_process(make_lab: MakeLab) -> None:
    """Each ``settle`` is a process of its own; the deleted pod's DaemonSet learns of it in a later
    one."""
    lab = make_lab(
        {
            "lateEvents": {
                "rate": 1,
                "delay": "30s",
                "controllers": ["daemonset-controller"],
                "resources": ["pods"],
            }
        }
    )
    lab.create(DS, daemon_set(), "default")
    advance(lab, 60)
    gone = lab.names("pods")[0]
    lab.client.delete("pods", gone, namespace="default")
    lab.settle()
    lab.settle()
    assert len(lab.names("pods")) == 2
    advance(lab, 60)
    assert len(lab.names("pods")) == 3
    assert gone not in lab.names("pods")
    lab.cluster.close()


def test_same_seed_has_the_same_faults_and_another_has_others(make_lab: MakeLab) -> None:
    storm = {
        "conflicts": {"rate": 0.3},
        "restarts": {"rate": 0.2},
        "lateEvents": {"rate": 0.3, "delay": "0s..20s"},
    }

    def play(seed: int) -> list[tuple[str, str]]:
        lab = make_lab({**storm, "seed": seed})
        lab.create(DS, daemon_set(), "default")
        advance(lab, 60)
        lab.change(
            DS,
            "agent",
            lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image="agent:2"),
            "default",
        )
        advance(lab, 300)
        pods = lab.client.list("pods").items
        assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["agent:2"] * 3
        lab.cluster.close()
        return [(name_of(pod), pod["metadata"]["creationTimestamp"]) for pod in pods]

    assert play(1) == play(1)
    assert len({tuple(play(seed)) for seed in (1, 2, 3)}) == 3


STORM = {
    "conflicts": {"rate": 0.2},
    "restarts": {"rate": 0.1},
    "lateEvents": {"rate": 0.4, "delay": "0s..20s"},
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_job_runs_each_completion_once_in_a_storm(make_lab: MakeLab, seed: int, mode: str) -> None:
    lab = make_lab({**STORM, "seed": seed})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"completions": 6, "parallelism": 2, "completionMode": mode, "template": template}
    lab.create(
        "jobs.batch",
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec},
        "default",
    )
    lab.recover()
    status = lab.client.get("jobs.batch", "job", namespace="default")["status"]
    assert (status["succeeded"], status.get("failed", 0)) == (6, 0)
    assert [one["type"] for one in status["conditions"] if one["status"] == "True"] == [
        "SuccessCriteriaMet",
        "Complete",
    ]
    pods = lab.client.list("pods").items
    assert len(pods) == 6
    assert not any(pod["metadata"].get("finalizers") for pod in pods)
    lab.cluster.close()


@pytest.mark.parametrize("seed", range(8))
def test_scheduler_fills_no_node_twice_in_a_storm(make_lab: MakeLab, seed: int) -> None:
    lab = make_lab({**STORM, "seed": seed})
    for number in range(8):  # of which two fit on a node with its 4 cpus
        spec = {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}]
        }
        lab.create(
            "pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"pod-{number}"},
                "spec": spec,
            },
            "default",
        )
    lab.recover()
    nodes = [pod["spec"].get("nodeName", "") for pod in lab.client.list("pods").items]
    assert sorted(nodes) == ["", "", *sorted(2 * [f"node-{number}" for number in (1, 2, 3)])]
    lab.cluster.close()


def test_volume_is_kept_while_the_event_of_its_claim_is_late(make_lab: MakeLab) -> None:
    lab = make_lab(
        {
            "lateEvents": {
                "rate": 1,
                "delay": "30s",
                "controllers": ["persistentvolume-binder-controller"],
                "resources": [CLAIMS],
            }
        }
    )
    lab.create(CLASSES, storage_class())
    lab.create(SETS, stateful_set(claims=True, replicas=1), "default")
    lab.recover()
    [(phase, volume)] = claims(lab).values()
    assert (phase, phases(lab)) == ("Bound", {volume: "Bound"})
    lab.client.delete(SETS, "db", namespace="default")
    lab.client.delete(CLAIMS, "data-db-0", namespace="default")
    lab.recover()
    assert phases(lab) == {}
    lab.cluster.close()


def test_claim_is_kept_while_the_event_of_its_pod_is_late(make_lab: MakeLab) -> None:
    lab = make_lab(
        {
            "lateEvents": {
                "rate": 1,
                "delay": "1h",
                "controllers": ["pvc-protection-controller"],
                "resources": ["pods"],
            }
        }
    )
    lab.create(CLASSES, storage_class())
    lab.create(SETS, stateful_set(claims=True, replicas=1), "default")
    advance(lab, 60)
    lab.client.delete(CLAIMS, "data-db-0", namespace="default")
    advance(lab, 60)
    assert lab.names(CLAIMS) == ["data-db-0"]
    lab.client.delete(SETS, "db", namespace="default")
    lab.recover()
    advance(lab, 7200)
    assert lab.names(CLAIMS) == []
    lab.cluster.close()


# --- nodes and pods -------------------------------------------------------------------------------


def test_node_goes_down_is_given_up_and_comes_back(make_lab: MakeLab) -> None:
    lab = make_lab({"nodes": [{"names": ["node-2"], "after": "1m", "downFor": "10m"}]})
    lab.create(DS, daemon_set(), "default")
    advance(lab, 60)
    assert (
        annotations_of(lab.client.get("nodes", "node-2"))["kubepy.dev/down-until"]
        == "2026-11-20T10:11:00Z"
    )
    assert ready(lab, "node-2") == "True"
    advance(lab, 50)
    node = lab.client.get("nodes", "node-2")
    condition = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
    assert (
        condition["status"],
        condition["reason"],
        condition["message"],
        condition["lastTransitionTime"],
    ) == (
        "Unknown",
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
        "2026-11-20T10:01:50Z",
    )
    assert [(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]] == [
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    pod = lab.pods_by_node()["node-2"]
    assert {one["type"]: one["status"] for one in pod["status"]["conditions"]}["Ready"] == "False"
    advance(lab, 550)
    node = lab.client.get("nodes", "node-2")
    assert (ready(lab, "node-2"), node["spec"].get("taints")) == ("True", None)
    assert "kubepy.dev/down-until" not in annotations_of(node)
    pod = lab.pods_by_node()["node-2"]
    assert {one["type"]: one["status"] for one in pod["status"]["conditions"]}["Ready"] == "True"
    lab.cluster.close()


def test_short_outage_is_not_noticed(make_lab: MakeLab) -> None:
    lab = make_lab({"nodes": [{"names": ["node-2"], "after": "1m", "downFor": "49s"}]})
    advance(lab, 600)
    conditions = lab.client.get("nodes", "node-2")["status"]["conditions"]
    assert {one["lastTransitionTime"] for one in conditions} == {"2026-11-20T10:00:00Z"}
    lab.cluster.close()


def test_pods_on_a_node_that_is_down_terminate_when_it_is_back(make_lab: MakeLab) -> None:
    lab = make_lab({"nodes": [{"names": ["node-2"], "downFor": "10m"}]})
    tolerations = [{"operator": "Exists"}]
    for name in ("stays", "goes"):
        spec = {
            "nodeName": "node-2",
            "tolerations": tolerations,
            "containers": [{"name": "c", "image": "i"}],
        }
        lab.create(
            "pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec},
            "default",
        )
    lab.settle()
    phases = [pod["status"].get("phase") for pod in lab.client.list("pods").items]
    assert phases == ["Pending", "Pending"]
    lab.client.delete("pods", "goes", namespace="default")
    advance(lab, 599)
    assert lab.names("pods") == ["goes", "stays"]
    advance(lab, 1)
    assert lab.names("pods") == ["stays"]
    assert lab.client.get("pods", "stays", namespace="default")["status"]["phase"] == "Running"
    lab.cluster.close()


def test_outages_repeat_and_rate_leaves_some_out(make_lab: MakeLab) -> None:
    lab = make_lab({"nodes": [{"after": "10m", "downFor": "2m", "every": "1h", "rate": 0.5}]})
    down = {1: 0, 2: 0, 3: 0}
    advance(lab, 661)
    for _ in range(12):
        for number in down:
            down[number] += ready(lab, f"node-{number}") == "Unknown"
        advance(lab, 3600)
    assert all(0 < count < 12 for count in down.values())
    assert len(set(down.values())) > 1 or sum(down.values()) != 18
    lab.cluster.close()


def test_pod_fault_gives_way_to_annotations(make_lab: MakeLab) -> None:
    lab = make_lab(
        {
            "pods": [
                {
                    "selector": {"matchLabels": {"app": "agent"}},
                    "nodes": ["node-2", "node-3"],
                    "outcome": "crash-loop",
                }
            ]
        }
    )
    lab.change(
        "nodes",
        "node-3",
        lambda node: node["metadata"].update(annotations={"kubepy.dev/pod-outcome": "not-ready"}),
    )
    lab.create(DS, daemon_set(), "default")
    lab.settle()
    statuses = {
        node: pod["status"]["containerStatuses"][0] for node, pod in lab.pods_by_node().items()
    }
    assert {node: next(iter(status["state"])) for node, status in statuses.items()} == {
        "node-1": "running",
        "node-2": "waiting",
        "node-3": "running",
    }
    pod = lab.pods_by_node()["node-2"]
    lab.change(
        "pods",
        name_of(pod),
        lambda pod: pod["metadata"].update(annotations={"kubepy.dev/outcome": "ready"}),
        "default",
    )
    lab.settle()
    assert lab.pods_by_node()["node-2"]["status"]["containerStatuses"][0]["ready"]
    lab.cluster.close()


@pytest.mark.parametrize(
    ("fault", "concerned"),
    [
        ({"ordinals": [1]}, ["db-1"]),
        ({"ordinals": [0, 1], "rate": 0}, []),
        ({"namespaces": ["other"]}, []),
        (
            {
                "selector": {
                    "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]
                }
            },
            ["web-0"],
        ),
    ],
)
def test_pod_fault_concerns_pods_by_its_fields(fault: Object, concerned: list[str]) -> None:
    faults = parse_faults("f: ", {"seed": 1, "pods": [{**fault, "outcome": "failed"}]})
    pods = [
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": {"app": name[:-2], "apps.kubernetes.io/pod-index": name[-1]},
            },
            "spec": {},
        }
        for name in ("db-0", "db-1", "web-0")
    ]
    assert [name_of(pod) for pod in pods if faults.pod_outcome(pod)] == concerned
