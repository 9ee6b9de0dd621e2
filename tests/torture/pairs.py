"""Pairs of writes that follow each other at once, beside controllers that run in another process.

The second write of a pair undoes, overtakes or ends what the first one began, so that controllers
hear of both together, of one of them while they act on the other, or of something that was never
there when they looked. A pair holds when the cluster comes to the state that follows from both; it
is lost when that state has not come after a while, or goes again.

A point is a number of tries of one pair in a cluster of its own, each begun as soon as the one
before has held.

serve   the writes are requests to ``kubepy serve``, whose controllers are another process
watch   the writes are those of a command beside ``kubepy controller --watch``
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kubepy.api.errors import NotFound
from kubepy.api.meta import controller_of, labels_of, name_of, uid_of
from kubepy.api.scheme import Scheme
from kubepy.apiserver.request import DeleteOptions, Patch
from kubepy.controlplane.open import make_cluster, open_cluster
from tests.copies import copy_with_index
from tests.server.conftest import ServerProcess

from .runner import Outcome, Point, Section, outcome

Object = dict[str, Any]

SCHEME = Scheme()
TRIES = 50  # of a point
POINTS = 10  # of a pair: 500 tries
# within which a state must have come: a disk that is busy holds a write up for many seconds
HOLD_SECONDS = 60.0
REST_SECONDS = 0.5  # after which it must still be there
NODE = "node-1"
CONTROLLER_SECONDS = 15.0  # for the start of ``controller --watch``

DAEMON_SETS = "daemonsets.apps"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
DEPLOYMENTS = "deployments.apps"
ENDPOINT_SLICES = "endpointslices.discovery.k8s.io"
JOBS = "jobs.batch"
REPLICA_SETS = "replicasets.apps"
STATEFUL_SETS = "statefulsets.apps"
CLUSTER_ROLES = "clusterroles.rbac.authorization.k8s.io"
CONTROLLER_REVISIONS = "controllerrevisions.apps"
BUDGETS = "poddisruptionbudgets.policy"
VOLUMES = "persistentvolumes"
CLAIMS = "persistentvolumeclaims"


# --- who writes -----------------------------------------------------------------------------------


class Writer(Protocol):
    """Writes and reads objects of namespace ``default``, or of the cluster."""

    def create(self, resource: str, obj: Object) -> Object: ...

    def patch(self, resource: str, name: str, change: Object, subresource: str = "") -> Object: ...

    def delete(
        self, resource: str, name: str, propagation: str = "Background", grace: int | None = None
    ) -> None: ...

    def get(self, resource: str, name: str) -> Object | None:
        """Return an object, None if there is none."""

    def list(self, resource: str) -> list[Object]: ...


class Requests:
    """Writes through a server, over one connection."""

    def __init__(self, server: ServerProcess) -> None:
        self._token = server.token
        self._connection = HTTPSConnection(
            *server.address, context=server.tls(), timeout=CONTROLLER_SECONDS
        )

    def create(self, resource: str, obj: Object) -> Object:
        return self._send("POST", _path(resource), obj)

    def patch(self, resource: str, name: str, change: Object, subresource: str = "") -> Object:
        path = f"{_path(resource)}/{name}" + (f"/{subresource}" if subresource else "")
        return self._send("PATCH", path, change)

    def delete(
        self, resource: str, name: str, propagation: str = "Background", grace: int | None = None
    ) -> None:
        options: Object = {"propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        self._send("DELETE", f"{_path(resource)}/{name}", options)

    def get(self, resource: str, name: str) -> Object | None:
        status, obj = self._answer("GET", f"{_path(resource)}/{name}")
        return obj if status == 200 else None

    def list(self, resource: str) -> list[Object]:
        items: list[Object] = self._send("GET", _path(resource))["items"]
        return items

    def _send(self, method: str, path: str, body: Object | None = None) -> Object:
        status, obj = self._answer(method, path, body)
        if status not in (200, 201, 202):
            raise ValueError(f"{method} {path} is answered with {status}: {obj.get('message')}")
        return obj

    def _answer(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


def _path(resource: str) -> str:
    known = SCHEME.by_key(resource)
    group = f"/apis/{known.group}/{known.version}" if known.group else f"/api/{known.version}"
    namespace = "/namespaces/default" if known.namespaced else ""
    return f"{group}{namespace}/{known.plural}"


class Commands:
    """Writes to the folder itself, as a command does."""

    def __init__(self, folder: Path) -> None:
        self._client = open_cluster(folder).client

    def create(self, resource: str, obj: Object) -> Object:
        return self._client.create(resource, obj, namespace=_namespace(resource))

    def patch(self, resource: str, name: str, change: Object, subresource: str = "") -> Object:
        patch = Patch("application/merge-patch+json", change)
        return self._client.patch(
            resource, name, patch, namespace=_namespace(resource), subresource=subresource
        )

    def delete(
        self, resource: str, name: str, propagation: str = "Background", grace: int | None = None
    ) -> None:
        options = DeleteOptions(propagation_policy=propagation, grace_period_seconds=grace)
        self._client.delete(resource, name, namespace=_namespace(resource), options=options)

    def get(self, resource: str, name: str) -> Object | None:
        with suppress(NotFound):
            return self._client.get(resource, name, namespace=_namespace(resource))
        return None

    def list(self, resource: str) -> list[Object]:
        return self._client.list(resource, namespace=_namespace(resource) or None).items


def _namespace(resource: str) -> str:
    return "default" if SCHEME.by_key(resource).namespaced else ""


# --- objects --------------------------------------------------------------------------------------


def _pod(label: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 80}]}
    return {
        "metadata": {"name": label, "labels": {"app": label}},
        "spec": {"containers": [container], **spec},
    }


def _template(label: str, **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": label}}, "spec": _pod(label, **spec)["spec"]}


def _workload(name: str, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": _template(name), **spec},
    }


def _job(name: str, **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"template": _template(name, restartPolicy="Never"), **spec},
    }


def _service(name: str) -> Object:
    ports = [{"port": 80, "targetPort": "http"}]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}}


def _owned(name: str, owner: Object) -> Object:
    """Return a ConfigMap that another one owns, and that holds up the foreground deletion of its
    owner."""
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name_of(owner),
        "uid": uid_of(owner),
        "blockOwnerDeletion": True,
    }
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


def _volume(name: str) -> Object:
    claim = {"namespace": "default", "name": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": claim,
        },
    }


def _claim(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def _definition(name: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "metadata": {"name": f"{name}s.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "versions": [version],
            "names": {"plural": f"{name}s", "kind": name.capitalize()},
        },
    }


# --- what must come of a pair ---------------------------------------------------------------------

Check = Callable[[], object]  # returns what is otherwise than it must be, or something false
Pair = Callable[[Writer, str], Check]  # writes to objects of a name that was never used


def _await(writer: Writer, resource: str, name: str, is_so: Callable[[Object], object]) -> None:
    """Wait for the state from which a pair begins. Raises TimeoutError."""
    end = time.monotonic() + HOLD_SECONDS
    while (obj := writer.get(resource, name)) is None or not is_so(obj):
        if time.monotonic() > end:
            raise TimeoutError(f"{resource} {name} does not come: {obj and obj.get('status')}")


def _labelled(writer: Writer, resource: str, label: str) -> list[Object]:
    return [obj for obj in writer.list(resource) if labels_of(obj).get("app") == label]


def _is_gone(writer: Writer, *objects: tuple[str, str]) -> Check:
    return lambda: [key for key in objects if writer.get(*key) is not None]


def _has_no_pods(writer: Writer, label: str) -> Check:
    return lambda: [name_of(pod) for pod in _labelled(writer, "pods", label)]


def _differs(writer: Writer, resource: str, name: str, path: str, expected: object) -> Check:
    """Return a check of one field: ``status.replicas``."""

    def check() -> object:
        value: Any = writer.get(resource, name)
        for step in path.split("."):
            value = (value or {}).get(step)
        return (
            f"{path} of {resource} {name} is {value}, not {expected}" if value != expected else ""
        )

    return check


def _all_of(*checks: Check) -> Check:
    return lambda: next((wrong for check in checks if (wrong := check())), "")


def _addresses(writer: Writer, service: str) -> set[str]:
    """Return the names of the pods that stand in the EndpointSlices of a Service."""
    slices = [
        one
        for one in writer.list(ENDPOINT_SLICES)
        if labels_of(one).get("kubernetes.io/service-name") == service
    ]
    return {
        endpoint["targetRef"]["name"] for one in slices for endpoint in one.get("endpoints") or ()
    }


# --- the pairs ------------------------------------------------------------------------------------


def _limited(writer: Writer, name: str, resource: str) -> Check:
    """Make a quota, wait until it counts, and return a check that it counts nothing, and goes then:
    as long as it is there, whatever happens in the namespace may make it right again."""
    writer.create(
        "resourcequotas", {"metadata": {"name": name}, "spec": {"hard": {resource: "90"}}}
    )
    _await(writer, "resourcequotas", name, lambda quota: (quota.get("status") or {}).get("used"))
    is_over: list[bool] = []

    def check() -> object:
        quota = writer.get("resourcequotas", name)
        used = quota["status"]["used"] if quota is not None else {resource: "0"}
        if not is_over and used == {resource: "0"}:
            is_over.append(True)
            writer.delete("resourcequotas", name)
        return "" if is_over else used

    return check


def quota_and_deletion(writer: Writer, name: str) -> Check:
    check = _limited(writer, name, "count/replicasets.apps")
    writer.create(REPLICA_SETS, _workload(name, replicas=0))
    writer.delete(REPLICA_SETS, name)
    return check


def quota_and_end_of_pod(writer: Writer, name: str) -> Check:
    check = _limited(writer, name, "pods")
    writer.create("pods", _pod(name))
    writer.patch("pods", name, {"status": {"phase": "Failed"}}, "status")
    return check


def quota_and_its_limits(writer: Writer, name: str) -> Check:
    writer.create(
        "resourcequotas", {"metadata": {"name": name}, "spec": {"hard": {"services": "90"}}}
    )
    writer.patch("resourcequotas", name, {"spec": {"hard": {"services": "91"}}})
    return _differs(writer, "resourcequotas", name, "status.hard", {"services": "91"})


def owner_and_dependent(writer: Writer, name: str) -> Check:
    owner = writer.create("configmaps", {"metadata": {"name": name}})
    writer.create("configmaps", _owned(f"{name}-of", owner))
    writer.delete("configmaps", name)
    return _is_gone(writer, ("configmaps", name), ("configmaps", f"{name}-of"))


def owner_in_foreground_and_dependent(writer: Writer, name: str) -> Check:
    owner = writer.create("configmaps", {"metadata": {"name": name}})
    writer.create("configmaps", _owned(f"{name}-of", owner))
    writer.delete("configmaps", name, "Foreground")
    return _is_gone(writer, ("configmaps", name), ("configmaps", f"{name}-of"))


def owner_and_late_dependent(writer: Writer, name: str) -> Check:
    owner = writer.create("configmaps", {"metadata": {"name": name}})
    writer.delete("configmaps", name)
    writer.create("configmaps", _owned(f"{name}-of", owner))
    return _is_gone(writer, ("configmaps", f"{name}-of"))


def deployment_up_and_down(writer: Writer, name: str) -> Check:
    writer.create(DEPLOYMENTS, _workload(name, replicas=1))
    writer.patch(DEPLOYMENTS, name, {"spec": {"replicas": 3}})
    writer.patch(DEPLOYMENTS, name, {"spec": {"replicas": 2}})
    return _all_of(
        _differs(writer, DEPLOYMENTS, name, "status.readyReplicas", 2),
        lambda: len(_labelled(writer, "pods", name)) != 2 and "not two pods",
    )


def deployment_and_template(writer: Writer, name: str) -> Check:
    writer.create(DEPLOYMENTS, _workload(name, replicas=1))
    writer.patch(
        DEPLOYMENTS,
        name,
        {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "new"}]}}}},
    )

    def images() -> object:
        found = [pod["spec"]["containers"][0]["image"] for pod in _labelled(writer, "pods", name)]
        return found if found != ["new"] else ""

    return _all_of(
        _differs(writer, DEPLOYMENTS, name, "status.readyReplicas", 1),
        _differs(writer, DEPLOYMENTS, name, "status.updatedReplicas", 1),
        images,
    )


def deployment_and_deletion(writer: Writer, name: str) -> Check:
    writer.create(DEPLOYMENTS, _workload(name, replicas=1))
    writer.delete(DEPLOYMENTS, name)
    return _all_of(_has_no_pods(writer, name), lambda: _labelled(writer, REPLICA_SETS, name))


def replicaset_and_pod(writer: Writer, name: str) -> Check:
    writer.create(REPLICA_SETS, _workload(name, replicas=1))
    _await(writer, REPLICA_SETS, name, lambda obj: (obj.get("status") or {}).get("replicas"))
    [pod] = _labelled(writer, "pods", name)
    writer.delete("pods", name_of(pod), grace=0)
    return _all_of(
        _is_gone(writer, ("pods", name_of(pod))),
        lambda: len(_labelled(writer, "pods", name)) != 1 and "not one pod",
        _differs(writer, REPLICA_SETS, name, "status.readyReplicas", 1),
    )


def replicaset_and_label(writer: Writer, name: str) -> Check:
    writer.create(REPLICA_SETS, _workload(name, replicas=1))
    _await(writer, REPLICA_SETS, name, lambda obj: (obj.get("status") or {}).get("replicas"))
    [pod] = _labelled(writer, "pods", name)
    writer.patch("pods", name_of(pod), {"metadata": {"labels": {"app": f"{name}-other"}}})

    def released() -> object:
        orphans = _labelled(writer, "pods", f"{name}-other")
        return "not released" if [controller_of(orphan) for orphan in orphans] != [None] else ""

    return _all_of(released, _differs(writer, REPLICA_SETS, name, "status.readyReplicas", 1))


def replicaset_and_heir(writer: Writer, name: str) -> Check:
    writer.create(REPLICA_SETS, _workload(name, replicas=1))
    _await(writer, REPLICA_SETS, name, lambda obj: (obj.get("status") or {}).get("replicas"))
    writer.delete(REPLICA_SETS, name, "Orphan")
    heir = {**_workload(name, replicas=1), "metadata": {"name": f"{name}-heir"}}
    writer.create(REPLICA_SETS, heir)

    def adopted() -> object:
        owners = [controller_of(pod) for pod in _labelled(writer, "pods", name)]
        return owners if [owner and owner["name"] for owner in owners] != [f"{name}-heir"] else ""

    return _all_of(
        _is_gone(writer, (REPLICA_SETS, name)),
        adopted,
        _differs(writer, REPLICA_SETS, f"{name}-heir", "status.readyReplicas", 1),
    )


def statefulset_up_and_down(writer: Writer, name: str) -> Check:
    writer.create(STATEFUL_SETS, _workload(name, replicas=0, serviceName=name))
    writer.patch(STATEFUL_SETS, name, {"spec": {"replicas": 2}})
    writer.patch(STATEFUL_SETS, name, {"spec": {"replicas": 1}})
    return _all_of(
        _differs(writer, STATEFUL_SETS, name, "status.readyReplicas", 1),
        _differs(writer, STATEFUL_SETS, name, "status.replicas", 1),
        lambda: len(_labelled(writer, "pods", name)) != 1 and "not one pod",
    )


def daemonset_and_label_of_node(writer: Writer, name: str) -> Check:
    template = _template(name, nodeSelector={name: "yes"})
    writer.create(DAEMON_SETS, _workload(name, template=template))
    writer.patch("nodes", NODE, {"metadata": {"labels": {name: "yes"}}})
    writer.patch("nodes", NODE, {"metadata": {"labels": {name: None}}})
    return _all_of(
        _has_no_pods(writer, name),
        _differs(writer, DAEMON_SETS, name, "status.desiredNumberScheduled", 0),
    )


def daemonset_and_new_node(writer: Writer, name: str) -> Check:
    template = _template(name, nodeSelector={"kubernetes.io/hostname": name})
    writer.create(DAEMON_SETS, _workload(name, template=template))
    writer.create("nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    return _differs(writer, DAEMON_SETS, name, "status.numberReady", 1)


def daemonset_and_revision(writer: Writer, name: str) -> Check:
    writer.create(DAEMON_SETS, _workload(name))
    _await(writer, DAEMON_SETS, name, lambda obj: (obj.get("status") or {}).get("numberReady"))
    [revision] = _labelled(writer, CONTROLLER_REVISIONS, name)
    writer.delete(CONTROLLER_REVISIONS, name_of(revision))

    def made_again() -> object:
        found = [uid_of(one) for one in _labelled(writer, CONTROLLER_REVISIONS, name)]
        return found if len(found) != 1 or found == [uid_of(revision)] else ""

    return made_again


def job_and_suspension(writer: Writer, name: str) -> Check:
    template = _template(
        name, restartPolicy="Never", nodeSelector={name: "yes"}
    )  # else it may be over before
    writer.create(JOBS, _job(name, template=template))
    writer.patch(JOBS, name, {"spec": {"suspend": True}})

    def suspended() -> object:
        job = writer.get(JOBS, name) or {}
        conditions = {
            one["type"]: one["status"] for one in (job.get("status") or {}).get("conditions") or ()
        }
        return (
            "" if conditions.get("Suspended") == "True" else f"not suspended: {job.get('status')}"
        )

    return _all_of(suspended, _has_no_pods(writer, name))


def job_and_deletion(writer: Writer, name: str) -> Check:
    writer.create(JOBS, _job(name))
    writer.delete(JOBS, name)
    return _all_of(_is_gone(writer, (JOBS, name)), _has_no_pods(writer, name))


def service_and_selector(writer: Writer, name: str) -> Check:
    writer.create("pods", _pod(name, nodeName=NODE))
    writer.create("services", _service(name))
    writer.patch("services", name, {"spec": {"selector": {"app": f"{name}-none"}}})
    return lambda: _addresses(writer, name)


def service_and_pod(writer: Writer, name: str) -> Check:
    writer.create("services", _service(name))
    writer.create("pods", _pod(name, nodeName=NODE))
    writer.delete("pods", name, grace=0)
    return _all_of(_is_gone(writer, ("pods", name)), lambda: _addresses(writer, name))


def endpoints_and_deletion(writer: Writer, name: str) -> Check:
    service = _service(name)
    del service["spec"]["selector"]
    writer.create("services", service)
    subset = {"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}
    writer.create("endpoints", {"metadata": {"name": name}, "subsets": [subset]})
    writer.delete("endpoints", name)
    return lambda: [
        name_of(one)
        for one in writer.list(ENDPOINT_SLICES)
        if labels_of(one).get("kubernetes.io/service-name") == name
    ]


def claim_and_deletion(writer: Writer, name: str) -> Check:
    writer.create(VOLUMES, _volume(name))
    writer.create(CLAIMS, _claim(name))
    writer.delete(CLAIMS, name)

    def freed() -> object:
        phase = ((writer.get(VOLUMES, name) or {}).get("status") or {}).get("phase")
        return f"the volume is {phase}" if phase not in ("Available", "Released") else ""

    return _all_of(_is_gone(writer, (CLAIMS, name)), freed)


def budget_and_pod(writer: Writer, name: str) -> Check:
    writer.create(REPLICA_SETS, _workload(name, replicas=2))
    writer.create(
        BUDGETS,
        {
            "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
        },
    )
    writer.patch(REPLICA_SETS, name, {"spec": {"replicas": 1}})
    return _all_of(
        _differs(writer, BUDGETS, name, "status.expectedPods", 1),
        _differs(writer, BUDGETS, name, "status.currentHealthy", 1),
        _differs(writer, BUDGETS, name, "status.disruptionsAllowed", 0),
    )


def role_and_label(writer: Writer, name: str) -> Check:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    selector = {"matchLabels": {"collect": name}}
    writer.create(
        CLUSTER_ROLES,
        {
            "metadata": {"name": f"{name}-all"},
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        },
    )
    writer.create(
        CLUSTER_ROLES, {"metadata": {"name": name, "labels": {"collect": name}}, "rules": [rule]}
    )
    writer.patch(CLUSTER_ROLES, name, {"metadata": {"labels": {"collect": None}}})
    return lambda: (writer.get(CLUSTER_ROLES, f"{name}-all") or {}).get("rules")


def taint_and_pod(writer: Writer, name: str) -> Check:
    taint = {"key": "stop", "effect": "NoExecute"}
    writer.create("nodes", {"metadata": {"name": name}})
    writer.create("pods", _pod(name, nodeName=name))
    writer.patch("nodes", name, {"spec": {"taints": [taint]}})
    return _is_gone(writer, ("pods", name))


def definition_and_deletion(writer: Writer, name: str) -> Check:
    made = _definition(f"t{name.replace('-', '')}")
    writer.create(DEFINITIONS, made)
    writer.delete(DEFINITIONS, name_of(made))
    return _is_gone(writer, (DEFINITIONS, name_of(made)))


def pending_pod_and_label_of_node(writer: Writer, name: str) -> Check:
    writer.create("pods", _pod(name, nodeSelector={name: "yes"}))
    writer.patch("nodes", NODE, {"metadata": {"labels": {name: "yes"}}})
    return _differs(writer, "pods", name, "status.phase", "Running")


def gated_pod_and_its_gate(writer: Writer, name: str) -> Check:
    writer.create("pods", _pod(name, schedulingGates=[{"name": "example.org/wait"}]))
    writer.patch("pods", name, {"spec": {"schedulingGates": None}})
    return _differs(writer, "pods", name, "status.phase", "Running")


def serviceaccount_and_deletion(writer: Writer, name: str) -> Check:
    _await(writer, "serviceaccounts", "default", lambda account: True)
    account = writer.get("serviceaccounts", "default") or {}
    writer.delete("serviceaccounts", "default")

    def made_again() -> object:
        found = writer.get("serviceaccounts", "default")
        return found is None or uid_of(found) == uid_of(account)

    return made_again


PAIRS: Mapping[str, Pair] = {
    pair.__name__.replace("_", "-"): pair
    for pair in (
        quota_and_deletion,
        quota_and_end_of_pod,
        quota_and_its_limits,
        owner_and_dependent,
        owner_in_foreground_and_dependent,
        owner_and_late_dependent,
        deployment_up_and_down,
        deployment_and_template,
        deployment_and_deletion,
        replicaset_and_pod,
        replicaset_and_label,
        replicaset_and_heir,
        statefulset_up_and_down,
        daemonset_and_label_of_node,
        daemonset_and_new_node,
        daemonset_and_revision,
        job_and_suspension,
        job_and_deletion,
        service_and_selector,
        service_and_pod,
        endpoints_and_deletion,
        claim_and_deletion,
        budget_and_pod,
        role_and_label,
        taint_and_pod,
        definition_and_deletion,
        pending_pod_and_label_of_node,
        gated_pod_and_its_gate,
        serviceaccount_and_deletion,
    )
}


# --- running a point ------------------------------------------------------------------------------


class Try(NamedTuple):
    """One try of a pair."""

    name: str
    check: Check


def _run_tries(pair: Pair, writer: Writer, prefix: str) -> Iterator[str]:
    """Try a pair until it has failed once, and yield what has not come or has not stayed."""
    held: list[Try] = []
    for number in range(TRIES):
        name = f"{prefix}-{number}"
        tried = Try(name, pair(writer, name))
        if wrong := _wait_for(tried.check):
            yield f"{name}: does not come: {wrong}"
            return
        held.append(tried)
    time.sleep(REST_SECONDS)
    for tried in held:
        if wrong := _wait_for(tried.check):
            yield f"{tried.name}: does not stay: {wrong}"


def _wait_for(check: Check) -> object:
    """Return what is wrong in the end, something false if nothing is."""
    end = time.monotonic() + HOLD_SECONDS
    while (wrong := check()) and time.monotonic() < end:
        time.sleep(0.001)
    return wrong


@contextmanager
def _serving(state: Path) -> Iterator[Writer]:
    server = ServerProcess(state)
    try:
        yield Requests(server)
    finally:
        status, log = server.stop()
    if status or log:
        raise ValueError(f"the server ends with {status}: {log}")


@contextmanager
def _watching(state: Path) -> Iterator[Writer]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kubepy", "--state", str(state), "controller", "--watch", "-q"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        end = time.monotonic() + CONTROLLER_SECONDS
        while not (state / ".kubepy" / "manager.lock.holder").exists() and time.monotonic() < end:
            time.sleep(0.01)
        yield Commands(state)
    finally:
        process.terminate()
        errors = process.communicate()[1]
    if errors:
        raise ValueError(f"the controller says {errors}")


WRITERS = {"serve": _serving, "watch": _watching}


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    """Make a cluster of one node."""
    cluster = make_cluster(place / "state", {})
    cluster.client.create("nodes", {"metadata": {"name": NODE}})
    cluster.close()
    return [Point(name, f"{pair}.{number}") for number in range(POINTS) for pair in PAIRS]


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    pair, _, number = point.name.partition(".")
    copy_with_index(place / "state", folder / "state")
    with WRITERS[point.scenario](folder / "state") as writer:
        losses = list(_run_tries(PAIRS[pair], writer, f"p{number}"))
    return Outcome(TRIES, outcome(point, losses).losses)


SECTION = Section("pairs", tuple(WRITERS), set_up, run, minutes=4)
