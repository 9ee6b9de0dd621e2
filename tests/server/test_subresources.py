"""Subresources on the wire: logs, bindings, evictions, views of objects, and what would reach a
node."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubepy.api import protobuf
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.open import open_cluster
from tests.server.conftest import SECONDS, Answer, Api, ServerProcess, make_simple

Object = dict[str, Any]
NAMESPACE = "/api/v1/namespaces/default"
PODS, CONFIG_MAPS = f"{NAMESPACE}/pods", f"{NAMESPACE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NOT_ALLOWED = (405, "the server does not allow this method on the requested resource")
REFUSED = "no containers run here: pods are simulated"
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
SPDY = {"connection": "Upgrade", "upgrade": "SPDY/3.1"}
WEBSOCKET = {"connection": "keep-alive, Upgrade", "upgrade": "websocket"}


def pod(name: str = "p", *, log: str = "", outcome: str = "", **spec: Any) -> Object:
    annotations = {
        key: value
        for key, value in (("kubepy.dev/log", log), ("kubepy.dev/outcome", outcome))
        if value
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def settle(api: Api) -> None:
    """Let controllers, scheduler and kubelets do what is due."""
    cluster = open_cluster(api.folder)
    with manager_lock(cluster):
        build_manager(cluster).run_until_settled()
    cluster.close()


@pytest.fixture
def running(new_api: Callable[..., Api], new_folder: Callable[[], Path]) -> Api:
    """A server of a cluster that does not model containers, with a node, and the pod p that runs
    there."""
    api: Api = new_api(make_simple(new_folder()))
    assert (
        api.post(
            "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
        ).status
        == 201
    )
    assert api.post(PODS, pod(log="one\ntwo")).status == 201
    settle(api)
    return api


def refusal(answer: Answer) -> tuple[int, str]:
    status = answer.json()
    assert (status["kind"], status["status"]) == ("Status", "Failure")
    return answer.status, status["message"]


# --- logs -----------------------------------------------------------------------------------------


def test_log_is_text(running: Api) -> None:
    answer = running.get(f"{PODS}/p/log")
    assert (answer.status, answer.headers["content-type"], answer.body) == (
        200,
        "text/plain",
        b"one\ntwo\n",
    )
    assert running.get(f"{PODS}/p/log?tailLines=1&timestamps=false").body == b"two\n"


def test_log_of_pod_without_node_has_no_content(api: Api) -> None:
    api.post(PODS, pod())
    assert api.get(f"{PODS}/p/log").status == 204


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("previous=true", 400, 'previous terminated container "c" in pod "p" not found'),
        ("container=x", 400, "container x is not valid for pod p"),
        ("tailLines=many", 400, 'strconv.ParseInt: parsing "many": invalid syntax'),
        (
            "sinceTime=now",
            400,
            'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"',
        ),
        (
            "limitBytes=0",
            422,
            'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
        ),
        (
            "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
            422,
            'PodLogOptions "p" is invalid: []: Forbidden: at most one of `sinceTime` or '
            "`sinceSeconds` may be specified",
        ),
    ],
)
def test_log_with_wrong_options_is_refused(
    running: Api, query: str, code: int, message: str
) -> None:
    assert refusal(running.get(f"{PODS}/p/log?{query}")) == (code, message)


def test_log_of_pod_that_is_not_there_is_not_found(api: Api) -> None:
    assert refusal(api.get(f"{PODS}/p/log")) == (404, 'pods "p" not found')


def test_followed_log_ends_with_its_pod(running: Api) -> None:
    stream = running.stream(f"{PODS}/p/log?follow=true")
    assert (stream.status, stream.headers["content-type"]) == (200, "text/plain")
    assert stream.next() == b"one\ntwo\n"
    running.delete(f"{PODS}/p?gracePeriodSeconds=0")
    assert list(stream) == []


def test_followed_log_of_ended_container_ends_at_once(running: Api) -> None:
    running.post(PODS, pod("done", log="done", outcome="succeeded"))
    settle(running)
    assert list(running.stream(f"{PODS}/done/log?follow=true")) == [b"done\n"]


# --- bindings and evictions -----------------------------------------------------------------------


@pytest.mark.parametrize("path", [f"{PODS}/p/binding", f"{NAMESPACE}/bindings"])
def test_binding_is_answered_by_a_status(api: Api, path: str) -> None:
    api.post(PODS, pod())
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"name": "n"},
    }
    assert api.post(f"{path}?dryRun=All", binding).status == 201
    assert "nodeName" not in api.get(f"{PODS}/p").json()["spec"]
    answer = api.post(path, binding)
    assert (answer.status, answer.json()["status"]) == (201, "Success")
    assert api.get(f"{PODS}/p").json()["spec"]["nodeName"] == "n"
    assert refusal(api.post(path, binding)) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"',
    )


def test_body_of_another_kind_is_refused(running: Api) -> None:
    assert refusal(running.post(f"{PODS}/p/binding", pod())) == (
        400,
        'Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to '
        "(core.Binding): unknown "
        "conversion",
    )
    assert (
        refusal(running.post(f"{PODS}/p/eviction", b"[]", {"content-type": "application/json"}))[0]
        == 400
    )


def budget(api: Api, name: str, **status: Any) -> None:
    spec = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1}
    api.post(
        BUDGETS,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": spec,
        },
    )
    if status:
        api.patch(f"{BUDGETS}/{name}/status", {"status": {"observedGeneration": 1, **status}})


def evict(api: Api, version: str = "v1", **options: Any) -> Answer:
    return api.post(
        f"{PODS}/p/eviction",
        {
            "apiVersion": f"policy/{version}",
            "kind": "Eviction",
            "metadata": {"name": "p"},
            "deleteOptions": options,
        },
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_eviction_deletes_the_pod(running: Api, version: str) -> None:
    assert evict(running, version, dryRun=["All"]).status == 201
    assert running.get(f"{PODS}/p").status == 200
    assert evict(running, version, gracePeriodSeconds=0).status == 201
    assert running.get(f"{PODS}/p").status == 404


def test_eviction_that_a_budget_forbids_may_be_tried_again(running: Api) -> None:
    budget(running, "b")
    answer = evict(running)
    assert (answer.status, answer.headers["retry-after"]) == (429, "10")
    assert answer.json()["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b is still being processed by the server.",
        }
    ]


def test_eviction_with_two_budgets_is_a_failure_with_201(running: Api) -> None:
    for name in "ab":
        budget(
            running, name, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2
        )
    answer = evict(running)
    assert (answer.status, answer.json()["status"], answer.json()["code"]) == (201, "Failure", 500)


# --- views of objects -----------------------------------------------------------------------------


def test_scale_is_read_replaced_patched_and_applied(api: Api) -> None:
    labels = {"app": "x"}
    api.post(
        DEPLOYMENTS,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod()["spec"]},
            },
        },
    )
    path = f"{DEPLOYMENTS}/d/scale"
    scale = api.get(path).json()
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 1},
        {"replicas": 0, "selector": "app=x"},
    )
    scale["spec"]["replicas"] = 2
    assert api.put(path, scale).json()["spec"]["replicas"] == 2
    assert refusal(api.put(path, scale))[0] == 409  # of an older version
    assert api.patch(path, {"spec": {"replicas": 3}}).json()["spec"]["replicas"] == 3
    applied = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d"},
        "spec": {"replicas": 4},
    }
    answer = api.patch(
        f"{path}?fieldManager=me&force=true", applied, "application/apply-patch+yaml"
    )
    assert answer.json()["spec"]["replicas"] == 4
    [entry] = [
        entry
        for entry in api.get(f"{DEPLOYMENTS}/d").json()["metadata"]["managedFields"]
        if entry["manager"] == "me"
    ]
    assert (entry["operation"], entry["subresource"], entry["fieldsV1"]) == (
        "Apply",
        "scale",
        {"f:spec": {"f:replicas": {}}},
    )
    table = api.get(path, TABLE).json()
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert table["rows"][0]["cells"][:3] == ["d", 4, 0]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "pods/p/status"),
        ("DELETE", "pods/p/status"),
        ("PUT", "pods/p/log"),
        ("DELETE", "pods/p/exec"),
        ("GET", "pods/p/binding"),
        ("GET", "pods/p/eviction"),
        ("GET", "bindings"),
        ("PATCH", "pods/p/log"),
    ],
)
def test_method_that_a_subresource_has_not_is_not_allowed(
    running: Api, method: str, path: str
) -> None:
    content = {"content-type": "application/merge-patch+json"}
    assert refusal(running.request(method, f"{NAMESPACE}/{path}", {}, content)) == NOT_ALLOWED


def test_subresource_that_a_kind_has_not_is_not_found(running: Api) -> None:
    for path in (f"{PODS}/p/scale", f"{PODS}/p/nonsense", f"{CONFIG_MAPS}/c/status"):
        assert refusal(running.get(path)) == (
            404,
            "the server could not find the requested resource",
        )


def test_path_that_goes_on_after_a_subresource_is_not_found(running: Api) -> None:
    for path in ("pods/p/log/more", "pods/p/exec/more", "pods/p/status/more", "bindings/p"):
        assert refusal(running.get(f"{NAMESPACE}/{path}")) == (
            404,
            "the server could not find the requested resource",
        )
    assert running.get("/api/v1/bindings").status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{PODS}//eviction"),
        ("PUT", f"{PODS}//status"),
        ("GET", "/api/v1/namespaces//pods"),
        ("DELETE", "/api/v1/namespaces//pods"),
        ("POST", "/api/v1/namespaces//pods"),
    ],
)
def test_path_with_an_empty_name_is_not_found(running: Api, method: str, path: str) -> None:
    answer = running.request(method, path, {}, {"content-type": "application/json"})
    assert refusal(answer) == (404, "the server could not find the requested resource")


def test_namespace_is_finalized_by_put_alone(api: Api) -> None:
    assert refusal(api.get(f"{NAMESPACE}/finalize")) == NOT_ALLOWED
    assert api.get(f"{NAMESPACE}/status").json()["kind"] == "Namespace"
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default"},
        "spec": {"finalizers": ["a/b"]},
    }
    assert api.put(f"{NAMESPACE}/finalize", body).json()["spec"] == {"finalizers": ["a/b"]}


def test_component_statuses_are_healthy(api: Api) -> None:
    table = api.get("/api/v1/componentstatuses", TABLE).json()
    assert [row["cells"][:2] for row in table["rows"]] == [
        [name, "Healthy"] for name in ("controller-manager", "etcd-0", "scheduler")
    ]
    assert refusal(api.get("/api/v1/componentstatuses/x")) == (404, 'componentstatus "x" not found')


# --- what would reach a node ----------------------------------------------------------------------


@pytest.mark.parametrize("headers", [SPDY, WEBSOCKET])
@pytest.mark.parametrize("subresource", ["exec?command=ls", "attach", "portforward?ports=80"])
def test_connection_with_a_container_is_refused(
    running: Api, subresource: str, headers: dict[str, str]
) -> None:
    for method in ("GET", "POST"):
        answer = running.request(method, f"{PODS}/p/{subresource}", None, headers)
        assert refusal(answer) == (500, f"error dialing backend: {REFUSED}")
    assert refusal(running.post(f"{PODS}/p/{subresource}", None)) == (
        400,
        "Upgrade request required",
    )


def test_connection_with_nothing_is_refused_before(running: Api) -> None:
    api = running
    api.post(PODS, pod("q", nodeSelector={"no": "node"}))
    assert refusal(api.request("POST", f"{PODS}/q/exec", None, SPDY)) == (
        400,
        "pod q does not have a host assigned",
    )
    assert refusal(api.request("POST", f"{PODS}/p/exec?container=x", None, SPDY)) == (
        400,
        "container x is not valid for pod p",
    )
    assert refusal(api.request("POST", f"{PODS}/r/exec", None, SPDY)) == (404, 'pods "r" not found')
    assert refusal(api.request("POST", f"{PODS}/p/exec?dryRun=All", None, SPDY)) == (
        400,
        "dryRun is not supported",
    )


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "path", [f"{PODS}/p/proxy", f"{PODS}/http:p:80/proxy/a/b?c=d", "/api/v1/nodes/n/proxy/metrics"]
)
def test_proxy_is_refused_with_every_method(running: Api, method: str, path: str) -> None:
    assert refusal(running.request(method, path)) == (
        503,
        f"error trying to reach service: {REFUSED}",
    )


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("a:b:c:d", 400, 'invalid service request "a:b:c:d"'),
        ("ftp:s:80", 400, 'invalid service request "ftp:s:80"'),
        ("nope", 404, 'services "nope" not found'),
        ("s:81", 503, 'no service port 81 found for service "s"'),
        ("s:other", 503, 'no endpoints available for service "s:other"'),
        ("empty", 503, 'no endpoints available for service "empty"'),
        ("s:80", 503, f"error trying to reach service: {REFUSED}"),
        ("https:s:web", 503, f"error trying to reach service: {REFUSED}"),
    ],
)
def test_service_proxy_looks_for_an_endpoint(
    running: Api, name: str, code: int, message: str
) -> None:
    for service, app in (("s", "x"), ("empty", "none")):
        spec = {"selector": {"app": app}, "ports": [{"name": "web", "port": 80}]}
        running.post(
            f"{NAMESPACE}/services",
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": service}, "spec": spec},
        )
    settle(running)
    assert refusal(running.get(f"{NAMESPACE}/services/{name}/proxy/")) == (code, message)


# --- leases ---------------------------------------------------------------------------------------


def test_leases_of_nodes_are_kept_up(
    new_api: Callable[..., Api], new_folder: Callable[[], Path]
) -> None:
    folder = new_folder()
    cluster = open_cluster(folder)
    cluster.client.create("nodes", {"metadata": {"name": "n"}})
    cluster.close()
    api = new_api(folder)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    api.run(
        api.application.backend.write(lambda cluster: None)
    )  # after the first renewal, which follows the start
    [lease] = api.get(leases).json()["items"]
    assert lease["spec"]["holderIdentity"] == "n"


def test_token_requests_come_in_json_and_protobuf(api: Api) -> None:
    api.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "sa"}})
    place = f"{NAMESPACE}/serviceaccounts/sa/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    typed = {"content-type": "application/vnd.kubernetes.protobuf"}
    for answer in (
        api.post(place, request),
        api.post(place, protobuf.encode({**request, "metadata": {}}), typed),
    ):
        assert answer.status == 201, answer.body
        assert answer.json()["status"]["token"].startswith("eyJ")


def test_kubelets_run_pods_without_the_controllers(new_folder: Callable[[], Path]) -> None:
    folder = new_folder()
    cluster = open_cluster(folder)
    cluster.client.create("nodes", {"metadata": {"name": "n"}})
    cluster.close()
    server = ServerProcess(folder, "--controllers=off")
    try:
        assert server.request("POST", PODS, pod("bound", nodeName="n")).status == 201
        assert server.request("POST", PODS, pod("unbound")).status == 201
        end = time.monotonic() + SECONDS
        while server.request("GET", f"{PODS}/bound").json()["status"]["phase"] != "Running":
            assert time.monotonic() < end
            time.sleep(0.05)
        assert "nodeName" not in server.request("GET", f"{PODS}/unbound").json()["spec"]
    finally:
        assert server.stop()[0] == 0
