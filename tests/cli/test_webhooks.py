"""Webhooks at the command line: bundles without theirs, mapped ones, writes of controllers,
settings."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.webhook_server import Hook, configuration, json_patch, rule, serving
from tests.cli.conftest import Kubepy, run

Object = dict[str, Any]
UNREACHABLE = (
    'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
    "Post "
    '"https://hook.default.svc:443/?timeout=10s": service "hook" not found'
)


@pytest.fixture
def kubepy(folder: Path) -> Kubepy:
    """A function that runs a command in a folder with a cluster of one node."""
    assert run("init", "--nodes=1").status == 0
    return run


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving() as server:
        yield server


@pytest.fixture
def mapped(kubepy: Kubepy, folder: Path, hook: Hook) -> Kubepy:
    """A function that runs a command in a folder where the Service default/hook is the hook."""
    with open(folder / "state" / "kubepy.yaml", "a") as file:
        file.write(f"webhooks: {{default/hook: '{hook.url}'}}\n")
    return kubepy


def apply(kubepy: Kubepy, kind: str, *rules: Object, name: str = "hooks", **fields: Any) -> None:
    done = kubepy(
        "apply", "-f", "-", stdin=json.dumps(configuration(kind, name, rules=list(rules), **fields))
    )
    assert (done.err, done.status) == ("", 0)


def test_configuration_with_missing_service_refuses_everything_but_its_own_removal(
    kubepy: Kubepy,
) -> None:
    everything = rule("*/*", ("*",), group="*", version="*")
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        apply(kubepy, kind, everything)
    assert kubepy("create", "configmap", "a") == (
        "",
        f"error: failed to create configmap: {UNREACHABLE}\n",
        1,
    )
    assert (
        kubepy("label", "node", "node-1", "a=b").err
        == f"Error from server (InternalError): {UNREACHABLE}\n"
    )
    assert (
        kubepy("delete", "node", "node-1").err
        == f"Error from server (InternalError): {UNREACHABLE}\n"
    )
    done = kubepy(
        "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--all"
    )
    assert (done.err, done.status) == ("", 0)
    assert kubepy("create", "configmap", "a").status == 0


def test_mapped_webhook_changes_refuses_and_warns(mapped: Kubepy, hook: Hook) -> None:
    apply(mapped, "MutatingWebhookConfiguration", rule())
    hook.respond = lambda request: {
        **json_patch({"op": "add", "path": "/data", "value": {"a": "1"}}),
        "warnings": ["colours are deprecated"],
    }
    assert mapped("create", "configmap", "x", "-o", "jsonpath={.data}") == (
        '{"a":"1"}',
        "Warning: colours are deprecated\n",
        0,
    )
    hook.respond = lambda request: {
        "allowed": False,
        "status": {"message": "no", "code": 403, "reason": "Forbidden"},
    }
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}})
    assert mapped("apply", "-f", "-", stdin=manifest).err == (
        'Error from server (Forbidden): error when creating "STDIN": admission webhook '
        '"hook.example.com" denied the '
        "request: no\n"
    )
    assert mapped("create", "configmap", "z", "--dry-run=client").status == 0
    assert mapped("create", "configmap", "z", "--dry-run=server").status == 1


def test_controllers_call_webhooks_as_their_users(mapped: Kubepy, hook: Hook) -> None:
    apply(
        mapped,
        "ValidatingWebhookConfiguration",
        rule("pods", ("CREATE",)),
        rule("pods/binding", ("CREATE",)),
        rule("pods/status", ("UPDATE",)),
    )
    mapped("create", "deployment", "web", "--image=nginx")
    assert mapped("rollout", "status", "deploy/web").status == 0
    users = {
        (request["operation"], request.get("subResource", "")): request["userInfo"]["username"]
        for request in hook.requests
    }
    assert users == {
        ("CREATE", ""): "system:serviceaccount:kube-system:replicaset-controller",
        ("CREATE", "binding"): "system:kube-scheduler",
        ("UPDATE", "status"): "system:node:node-1",
    }


def test_plan_calls_webhooks_as_dry_runs(mapped: Kubepy, hook: Hook) -> None:
    mapped("create", "deployment", "web", "--image=nginx", "--replicas=1")
    mapped("controller", "--once", "-q")
    apply(mapped, "ValidatingWebhookConfiguration", rule("pods", ("CREATE",)))
    assert mapped("plan", "scale", "deploy/web", "--replicas=2").status == 0
    assert [(request["dryRun"], request["options"]["dryRun"]) for request in hook.requests] == [
        (True, ["All"])
    ]


def test_refused_pod_is_an_event_and_a_condition_of_its_replica_set(
    mapped: Kubepy, hook: Hook
) -> None:
    hook.respond = lambda request: {"allowed": False, "status": {"message": "no pods today"}}
    apply(mapped, "ValidatingWebhookConfiguration", rule("pods", ("CREATE",)))
    mapped("create", "deployment", "web", "--image=nginx")
    mapped("controller", "--once", "-q")
    refused = 'admission webhook "hook.example.com" denied the request: no pods today'
    assert f"Error creating: {refused}" in mapped("get", "events").out
    assert (
        mapped("get", "rs", "-o", "jsonpath={.items[0].status.conditions[0].message}").out
        == refused
    )


def test_refused_binding_is_an_event_of_its_pod(mapped: Kubepy, hook: Hook) -> None:
    hook.respond = lambda request: {"allowed": False, "status": {"message": "not here"}}
    apply(mapped, "ValidatingWebhookConfiguration", rule("pods/binding", ("CREATE",)))
    mapped("run", "p", "--image=nginx")
    mapped("controller", "--once", "-q")
    reason = (
        'running Bind plugin "DefaultBinder": admission webhook "hook.example.com" denied '
        "the request: not here"
    )
    assert reason in mapped("get", "events").out
    assert (
        mapped("get", "pod", "p", "-o", "jsonpath={.status.conditions[0].reason}").out
        == "SchedulerError"
    )


def test_webhook_that_changes_the_cluster_during_a_batch_does_not_wait_for_it(
    mapped: Kubepy, hook: Hook, folder: Path
) -> None:
    results: list[int] = []

    def respond(request: Object) -> Object:
        results.append(run("create", "configmap", f"by-hook-{request['uid']}").status)
        return {"allowed": True}

    hook.respond = respond
    apply(mapped, "ValidatingWebhookConfiguration", rule("pods", ("CREATE",)), timeoutSeconds=20)
    mapped("create", "deployment", "web", "--image=nginx", "--replicas=3")
    start = time.monotonic()
    mapped("controller", "--once", "-q")
    assert time.monotonic() - start < 30
    assert results == [0, 0, 0]
    assert "context deadline exceeded" not in mapped("get", "events").out
    assert mapped("get", "pods", "-o", "jsonpath={.items[*].status.phase}").out == (
        "Running Running Running"
    )


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        (
            "webhooks: [a]",
            "webhooks: must be a map of Services to URLs, such as default/my-hook: "
            "http://127.0.0.1:9443",
        ),
        (
            "webhooks: {hook: 'http://x'}",
            'webhooks: "hook" is not a Service: must be namespace/name or namespace/name:port',
        ),
        (
            "webhooks: {a/b:0: 'http://x'}",
            'webhooks: "a/b:0" is not a Service: must be namespace/name or namespace/name:port',
        ),
        (
            "webhooks: {a/b: 7}",
            'webhooks[a/b]: "7" is neither allows nor a URL such as http://127.0.0.1:9443: must be '
            "http or https, without user, query and fragment",
        ),
        (
            "webhooks: {a/b: 'ftp://x'}",
            'webhooks[a/b]: "ftp://x" is neither allows nor a URL such as http://127.0.0.1:9443: '
            "must be http or https, without user, query and fragment",
        ),
        (
            "webhooks: {a/b: 'http://x:99999'}",
            'webhooks[a/b]: "http://x:99999" is neither allows nor a URL such as '
            "http://127.0.0.1:9443: must be http or https, without user, query and fragment",
        ),
    ],
)
def test_bad_setting_is_named_with_its_field(
    kubepy: Kubepy, folder: Path, setting: str, error: str
) -> None:
    with open(folder / "state" / "kubepy.yaml", "a") as file:
        file.write(f"{setting}\n")
    assert kubepy("get", "pods") == ("", f"error: kubepy.yaml: {error}\n", 1)
