from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubepy.api.errors import Status
from tests.controllers.conftest import Lab
from tests.stores import disagreements

TYPES_IN_ORDER = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
]


def make(lab: Lab, name: str = "lab") -> None:
    lab.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def conditions(lab: Lab) -> dict[str, dict[str, str]]:
    return {one["type"]: one for one in lab.client.get("namespaces", "lab")["status"]["conditions"]}


def stuck_pod(lab: Lab) -> None:
    lab.node("node-1")
    metadata = {"name": "stuck", "annotations": {"kubepy.dev/termination": "stuck"}}
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "i:1"}]}
    lab.create(
        "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, "lab"
    )
    lab.settle()


def test_namespace_goes_with_everything_in_it(lab):
    make(lab)
    lab.config_map("plain", namespace="lab")
    lab.client.delete("namespaces", "lab")
    lab.settle()
    assert "lab" not in lab.names("namespaces")
    assert lab.names("configmaps", "lab") == []


def there(lab: Lab) -> tuple[list[str], list[str]]:
    """Return the names of the namespace's remaining pods and ConfigMaps."""
    return lab.names("pods", "lab"), lab.names("configmaps", "lab")


def test_namespace_deletion_watched_removes_pods_after_five_seconds(lab):
    make(lab)
    lab.node("node-1")
    spec = {"containers": [{"name": "c", "image": "i:1"}]}
    lab.create(
        "pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec},
        "lab",
    )
    lab.config_map("plain", namespace="lab")
    lab.watch()
    lab.client.delete("namespaces", "lab")
    seen = []
    for second in (0, 4.9, 5, 9.9, 10):
        lab.pass_time(second)
        lab.watch()
        seen.append(there(lab) if "lab" in lab.names("namespaces") else "gone")
    before, between = (["web"], ["plain"]), ([], ["plain"])
    assert seen == [before, before, between, between, "gone"]


def test_content_deleted_by_others_is_noticed_at_next_sync(lab):
    """Wait half of the estimated time (15 s) after the first look at an object with a finalizer."""
    make(lab)
    lab.config_map("held", namespace="lab", finalizers=["example.org/hold"])
    lab.client.delete("namespaces", "lab")
    for second in (0, 5, 10):  # begun, looked at, and again because the conditions changed
        lab.pass_time(second)
        lab.watch()
    lab.change("configmaps", "held", lambda obj: obj["metadata"].pop("finalizers"), "lab")
    for second, names in ((10, ["default", "lab"]), (17.9, ["default", "lab"]), (18, ["default"])):
        lab.pass_time(second)
        lab.watch()
        assert [one for one in lab.names("namespaces") if one in ("default", "lab")] == names


def test_namespace_deletion_delay_is_not_restarted_by_a_second_process(lab):
    make(lab)
    lab.config_map("plain", namespace="lab")
    lab.client.delete("namespaces", "lab")
    lab.pass_time(60)
    lab.watch()
    assert "lab" not in lab.names("namespaces")


def test_namespace_deletion_unwatched_takes_up_the_watched_delay(lab):
    make(lab)
    lab.config_map("plain", namespace="lab")
    lab.client.delete("namespaces", "lab")
    lab.watch()
    assert there(lab) == ([], ["plain"])
    lab.settle()
    assert "lab" not in lab.names("namespaces")


def test_object_with_finalizer_keeps_namespace_and_conditions_say_so(lab):
    make(lab)
    lab.config_map("plain", namespace="lab")
    lab.config_map("held", namespace="lab", finalizers=["example.org/hold"])
    lab.client.delete("namespaces", "lab")
    lab.settle()
    assert lab.names("configmaps", "lab") == ["held"]
    found = conditions(lab)
    assert list(found) == TYPES_IN_ORDER
    assert {kind for kind, one in found.items() if one["status"] == "True"} == set(
        TYPES_IN_ORDER[3:]
    )
    assert found["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert found["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource "
        "instances"
    )


def test_namespace_is_deleted_with_its_last_finalizer(lab):
    make(lab)
    lab.config_map("held", namespace="lab", finalizers=["example.org/hold"])
    lab.client.delete("namespaces", "lab")
    lab.settle()
    lab.change("configmaps", "held", lambda obj: obj["metadata"].pop("finalizers"), "lab")
    lab.settle()
    assert "lab" not in lab.names("namespaces")


def test_namespace_with_stuck_pod_keeps_the_rest_without_conditions(lab):
    make(lab)
    stuck_pod(lab)
    lab.config_map("plain", namespace="lab")
    lab.client.delete("namespaces", "lab")
    summary = lab.settle()
    assert lab.names("configmaps", "lab") == ["kube-root-ca.crt", "plain"][-1:]
    assert {one["status"] for one in conditions(lab).values()} == {"False"}
    assert [(due.reconciler, due.key.name) for due in summary.due] == [
        ("namespace-controller", "lab")
    ]
    lab.client.delete("pods", "stuck", namespace="lab", options=_at_once())
    lab.settle()
    assert "lab" not in lab.names("namespaces")


def test_pod_that_outlives_its_grace_is_error_that_conditions_name(lab):
    make(lab)
    stuck_pod(lab)
    lab.client.delete("namespaces", "lab")
    lab.settle()
    lab.pass_time(31)
    summary = lab.settle()
    assert conditions(lab)["NamespaceDeletionContentFailure"]["message"] == (
        "Failed to delete all resource types, 1 remaining: "
        "unexpected items still remain in namespace: lab for gvr: /v1, Resource=pods"
    )
    assert summary.failures
    lab.client.delete("pods", "stuck", namespace="lab", options=_at_once())
    lab.settle()
    assert "lab" not in lab.names("namespaces")


def test_terminating_namespace_refuses_new_objects(lab):
    make(lab)
    lab.config_map("held", namespace="lab", finalizers=["example.org/hold"])
    lab.client.delete("namespaces", "lab")
    lab.settle()
    with pytest.raises(
        Status, match="unable to create new content in namespace lab because it is being terminated"
    ):
        lab.config_map("late", namespace="lab")


# --- all kinds of contents

STEPS = st.lists(st.sampled_from(["watch", "settle", "pass time", "release", "kill"]), max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plain=st.integers(0, 2),
    held=st.integers(0, 2),
    pods=st.integers(0, 2),
    stuck=st.integers(0, 2),
    steps=STEPS,
)
def test_pods_go_first_then_rest_then_namespace(tmp_path_factory, plain, held, pods, stuck, steps):
    lab = Lab(tmp_path_factory.mktemp("namespace") / "state")
    make(lab)
    lab.node("node-1")
    for number in range(plain + held):
        finalizers = ["example.org/hold"] if number < held else []
        lab.config_map(f"map-{number}", namespace="lab", finalizers=finalizers)
    for number in range(pods + stuck):
        _pod(lab, f"pod-{number}", stuck=number < stuck)
    lab.settle()
    lab.client.delete("namespaces", "lab")
    at_first, seconds = there(lab), 0
    for step in [*steps, *["settle", "kill", "release", "pass time", "settle"] * 4]:
        seconds += 6 if step == "pass time" else 0
        lab.pass_time(seconds)
        _do(lab, step)
        _check(lab, at_first, is_settled=step == "settle")
    assert "lab" not in lab.names("namespaces")
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()


def _pod(lab: Lab, name: str, *, stuck: bool) -> None:
    annotations = {"kubepy.dev/termination": "stuck"} if stuck else {}
    lab.create(
        "pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i:1"}]},
        },
        "lab",
    )


def _do(lab: Lab, step: str) -> None:
    pods, maps = there(lab)
    if step == "watch":
        lab.watch()
    elif step == "settle":
        lab.settle()
    elif step == "release" and maps:
        lab.change(
            "configmaps", maps[0], lambda one: one["metadata"].pop("finalizers", None), "lab"
        )
    elif step == "kill" and pods:
        lab.client.delete("pods", pods[0], namespace="lab", options=_at_once())


def _check(lab: Lab, at_first: tuple[list[str], list[str]], *, is_settled: bool) -> None:
    pods, maps = there(lab)
    if "lab" not in lab.names("namespaces"):
        assert (pods, maps) == ([], [])
        return
    if pods:
        assert maps == at_first[1], "nothing else goes while there are pods"
    with pytest.raises(Status, match="it is being terminated"):
        lab.config_map("late", namespace="lab")
    if is_settled:
        assert pods or maps, "nothing holds it"
        found = conditions(lab)
        assert list(found) == TYPES_IN_ORDER
        remaining = f"Some resources are remaining: configmaps. has {len(maps)} resource instances"
        assert found["NamespaceContentRemaining"]["message"] == (
            "All content successfully removed" if pods else remaining
        )


def _at_once():
    from kubepy.apiserver.request import DeleteOptions

    return DeleteOptions(grace_period_seconds=0)


def test_namespace_held_by_finalizer_settles(kubepy):
    kubepy.run("create namespace shop", check=True)
    kubepy.run("create configmap keep -n shop", check=True)
    kubepy.client.patch(
        "cm/keep", {"metadata": {"finalizers": ["example.com/hold"]}}, namespace="shop"
    )
    kubepy.client.delete("ns/shop")
    assert kubepy.settle("1h")
    assert kubepy.now.isoformat() < "2026-01-01T00:01"
    status = kubepy.client.get("ns/shop")["status"]
    assert {one["type"] for one in status["conditions"] if one["status"] == "True"} == set(
        TYPES_IN_ORDER[3:]
    )
    kubepy.client.patch("cm/keep", {"metadata": {"finalizers": None}}, namespace="shop")
    assert kubepy.settle("1h")
    assert "shop" not in [obj["metadata"]["name"] for obj in kubepy.client.list("namespaces")]
