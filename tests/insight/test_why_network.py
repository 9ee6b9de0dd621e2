"""Services and Ingresses that lead nowhere, and those that lead somewhere in spite of
appearances."""

from __future__ import annotations

import pytest

from kubepy import Cluster
from kubepy.insight.why import DONE, STUCK, Why

from .incidents import deployment, ingress, service

NAMED = "ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9100}]"


def made(*manifests: str) -> Cluster:
    cluster = Cluster.temporary(nodes=2, seed=7)
    for text in manifests:
        cluster.run("apply -f -", stdin=text, check=True)
    cluster.settle()
    return cluster


def told(why: Why) -> tuple[str, str]:
    return why.state, why.cause


def proven(why: Why) -> list[str]:
    return [" ".join(remedy.command) for remedy in why.remedies if remedy.proven]


# --- Services -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ports", "selector", "answer"),
    [
        ("port: 80", "app: web", (DONE, "up-to-date")),
        (
            "port: 80, targetPort: 8888",
            "app: web",
            (DONE, "up-to-date"),
        ),  # a number may be open though no pod names it
        ("port: 80, targetPort: http", "app: web", (DONE, "up-to-date")),
        ("port: 80, targetPort: http, protocol: UDP", "app: web", (STUCK, "target-port")),
        ("port: 80, targetPort: htpp", "app: web", (STUCK, "target-port")),
        ("port: 80, targetPort: http", "app: wbe", (STUCK, "no-endpoints")),
        ("port: 80, targetPort: http", "", (DONE, "up-to-date")),
    ],
)
def test_service_leads_to_named_port(ports: str, selector: str, answer: tuple[str, str]) -> None:
    why = made(deployment(container=NAMED), service(port=ports, selector=selector)).why(
        "service/web"
    )
    assert told(why) == answer
    assert bool(proven(why)) == (why.state == STUCK)


def test_service_one_of_two_ports_unserved_is_stuck_and_the_port_meant_comes_first() -> None:
    ports = (
        "ports: [{name: a, port: 80, targetPort: http}, {name: b, port: 9100, targetPort: metric}]"
    )
    why = made(deployment(container=NAMED), service(spec=ports)).why("service/web")
    assert told(why) == (STUCK, "target-port")
    assert why.chain[0].field == "spec.ports[1].targetPort"
    assert '"value":"metrics"' in proven(why)[0]


@pytest.mark.parametrize("spec", ["clusterIP: None", "publishNotReadyAddresses: true"])
def test_service_named_port_that_pods_do_not_name_leads_to_the_number(spec: str) -> None:
    why = made(deployment(), service(port="port: 80, targetPort: http", spec=spec)).why(
        "service/web"
    )
    assert told(why) == (STUCK, "target-port")
    assert proven(why)[0].endswith('"path":"/spec/ports/0/targetPort","value":80}]')


def test_service_with_mistyped_selector_is_offered_the_workloads_it_may_mean() -> None:
    why = made(deployment(), deployment("unlike"), service(selector="app: wbe")).why("service/web")
    assert told(why) == (STUCK, "no-endpoints")
    assert proven(why) == ["set selector service/web app=web"]


def test_service_of_workload_whose_pods_are_not_ready_has_the_workloads_cause() -> None:
    why = made(deployment(image="Web:1"), service()).why("service/web")
    assert told(why) == (STUCK, "invalid-image-name")
    assert [link.key.resource for link in why.chain[:2]] == ["services", "deployments.apps"]


# --- Ingresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "port", "answer"),
    [
        ("web", "number: 80", (DONE, "up-to-date")),
        ("web", "name: front", (DONE, "up-to-date")),
        ("web", "number: 8080", (STUCK, "backend-missing")),
        ("web", "name: back", (STUCK, "backend-missing")),
        ("shop", "number: 80", (STUCK, "backend-missing")),
    ],
)
def test_ingress_backend(backend: str, port: str, answer: tuple[str, str]) -> None:
    cluster = made(deployment(), service(port="name: front, port: 80"), ingress(backend, port))
    why = cluster.why("ingress/web")
    assert told(why) == answer
    assert bool(proven(why)) == (why.state == STUCK)


def test_ingress_follows_service_that_leads_nowhere() -> None:
    why = made(deployment(replicas=0), service(), ingress()).why("ingress/web")
    assert told(why) == (STUCK, "no-endpoints")
    assert [link.key.resource for link in why.chain] == [
        "ingresses.networking.k8s.io",
        "services",
        "deployments.apps",
    ]


def test_ingress_workload_of_the_name_can_be_exposed() -> None:
    why = made(deployment(container=NAMED), ingress()).why("ingress/web")
    assert proven(why) == ["expose deployment/web --port=80 --target-port=8080"]


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ("defaultBackend: {service: {name: web, port: {number: 80}}}, rules: []", DONE),
        ("defaultBackend: {service: {name: gone, port: {number: 80}}}, rules: []", STUCK),
        (
            "defaultBackend: {resource: {apiGroup: example.com, kind: Bucket, name: files}}, "
            "rules: []",
            DONE,
        ),
        ("rules: [{host: a.example.com}]", DONE),
    ],
)
def test_ingress_without_rules_leads_to_its_default(spec: str, state: str) -> None:
    assert made(deployment(), service(), ingress(spec=spec)).why("ingress/web").state == state


def test_ingress_external_name_leads_elsewhere_and_service_without_selector_needs_slices() -> None:
    external = service(selector="", spec="type: ExternalName, externalName: shop.example.com")
    assert made(external, ingress()).why("ingress/web").state == DONE
    why = made(service(selector=""), ingress()).why("ingress/web")
    assert told(why) == (STUCK, "no-endpoints")


# --- plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "status"),
    [(service(port="port: 80, targetPort: http"), 2), (service(), 0), (ingress(), 2)],
)
def test_plan_counts_services_and_ingresses_that_the_command_writes(
    manifest: str, status: int
) -> None:
    result = made(deployment()).run("plan apply -f -", stdin=manifest)
    assert result.status == status
    assert ("does not finish" in result.stdout) == bool(status)
