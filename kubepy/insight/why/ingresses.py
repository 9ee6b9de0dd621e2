"""Ingresses that lead nowhere: a Service that does not exist, a port that it does not have, a
Service without pods.

An Ingress is done when a ready pod stands behind each of its backends. No ingress controller runs
here: whether one gives it an address is not asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import Object, name_of, namespace_of, nested_list, nested_map
from kubepy.insight.why import goals
from kubepy.insight.why.remedies import absent, json_patch
from kubepy.insight.why.services import MOST_OFFERED, SIMILAR, alikeness, ports_of, without_selector

if TYPE_CHECKING:
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

INGRESSES = "ingresses.networking.k8s.io"
SERVICES = "services"
SECRETS = "secrets"
EXPOSED = (
    "deployments.apps",
    "replicasets.apps",
    "replicationcontrollers",
)  # kinds that `expose` knows


def backend_missing(scene: Scene, ingress: Object) -> Finding | None:
    """Diagnose an Ingress with a backend that is no port of a Service, or behind which no pod is
    ready."""
    for field, backend in goals.backends_of(ingress):
        service = scene.get(SERVICES, namespace_of(ingress), backend["name"])
        if service is None:
            return missing_service(scene, ingress, field, backend)
        if goals.port_of_backend(service, backend) is None:
            return missing_port(scene, ingress, field, service)
        if service["spec"].get("type") != "ExternalName" and not goals.is_backed(scene, service):
            link = scene.link(ingress, f"{field}.name", "no ready pod stands behind this Service")
            return behind_service(scene, service, link)
    return None


def behind_service(scene: Scene, service: Object, link: Link) -> Finding:
    """Return the finding about a Service that leads nowhere."""
    if not service["spec"].get("selector"):
        return scene.lead(without_selector(scene, service), link)
    finding = scene.diagnose(service)
    if finding is not None:
        return scene.lead(finding, link)
    return scene.finding("no-endpoints", link)


def missing_service(scene: Scene, ingress: Object, field: str, backend: Object) -> Finding:
    """Return the finding about a backend whose Service does not exist, with Services that may have
    been meant, and a workload that can be exposed under the name."""
    namespace = namespace_of(ingress)
    name = backend["name"]
    present = [
        service
        for service in scene.list(SERVICES, namespace)
        if goals.port_of_backend(service, backend) is not None
        or alikeness(name_of(service), name) >= SIMILAR
    ]
    present.sort(key=lambda service: -alikeness(name_of(service), name))
    renamed = [
        json_patch(
            scene,
            ingress,
            {"op": "replace", "path": json_pointer(f"{field}.name"), "value": name_of(service)},
        )
        for service in present[:MOST_OFFERED]
    ]
    return scene.finding(
        "backend-missing",
        scene.link(ingress, f"{field}.name", "it leads to this Service"),
        absent(SERVICES, namespace, name, "there is no such Service"),
        remedies=[*renamed, *expose(scene, namespace, name, backend)],
    )


def expose(scene: Scene, namespace: str, name: str, backend: Object) -> list[Words]:
    """Return the command that makes a Service of a name for the workload of that name, with the
    port by number."""
    number = nested_map(backend, "port").get("number")
    workloads = [
        workload
        for resource in EXPOSED
        for workload in scene.list(resource, namespace)
        if name_of(workload) == name
    ]
    if number is None or not workloads:
        return []
    template = workloads[0]["spec"]["template"]
    declared = [port["containerPort"] for _, port in ports_of(template)]
    target = [f"--target-port={declared[0]}"] if declared and number not in declared else []
    return [
        scene.command(workloads[0], "expose", scene.word(workloads[0]), f"--port={number}", *target)
    ]


def missing_port(scene: Scene, ingress: Object, field: str, service: Object) -> Finding:
    """Return the finding about a backend whose Service does not have the port."""
    ports = nested_list(service["spec"], "ports")
    shown = ", ".join(
        str(port["port"]) + (f" ({port['name']})" if port.get("name") else "") for port in ports
    )
    remedies = [
        json_patch(
            scene,
            ingress,
            {
                "op": "replace",
                "path": json_pointer(f"{field}.port"),
                "value": {"number": port["port"]},
            },
        )
        for port in ports[:MOST_OFFERED]
    ]
    return scene.finding(
        "backend-missing",
        scene.link(ingress, f"{field}.port", "it leads to this port of the Service"),
        scene.link(
            service, "spec.ports", f"the Service has no such port; its ports: {shown or 'none'}"
        ),
        remedies=remedies,
    )


def json_pointer(path: str) -> str:
    """Return the JSON pointer of a path of names and positions: ``/spec/rules/0/http``."""
    return "/" + path.replace("[", ".").replace("]", "").replace(".", "/")


def certificate_missing(scene: Scene, ingress: Object) -> Finding | None:
    """Say of an Ingress that is done that the Secret with its certificate is missing."""
    for index, entry in enumerate(nested_list(ingress["spec"], "tls")):
        name = entry.get("secretName")
        if name and scene.get(SECRETS, namespace_of(ingress), name) is None:
            hosts = ", ".join(nested_list(entry, "hosts")) or "its hosts"
            return scene.finding(
                "certificate-missing",
                scene.link(
                    ingress,
                    f"spec.tls[{index}].secretName",
                    f"its pods are reached, but clients of {hosts} get another certificate, or "
                    f"none",
                ),
                absent(SECRETS, namespace_of(ingress), name, "there is no such Secret"),
            )

    return None


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {INGRESSES: (backend_missing,)}
NOTES: dict[str, tuple[Diagnosis, ...]] = {INGRESSES: (certificate_missing,)}
