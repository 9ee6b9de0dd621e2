"""Endpoints written by hand, for a Service without a selector, are mirrored to EndpointSlices."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.meta import Object, annotations_of, labels_of, name_of
from kubepy.controllers.endpointslicemirroring import plan_mirror
from tests.controllers.conftest import Lab

SLICES = "endpointslices.discovery.k8s.io"
PORT = {"name": "http", "port": 80, "protocol": "TCP"}


def service(**spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "db"},
        "spec": {"ports": [PORT], **spec},
    }


def endpoints(*subsets: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "db", **metadata},
        "subsets": list(subsets),
    }


def at(*addresses: str, port: int = 80, unready: tuple[str, ...] = ()) -> Object:
    fields = {
        "addresses": [{"ip": one} for one in addresses],
        "notReadyAddresses": [{"ip": one} for one in unready],
    }
    return {
        **{key: value for key, value in fields.items() if value},
        "ports": [{**PORT, "port": port}],
    }


def write(lab: Lab, *objects: Object) -> None:
    for one in objects:
        lab.create("services" if one["kind"] == "Service" else "endpoints", one, "default")
    lab.settle()


def shown(lab: Lab) -> list[tuple[str, list[int], list[tuple[str, bool]]]]:
    """Return family, ports, and addresses with their readiness, of every slice."""
    return sorted(
        (
            one["addressType"],
            [port["port"] for port in one["ports"]],
            sorted(
                (endpoint["addresses"][0], endpoint["conditions"]["ready"])
                for endpoint in one["endpoints"]
            ),
        )
        for one in lab.client.list_stored(SLICES)
    )


def test_mirror_is_named_labelled_and_owned_after_endpoints(lab: Lab) -> None:
    address = {"ip": "10.1.2.3", "hostname": "one", "nodeName": "n1"}
    write(
        lab,
        service(),
        endpoints(
            {"addresses": [address], "ports": [PORT]},
            labels={"tier": "back"},
            annotations={
                "note": "by hand",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        ),
    )
    (slice_,) = lab.client.list_stored(SLICES)
    assert name_of(slice_).startswith("db-")
    assert labels_of(slice_) == {
        "tier": "back",
        "kubernetes.io/service-name": "db",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert annotations_of(slice_) == {"note": "by hand"}
    assert [
        (one["kind"], one["name"], one["controller"])
        for one in slice_["metadata"]["ownerReferences"]
    ] == [("Endpoints", "db", True)]
    assert (slice_["endpoints"], slice_["ports"]) == (
        [
            {
                "addresses": ["10.1.2.3"],
                "conditions": {"ready": True},
                "hostname": "one",
                "nodeName": "n1",
            }
        ],
        [PORT],
    )


def test_endpoint_slices_are_split_by_family_and_ports(lab: Lab) -> None:
    write(
        lab,
        service(),
        endpoints(at("10.0.0.1", "fd00::1", unready=("10.0.0.2",)), at("10.0.0.3", port=81)),
    )
    assert shown(lab) == [
        ("IPv4", [80], [("10.0.0.1", True), ("10.0.0.2", False)]),
        ("IPv4", [81], [("10.0.0.3", True)]),
        ("IPv6", [80], [("fd00::1", True)]),
    ]


def test_mirrored_ports_stand_in_order_of_slice(lab: Lab) -> None:
    names = ("http", "raw", "admin", "metrics")
    ports = [
        {"name": name, "port": 8000 + number, "protocol": "TCP"}
        for number, name in enumerate(names)
    ]
    for selector, owner in (({}, "db"), ({"selector": {"app": "db"}}, "selected")):
        lab.create(
            "services", {**service(ports=ports, **selector), "metadata": {"name": owner}}, "default"
        )
    lab.node("node-1")
    lab.create(
        "pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "db", "labels": {"app": "db"}},
            "spec": {"containers": [{"name": "c", "image": "db:1"}]},
        },
        "default",
    )
    write(lab, endpoints({"addresses": [{"ip": "10.1.2.3"}], "ports": ports}))
    of_pods, mirrored = (
        [
            one["ports"]
            for one in lab.client.list_stored(SLICES)
            if labels_of(one)["kubernetes.io/service-name"] == owner
        ]
        for owner in ("selected", "db")
    )
    assert mirrored == of_pods
    assert [one["name"] for one in mirrored[0]] != list(names)


def test_address_that_one_subset_calls_unready_is_not_ready(lab: Lab) -> None:
    write(lab, service(), endpoints(at("10.0.0.1"), at(unready=("10.0.0.1",))))
    assert shown(lab) == [("IPv4", [80], [("10.0.0.1", False)])]


def test_mirror_follows_under_its_name_and_goes_with_endpoints(lab: Lab) -> None:
    write(lab, service(), endpoints(at("10.0.0.1")))
    before = lab.names(SLICES)
    lab.change(
        "endpoints", "db", lambda one: one.update(subsets=[at("10.0.0.2", port=90)]), "default"
    )
    lab.settle()
    assert (lab.names(SLICES), shown(lab)) == (before, [("IPv4", [90], [("10.0.0.2", True)])])
    lab.client.delete("endpoints", "db", namespace="default")
    lab.settle()
    assert shown(lab) == []


def test_unchanged_mirror_is_not_written(lab: Lab) -> None:
    write(lab, service(), endpoints(at("10.0.0.1", "10.0.0.2")))
    revision = lab.client.revision()
    lab.change("endpoints", "db", lambda one: one["subsets"][0]["addresses"].reverse(), "default")
    lab.settle()
    assert lab.client.revision() == revision + 1


def test_mirror_that_somebody_deletes_comes_back(lab: Lab) -> None:
    write(lab, service(), endpoints(at("10.0.0.1")))
    lab.client.delete(SLICES, *lab.names(SLICES), namespace="default")
    lab.settle()
    assert shown(lab) == [("IPv4", [80], [("10.0.0.1", True)])]


@pytest.mark.parametrize(
    "objects",
    [
        [endpoints(at("10.0.0.1"))],
        [
            service(),
            endpoints(at("10.0.0.1"), labels={"endpointslice.kubernetes.io/skip-mirror": "true"}),
        ],
        [
            service(),
            endpoints(
                at("10.0.0.1"), annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}
            ),
        ],
        [service(), endpoints()],
    ],
    ids=["no service", "a label says no", "the record of a leader", "no addresses"],
)
def test_excluded_endpoints_are_not_mirrored(lab: Lab, objects: list[Object]) -> None:
    write(lab, *objects)
    assert shown(lab) == []


def test_endpoints_are_mirrored_when_their_service_comes_and_no_more_when_it_selects(
    lab: Lab,
) -> None:
    write(lab, endpoints(at("10.0.0.1")))
    write(lab, service())
    assert len(shown(lab)) == 1
    lab.change("services", "db", lambda one: one["spec"].update(selector={"app": "db"}), "default")
    lab.settle()
    assert [
        labels_of(one)["endpointslice.kubernetes.io/managed-by"]
        for one in lab.client.list_stored(SLICES)
    ] == ["endpointslice-controller.k8s.io"]


def test_addresses_beyond_thousand_are_skipped() -> None:
    many = endpoints(
        at(*(f"10.0.{number // 250}.{number % 250}" for number in range(1002))),
        namespace="default",
        uid="1",
    )
    found = plan_mirror(many, [])
    assert (len(found.plan.create[0]["endpoints"]), found.skipped) == (1000, 2)
