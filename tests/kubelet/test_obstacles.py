"""Containers that are not started: names of images, missing ConfigMaps and Secrets, init containers
that fail."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy import Cluster
from kubepy.kubelet.lifetimes import NO_RULES, Rules
from kubepy.kubelet.stages import Refuse, next_step
from tests.kubelet.objects import NOW, new_node
from tests.kubelet.test_restarts import Life

Object = dict[str, Any]
SIDECAR = {"name": "side", "image": "side:1", "restartPolicy": "Always"}
INIT = {"name": "init", "image": "init:1"}
READS = {"name": "c", "image": "c:1", "envFrom": [{"configMapRef": {"name": "settings"}}]}
OTHER = {"name": "d", "image": "d:1"}
VOLUMES = [{"name": "v", "secret": {"secretName": "keys"}}]


def waiting(life: Life, field: str = "containerStatuses") -> list[str]:
    """Return what the containers of a pod do: the reason for which they wait, or their state."""
    return [
        (entry["state"].get("waiting") or {}).get("reason") or next(iter(entry["state"]))
        for entry in life.pod["status"][field]
    ]


def condition(life: Life, kind: str) -> Object:
    return next(entry for entry in life.pod["status"]["conditions"] if entry["type"] == kind)


def life_with(
    present: set[str] | None = None,
    restart: str = "Always",
    spec: Object | None = None,
    **annotations: str,
) -> Life:
    """Return a pod in a cluster where these ConfigMaps and Secrets are, with all keys that are
    asked for."""
    rules = (
        NO_RULES
        if present is None
        else Rules(
            find=lambda resource, namespace, name: {"data": {"k": ""}} if name in present else None
        )
    )
    return Life(restart, spec, rules=rules, **annotations)


# --- images ---------------------------------------------------------------------------------------


def test_image_name_that_cannot_be_parsed_keeps_its_container_waiting() -> None:
    life = life_with(spec={"containers": [{"name": "c", "image": "C:1"}, OTHER]}).until(100)
    assert waiting(life) == ["InvalidImageName", "running"]
    assert life.pod["status"]["phase"] == "Pending"
    assert life.container["state"]["waiting"]["message"] == (
        'Failed to apply default image tag "C:1": couldn\'t parse image name "C:1": '
        "invalid reference format: repository name (library/C) must be lowercase"
    )
    assert condition(life, "ContainersReady")["message"] == "containers with unready status: [c]"
    assert len(life.seen) == 1
    life.pod["spec"]["containers"][0]["image"] = "c:1"
    assert waiting(life.until(100)) == ["running", "running"]
    assert life.pod["status"]["phase"] == "Running"


def test_container_that_ran_keeps_its_last_run_when_its_image_becomes_invalid() -> None:
    life = life_with().until(5)
    life.pod["spec"]["containers"][0]["image"] = "nginx:bad tag"
    life.until(10)
    assert waiting(life) == ["InvalidImageName", "running"]
    assert life.container["lastState"]["terminated"]["exitCode"] == 137
    assert life.pod["status"]["phase"] == "Running"


def test_pod_does_not_end_while_a_container_is_not_started() -> None:
    life = life_with(
        spec={"containers": [{"name": "c", "image": "C:1"}, OTHER]},
        restart="Never",
        outcome="succeeded",
    )
    assert waiting(life.until(100)) == ["InvalidImageName", "running"]
    life.pod["spec"]["containers"][0]["image"] = "c:1"
    assert life.until(200).pod["status"]["phase"] == "Succeeded"


def test_failed_pull_of_others_goes_on_beside_invalid_name() -> None:
    life = life_with(
        spec={"containers": [{"name": "c", "image": "C:1"}, OTHER]},
        outcome="image-pull-backoff*2, ready",
    )
    assert waiting(life.until(5)) == ["InvalidImageName", "ImagePullBackOff"]
    assert waiting(life.until(100)) == ["InvalidImageName", "running"]


@pytest.mark.parametrize("reason", ["InvalidImageName", "CreateContainerConfigError"])
def test_reason_set_by_hand_without_message_does_not_stay_when_containers_are_due(
    reason: str,
) -> None:
    life = life_with().until(0)
    life.container["state"] = {"waiting": {"reason": reason}}
    assert waiting(life.until(10)) == ["running", "running"]


# --- init containers ------------------------------------------------------------------------------


def test_init_container_that_crashes_keeps_the_others_waiting() -> None:
    life = life_with(
        spec={"initContainers": [SIDECAR, INIT, {"name": "late", "image": "late:1"}]},
        outcome="init-crash-loop*3, ready",
    ).until(12)
    assert waiting(life, "initContainerStatuses") == [
        "running",
        "CrashLoopBackOff",
        "PodInitializing",
    ]
    assert waiting(life) == ["PodInitializing", "PodInitializing"]
    assert life.pod["status"]["phase"] == "Pending"
    assert (
        condition(life, "Initialized")["message"]
        == "containers with incomplete status: [init late]"
    )
    assert condition(life, "Initialized")["reason"] == "ContainersNotInitialized"
    life.until(31)
    assert waiting(life, "initContainerStatuses") == ["running", "terminated", "terminated"]
    assert life.pod["status"]["initContainerStatuses"][1]["restartCount"] == 3
    assert life.state() == "2/2 Running 0" or life.state().startswith("1/1")
    assert condition(life, "Initialized")["status"] == "True"


@pytest.mark.parametrize(
    ("outcome", "restart", "reason"),
    [
        ("init-failed", "Always", "Error"),
        ("init-crash-loop", "Never", "Error"),
        ("init-crash-loop*2, ready", "Never", "Error"),
    ],
)
def test_init_container_that_is_not_started_again_ends_the_pod(
    outcome: str, restart: str, reason: str
) -> None:
    life = life_with(
        spec={"initContainers": [SIDECAR, INIT]}, restart=restart, outcome=outcome
    ).until(100)
    assert life.pod["status"]["phase"] == "Failed"
    statuses = life.pod["status"]["initContainerStatuses"]
    assert [entry["state"]["terminated"]["reason"] for entry in statuses] == ["Completed", reason]
    assert condition(life, "Initialized")["status"] == "False"
    assert condition(life, "Ready")["reason"] == "PodFailed"


def test_crash_loop_of_init_container_ends_when_the_annotation_goes() -> None:
    life = life_with(spec={"initContainers": [INIT]}, outcome="init-crash-loop").until(60)
    assert waiting(life, "initContainerStatuses") == ["CrashLoopBackOff"]
    life.annotate()
    assert waiting(life.until(61)) == ["running", "running"]
    assert life.pod["status"]["initContainerStatuses"][0]["restartCount"] >= 3


def test_crashes_of_containers_follow_those_of_init_container() -> None:
    life = life_with(
        spec={"initContainers": [INIT]}, outcome="init-crash-loop*2, crash-loop*2, ready"
    ).until(10)
    assert waiting(life) == ["CrashLoopBackOff"] * 2
    assert waiting(life.until(20)) == ["running"] * 2
    assert [
        life.pod["status"][field][0]["restartCount"]
        for field in ("initContainerStatuses", "containerStatuses")
    ] == [2, 2]


@pytest.mark.parametrize(
    ("spec", "outcome", "text"),
    [
        ({}, "init-crash-loop", "the pod has no init container, except sidecars"),
        (
            {"initContainers": [SIDECAR]},
            "init-failed",
            "the pod has no init container, except sidecars",
        ),
        (
            {"initContainers": [INIT]},
            "crash-loop, init-crash-loop, ready",
            "outcomes of init containers come before",
        ),
        ({"initContainers": [INIT]}, "init-failed, ready", "only crash-loop, oom-killed"),
    ],
)
def test_outcome_of_init_container_that_makes_no_sense_is_refused(
    spec: Object, outcome: str, text: str
) -> None:
    life = life_with(spec=spec, outcome=outcome)
    step = next_step(life.pod, new_node(), NOW)
    assert isinstance(step, Refuse)
    assert text in step.message


def test_node_outcome_of_init_containers_leaves_pods_without_them_alone() -> None:
    life = Life(node=new_node(**{"kubepy.dev/pod-outcome": "init-crash-loop"})).until(10)
    assert waiting(life) == ["running"] * 2


def test_out_of_memory_shows_in_last_state() -> None:
    life = life_with(outcome="oom-killed").until(100)
    ended = life.container["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"], waiting(life)[0]) == (
        "OOMKilled",
        137,
        "CrashLoopBackOff",
    )
    ended = (
        life_with(outcome="oom-killed", restart="Never").until(0).container["state"]["terminated"]
    )
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


# --- ConfigMaps and Secrets -----------------------------------------------------------------------


def test_missing_configuration_keeps_containers_waiting_until_it_is_there() -> None:
    present: set[str] = set()
    life = life_with(
        present, spec={"volumes": VOLUMES, "containers": [READS, OTHER]}, references="required"
    ).until(5)
    assert waiting(life) == ["ContainerCreating"] * 2
    present.add("keys")
    assert waiting(life.until(6)) == ["CreateContainerConfigError", "running"]
    assert life.container["state"]["waiting"]["message"] == 'configmap "settings" not found'
    present.add("settings")
    assert waiting(life.until(7)) == ["running"] * 2
    present.clear()
    assert waiting(life.until(8)) == ["running"] * 2


def test_missing_configuration_is_ignored_unless_it_is_required() -> None:
    spec = {"volumes": VOLUMES, "containers": [READS, OTHER]}
    assert waiting(life_with(set(), spec=spec).until(1)) == ["running"] * 2
    assert waiting(life_with(set(), spec=spec, references="ignored").until(1)) == ["running"] * 2


def test_image_is_pulled_before_configuration_is_looked_for() -> None:
    life = life_with(
        set(),
        spec={"containers": [READS]},
        references="required",
        outcome="image-pull-backoff*2, ready",
    )
    assert waiting(life.until(5)) == ["ImagePullBackOff"]
    assert waiting(life.until(60)) == ["CreateContainerConfigError"]
    life.rules = Rules(find=lambda resource, namespace, name: {"data": {}})
    assert waiting(life.until(61)) == ["running"]


def test_init_container_waits_for_its_own_configuration_first() -> None:
    present: set[str] = set()
    spec = {
        "initContainers": [{**INIT, "envFrom": [{"secretRef": {"name": "keys"}}]}],
        "containers": [READS],
    }
    life = life_with(
        present, spec=spec, references="required", outcome="init-crash-loop*2, ready"
    ).until(5)
    assert waiting(life, "initContainerStatuses") == ["CreateContainerConfigError"]
    assert waiting(life) == ["PodInitializing"]
    present.add("keys")
    assert waiting(life.until(6), "initContainerStatuses") == ["CrashLoopBackOff"]
    assert waiting(life.until(60)) == ["CreateContainerConfigError"]
    present.add("settings")
    assert waiting(life.until(61)) == ["running"]


def test_pods_go_on_as_soon_as_the_object_is_made() -> None:
    cluster = Cluster.temporary(nodes=1, settings={"kubelet": {"references": "required"}})
    spec = {
        "containers": [{"name": "c", "image": "c:1"}],
        "volumes": [{"name": "v", "configMap": {"name": "m"}}],
    }
    cluster.client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    )
    assert "0/1     ContainerCreating" in cluster.run("get pods").stdout
    assert "podIP" not in cluster.client.get("pod/web")["status"]
    assert (
        'MountVolume.SetUp failed for volume "v" : configmap "m" not found'
        in cluster.run("describe pod web").stdout
    )
    assert cluster.settle()
    cluster.run("create configmap m", check=True)
    assert "1/1     Running" in cluster.run("get pods").stdout
    assert cluster.client.get("pod/web")["status"]["podIP"]


# --- generated ------------------------------------------------------------------------------------


LASTS = st.sampled_from(
    ["ready", "not-ready", "crash-loop", "oom-killed", "succeeded", "failed", "image-pull-backoff"]
)
OUTCOMES = st.one_of(
    st.builds(
        lambda init, before, last: ", ".join([*init, *before, last]),
        st.lists(st.sampled_from(["init-crash-loop", "init-crash-loop*3"]), max_size=1),
        st.lists(
            st.sampled_from(["crash-loop*2", "oom-killed", "image-pull-backoff*2"]), max_size=2
        ),
        LASTS,
    ),
    st.sampled_from(["init-failed", "init-crash-loop"]),
)
IMAGES = st.sampled_from(["a:1", "a:2", "A:1"])


def change_of(
    names: set[str], images: list[str], outcome: str, references: str
) -> Callable[[Life, set[str]], None]:
    def change(life: Life, present: set[str]) -> None:
        present.clear()
        present.update(names)
        spec = copy.deepcopy(life.pod["spec"])
        for container, image in zip(
            [*spec["initContainers"], *spec["containers"]], images, strict=True
        ):
            container["image"] = image
        life.pod = {**life.pod, "spec": spec}
        life.annotate(outcome=outcome, references=references)

    return change


@given(
    restart=st.sampled_from(["Always", "OnFailure", "Never"]),
    changes=st.lists(
        st.builds(
            change_of,
            st.sets(st.sampled_from(["settings", "keys"])),
            st.lists(IMAGES, min_size=5, max_size=5),
            OUTCOMES,
            st.sampled_from(["required", "ignored"]),
        ),
        min_size=1,
        max_size=4,
    ),
    seconds=st.sampled_from([0, 3, 45, 700]),
)
def test_pod_never_spins_and_runs_when_nothing_is_in_its_way(
    restart: str, changes: list[Callable[[Life, set[str]], None]], seconds: int
) -> None:
    present: set[str] = set()
    late = {"name": "late", "image": "l:1", "envFrom": [{"secretRef": {"name": "keys"}}]}
    life = life_with(
        present,
        restart,
        {"initContainers": [SIDECAR, INIT, late], "containers": [READS, OTHER], "volumes": VOLUMES},
    )
    for change in changes:
        change(life, present)
        life.until(life.seconds + seconds)  # `act` asserts that a moment has few steps
    life.is_over = False
    if life.pod["status"]["phase"] not in ("Succeeded", "Failed"):
        change_of({"settings", "keys"}, ["a:1"] * 5, "ready", "required")(life, present)
        life.now += timedelta(seconds=1)
        life.act()
        assert waiting(life) == ["running"] * 2
        assert life.pod["status"]["phase"] == "Running"
