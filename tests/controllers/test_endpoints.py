"""Endpoints and EndpointSlices: the pods behind a Service, and few writes when they change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api.meta import Object, annotations_of, labels_of, name_of
from kubepy.controllers.endpoint import MAX_CAPACITY, subsets_of, truncated
from kubepy.controllers.endpointslice import MAX_ENDPOINTS, plan_slices
from tests.controllers.conftest import NOW, Lab

SLICES = "endpointslices.discovery.k8s.io"


def service(name: str = "web", **spec: Any) -> Object:
    full = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    metadata = {"name": name, "labels": {"tier": "front"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": full}


def pod(
    name: str,
    outcome: str = "ready",
    *,
    app: str = "web",
    ports: list[Object] | None = None,
    **spec: Any,
) -> Object:
    container = {"name": "c", "image": "web:1", "ports": ports or []}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [container], **spec},
        "metadata": {
            "name": name,
            "labels": {"app": app},
            "annotations": {"kubepy.dev/outcome": outcome},
        },
    }


def cluster(lab: Lab, *pods: Object, of: Object | None = None) -> None:
    lab.node("n1")
    lab.create("services", of or service(), "default")
    for one in pods:
        lab.create("pods", one, "default")
    lab.settle()


def shown(lab: Lab) -> list[list[tuple[str, bool]]]:
    """Return the pods of every slice, each with its readiness."""
    return [
        [
            (one["targetRef"]["name"], one["conditions"]["ready"])
            for one in slice_.get("endpoints") or ()
        ]
        for slice_ in lab.client.list_stored(SLICES)
    ]


def subsets(lab: Lab, name: str = "web") -> Any:
    return lab.client.get("endpoints", name, namespace="default").get("subsets")


# --- the pods behind a Service --------------------------------------------------------------------


def test_ready_pods_are_endpoints_and_others_are_there_as_not_ready(lab: Lab) -> None:
    cluster(lab, pod("a"), pod("b", "not-ready"), pod("c", app="other"))
    assert shown(lab) == [[("a", True), ("b", False)]]
    (subset,) = subsets(lab)
    assert [one["targetRef"]["name"] for one in subset["addresses"]] == ["a"]
    assert [one["targetRef"]["name"] for one in subset["notReadyAddresses"]] == ["b"]
    assert subset["ports"] == [{"port": 80, "protocol": "TCP"}]


def test_pods_without_address_and_pods_that_have_ended_are_no_endpoints(lab: Lab) -> None:
    cluster(
        lab,
        pod("a", "pending"),
        pod("b", "failed", restartPolicy="Never"),
        pod("c", nodeName="gone"),
    )
    assert shown(lab) == [[]]
    assert subsets(lab) is None


def test_service_that_nobody_is_behind_has_slice_without_endpoints_and_ports(lab: Lab) -> None:
    cluster(lab)
    (slice_,) = lab.client.list_stored(SLICES)
    assert slice_["endpoints"] is None or slice_["endpoints"] == []
    assert not slice_.get("ports")
    assert labels_of(slice_) == {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web",
        "tier": "front",
    }
    assert annotations_of(slice_) == {"endpoints.kubernetes.io/last-change-trigger-time": NOW}
    assert name_of(slice_).startswith("web-")


@pytest.mark.parametrize(
    "spec",
    [{"selector": None}, {"type": "ExternalName", "externalName": "db.example.org"}],
    ids=["without a selector", "an ExternalName"],
)
def test_such_service_gets_neither_endpoints_nor_slices(lab: Lab, spec: Object) -> None:
    cluster(lab, pod("a"), of=service(**spec))
    assert lab.names(SLICES) == []
    assert lab.names("endpoints") == []


def test_pod_that_is_going_still_serves_but_is_not_ready(lab: Lab) -> None:
    going = pod("a")
    going["metadata"]["annotations"]["kubepy.dev/termination"] = "stuck"
    cluster(lab, going, pod("b"))
    lab.client.delete("pods", "a", namespace="default")
    lab.settle()
    (slice_,) = lab.client.list_stored(SLICES)
    assert [one["conditions"] for one in slice_["endpoints"]] == [
        {"ready": False, "serving": True, "terminating": True},
        {"ready": True, "serving": True, "terminating": False},
    ]
    assert [one["targetRef"]["name"] for one in subsets(lab)[0]["addresses"]] == ["b"]


def test_addresses_are_published_before_they_are_ready_where_service_says_so(lab: Lab) -> None:
    cluster(lab, pod("a", "not-ready"), of=service(publishNotReadyAddresses=True))
    assert shown(lab) == [[("a", True)]]
    assert [one["targetRef"]["name"] for one in subsets(lab)[0]["addresses"]] == ["a"]


def test_pods_of_headless_service_are_there_by_their_hostnames(lab: Lab) -> None:
    cluster(
        lab,
        pod("a", hostname="a", subdomain="web"),
        pod("b", hostname="b", subdomain="other"),
        of=service(clusterIP="None"),
    )
    (slice_,) = lab.client.list_stored(SLICES)
    assert [one.get("hostname") for one in slice_["endpoints"]] == ["a", None]
    assert labels_of(slice_)["service.kubernetes.io/headless"] == ""
    assert (
        labels_of(lab.client.get("endpoints", "web", namespace="default"))[
            "service.kubernetes.io/headless"
        ]
        == ""
    )


def test_zone_of_node_is_that_of_its_endpoints_and_follows_its_label(lab: Lab) -> None:
    cluster(lab, pod("a"))
    lab.change(
        "nodes",
        "n1",
        lambda node: node["metadata"].update(labels={"topology.kubernetes.io/zone": "east"}),
    )
    lab.settle()
    assert [one["zone"] for one in lab.client.list_stored(SLICES)[0]["endpoints"]] == ["east"]


# --- ports ----------------------------------------------------------------------------------------


def test_named_target_port_is_looked_up_in_each_pod(lab: Lab) -> None:
    named = [{"name": "http", "containerPort": 8080}], [{"name": "http", "containerPort": 9090}]
    cluster(
        lab,
        pod("a", ports=named[0]),
        pod("b", ports=named[1]),
        pod("c"),
        of=service(ports=[{"port": 80, "targetPort": "http"}]),
    )
    found = {
        one["ports"][0]["port"] if one.get("ports") else None: [
            endpoint["targetRef"]["name"] for endpoint in one["endpoints"]
        ]
        for one in lab.client.list_stored(SLICES)
    }
    assert found == {8080: ["a"], 9090: ["b"], None: ["c"]}
    assert sorted(one["ports"][0]["port"] for one in subsets(lab)) == [8080, 9090]


@pytest.mark.parametrize(
    "ports",
    [
        [
            {"name": "raw", "port": 9000, "targetPort": 9000},
            {"name": "http", "port": 80, "targetPort": 8080},
        ],
        [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "raw", "port": 9000, "targetPort": 9000},
        ],
    ],
)
def test_ports_stand_in_order_of_their_hashes_as_real_server_lists_them(
    lab: Lab, ports: list[Object]
) -> None:
    cluster(lab, pod("a"), of=service(ports=ports))
    assert [one["name"] for one in subsets(lab)[0]["ports"]] == ["http", "raw"]


def test_endpoints_whose_ports_another_version_ordered_otherwise_are_left_alone(lab: Lab) -> None:
    """Keep Endpoints whose ports v1.33 ordered by MD5."""
    ports = [{"name": "raw", "port": 9000}, {"name": "http", "port": 80}]
    cluster(lab, pod("a"), of=service(ports=ports))
    lab.change("endpoints", "web", lambda obj: obj["subsets"][0]["ports"].reverse(), "default")
    lab.settle()
    assert [one["name"] for one in subsets(lab)[0]["ports"]] == ["raw", "http"]
    lab.create("pods", pod("b"), "default")
    lab.settle()
    (subset,) = subsets(lab)
    assert [one["name"] for one in subset["ports"]] == ["http", "raw"]
    assert [one["targetRef"]["name"] for one in subset["addresses"]] == ["a", "b"]


# --- what changes ---------------------------------------------------------------------------------


def test_pod_that_turns_ready_changes_slice_in_place_and_says_since_when(lab: Lab) -> None:
    cluster(lab, pod("a", "not-ready"), pod("b"))
    before = lab.names(SLICES)
    lab.pass_time(30)
    lab.change(
        "pods",
        "a",
        lambda one: one["metadata"]["annotations"].update({"kubepy.dev/outcome": "ready"}),
        "default",
    )
    lab.settle()
    assert lab.names(SLICES) == before
    assert shown(lab) == [[("a", True), ("b", True)]]
    assert annotations_of(lab.client.list_stored(SLICES)[0]) == {
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-20T10:00:30Z"
    }


def test_change_that_endpoints_do_not_show_writes_nothing(lab: Lab) -> None:
    cluster(lab, pod("a"))
    before = lab.client.list_stored(SLICES), lab.client.list_stored("endpoints")
    lab.change("pods", "a", lambda one: one["metadata"]["annotations"].update(note="x"), "default")
    lab.settle()
    assert (lab.client.list_stored(SLICES), lab.client.list_stored("endpoints")) == before


def test_slices_and_endpoints_that_somebody_deletes_come_back(lab: Lab) -> None:
    cluster(lab, pod("a"))
    lab.client.delete(SLICES, lab.names(SLICES)[0], namespace="default")
    lab.client.delete("endpoints", "web", namespace="default")
    lab.settle()
    assert shown(lab) == [[("a", True)]]
    assert len(subsets(lab)) == 1


def test_deleted_service_takes_its_endpoints_but_not_those_made_by_hand(lab: Lab) -> None:
    cluster(lab, pod("a"))
    lab.create(
        "endpoints",
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "mine"}},
        "default",
    )
    lab.client.delete("services", "web", namespace="default")
    lab.settle()
    assert lab.names(SLICES) == []
    assert lab.names("endpoints") == ["mine"]


def test_labels_of_service_are_those_of_its_slices(lab: Lab) -> None:
    cluster(lab, pod("a"))
    lab.change(
        "services", "web", lambda one: one["metadata"].update(labels={"tier": "back"}), "default"
    )
    lab.settle()
    assert labels_of(lab.client.list_stored(SLICES)[0])["tier"] == "back"
    assert labels_of(lab.client.get("endpoints", "web", namespace="default"))["tier"] == "back"


def test_pod_whose_label_is_taken_away_leaves_its_service(lab: Lab) -> None:
    cluster(lab, pod("a"), pod("b"))
    lab.change("pods", "a", lambda one: one["metadata"].update(labels={"app": "other"}), "default")
    lab.settle()
    assert shown(lab) == [[("b", True)]]


# --- decisions ------------------------------------------------------------------------------------


def running(number: int, *, ready: bool = True) -> Object:
    status = {
        "podIP": f"10.1.{number // 250}.{number % 250 + 1}",
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    return {
        "metadata": {
            "name": f"p{number}",
            "namespace": "default",
            "uid": str(number),
            "labels": {"app": "web"},
        },
        "spec": {"nodeName": "n1", "containers": []},
        "status": status,
    }


def stored(number: int, slice_: Object) -> Object:
    return {**slice_, "metadata": {**slice_["metadata"], "name": f"web-{number}"}}


WEB = service(clusterIP="10.0.0.7", ipFamilies=["IPv4"])
WEB["metadata"].update(namespace="default", uid="service")
POD_SETS = st.dictionaries(st.integers(0, 350), st.booleans(), max_size=350)


@settings(max_examples=60, deadline=None)
@given(st.lists(POD_SETS, min_size=1, max_size=4))
def test_endpoint_slices_after_any_changes_hold_each_pod_once(steps: list[dict[int, bool]]) -> None:
    slices: dict[str, Object] = {}
    made = 0
    for step in steps:
        pods = [running(number, ready=ready) for number, ready in sorted(step.items())]
        wanted = plan_slices(
            WEB, pods, list(slices.values()), lambda name: {"metadata": {"name": name}}
        )
        for one in wanted.create:
            made += 1
            slices[f"web-{made}"] = stored(made, one)
        slices.update({name_of(one): one for one in wanted.update})
        for one in wanted.delete:
            del slices[name_of(one)]
        found = [
            (int(one["targetRef"]["uid"]), one["conditions"]["ready"])
            for slice_ in slices.values()
            for one in slice_["endpoints"]
        ]
        assert len(found) == len(step)
        assert dict(found) == step
        assert slices
        assert all(len(one["endpoints"]) <= MAX_ENDPOINTS for one in slices.values())
        assert plan_slices(
            WEB, pods, list(slices.values()), lambda name: {"metadata": {"name": name}}
        ) == ([], [], [])


def test_endpoints_beyond_capacity_keep_ready_addresses_first() -> None:
    pods = [running(number, ready=number % 2 == 0) for number in range(1500)]
    cut = truncated(subsets_of(WEB, pods))
    assert cut is not None
    (subset,) = cut
    assert len(subset["addresses"]) == 750
    assert len(subset["notReadyAddresses"]) == MAX_CAPACITY - 750
    assert truncated(cut) is None
