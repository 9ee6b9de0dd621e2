"""The Pod Security Standards: violations of each level, and the labels of namespaces that select a
level."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.objects.podsecurity import LevelVersion, violations
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import MERGE_PATCH, Patch

Object = dict[str, Any]
SAFE: Object = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(context: Object | None = None, *, container: Object | None = None, **spec: Any) -> Object:
    made = {
        "name": "c",
        "image": "c:1",
        **({"securityContext": context} if context else {}),
        **(container or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [made], **spec},
    }


def found(level: str, one: Object, minor: int | None = None) -> list[str]:
    return [
        str(violation)
        for violation in violations(LevelVersion(level, minor), one["metadata"], one["spec"])
    ]


@pytest.mark.parametrize(
    ("one", "forbidden"),
    [
        (pod(), []),
        (
            pod(hostNetwork=True, hostPID=True, hostIPC=True),
            ["host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"],
        ),
        (
            pod({"privileged": True}),
            ['privileged (container "c" must not set securityContext.privileged=true)'],
        ),
        (
            pod({"capabilities": {"add": ["NET_ADMIN", "CHOWN", "BPF"]}}),
            [
                'non-default capabilities (container "c" must not include "BPF", "NET_ADMIN" in '
                "securityContext.capabilities.add)"
            ],
        ),
        (
            pod(
                volumes=[
                    {"name": "a", "hostPath": {"path": "/"}},
                    {"name": "b", "hostPath": {"path": "/"}},
                ]
            ),
            ['hostPath volumes (volumes "a", "b")'],
        ),
        (
            pod(
                container={
                    "ports": [
                        {"containerPort": 80, "hostPort": 80},
                        {"containerPort": 9, "hostPort": 9},
                    ]
                }
            ),
            ['hostPort (container "c" uses hostPorts 80, 9)'],
        ),
        (
            pod({"procMount": "Unmasked"}),
            ['procMount (container "c" must not set securityContext.procMount to "Unmasked")'],
        ),
        (pod({"procMount": "Unmasked"}, hostUsers=False), []),
        (
            pod(securityContext={"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
            [
                'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; '
                "user may not be set)"
            ],
        ),
        (
            pod(
                {"seccompProfile": {"type": "Unconfined"}},
                securityContext={"seccompProfile": {"type": "Unconfined"}},
            ),
            [
                'seccompProfile (pod and container "c" must not set '
                'securityContext.seccompProfile.type to "Unconfined")'
            ],
        ),
        (
            pod(
                securityContext={
                    "sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]
                }
            ),
            ["forbidden sysctls (kernel.msgmax)"],
        ),
        (
            pod({"appArmorProfile": {"type": "Unconfined"}}),
            [
                'forbidden AppArmor profile (container "c" must not set AppArmor profile type to '
                '"Unconfined")'
            ],
        ),
        (
            pod({"windowsOptions": {"hostProcess": True}}),
            [
                'hostProcess (container "c" must not set '
                "securityContext.windowsOptions.hostProcess=true)"
            ],
        ),
        (
            pod(container={"livenessProbe": {"httpGet": {"port": 80, "host": "10.0.0.1"}}}),
            ['probe or lifecycle host (container "c" uses probe or lifecycle host "10.0.0.1")'],
        ),
    ],
)
def test_baseline_violations_are_reported(one: Object, forbidden: list[str]) -> None:
    assert found("baseline", one) == forbidden
    assert found("privileged", one) == []


def test_restricted_reports_missing_fields_of_plain_pod() -> None:
    assert found("restricted", pod()) == [
        'allowPrivilegeEscalation != false (container "c" must set '
        "securityContext.allowPrivilegeEscalation=false)",
        'unrestricted capabilities (container "c" must set '
        'securityContext.capabilities.drop=["ALL"])',
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to '
        '"RuntimeDefault" or '
        '"Localhost")',
    ]


@pytest.mark.parametrize(
    ("one", "forbidden"),
    [
        (pod(SAFE), []),
        (pod({**SAFE, "runAsUser": 0}), ['runAsUser=0 (container "c" must not set runAsUser=0)']),
        (
            pod({**SAFE, "runAsNonRoot": False}),
            [
                'runAsNonRoot != true (container "c" must not set '
                "securityContext.runAsNonRoot=false)"
            ],
        ),
        (pod({**SAFE, "runAsNonRoot": False}, hostUsers=False), []),
        (
            pod({**SAFE, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "CHOWN"]}}),
            [
                'unrestricted capabilities (container "c" must not include "CHOWN" in '
                "securityContext.capabilities.add)"
            ],
        ),
        (
            pod(
                SAFE,
                volumes=[
                    {"name": "a", "hostPath": {"path": "/"}},
                    {"name": "b", "nfs": {}},
                    {"name": "c", "secret": {}},
                ],
            ),
            [
                'restricted volume types (volumes "a", "b" use restricted volume types '
                '"hostPath", "nfs")'
            ],
        ),
        (pod({"runAsNonRoot": True}, os={"name": "windows"}), []),
    ],
)
def test_restricted_violations_are_reported(one: Object, forbidden: list[str]) -> None:
    assert found("restricted", one) == forbidden


def test_namespace_may_ask_for_older_standard() -> None:
    sysctl = pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]})
    assert found("baseline", sysctl, 31) == ["forbidden sysctls (net.ipv4.tcp_rmem)"]
    assert [one.partition(" ")[0] for one in found("restricted", pod(), 21)] == [
        "allowPrivilegeEscalation",
        "runAsNonRoot",
        "seccompProfile",
    ]


# --- namespaces -----------------------------------------------------------------------------------


def namespace(client: Client, **labels: str) -> None:
    made = {
        f"pod-security.kubernetes.io/{key.replace('_', '-')}": value
        for key, value in labels.items()
    }
    client.create("namespaces", {"metadata": {"name": "safe", "labels": made}})


def test_pods_that_violate_what_is_enforced_are_refused(client: Client) -> None:
    namespace(client, enforce="baseline", enforce_version="v1.30")
    client.create("pods", pod(), namespace="safe")
    with pytest.raises(Status) as error:
        client.create(
            "pods", {**pod(hostNetwork=True), "metadata": {"name": "q"}}, namespace="safe"
        )
    assert error.value.message == (
        'pods "q" is forbidden: violates PodSecurity "baseline:v1.30": host namespaces '
        "(hostNetwork=true)"
    )


def test_workloads_are_warned_of(client: Client) -> None:
    namespace(client, enforce="baseline")
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostPID=True)["spec"]}
    client.create(
        "deployments.apps",
        {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
        namespace="safe",
    )
    assert warnings == [
        'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    ]


def test_warnings_can_be_of_another_level_than_what_is_enforced(client: Client) -> None:
    namespace(client, enforce="privileged", warn="baseline")
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    client.create("pods", pod({"privileged": True}), namespace="safe")
    assert warnings == [
        'would violate PodSecurity "baseline:latest": privileged (container "c" must not set '
        "securityContext.privileged=true)"
    ]


def test_labels_that_mean_nothing_are_refused(client: Client) -> None:
    with pytest.raises(Status) as error:
        namespace(client, enforce="strict", warn_version="1.30")
    assert error.value.message == (
        'Namespace "safe" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: '
        'Invalid value: "strict": '
        "must be one of privileged, baseline, restricted, "
        "metadata.labels[pod-security.kubernetes.io/warn-version]: "
        'Invalid value: "1.30": must be "latest" or "v1.x"]'
    )


def test_stricter_level_is_tried_on_pods_that_are_there(client: Client) -> None:
    namespace(client)
    for name, spec in (("b", {}), ("a", {}), ("c", {"hostNetwork": True})):
        client.create("pods", {**pod(**spec), "metadata": {"name": name}}, namespace="safe")
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    client.patch("namespaces", "safe", Patch(MERGE_PATCH, labels))
    plain = (
        "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, "
        "seccompProfile"
    )
    assert warnings == [
        'existing pods in namespace "safe" violate the new PodSecurity enforce level '
        '"restricted:latest"',
        f"a (and 1 other pod): {plain}",
        f"c: host namespaces, {plain}",
    ]
