from datetime import UTC, datetime

import pytest

from kubepy.api.schema.customresources import resources_of
from kubepy.api.scheme import BUILT_IN, Scheme
from kubepy.apiserver.kinds import table
from kubepy.apiserver.printers import Column, Table, human_duration

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CREATED = "2026-11-20T11:59:00Z"  # a minute ago
SCHEME = Scheme()


def shown(key: str, obj: dict, *, wide: bool = False) -> dict:
    """Return the only row of an object's table, by column."""
    obj = {
        **obj,
        "metadata": {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})},
    }
    columns, [row] = table(SCHEME.by_key(key), [obj], NOW)
    return {
        column.name: cell
        for column, cell in zip(columns, row, strict=True)
        if wide or not column.priority
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 61, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400 - 1, "729d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (8 * 365 * 86400 + 86400, "8y"),
    ],
)
def test_durations_for_people(seconds, text):
    assert human_duration(seconds) == text


@pytest.mark.parametrize("resource", BUILT_IN, ids=lambda resource: resource.key)
def test_printer_of_every_kind_has_a_cell_per_column_for_empty_object(resource):
    columns, [row] = table(resource, [{"metadata": {"name": "x"}}], NOW)
    assert len(row) == len(columns)
    assert columns[0].name == "Last Seen" if resource.kind == "Event" else row[0] == "x"


# --- pods -----------------------------------------------------------------------------------------


def container(name="c", *, ready=True, state=None, restarts=0, **more):
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "state": state or {"running": {}},
        **more,
    }


def ended(code=0, **more):
    return {"terminated": {"exitCode": code, **more}}


def waiting(reason):
    return {"waiting": {"reason": reason}}


def pod(*statuses, init=(), sidecars=(), phase="Running", conditions=(), deleted=False, **status):
    inits = [
        {"name": one["name"]} | ({"restartPolicy": "Always"} if one["name"] in sidecars else {})
        for one in init
    ]
    return {
        "metadata": {"deletionTimestamp": CREATED} if deleted else {},
        "spec": {
            "containers": [{"name": one["name"]} for one in statuses] or [{"name": "c"}],
            "initContainers": inits,
        },
        "status": {
            "phase": phase,
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(init),
            "conditions": [{"type": kind, "status": "True"} for kind in conditions],
            **status,
        },
    }


READY = ("Ready",)


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        pytest.param(pod(phase="Pending"), "0/1", "Pending", "0", id="nothing known yet"),
        pytest.param(pod(container()), "1/1", "Running", "0", id="running"),
        pytest.param(
            pod(container(), container("d", ready=False)), "1/2", "Running", "0", id="one unready"
        ),
        pytest.param(
            pod(container(ready=False, state=waiting("CrashLoopBackOff"), restarts=6)),
            "0/1",
            "CrashLoopBackOff",
            "6",
            id="waiting with a reason",
        ),
        pytest.param(
            pod(
                container(ready=False, state=waiting("First")),
                container("d", state=waiting("Second")),
            ),
            "0/2",
            "First",
            "0",
            id="the first container's reason counts",
        ),
        pytest.param(
            pod(container(ready=False, state=ended(reason="Completed")), phase="Succeeded"),
            "0/1",
            "Completed",
            "0",
            id="completed",
        ),
        pytest.param(
            pod(
                container(ready=False, state=ended(reason="Completed")),
                container("d"),
                conditions=READY,
            ),
            "1/2",
            "Running",
            "0",
            id="one completed, one running in a ready pod",
        ),
        pytest.param(
            pod(container(ready=False, state=ended(reason="Completed")), container("d")),
            "1/2",
            "NotReady",
            "0",
            id="one completed, one running in a pod that is not ready",
        ),
        pytest.param(
            pod(
                container(ready=False, state=ended(reason="Completed")),
                container("d", ready=False, state=ended(1, reason="Error")),
            ),
            "0/2",
            "Error",
            "0",
            id="an error shows through a completion",
        ),
        pytest.param(
            pod(container(ready=False, state=ended(3)), phase="Failed"),
            "0/1",
            "ExitCode:3",
            "0",
            id="exit code without reason",
        ),
        pytest.param(
            pod(container(ready=False, state=ended(137, signal=9))),
            "0/1",
            "Signal:9",
            "0",
            id="signal",
        ),
        pytest.param(pod(container(), deleted=True), "1/1", "Terminating", "0", id="terminating"),
        pytest.param(
            pod(container(), deleted=True, reason="NodeLost"), "1/1", "Unknown", "0", id="node lost"
        ),
        pytest.param(
            pod(phase="Failed", deleted=True, reason="Evicted"),
            "0/1",
            "Evicted",
            "0",
            id="an ended pod does not terminate",
        ),
        pytest.param(
            pod(phase="Pending", conditions=())
            | {
                "status": {
                    "phase": "Pending",
                    "conditions": [
                        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                    ],
                }
            },
            "0/1",
            "SchedulingGated",
            "0",
            id="gated",
        ),
        pytest.param(
            pod(
                container(restarts=2, lastState=ended(1, finishedAt="2026-11-20T11:50:00Z")),
                container("d", restarts=1, lastState=ended(1, finishedAt="2026-11-20T11:55:00Z")),
            ),
            "2/2",
            "Running",
            "3 (5m ago)",
            id="restarts with the time of the last",
        ),
        pytest.param(
            pod(init=[container("i", ready=False, state={"running": {}})], phase="Pending"),
            "0/1",
            "Init:0/1",
            "0",
            id="initializing",
        ),
        pytest.param(
            pod(
                init=[
                    container("i", state=ended()),
                    container("j", state=waiting("PodInitializing")),
                ],
                phase="Pending",
            ),
            "0/1",
            "Init:1/2",
            "0",
            id="second of two init containers",
        ),
        pytest.param(
            pod(init=[container("i", ready=False, state=waiting("ErrImagePull"))], phase="Pending"),
            "0/1",
            "Init:ErrImagePull",
            "0",
            id="init container waits",
        ),
        pytest.param(
            pod(init=[container("i", state=ended(1), restarts=4)], phase="Pending"),
            "0/1",
            "Init:ExitCode:1",
            "4",
            id="init container failed",
        ),
        pytest.param(
            pod(container(), init=[container("i", state=ended(), restarts=4)]),
            "1/1",
            "Running",
            "0",
            id="restarts of init containers are forgotten afterwards",
        ),
        pytest.param(
            pod(container(), init=[container("s", started=True, restarts=2)], sidecars=("s",)),
            "2/2",
            "Running",
            "2",
            id="a sidecar counts as a container",
        ),
        pytest.param(
            pod(
                init=[container("s", started=False, ready=False)], sidecars=("s",), phase="Pending"
            ),
            "0/2",
            "Init:0/1",
            "0",
            id="a sidecar that has not started",
        ),
    ],
)
def test_ready_status_and_restarts_of_pods(obj, ready, status, restarts):
    assert shown("pods", obj) == {
        "Name": "x",
        "Ready": ready,
        "Status": status,
        "Restarts": restarts,
        "Age": "60s",
    }


def test_wide_pods_show_where_they_are():
    obj = pod(
        container(), podIPs=[{"ip": "10.0.0.7"}], nominatedNodeName="n2", conditions=("Gate",)
    )
    obj["spec"] |= {
        "nodeName": "n1",
        "readinessGates": [{"conditionType": "Gate"}, {"conditionType": "Other"}],
    }
    row = shown("pods", obj, wide=True)
    assert (row["IP"], row["Node"], row["Nominated Node"], row["Readiness Gates"]) == (
        "10.0.0.7",
        "n1",
        "n2",
        "1/2",
    )
    row = shown("pods", pod(), wide=True)
    assert (row["IP"], row["Node"], row["Nominated Node"], row["Readiness Gates"]) == (
        "<none>",
    ) * 4


# --- workloads ------------------------------------------------------------------------------------

TEMPLATE = {
    "spec": {
        "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}],
        "nodeSelector": {"z": "1", "disk": "ssd"},
    }
}
SELECTOR = {
    "matchLabels": {"app": "x"},
    "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}],
}


def test_daemon_sets():
    obj = {
        "spec": {"selector": SELECTOR, "template": TEMPLATE},
        "status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1},
    }
    assert shown("daemonsets.apps", obj, wide=True) == {
        "Name": "x",
        "Desired": 3,
        "Current": 2,
        "Ready": 1,
        "Up-to-date": 0,
        "Available": 0,
        "Node Selector": "disk=ssd,z=1",
        "Age": "60s",
        "Containers": "a,b",
        "Images": "a:1,b:2",
        "Selector": "app=x,t in (a,b)",
    }


def test_deployments_replica_sets_and_stateful_sets():
    spec = {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}
    status = {"replicas": 2, "readyReplicas": 1}
    assert shown("deployments.apps", {"spec": spec, "status": status}) == {
        "Name": "x",
        "Ready": "1/3",
        "Up-to-date": 0,
        "Available": 0,
        "Age": "60s",
    }
    assert shown("replicasets.apps", {"spec": spec, "status": status}) == {
        "Name": "x",
        "Desired": 3,
        "Current": 2,
        "Ready": 1,
        "Age": "60s",
    }
    assert shown("statefulsets.apps", {"spec": spec, "status": status}, wide=True) == {
        "Name": "x",
        "Ready": "1/3",
        "Age": "60s",
        "Containers": "a,b",
        "Images": "a:1,b:2",
    }


def test_controller_revisions_name_their_controller():
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "ds",
        "controller": True,
        "uid": "u",
    }
    assert shown(
        "controllerrevisions.apps", {"revision": 4, "metadata": {"ownerReferences": [owner]}}
    ) == {"Name": "x", "Controller": "daemonset.apps/ds", "Revision": 4, "Age": "60s"}
    assert shown("controllerrevisions.apps", {"revision": 1})["Controller"] == "<none>"


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        (
            {"completions": 5},
            {"succeeded": 2, "startTime": "2026-11-20T11:58:30Z"},
            ("Running", "2/5", "90s"),
        ),
        ({"parallelism": 3}, {}, ("Running", "0/1 of 3", "")),
        (
            {"completions": 1},
            {
                "succeeded": 1,
                "startTime": "2026-11-20T11:58:30Z",
                "completionTime": CREATED,
                "conditions": [{"type": "Complete", "status": "True"}],
            },
            ("Complete", "1/1", "30s"),
        ),
        ({}, {"conditions": [{"type": "Suspended", "status": "True"}]}, ("Suspended", "0/1", "")),
    ],
)
def test_jobs(spec, status, cells):
    row = shown("jobs.batch", {"spec": spec, "status": status})
    assert (row["Status"], row["Completions"], row["Duration"]) == cells


def test_cron_jobs():
    obj = {
        "spec": {
            "schedule": "0 3 * * *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": TEMPLATE}},
        },
        "status": {"active": [{}], "lastScheduleTime": "2026-11-20T03:00:00Z"},
    }
    assert shown("cronjobs.batch", obj, wide=True) == {
        "Name": "x",
        "Schedule": "0 3 * * *",
        "Timezone": "<none>",
        "Suspend": "True",
        "Active": 1,
        "Last Schedule": "9h",
        "Age": "60s",
        "Containers": "a,b",
        "Images": "a:1,b:2",
        "Selector": "<none>",
    }


# --- nodes, events, services ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "status"),
    [
        ([], False, "Unknown"),
        ([{"type": "Ready", "status": "True"}], False, "Ready"),
        ([{"type": "Ready", "status": "Unknown"}], True, "NotReady,SchedulingDisabled"),
    ],
)
def test_status_of_nodes(conditions, unschedulable, status):
    obj = {"spec": {"unschedulable": unschedulable}, "status": {"conditions": conditions}}
    assert shown("nodes", obj)["Status"] == status


def test_nodes_show_roles_and_what_they_are():
    obj = {
        "metadata": {
            "labels": {
                "node-role.kubernetes.io/etcd": "",
                "kubernetes.io/role": "worker",
                "node-role.kubernetes.io/": "",
            }
        },
        "status": {
            "nodeInfo": {
                "kubeletVersion": "v1.36.0",
                "kernelVersion": "6.1",
                "architecture": "amd64",
            },
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    assert list(shown("nodes", obj, wide=True).values()) == [
        "x",
        "Unknown",
        "etcd,worker",
        "60s",
        "v1.36.0",
        "10.0.0.1",
        "<none>",
        "<unknown>",
        "6.1 (amd64)",
        "<unknown>",
    ]


def test_events_show_when_they_were_last_seen():
    obj = {
        "type": "Normal",
        "reason": "Pulled",
        "message": " ok \n",
        "count": 3,
        "firstTimestamp": CREATED,
        "lastTimestamp": "2026-11-20T11:59:50Z",
        "source": {"component": "kubelet", "host": "n1"},
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
    }
    assert shown("events", obj, wide=True) == {
        "Last Seen": "10s",
        "Type": "Normal",
        "Reason": "Pulled",
        "Object": "pod/p",
        "Subobject": "spec",
        "Source": "kubelet, n1",
        "Message": "ok",
        "First Seen": "60s",
        "Count": 3,
        "Name": "x",
    }


def test_events_in_series_and_events_of_new_api():
    series = {"count": 9, "lastObservedTime": "2026-11-20T11:59:58.123456Z"}
    old = {"eventTime": "2026-11-20T11:59:00.000000Z", "series": series, "reportingComponent": "c"}
    new = {
        "eventTime": "2026-11-20T11:59:00.000000Z",
        "series": series,
        "reportingController": "c",
        "note": "n",
    }
    for key, obj in (("events", old), ("events.events.k8s.io", new)):
        row = shown(key, obj, wide=True)
        assert (row["Last Seen"], row["First Seen"], row["Count"], row["Source"]) == (
            "1s",
            "60s",
            9,
            "c",
        )


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        ({"type": "ClusterIP", "clusterIPs": ["None"]}, {}, ("None", "<none>", "<none>")),
        (
            {
                "type": "NodePort",
                "clusterIP": "10.1.1.1",
                "ports": [
                    {"port": 80, "nodePort": 30123, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                ],
            },
            {},
            ("10.1.1.1", "<none>", "80:30123/TCP,53/UDP"),
        ),
        (
            {"type": "ExternalName", "externalName": "db.example.org"},
            {},
            ("<none>", "db.example.org", "<none>"),
        ),
        ({"type": "LoadBalancer"}, {}, ("<none>", "<pending>", "<none>")),
        (
            {"type": "LoadBalancer", "externalIPs": ["192.0.2.7"]},
            {"loadBalancer": {"ingress": [{"hostname": "b.example.org"}, {"ip": "10.9.9.9"}]}},
            ("<none>", "10.9.9.9,b.example.org,192.0.2.7", "<none>"),
        ),
    ],
)
def test_addresses_of_services(spec, status, cells):
    row = shown("services", {"spec": spec, "status": status})
    assert (row["Cluster-IP"], row["External-IP"], row["Port(s)"]) == cells


def test_long_lists_are_cut():
    subsets = [
        {
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "ports": [{"port": 80}, {"port": 443}],
        }
    ]
    assert shown("endpoints", {"subsets": subsets})["Endpoints"] == (
        "10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 1 more..."
    )
    rules = [{"host": "a"}, {"host": "b"}, {"host": "c"}, {}]
    assert (
        shown("ingresses.networking.k8s.io", {"spec": {"rules": rules}})["Hosts"]
        == "a,b,c + 1 more..."
    )


# --- the others -----------------------------------------------------------------------------------


def test_volumes_and_claims():
    volume = {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "n", "name": "c"},
            "storageClassName": "fast",
            "volumeMode": "Block",
        },
        "status": {"phase": "Bound"},
    }
    assert list(shown("persistentvolumes", volume, wide=True).values()) == [
        "x",
        "1Gi",
        "RWO,RWX",
        "Retain",
        "Bound",
        "n/c",
        "fast",
        "<unset>",
        "",
        "60s",
        "Block",
    ]
    claim = {"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}
    assert list(shown("persistentvolumeclaims", claim).values()) == [
        "x",
        "Pending",
        "",
        "",
        "",
        "",
        "<unset>",
        "60s",
    ]


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        ([], [], "<none>"),
        (
            [("Resource", "resource", "cpu", {"averageUtilization": 50})],
            [{"averageUtilization": 20}],
            "cpu: 20%/50%",
        ),
        ([("Resource", "resource", "cpu", {"averageValue": "10m"})], [], "cpu: <unknown>/10m"),
        ([("Pods", "pods", "", {"averageValue": "3"})], [{"averageValue": "2"}], "2/3"),
        (
            [("External", "external", "", {"averageValue": "3"})],
            [{"averageValue": "2"}],
            "2/3 (avg)",
        ),
        (
            [("Object", "object", "", {"value": "3"})] * 3,
            [],
            "<unknown>/3, <unknown>/3 + 1 more...",
        ),
        ([("Resource", "resource", "cpu", {"averageValue": "10m"})], [{}], "cpu: <nil>/10m"),
        ([("Object", "object", "", {"value": "3"})], [{"averageValue": "2"}], "<nil>/3"),
        ([("Object", "object", "", {"averageValue": "3"})], [{"value": "2"}], "<unknown>/3 (avg)"),
    ],
)
def test_targets_of_autoscalers(spec, status, text):
    metrics = [
        {"type": kind, key: {"name": name, "target": target}} for kind, key, name, target in spec
    ]
    current = [{one[1]: {"current": now}} for one, now in zip(spec, status, strict=False)]
    obj = {"spec": {"metrics": metrics, "maxReplicas": 5}, "status": {"currentMetrics": current}}
    assert shown("horizontalpodautoscalers.autoscaling", obj)["Targets"] == text


def test_kinds_without_printer_show_when_they_were_created():
    assert shown("roles.rbac.authorization.k8s.io", {}) == {"Name": "x", "Created At": CREATED}


BOATS = {
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    }
}


def boats_with(*columns):
    [version] = BOATS["spec"]["versions"]
    spec = BOATS["spec"] | {"versions": [version | {"additionalPrinterColumns": list(columns)}]}
    return next(resources_of({"spec": spec}))


AT = "Custom resource definition column (in JSONPath format): "


def test_custom_resources_show_columns_of_their_definition():
    columns = [
        {"name": kind.title(), "type": kind, "jsonPath": f".spec.{kind}"}
        for kind in ("integer", "number", "boolean", "string", "date")
    ]
    resource = boats_with(
        *columns, {"name": "Far", "type": "string", "jsonPath": ".spec.far", "priority": 1}
    )
    fitting = {
        "integer": 2.0,
        "number": 2e6,
        "boolean": True,
        "string": {"a": 1},
        "date": CREATED,
        "far": 7,
    }
    others = {"integer": "2", "number": True, "boolean": 1, "string": None, "date": "soon"}
    objects = [{"metadata": {"name": "x"}, "spec": spec} for spec in (fitting, others)]
    assert table(resource, objects, NOW) == Table(
        [
            Column("Name", format="name"),
            *(
                Column(column["name"], 0, column["type"], "", f"{AT}{column['jsonPath']}")
                for column in columns
            ),
            Column("Far", 1, description=f"{AT}.spec.far"),
        ],
        [
            ["x", 2, 2000000, True, '{"a":1}', "60s", "7"],
            ["x", None, None, None, "<no value>", "<invalid>", None],
        ],
    )


def test_custom_resources_show_their_age_when_nothing_is_asked_for():
    obj = {"metadata": {"name": "x", "creationTimestamp": CREATED}}
    assert table(boats_with(), [obj], NOW) == Table(
        [Column("Name", format="name"), Column("Age", type="date")], [["x", "60s"]]
    )
