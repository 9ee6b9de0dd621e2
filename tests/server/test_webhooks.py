"""Webhooks that served requests call: they hold nobody else up, and may send requests to this very
server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.admission.webhooks import MUTATING, VALIDATING
from kubepy.controlplane.open import make_cluster
from tests.apiserver.webhook_server import Hook, configuration, json_patch, rule, serving
from tests.server.conftest import Api

Object = dict[str, Any]
CONFIG_MAPS, SECRETS = (
    f"/api/v1/namespaces/default/{resource}" for resource in ("configmaps", "secrets")
)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving() as server:
        yield server


@pytest.fixture
def api(hook: Hook, tmp_path: Path, new_api: Callable[..., Api]) -> Api:
    """A server whose Service default/hook is the hook, called for each new ConfigMap."""
    folder = tmp_path / "state"
    make_cluster(folder, {"webhooks": {"default/hook": hook.url}}).close()
    return new_api(folder)


def call_for_config_maps(api: Api, kind: str = VALIDATING, **fields: Any) -> None:
    resource = (
        "ValidatingWebhookConfiguration" if kind == VALIDATING else "MutatingWebhookConfiguration"
    )
    rules = [rule(operations=("CREATE",), resources="configmaps")]
    api.cluster.client.create(kind, configuration(resource, "hooks", rules=rules, **fields))


def named(name: str, kind: str = "ConfigMap") -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def test_webhook_that_writes_to_this_server_is_answered(api: Api, hook: Hook) -> None:
    answers = []

    def respond(request: Object) -> Object:
        answers.append(api.post(SECRETS, named(request["name"], "Secret")).status)
        answers.append(api.get(f"{SECRETS}/{request['name']}").status)
        return {"allowed": True}

    hook.respond = respond
    call_for_config_maps(api)
    assert api.post(CONFIG_MAPS, named("a")).status == 201
    assert answers == [201, 200]


def test_webhook_that_creates_what_it_is_called_for_is_called_again(api: Api, hook: Hook) -> None:
    def respond(request: Object) -> Object:
        if len(request["name"]) < 4:
            assert api.post(CONFIG_MAPS, named(request["name"] + "x")).status == 201
        return {"allowed": True}

    hook.respond = respond
    call_for_config_maps(api)
    assert api.post(CONFIG_MAPS, named("x")).status == 201
    assert [item["metadata"]["name"] for item in api.get(CONFIG_MAPS).json()["items"]] == [
        "x",
        "xx",
        "xxx",
        "xxxx",
    ]


def test_slow_webhook_holds_only_its_own_request_up(api: Api, hook: Hook) -> None:
    called, released = threading.Event(), threading.Event()

    def respond(request: Object) -> Object:
        called.set()
        assert released.wait(10)
        return {"allowed": True}

    hook.respond = respond
    call_for_config_maps(api)
    with ThreadPoolExecutor() as executor:
        creation = executor.submit(api.post, CONFIG_MAPS, named("slow"))
        assert called.wait(10)
        assert api.post(SECRETS, named("quick", "Secret")).status == 201
        assert not creation.done()
        released.set()
        assert creation.result(10).status == 201


def test_many_requests_wait_for_webhooks_at_the_same_time(api: Api, hook: Hook) -> None:
    together = threading.Barrier(8, timeout=10)

    def respond(request: Object) -> Object:
        together.wait()
        return {"allowed": True}

    hook.respond = respond
    call_for_config_maps(api)
    with ThreadPoolExecutor(8) as executor:
        answers = list(
            executor.map(lambda number: api.post(CONFIG_MAPS, named(f"c{number}")).status, range(8))
        )
    assert answers == [201] * 8


def test_mutating_webhook_changes_the_answer_and_warns(api: Api, hook: Hook) -> None:
    hook.respond = lambda request: {
        **json_patch({"op": "add", "path": "/data", "value": {"k": "v"}}),
        "warnings": ["be careful"],
    }
    call_for_config_maps(api, MUTATING)
    answer = api.post(CONFIG_MAPS, named("a"))
    assert answer.json()["data"] == {"k": "v"}
    assert answer.headers["warning"] == '299 - "be careful"'


def test_denial_is_a_status(api: Api, hook: Hook) -> None:
    hook.respond = lambda request: {"allowed": False, "status": {"message": "no", "code": 418}}
    call_for_config_maps(api)
    answer = api.post(CONFIG_MAPS, named("a"))
    assert (answer.status, answer.json()["message"]) == (
        418,
        'admission webhook "hook.example.com" denied the request: no',
    )


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_time_limit_and_failure_policy_count(
    api: Api, hook: Hook, policy: str, status: int
) -> None:
    def respond(request: Object) -> Object:
        time.sleep(1.5)
        return {"allowed": True}

    hook.respond = respond
    call_for_config_maps(api, timeoutSeconds=1, failurePolicy=policy)
    assert api.post(CONFIG_MAPS, named("a")).status == status


def test_requester_is_the_one_of_the_request(api: Api, hook: Hook) -> None:
    call_for_config_maps(api)
    api.post(CONFIG_MAPS, named("a"), {"impersonate-user": "ann"})
    [request] = hook.requests
    assert request["userInfo"]["username"] == "ann"


# --- policies and quotas --------------------------------------------------------------------------


def test_policies_refuse_served_requests(api: Api) -> None:
    group = "/apis/admissionregistration.k8s.io/v1"
    spec = {
        "matchConstraints": {"resourceRules": [rule("secrets")]},
        "validations": [{"expression": "request.userInfo.username != 'ann'", "message": "not ann"}],
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    assert api.post(f"{group}/validatingadmissionpolicies", policy).status == 201
    assert api.post(f"{group}/validatingadmissionpolicybindings", binding).status == 201
    answer = api.post(SECRETS, named("s", "Secret"), {"impersonate-user": "ann"})
    assert (answer.status, answer.json()["message"].rpartition(": ")[2]) == (422, "not ann")
    assert api.post(SECRETS, named("s", "Secret")).status == 201


def test_quota_holds_for_requests_at_the_same_time(api: Api) -> None:
    quota = {**named("q", "ResourceQuota"), "spec": {"hard": {"secrets": "5"}}}
    assert api.post("/api/v1/namespaces/default/resourcequotas", quota).status == 201
    status = {"status": {"hard": {"secrets": "5"}, "used": {"secrets": "0"}}}
    assert api.patch("/api/v1/namespaces/default/resourcequotas/q/status", status).status == 200
    with ThreadPoolExecutor(12) as executor:
        answers = list(
            executor.map(lambda number: api.post(SECRETS, named(f"s{number}", "Secret")), range(12))
        )
    assert sorted(answer.status for answer in answers) == [201] * 5 + [403] * 7
    used = api.get("/api/v1/namespaces/default/resourcequotas/q").json()["status"]["used"]
    assert used == {"secrets": "5"}


def test_quota_holds_for_requests_that_wait_for_webhooks(api: Api, hook: Hook) -> None:
    call_for_config_maps(api)
    quota = {**named("q", "ResourceQuota"), "spec": {"hard": {"configmaps": "3"}}}
    api.post("/api/v1/namespaces/default/resourcequotas", quota)
    api.patch(
        "/api/v1/namespaces/default/resourcequotas/q/status",
        {"status": {"hard": {"configmaps": "3"}, "used": {"configmaps": "0"}}},
    )
    with ThreadPoolExecutor(8) as executor:
        answers = list(
            executor.map(lambda number: api.post(CONFIG_MAPS, named(f"c{number}")).status, range(8))
        )
    assert sorted(answers) == [201] * 3 + [403] * 5
