"""Validation errors of pods, with upstream's messages and in upstream's order."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.apiserver.rules import (
    GONE,
    changed,
    created,
    pod,
    refusals,
    strategy,
    update_refusals,
    warnings,
)

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
C = "spec.containers.0"  # for ``changed``
AT = "spec.containers[0]"  # in errors


def wrong(changes: dict[str, Any], **spec: Any) -> list[str]:
    return refusals("pods", changed(pod(**spec), changes))


def test_pod_plain_has_no_errors() -> None:
    assert wrong({}) == []


def test_token_volume_without_service_account_has_no_errors() -> None:
    token = {
        "name": "token",
        "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
    }
    assert wrong({"spec.volumes": [token]}) == []


def test_pod_without_containers_is_refused() -> None:
    assert wrong({"spec.containers": []}) == ["spec.containers: Required value"]


def test_container_errors_come_in_order_of_fields() -> None:
    container = {
        "name": "Web!",
        "image": " web",
        "ports": [{"containerPort": 0}],
        "env": [{"name": "a=b", "value": "v"}],
        "volumeMounts": [{"name": "v", "mountPath": ""}],
        "imagePullPolicy": "Sometimes",
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        "livenessProbe": {"exec": {}},
    }
    assert wrong({C: container}) == [
        f'{AT}.name: Invalid value: "Web!": {LABEL}',
        f"{AT}.ports[0].containerPort: Required value",
        f'{AT}.env[0].name: Invalid value: "a=b": a valid environment variable name must consist '
        f"only of printable "
        "ASCII characters other than '='",
        f'{AT}.volumeMounts[0].name: Not found: "v"',
        f"{AT}.volumeMounts[0].mountPath: Required value",
        f'{AT}.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
        f'"IfNotPresent", "Never"',
        f'{AT}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of '
        f"1",
        f"{AT}.livenessProbe.exec.command: Required value",
        f'{AT}.image: Invalid value: " web": must not have leading or trailing whitespace',
    ]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({f"{C}.name": GONE}, f"{AT}.name: Required value"),
        ({f"{C}.image": GONE}, f"{AT}.image: Required value"),
        (
            {"spec.containers": [{"name": "c", "image": "a"}, {"name": "c", "image": "b"}]},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        (
            {"spec.initContainers": [{"name": "c", "image": "a"}]},
            'spec.initContainers[0].name: Duplicate value: "c"',
        ),
        (
            {"spec.restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"OnFailure", "Never"',
        ),
        (
            {"spec.dnsPolicy": "Mine"},
            'spec.dnsPolicy: Unsupported value: "Mine": supported values: '
            '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
        ),
        (
            {"spec.dnsPolicy": "None"},
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            {"spec.nodeSelector": {"a b": "c"}},
            'spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric '
            "characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name', "
            " or '123-abc', regex used "
            "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            {"spec.activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
            "inclusive",
        ),
        ({"spec.hostname": "A"}, f'spec.hostname: Invalid value: "A": {LABEL}'),
        (
            {"spec.hostNetwork": True, f"{C}.ports": [{"containerPort": 80, "hostPort": 81}]},
            f"{AT}.ports[0].hostPort: Invalid value: 81: must match `containerPort` when "
            f"`hostNetwork` is true",
        ),
        (
            {
                f"{C}.ports": [
                    {"containerPort": 80, "hostPort": 80},
                    {"containerPort": 81, "hostPort": 80},
                ]
            },
            f'{AT}.ports[1].hostPort: Duplicate value: "TCP//80"',
        ),
        (
            {f"{C}.ports": [{"containerPort": 80, "protocol": "QUIC"}]},
            f'{AT}.ports[0].protocol: Unsupported value: "QUIC": supported values: "SCTP", "TCP", '
            f'"UDP"',
        ),
        (
            {f"{C}.ports": [{"containerPort": 70000}]},
            f"{AT}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
            f"inclusive",
        ),
        (
            {
                f"{C}.ports": [
                    {"containerPort": 80, "name": "a"},
                    {"containerPort": 81, "name": "a"},
                ]
            },
            f'{AT}.ports[1].name: Duplicate value: "a"',
        ),
        (
            {
                f"{C}.env": [
                    {
                        "name": "A",
                        "value": "b",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                    }
                ]
            },
            f'{AT}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not '
            f"empty",
        ),
        (
            {f"{C}.env": [{"name": "A", "valueFrom": {}}]},
            f'{AT}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
            f"`resourceFieldRef`, "
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (
            {f"{C}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.image"}}}]},
            f'{AT}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.image": error '
            f"converting fieldPath: field label "
            "not supported: spec.image",
        ),
        (
            {f"{C}.resources": {"requests": {"cpu": "-1"}}},
            f'{AT}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to '
            f"0",
        ),
        (
            {f"{C}.resources": {"requests": {"example.com/gpu": "1"}}},
            f"{AT}.resources.limits: Required value: Limit must be set for non overcommitable "
            f"resources",
        ),
        (
            {f"{C}.livenessProbe": {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}},
            f"{AT}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {f"{C}.livenessProbe": {"httpGet": {"port": 80}, "successThreshold": 2}},
            f"{AT}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {f"{C}.readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": -1}},
            f"{AT}.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal "
            f"to 0",
        ),
        (
            {f"{C}.livenessProbe": {}},
            f"{AT}.livenessProbe: Required value: must specify a handler type",
        ),
        (
            {"spec.securityContext": {"runAsUser": -1}},
            "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, "
            "inclusive",
        ),
        (
            {f"{C}.securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
            f"{AT}.securityContext: Invalid value: "
            f'{{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,'
            '"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,'
            '"ReadOnlyRootFilesystem":null,'
            '"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,'
            '"AppArmorProfile":null}: cannot set '
            "`allowPrivilegeEscalation` to false and `privileged` to true",
        ),
        (
            {"spec.serviceAccountName": "A_b"},
            'spec.serviceAccountName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must '
            "consist of lower case "
            "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'example.com', "
            r"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\."
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            {"spec.hostAliases": [{"ip": "here"}]},
            'spec.hostAliases[0].ip: Invalid value: "here": must be a valid IP address, (e.g. '
            "10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            {"spec.readinessGates": [{"conditionType": "a b"}]},
            'spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist '
            "of alphanumeric characters, "
            "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
            "'MyName',  or 'my.name',  or "
            "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            {"spec.schedulingGates": [{"name": "a"}, {"name": "a"}]},
            'spec.schedulingGates[1]: Duplicate value: "a"',
        ),
    ],
)
def test_pod_invalid_is_refused_with_one_error(changes: dict[str, Any], error: str) -> None:
    assert wrong(changes) == [error]


@pytest.mark.parametrize(
    ("volume", "error"),
    [
        ({"name": ""}, "spec.volumes[0].name: Required value"),
        ({"name": "V"}, f'spec.volumes[0].name: Invalid value: "V": {LABEL}'),
        (
            {"emptyDir": {}, "hostPath": {"path": "/v"}},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        ({"hostPath": {"path": ""}}, "spec.volumes[0].hostPath.path: Required value"),
        (
            {"hostPath": {"path": "/a/../b"}},
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            {"hostPath": {"path": "/v", "type": "Thing"}},
            'spec.volumes[0].hostPath.type: Unsupported value: "Thing": supported values: "", '
            '"BlockDevice", "CharDevice", '
            '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        ),
        ({"configMap": {}}, "spec.volumes[0].configMap.name: Required value"),
        ({"secret": {}}, "spec.volumes[0].secret.secretName: Required value"),
        (
            {"secret": {"secretName": "s", "defaultMode": 1000}},
            "spec.volumes[0].secret.defaultMode: Invalid value: 1000: must be a number between 0 "
            "and 0777 (octal), both "
            "inclusive",
        ),
        (
            {"configMap": {"name": "m", "items": [{"key": "k", "path": "/a"}]}},
            'spec.volumes[0].configMap.items[0].path: Invalid value: "/a": must be a relative path',
        ),
        (
            {"emptyDir": {"sizeLimit": "-1"}},
            "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid "
            "resource quantity",
        ),
        (
            {"persistentVolumeClaim": {}},
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "m", "items": [{"key": "k", "path": "a"}]}},
                        {"secret": {"name": "s", "items": [{"key": "k", "path": "a"}]}},
                    ]
                }
            },
            'spec.volumes[0].projected: Invalid value: "s": conflicting duplicate paths',
        ),
    ],
)
def test_volume_invalid_is_refused(volume: dict[str, Any], error: str) -> None:
    assert wrong({"spec.volumes": [{"name": "v", **volume}]}) == [error]


@pytest.mark.parametrize(
    ("mount", "error"),
    [
        ({"name": "w"}, 'volumeMounts[0].name: Not found: "w"'),
        ({"subPath": "/a"}, 'volumeMounts.subPath: Invalid value: "/a": must be a relative path'),
        (
            {"subPath": "a", "subPathExpr": "b"},
            'volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are '
            "mutually exclusive",
        ),
        (
            {"mountPropagation": "Bidirectional"},
            "volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is "
            "available only to privileged "
            "containers",
        ),
    ],
)
def test_mount_invalid_is_refused(mount: dict[str, Any], error: str) -> None:
    whole = {"name": "v", "mountPath": "/v", **mount}
    assert wrong({f"{C}.volumeMounts": [whole], "spec.volumes": [{"name": "v"}]}) == [
        f"{AT}.{error}"
    ]


def test_mounts_with_same_path_are_refused() -> None:
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]
    assert wrong({f"{C}.volumeMounts": mounts, "spec.volumes": [{"name": "v"}]}) == [
        f'{AT}.volumeMounts[1].mountPath: Invalid value: "/v": must be unique'
    ]


@pytest.mark.parametrize(
    ("toleration", "error"),
    [
        (
            {"operator": "Exists", "value": "v"},
            'spec.tolerations[0].operator: Invalid value: "v": value must be empty when '
            "`operator` is 'Exists'",
        ),
        (
            {"key": "", "operator": "Equal", "value": "v"},
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when '
            "`key` is empty, which means "
            '"match all values and all keys"',
        ),
        (
            {"effect": "Never"},
            'spec.tolerations[0].effect: Unsupported value: "Never": supported values: '
            '"NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ),
        (
            {"effect": "NoSchedule", "tolerationSeconds": 5},
            'spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be '
            "'NoExecute' when `tolerationSeconds` "
            "is set",
        ),
    ],
)
def test_toleration_invalid_is_refused(toleration: dict[str, Any], error: str) -> None:
    assert wrong({"spec.tolerations": [{"key": "k", **toleration}]}) == [error]


def node_affinity(expression: dict[str, Any], field: str = "matchExpressions") -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{field: [expression]}]
            }
        }
    }


TERM = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
)


@pytest.mark.parametrize(
    ("affinity", "error"),
    [
        (
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
                }
            },
            f"{TERM[:-3]}: Required value: must have at least one node selector term",
        ),
        (
            node_affinity({"key": "k", "operator": "In"}),
            f"{TERM}.matchExpressions[0].values: Required value: must be specified when "
            f"`operator` is 'In' or 'NotIn'",
        ),
        (
            node_affinity({"key": "k", "operator": "Exists", "values": ["v"]}),
            f"{TERM}.matchExpressions[0].values: Forbidden: may not be specified when `operator` "
            f"is 'Exists' or "
            "'DoesNotExist'",
        ),
        (
            node_affinity({"key": "k", "operator": "Gt", "values": ["1", "2"]}),
            f"{TERM}.matchExpressions[0].values: Required value: must be specified single value "
            f"when `operator` is 'Lt' or "
            "'Gt'",
        ),
        (
            node_affinity({"key": "k", "operator": "Like"}),
            f'{TERM}.matchExpressions[0].operator: Invalid value: "Like": not a valid selector '
            f"operator",
        ),
        (
            node_affinity({"key": "spec.x", "operator": "In", "values": ["v"]}, "matchFields"),
            f'{TERM}.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
        ),
        (
            {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "k",
                            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                        }
                    ]
                }
            },
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
            "labelSelector"
            ".matchExpressions[0].values: Required value: must be specified when `operator` is "
            "'In' or 'NotIn'",
        ),
        (
            {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 101,
                            "podAffinityTerm": {"topologyKey": "k", "labelSelector": {}},
                        }
                    ]
                }
            },
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: 101: must be "
            "in the range 1-100",
        ),
    ],
)
def test_affinity_invalid_is_refused(affinity: dict[str, Any], error: str) -> None:
    assert wrong({"spec.affinity": affinity}) == [error]


@pytest.mark.parametrize(
    ("constraint", "errors"),
    [
        ({"maxSkew": 0}, ["maxSkew: Invalid value: 0: must be greater than zero"]),
        ({"topologyKey": ""}, ["topologyKey: Required value: can not be empty"]),
        (
            {"whenUnsatisfiable": "Wait"},
            [
                'whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", '
                '"ScheduleAnyway"'
            ],
        ),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            [
                "minDomains: Invalid value: 2: can only use minDomains if "
                "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            ],
        ),
    ],
)
def test_spread_constraint_invalid_is_refused(
    constraint: dict[str, Any], errors: list[str]
) -> None:
    whole = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        **constraint,
    }
    path = "spec.topologySpreadConstraints[0]"
    assert wrong({"spec.topologySpreadConstraints": [whole]}) == [
        f"{path}.{error}" for error in errors
    ]


def test_new_pod_with_ephemeral_containers_is_refused() -> None:
    assert wrong(
        {
            "spec.ephemeralContainers": [
                {"name": "e", "image": "a", "terminationMessagePolicy": "File"}
            ]
        }
    ) == ["spec.ephemeralContainers: Forbidden: cannot be set on create"]


# --- updates --------------------------------------------------------------------------------------


def test_pod_update_of_image_deadline_and_tolerations_is_accepted() -> None:
    new = pod(activeDeadlineSeconds=5, tolerations=[{"operator": "Exists"}])
    assert update_refusals("pods", changed(new, {f"{C}.image": "web:2"}), pod()) == []


def test_pod_update_of_other_fields_is_refused() -> None:
    errors = update_refusals("pods", pod(hostname="other"), pod())
    assert errors == [
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
        "previously negative)\n"
        "@@ -64,7 +64,7 @@\n"
        '   "SELinuxChangePolicy": null\n  },\n  "ImagePullSecrets": null,\n'
        '- "Hostname": "",\n+ "Hostname": "other",\n'
        '  "Subdomain": "",\n  "SetHostnameAsFQDN": null,\n  "Affinity": null,\n'
    ]


def test_pod_update_that_adds_container_is_refused() -> None:
    more = [{"name": "c", "image": "web:1"}, {"name": "d", "image": "web:1"}]
    assert update_refusals("pods", pod(containers=more), pod()) == [
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    ]


def test_pod_update_that_lengthens_deadline_is_refused() -> None:
    old = pod(activeDeadlineSeconds=5)
    assert update_refusals("pods", pod(activeDeadlineSeconds=3), old) == []
    assert update_refusals("pods", pod(activeDeadlineSeconds=9), old) == [
        "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous value"
    ]
    assert update_refusals("pods", pod(), old)[0] == (
        "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer "
        "to nil value"
    )


def test_pod_update_that_removes_toleration_is_refused() -> None:
    old = pod(tolerations=[{"key": "a", "operator": "Exists"}])
    errors = update_refusals("pods", pod(tolerations=[{"key": "b", "operator": "Exists"}]), old)
    assert errors[0] == (
        "spec.tolerations: Forbidden: existing toleration can not be modified except its "
        "tolerationSeconds"
    )


def spread(keys: list[str]) -> list[str]:
    """Return the errors of a pod that is spread over the values of some labels."""
    return wrong(
        {
            "spec.topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
                for key in keys
            ]
        }
    )


def test_repeated_spread_constraint_is_named_where_another_one_follows() -> None:
    assert spread(["a", "b", "a", "a"]) == [
        f"spec.topologySpreadConstraints[{index}].{{topologyKey, whenUnsatisfiable}}: Duplicate "
        f"value: "
        '"{a, DoNotSchedule}"'
        for index in (0, 2)
    ]


def test_many_spread_constraints_cost_in_proportion() -> None:
    def cost(count: int) -> float:
        begun = time.process_time()
        assert spread([f"k{number}" for number in range(count)]) == []
        return time.process_time() - begun

    few = min(cost(1000) for _ in range(3))
    assert (
        cost(10_000) < 40 * few
    )  # ten times as much; each with each other would be a hundred times


# --- what comes with creation ---------------------------------------------------------------------


def test_new_pod_is_pending_with_its_qos_class() -> None:
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    assert created("pods", pod())["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert (
        created("pods", changed(pod(), {f"{C}.resources": limits}))["status"]["qosClass"]
        == "Guaranteed"
    )
    assert (
        created("pods", changed(pod(), {f"{C}.resources": {"requests": {"cpu": "1"}}}))["status"][
            "qosClass"
        ]
        == "Burstable"
    )


def test_pods_can_be_selected_by_fields() -> None:
    found = strategy("pods").selectable_fields(
        created("pods", pod(nodeName="n", serviceAccountName="sa"))
    )
    assert {
        key: found[key]
        for key in (
            "spec.nodeName",
            "status.phase",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "spec.hostNetwork",
        )
    } == {
        "spec.nodeName": "n",
        "status.phase": "Pending",
        "spec.restartPolicy": "Always",
        "spec.serviceAccountName": "sa",
        "spec.hostNetwork": "false",
    }


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        (
            {f"{C}.ports": [{"containerPort": 80}, {"containerPort": 80}]},
            "spec.containers[0].ports[1]: duplicate port definition with "
            "spec.containers[0].ports[0]",
        ),
        (
            {f"{C}.env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped '
            "when using apply",
        ),
        (
            {"spec.nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "
            '"kubernetes.io/os" instead',
        ),
        (
            {"spec.hostAliases": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]},
            'spec.hostAliases[1].ip: duplicate ip "10.0.0.1"',
        ),
        (
            {"spec.imagePullSecrets": [{"name": ""}]},
            'spec.imagePullSecrets[0].name: invalid empty name ""',
        ),
        (
            {f"{C}.resources": {"requests": {"memory": "10m"}}},
            'spec.containers[0].resources.requests[memory]: fractional byte value "10m" is '
            "invalid, must be an integer",
        ),
        (
            {"spec.volumes": [{"name": "g", "gitRepo": {"repository": "r"}}]},
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            {
                "spec.volumes": [
                    {
                        "name": "e",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1500m"}},
                                }
                            }
                        },
                    }
                ]
            },
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
            'fractional byte value "1500m" is '
            "invalid, must be an integer",
        ),
        (
            {"metadata.name": "a.b"},
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            "behavior; a DNS label is "
            "recommended: [must not contain dots]",
        ),
    ],
)
def test_pod_questionable_is_accepted_with_warning(changes: dict[str, Any], warning: str) -> None:
    assert warnings("pods", changed(pod(), changes)) == [warning]
