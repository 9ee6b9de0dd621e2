"""Validation errors of services, claims, budgets, roles and other kinds, with upstream's
messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import GONE, changed, refusals, update_refusals, warnings

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

# A valid object of each kind, which the tests change.
GOOD: dict[str, dict[str, Any]] = {
    "services": {
        "apiVersion": "v1",
        "kind": "Service",
        "spec": {"ports": [{"port": 80}], "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]},
    },
    "configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    "secrets": {"apiVersion": "v1", "kind": "Secret", "data": {"a": "Yg=="}},
    "nodes": {
        "apiVersion": "v1",
        "kind": "Node",
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    },
    "namespaces": {"apiVersion": "v1", "kind": "Namespace"},
    "persistentvolumeclaims": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    "persistentvolumes": {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/v"},
        },
    },
    "storageclasses.storage.k8s.io": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "provisioner": "example.com/disk",
    },
    "poddisruptionbudgets.policy": {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    "priorityclasses.scheduling.k8s.io": {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "value": 5,
    },
    "horizontalpodautoscalers.autoscaling": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
    },
    "ingresses.networking.k8s.io": {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "spec": {
            "rules": [
                {
                    "host": "example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        },
    },
    "networkpolicies.networking.k8s.io": {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "spec": {"podSelector": {}},
    },
    "resourcequotas": {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "spec": {"hard": {"pods": "3"}},
    },
    "limitranges": {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}]},
    },
    "endpoints": {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}],
    },
    "endpointslices.discovery.k8s.io": {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    },
    "leases.coordination.k8s.io": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "spec": {"leaseDurationSeconds": 15},
    },
    "runtimeclasses.node.k8s.io": {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "handler": "runc",
    },
    "servicecidrs.networking.k8s.io": {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "spec": {"cidrs": ["10.1.0.0/16"]},
    },
    "roles.rbac.authorization.k8s.io": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    },
    "rolebindings.rbac.authorization.k8s.io": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}],
    },
    "customresourcedefinitions.apiextensions.k8s.io": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"flag": {"type": "string", "default": "nl"}},
                                }
                            },
                        }
                    },
                }
            ],
        },
    },
}
CRD = "customresourcedefinitions.apiextensions.k8s.io"


def good(key: str) -> dict[str, Any]:
    name = "boats.example.org" if key == CRD else "x"
    return {**GOOD[key], "metadata": {"name": name, "namespace": "default"}}


@pytest.mark.parametrize("key", GOOD)
def test_object_valid_is_accepted(key: str) -> None:
    assert refusals(key, good(key)) == []
    assert update_refusals(key, good(key), good(key)) == []


RULE = "spec.rules[0].http.paths[0]"
SCHEMA = "spec.versions.0.schema.openAPIV3Schema"  # for ``changed``
AT = "spec.validation.openAPIV3Schema"  # the path at which upstream reports the only schema


@pytest.mark.parametrize(
    ("key", "changes", "errors"),
    [
        ("services", {"spec.ports": []}, ["spec.ports: Required value"]),
        (
            "services",
            {"spec.ports.0.port": 0},
            [
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, "
                "inclusive",
            ],
        ),
        (
            "services",
            {"spec.type": "Public"},
            [
                'spec.type: Unsupported value: "Public": supported values: "ClusterIP", '
                '"ExternalName", "LoadBalancer", '
                '"NodePort"'
            ],
        ),
        (
            "services",
            {"spec.ports": [{"port": 80}, {"port": 81}]},
            ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
        ),
        (
            "services",
            {"spec.ports.0.nodePort": 30000},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            "services",
            {"spec.sessionAffinity": "Cookie"},
            [
                'spec.sessionAffinity: Unsupported value: "Cookie": supported values: "ClientIP", '
                '"None"'
            ],
        ),
        (
            "configmaps",
            {"data": {"a b": "c"}},
            [
                'data[a b]: Invalid value: "a b": a valid config key must consist of '
                "alphanumeric characters, '-', '_' or '.' "
                "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                "'[-._a-zA-Z0-9]+')"
            ],
        ),
        (
            "configmaps",
            {"binaryData": {"a": "Yg=="}},
            ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
        ),
        (
            "secrets",
            {"type": "kubernetes.io/dockerconfigjson"},
            ["data[.dockerconfigjson]: Required value"],
        ),
        (
            "nodes",
            {"spec.taints": [{"key": "k", "effect": "Never"}]},
            [
                'metadata.taints[0].effect: Unsupported value: "Never": supported values: '
                '"NoSchedule", "PreferNoSchedule", '
                '"NoExecute"'
            ],
        ),
        (
            "nodes",
            {"spec.taints": [{"key": "k", "effect": "NoSchedule"}] * 2},
            [
                "metadata.taints[1]: Duplicate value: "
                '{"Key":"k","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must '
                "be unique by key and effect pair"
            ],
        ),
        (
            "persistentvolumeclaims",
            {"spec.accessModes": ["Always"]},
            [
                'spec.accessModes: Unsupported value: "Always": supported values: "ReadOnlyMany", '
                '"ReadWriteMany", '
                '"ReadWriteOnce", "ReadWriteOncePod"'
            ],
        ),
        (
            "persistentvolumeclaims",
            {"spec.resources": GONE},
            ["spec.resources[storage]: Required value"],
        ),
        (
            "persistentvolumes",
            {"spec.hostPath": GONE},
            ["spec: Required value: must specify a volume type"],
        ),
        (
            "persistentvolumes",
            {"spec.nfs": {"server": "s", "path": "/p"}},
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            "persistentvolumes",
            {"spec.persistentVolumeReclaimPolicy": "Keep"},
            [
                'spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: '
                '"Delete", "Recycle", '
                '"Retain"'
            ],
        ),
        ("storageclasses.storage.k8s.io", {"provisioner": ""}, ["provisioner: Required value"]),
        (
            "storageclasses.storage.k8s.io",
            {"volumeBindingMode": "Later"},
            [
                'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", '
                '"WaitForFirstConsumer"'
            ],
        ),
        (
            "poddisruptionbudgets.policy",
            {"spec.maxUnavailable": 1},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"web"}},'
                '"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and '
                "maxUnavailable cannot be both set"
            ],
        ),
        (
            "poddisruptionbudgets.policy",
            {"spec.minAvailable": -1},
            ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            "priorityclasses.scheduling.k8s.io",
            {"value": 1000000001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        (
            "horizontalpodautoscalers.autoscaling",
            {"spec.maxReplicas": 0, "spec.minReplicas": 2},
            [
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to "
                "`minReplicas`",
            ],
        ),
        (
            "ingresses.networking.k8s.io",
            {"spec.rules.0.http.paths.0.path": "here"},
            [f'{RULE}.path: Invalid value: "here": must be an absolute path'],
        ),
        (
            "ingresses.networking.k8s.io",
            {"spec.rules.0.http.paths.0.pathType": "Fuzzy"},
            [
                f'{RULE}.pathType: Unsupported value: "Fuzzy": supported values: "Exact", '
                f'"ImplementationSpecific", "Prefix"'
            ],
        ),
        (
            "ingresses.networking.k8s.io",
            {"spec.rules.0.http.paths.0.backend.service.port": {"number": 80, "name": "web"}},
            [f'{RULE}.backend: Invalid value: "": cannot set both port name & port number'],
        ),
        (
            "networkpolicies.networking.k8s.io",
            {"spec.policyTypes": ["Sideways"]},
            [
                'spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Ingress", '
                '"Egress"'
            ],
        ),
        (
            "resourcequotas",
            {"spec.hard": {"bananas": "1"}},
            [
                'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource type '
                "or fully qualified",
                'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource for '
                "quota",
            ],
        ),
        (
            "resourcequotas",
            {"spec.hard": {"pods": "1500m"}},
            ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
        ),
        (
            "resourcequotas",
            {"spec.scopes": ["BestEffort", "NotBestEffort"]},
            ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
        ),
        (
            "resourcequotas",
            {"spec.scopes": ["BestEffort"], "spec.hard": {"cpu": "1"}},
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
        (
            "resourcequotas",
            {
                "spec.scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]
                }
            },
            [
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one "
                "value when `operator` is 'In' "
                "or 'NotIn' for scope selector"
            ],
        ),
        (
            "limitranges",
            {"spec.limits.0.min.cpu": "3"},
            [
                'spec.limits[0].min[cpu]: Invalid value: "3": min value 3 is greater than max '
                "value 2",
                'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": min value 3 is greater '
                "than default request value 2",
                'spec.limits[0].default[cpu]: Invalid value: "3": min value 3 is greater than '
                "default value 2",
            ],
        ),
        (
            "limitranges",
            {"spec.limits.0.type": "Pod", "spec.limits.0.default": {"cpu": "1"}},
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            "limitranges",
            {"spec.limits.0.maxLimitRequestRatio": {"cpu": "3"}},
            [
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater '
                "than max/min = 2.000000"
            ],
        ),
        (
            "endpoints",
            {"subsets": [{"ports": [{"port": 80}]}]},
            ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
        ),
        (
            "endpoints",
            {"subsets.0.addresses.0.ip": "127.0.0.1"},
            [
                'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the '
                "loopback range (127.0.0.0/8, "
                "::1/128)"
            ],
        ),
        (
            "endpoints",
            {"subsets.0.ports": [{"port": 80}, {"port": 81}]},
            [
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[1].name: Required value",
            ],
        ),
        (
            "endpointslices.discovery.k8s.io",
            {"addressType": "IPv6"},
            ['endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address'],
        ),
        (
            "endpointslices.discovery.k8s.io",
            {"endpoints.0.addresses": []},
            ["endpoints[0].addresses: Required value: must contain at least 1 address"],
        ),
        (
            "endpointslices.discovery.k8s.io",
            {"ports": [{"name": "A"}]},
            [f'ports[0].name: Invalid value: "A": {LABEL}'],
        ),
        (
            "leases.coordination.k8s.io",
            {"spec.leaseDurationSeconds": 0},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            "runtimeclasses.node.k8s.io",
            {"handler": "Run!"},
            [f'handler: Invalid value: "Run!": {LABEL}'],
        ),
        (
            "roles.rbac.authorization.k8s.io",
            {"rules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot '
                "apply to non-resource URLs"
            ],
        ),
        (
            "roles.rbac.authorization.k8s.io",
            {"rules": [{}]},
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api "
                "group",
                "rules[0].resources: Required value: resource rules must supply at least one "
                "resource",
            ],
        ),
        (
            "rolebindings.rbac.authorization.k8s.io",
            {"subjects": [{"kind": "Robot", "name": "r"}]},
            [
                'subjects[0].kind: Unsupported value: "Robot": supported values: '
                '"ServiceAccount", "User", "Group"'
            ],
        ),
        (
            CRD,
            {"metadata.name": "ships.example.org"},
            [
                'metadata.name: Invalid value: "ships.example.org": must be '
                'spec.names.plural+"."+spec.group'
            ],
        ),
        (
            CRD,
            {"spec.group": "local", "metadata.name": "boats.local"},
            ['spec.group: Invalid value: "local": should be a domain with at least one dot'],
        ),
        (
            CRD,
            {"spec.scope": "Global"},
            ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
        ),
        (
            CRD,
            {"spec.versions.0.schema": GONE},
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
        ),
        (
            CRD,
            {"spec.versions.0.storage": False},
            [
                'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,'
                '"Deprecated":false,'
                '"DeprecationWarning":null,"Schema":null,"Subresources":null,'
                '"AdditionalPrinterColumns":null,'
                '"SelectableFields":null}]: must have exactly one version marked as storage '
                "version",
                "status.storedVersions: Invalid value: null: must have at least one stored version",
            ],
        ),
        (
            CRD,
            {f"{SCHEMA}.properties.spec.properties.flag": {}},
            [
                f"{AT}.properties[spec].properties[flag].type: Required value: must not be empty "
                f"for specified object fields"
            ],
        ),
        (
            CRD,
            {f"{SCHEMA}.properties.spec.properties.flag": {"type": "text"}},
            [
                f'{AT}.properties[spec].properties[flag].type: Unsupported value: "text": '
                f'supported values: "array", "boolean", '
                '"integer", "number", "object", "string"'
            ],
        ),
        (
            CRD,
            {f"{SCHEMA}.properties.spec.properties.flag.default": 5},
            [
                f'{AT}.properties[spec].properties[flag].default: Invalid value: "integer":  in '
                f"body must be of type string: "
                '"integer"'
            ],
        ),
        (
            CRD,
            {f"{SCHEMA}.properties.spec.properties.list": {"type": "array"}},
            [f"{AT}.properties[spec].properties[list].items: Required value: must be specified"],
        ),
        (
            CRD,
            {f"{SCHEMA}.anyOf": [{"properties": {"size": {"minimum": 1}}}]},
            [
                f"{AT}.properties[size]: Required value: because it is defined in "
                f"{AT}.anyOf[0].properties[size]"
            ],
        ),
        (
            CRD,
            {
                f"{SCHEMA}.properties.metadata": {
                    "type": "object",
                    "properties": {"labels": {"type": "object"}},
                }
            },
            [
                f"{AT}.properties[metadata]: Forbidden: must not specify anything other than name "
                f"and generateName, but metadata "
                "is implicitly specified"
            ],
        ),
        (
            CRD,
            {
                "spec.versions.0.additionalPrinterColumns": [
                    {"name": "Flag", "type": "text", "jsonPath": "spec"}
                ]
            },
            [
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of '
                "boolean,date,integer,number,string",
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a '
                "simple json path starting with .",
            ],
        ),
        (
            CRD,
            {
                "spec.versions.0.subresources": {
                    "scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}
                }
            },
            [
                'spec.subresources.scale.specReplicasPath: Invalid value: ".status.n": should be '
                "a json path under .spec"
            ],
        ),
        (
            CRD,
            {"spec.versions.0.selectableFields": [{"jsonPath": ".spec.nothing"}]},
            [
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec.nothing": is an invalid '
                "path: does not refer to a "
                "valid field"
            ],
        ),
        (
            CRD,
            {"spec.conversion": {"strategy": "Webhook"}},
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is "
                "set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        ),
        (
            "servicecidrs.networking.k8s.io",
            {"spec.cidrs": []},
            ["spec.cidrs: Required value: at least one CIDR required"],
        ),
        (
            "servicecidrs.networking.k8s.io",
            {"spec.cidrs": ["10.0.0.1/24"]},
            [
                'spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the '
                "prefix length"
            ],
        ),
        (
            "servicecidrs.networking.k8s.io",
            {"spec.cidrs": ["FD00::/64"]},
            ['spec.cidrs[0]: Invalid value: "FD00::/64": must be in canonical form ("fd00::/64")'],
        ),
        (
            "servicecidrs.networking.k8s.io",
            {"spec.cidrs": ["10.0.0.0/24", "10.1.0.0/24"]},
            [
                'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","10.1.0.0/24"]}: may specify '
                "no more than one IP for each IP "
                "family, i.e 192.168.0.0/24 and 2001:db8::/96"
            ],
        ),
        (
            "endpoints",
            {"subsets.0.addresses.0.ip": "010.0.0.1"},
            ['subsets[0].addresses[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'],
        ),
        (CRD, {f"{SCHEMA}.properties.spec.properties.flag.pattern": "^(?i)(nl|be)?$"}, []),
        (
            CRD,
            {f"{SCHEMA}.properties.spec.properties.flag.pattern": "(nl"},
            [
                f'{AT}.properties[spec].properties[flag].pattern: Invalid value: "(nl": must be a '
                f"valid regular expression, but "
                "isn't: error parsing regexp: missing closing ): `(nl`"
            ],
        ),
        (
            CRD,
            {"spec.group": "a.k8s.io", "metadata.name": "boats.a.k8s.io"},
            [
                "metadata.annotations[api-approved.kubernetes.io]: Required value: protected "
                "groups must have approval "
                'annotation "api-approved.kubernetes.io", see '
                "https://github.com/kubernetes/enhancements/pull/1111"
            ],
        ),
        (
            CRD,
            {
                "spec.group": "a.k8s.io",
                "metadata.name": "boats.a.k8s.io",
                "metadata.annotations": {"api-approved.kubernetes.io": "https://[x"},
            },
            [
                "metadata.annotations[api-approved.kubernetes.io]: Invalid value: "
                '"https://[x": protected groups must have approval annotation '
                '"api-approved.kubernetes.io" with either a URL or a reason starting with '
                '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
            ],
        ),
    ],
)
def test_object_invalid_is_refused(key: str, changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals(key, changed(good(key), changes)) == errors


@pytest.mark.parametrize(
    ("key", "changes", "errors"),
    [
        (
            "services",
            {"spec.clusterIP": "10.0.0.8", "spec.clusterIPs": ["10.0.0.8"]},
            ['spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set'],
        ),
        (
            "secrets",
            {"type": "kubernetes.io/tls"},
            [
                'type: Invalid value: "kubernetes.io/tls": field is immutable',
                "data[tls.crt]: Required value",
                "data[tls.key]: Required value",
            ],
        ),
        ("persistentvolumeclaims", {"spec.accessModes": ["ReadWriteMany"]}, None),
        (
            "storageclasses.storage.k8s.io",
            {"provisioner": "example.com/tape"},
            ['provisioner: Invalid value: "example.com/tape": field is immutable'],
        ),
        (
            "storageclasses.storage.k8s.io",
            {"reclaimPolicy": "Retain"},
            ['reclaimPolicy: Invalid value: "Retain": field is immutable'],
        ),
        (
            "priorityclasses.scheduling.k8s.io",
            {"value": 6},
            ["value: Forbidden: may not be changed in an update."],
        ),
        (
            "resourcequotas",
            {"spec.scopes": ["Terminating"]},
            ['spec.scopes: Invalid value: ["Terminating"]: field is immutable'],
        ),
        (
            "endpointslices.discovery.k8s.io",
            {"addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com"]}]},
            ['addressType: Invalid value: "FQDN": field is immutable'],
        ),
        (
            "runtimeclasses.node.k8s.io",
            {"handler": "kata"},
            ['handler: Invalid value: "kata": field is immutable'],
        ),
        (
            "rolebindings.rbac.authorization.k8s.io",
            {"roleRef.name": "other"},
            [
                'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role",'
                '"Name":"other"}: cannot change '
                "roleRef"
            ],
        ),
        ("servicecidrs.networking.k8s.io", {"spec.cidrs": ["10.1.0.0/16", "fd00::/64"]}, []),
        (
            "servicecidrs.networking.k8s.io",
            {"spec.cidrs": ["10.2.0.0/16"]},
            ['spec.cidrs[0]: Invalid value: "10.2.0.0/16": field is immutable'],
        ),
        ("endpoints", {"subsets.0.addresses.0.ip": "10.0.0.2"}, []),
        ("nodes", {"spec.taints": []}, []),
    ],
)
def test_update_invalid_is_refused(
    key: str, changes: dict[str, Any], errors: list[str] | None
) -> None:
    found = update_refusals(key, changed(good(key), changes), good(key))
    if errors is None:
        assert found[0].startswith(
            "spec: Forbidden: spec is immutable after creation except resources.requests"
        )
    else:
        assert found == errors


@pytest.mark.parametrize("field", ["data", "binaryData"])
def test_update_of_immutable_field_is_refused(field: str) -> None:
    old = changed(good("configmaps"), {"immutable": True})
    assert update_refusals(
        "configmaps", changed(old, {field: {"z": "Yg=="}, "immutable": None}), old
    ) == [
        "immutable: Forbidden: field is immutable when `immutable` is set",
        f"{field}: Forbidden: field is immutable when `immutable` is set",
    ]


@pytest.mark.parametrize(
    ("key", "changes", "lines"),
    [
        (
            "services",
            {"spec.externalIPs": ["10.9.9.9"]},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
        ),
        (
            "persistentvolumes",
            {"spec.persistentVolumeReclaimPolicy": "Recycle"},
            [
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                "Instead, the recommended approach "
                "is to use dynamic provisioning."
            ],
        ),
        (
            "resourcequotas",
            {"spec.hard": {"requests.cpu": "2", "limits.cpu": "1"}},
            ["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"],
        ),
        (
            "endpoints",
            {"subsets.0.addresses.0.ip": "2001:DB8::1"},
            [
                'subsets[0].addresses[0].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 '
                "canonical format "
                '("2001:db8::1")'
            ],
        ),
        (
            "endpointslices.discovery.k8s.io",
            {"addressType": "FQDN"},
            ["spec.addressType: FQDN endpoints are deprecated"],
        ),
        (
            CRD,
            {f"{SCHEMA}.properties.spec.properties.flag.format": "flag"},
            ['unrecognized format "flag"'],
        ),
    ],
)
def test_object_deprecated_is_accepted_with_warning(
    key: str, changes: dict[str, Any], lines: list[str]
) -> None:
    assert warnings(key, changed(good(key), changes)) == lines


@pytest.mark.parametrize(
    ("key", "obj", "wanted"),
    [
        (
            "services",
            {
                "spec": {
                    "type": "LoadBalancer",
                    "ports": [{"port": 80}],
                    "loadBalancerIP": "FD00::1",
                    "loadBalancerSourceRanges": ["10.0.0.0/8", "FD00::/8"],
                }
            },
            [
                'spec.loadBalancerIP: IPv6 address "FD00::1" should be in RFC 5952 canonical '
                'format ("fd00::1")',
                'spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "FD00::/8" should be in RFC '
                "5952 canonical format "
                '("fd00::/8")',
            ],
        ),
        (
            "networkpolicies.networking.k8s.io",
            {
                "spec": {
                    "podSelector": {},
                    "egress": [
                        {"to": [{"ipBlock": {"cidr": "fd00::/8", "except": ["fd00:0::/16"]}}]}
                    ],
                }
            },
            [
                'spec.egress[0].to[0].ipBlock.except[0]: IPv6 CIDR value "fd00:0::/16" should be '
                "in RFC 5952 canonical format "
                '("fd00::/16")'
            ],
        ),
    ],
)
def test_address_not_canonical_is_accepted_with_warning(
    key: str, obj: dict[str, Any], wanted: list[str]
) -> None:
    api_version, kind = (
        ("v1", "Service") if key == "services" else ("networking.k8s.io/v1", "NetworkPolicy")
    )
    assert (
        warnings(key, {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **obj})
        == wanted
    )
