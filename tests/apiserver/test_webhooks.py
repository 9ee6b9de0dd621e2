"""Admission webhooks, called over HTTP and HTTPS by requests of a client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.errors import BadRequest, Forbidden, InternalError, Status
from kubepy.apiserver.admission.webhooks import MUTATING, VALIDATING
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import MERGE_PATCH, CreateOptions, DeleteOptions, Patch
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage import LockTimeoutError
from kubepy.storage.store import Transaction
from tests.apiserver.test_mutating_policies import bind, labelled
from tests.apiserver.webhook_server import CA_BUNDLE, Hook, configuration, json_patch, rule, serving
from tests.stores import disagreements

Object = dict[str, Any]
CALLING = 'Internal error occurred: failed calling webhook "hook.example.com": '
FAILED = CALLING + 'failed to call webhook: Post "https://hook.default.svc:443/?timeout=10s": '


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving() as server:
        yield server


@pytest.fixture
def client(hook: Hook, tmp_path: Path) -> Iterator[Client]:
    """A cluster in which the Service default/hook is the hook, on a clock that runs."""
    cluster = make_cluster(tmp_path / "state", {"webhooks": {"default/hook": hook.url}})
    yield cluster.client
    assert disagreements(cluster.store) == []
    cluster.close()


def validating(client: Client, *webhooks: Object, name: str = "hooks", **common: Any) -> None:
    client.create(
        VALIDATING, configuration("ValidatingWebhookConfiguration", name, *webhooks, **common)
    )


def mutating(client: Client, *webhooks: Object, name: str = "hooks", **common: Any) -> None:
    client.create(
        MUTATING, configuration("MutatingWebhookConfiguration", name, *webhooks, **common)
    )


def config(name: str = "c", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def create(client: Client, obj: Object | None = None, **options: Any) -> Object:
    return client.create(
        "configmaps", obj or config(), namespace="default", options=CreateOptions(**options)
    )


def refusal(client: Client, obj: Object | None = None) -> Status:
    with pytest.raises(Status) as error:
        create(client, obj)
    return error.value


def test_review_has_all_fields_of_request(client: Client, hook: Hook) -> None:
    validating(client)
    created = create(client, config(a="1"), field_manager="me", field_validation="Strict")
    [review] = hook.reviews
    request = review["request"]
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert hook.paths == ["/?timeout=10s"]
    assert list(request) == [
        "uid",
        "kind",
        "resource",
        "requestKind",
        "requestResource",
        "name",
        "namespace",
        "operation",
        "userInfo",
        "object",
        "oldObject",
        "dryRun",
        "options",
    ]
    assert (
        request["kind"]
        == request["requestKind"]
        == {"group": "", "version": "v1", "kind": "ConfigMap"}
    )
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["name"], request["namespace"], request["operation"]) == (
        "c",
        "default",
        "CREATE",
    )
    assert request["userInfo"]["username"] == "kubernetes-admin"
    assert request["object"]["data"] == {"a": "1"}
    assert (
        request["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    )  # the object that is stored in the end
    assert request["oldObject"] is None
    assert request["options"] == {
        "kind": "CreateOptions",
        "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "me",
        "fieldValidation": "Strict",
    }


def test_update_and_deletion_show_old_object(client: Client, hook: Hook) -> None:
    create(client, config(a="1"))
    validating(client, rules=[rule(operations=("*",))])
    client.patch("configmaps", "c", Patch(MERGE_PATCH, {"data": {"a": "2"}}), namespace="default")
    client.delete(
        "configmaps",
        "c",
        namespace="default",
        options=DeleteOptions(propagation_policy="Background"),
    )
    update, deletion = hook.requests
    assert (update["operation"], update["object"]["data"], update["oldObject"]["data"]) == (
        "UPDATE",
        {"a": "2"},
        {"a": "1"},
    )
    assert (deletion["operation"], deletion["object"], deletion["oldObject"]["data"]) == (
        "DELETE",
        None,
        {"a": "2"},
    )
    assert deletion["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "propagationPolicy": "Background",
    }


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            {"message": "no"},
            (400, "", 'admission webhook "hook.example.com" denied the request: no'),
        ),
        (
            {"message": "no", "code": 403, "reason": "Forbidden"},
            (403, "Forbidden", 'admission webhook "hook.example.com" denied the request: no'),
        ),
        (
            {"reason": "Teapot", "code": 418},
            (418, "Teapot", 'admission webhook "hook.example.com" denied the request: Teapot'),
        ),
        (
            {"code": 200, "status": "Success"},
            (
                400,
                "",
                'admission webhook "hook.example.com" denied the request without explanation',
            ),
        ),
        (
            None,
            (
                400,
                "",
                'admission webhook "hook.example.com" denied the request without explanation',
            ),
        ),
    ],
)
def test_denial_has_status_of_webhook(
    client: Client, hook: Hook, status: Object | None, error: tuple[int, str, str]
) -> None:
    hook.respond = lambda request: {"allowed": False, **({"status": status} if status else {})}
    validating(client)
    refused = refusal(client)
    assert (refused.code, refused.reason, refused.message) == error
    assert client.list("configmaps", namespace="default").items == []


def test_mutating_webhook_patches_before_defaults_and_validation(
    client: Client, hook: Hook
) -> None:
    hook.respond = lambda request: json_patch(
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "add", "path": "/metadata/labels", "value": {"team": "x"}},
    )
    mutating(client)
    created = create(client, config(a="1"))
    assert (created["data"], created["metadata"]["labels"]) == ({"a": "1", "b": "2"}, {"team": "x"})
    assert "uid" not in hook.requests[0]["object"]["metadata"]  # it is not known yet
    hook.respond = lambda request: json_patch(
        {"op": "add", "path": "/metadata/labels", "value": {"team": "a b"}}
    )
    assert refusal(client, config("d")).message.startswith(
        'ConfigMap "d" is invalid: metadata.labels: Invalid value'
    )


def test_mutating_comes_before_validating_and_names_decide_the_order(
    client: Client, hook: Hook
) -> None:
    hook.respond = lambda request: {"allowed": True}
    service = {"namespace": "default", "name": "hook"}
    for kind, create_hooks in (("v", validating), ("m", mutating)):
        for name in ("b", "a"):
            create_hooks(
                client, name=name, clientConfig={"service": {**service, "path": f"/{kind}/{name}"}}
            )
    create(client)
    paths = [path.partition("?")[0] for path in hook.paths]
    assert (paths[:2], sorted(paths[2:])) == (["/m/a", "/m/b"], ["/v/a", "/v/b"])


def test_mutating_policy_comes_before_webhooks_and_sees_their_changes_if_it_asks(
    client: Client, hook: Hook
) -> None:
    seen = []

    def respond(request: Object) -> Object:
        seen.append(request["object"]["metadata"].get("labels"))
        return json_patch({"op": "add", "path": "/data/second", "value": "x"})

    hook.respond = respond
    mutating(client)
    count = "string(size(object.data))"
    bind(client, labelled("never", count), name="a")
    bind(client, labelled("again", count), name="b", reinvocationPolicy="IfNeeded")
    created = create(client, config(first="1"))
    assert seen == [{"never": "1", "again": "1"}]
    assert created["metadata"]["labels"] == {"never": "1", "again": "2"}


def test_reinvocation_policy_if_needed_calls_again_after_change(client: Client, hook: Hook) -> None:
    def respond(request: Object) -> Object:
        path = hook.paths[-1]
        seen = request["object"]["data"]
        if path.startswith("/second") and "second" not in seen:
            return json_patch({"op": "add", "path": "/data/second", "value": "x"})
        return {"allowed": True}

    hook.respond = respond
    clients = [
        {
            "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": path}},
            "name": f"{path[1:]}.example.com",
            "reinvocationPolicy": policy,
        }
        for path, policy in (("/never", "Never"), ("/first", "IfNeeded"), ("/second", "IfNeeded"))
    ]
    mutating(client, *clients)
    create(client, config(a="1"))
    assert [path.partition("?")[0] for path in hook.paths] == [
        "/never",
        "/first",
        "/second",
        "/first",
    ]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (
            (500, "text/plain", b"boom\n"),
            'failed to call webhook: an error on the server ("boom") has prevented the request '
            "from succeeding",
        ),
        (
            (500, "application/json", b"{}"),
            'failed to call webhook: an error on the server ("unknown") has prevented the request '
            "from succeeding",
        ),
        (
            (404, "text/plain", b"nothing"),
            "failed to call webhook: the server could not find the requested resource",
        ),
        (
            (503, "text/plain", b""),
            "failed to call webhook: the server is currently unable to handle the request",
        ),
        ((403, "text/plain", b"you may not"), "failed to call webhook: you may not"),
        (
            (200, "application/json", b"nonsense"),
            "failed to call webhook: couldn't get version/kind; json parse error: "
            "invalid character 'o' in literal null (expecting 'u')",
        ),
        (
            (200, "application/json", b""),
            "failed to call webhook: 0-length response with status code: 200 and content type: "
            "application/json",
        ),
        (
            (200, "application/json", b'{"kind":"Foo","apiVersion":"v9"}'),
            'failed to call webhook: no kind "Foo" is registered for version "v9" in scheme '
            '"pkg/util/webhook/client.go:71"',
        ),
        (
            (
                200,
                "application/json",
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{}}',
            ),
            "failed to call webhook: converting (v1beta1.AdmissionReview) to "
            "(v1.AdmissionReview): unknown conversion",
        ),
        (
            (
                200,
                "application/json",
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
            ),
            "received invalid webhook response: webhook response was absent",
        ),
        (
            (200, "application/json", b'{"response":{"uid":"UID","allowed":true}}'),
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
            "Kind=AdmissionReview, got "
            "/, Kind=",
        ),
        (
            (200, "application/json", b'{"response":{"uid":"UID","allowed":"yes"}}'),
            "failed to call webhook: json: cannot unmarshal string into Go struct field "
            "AdmissionResponse.response.allowed of "
            "type bool",
        ),
    ],
)
def test_invalid_answer_fails_in_words_of_api_server(
    client: Client, hook: Hook, raw: tuple[int, str, bytes], problem: str
) -> None:
    hook.raw = lambda review: (
        raw[0],
        raw[1],
        raw[2].replace(b"UID", review["request"]["uid"].encode()),
    )
    validating(client)
    error = refusal(client)
    assert isinstance(error, InternalError)
    assert error.message == CALLING + problem


@pytest.mark.parametrize(
    ("respond", "problem"),
    [
        (
            {"allowed": True, "uid": "x"},
            'received invalid webhook response: expected response.uid="',
        ),
        (
            {"allowed": True, "patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not "
            "response.patchType",
        ),
        (
            {"allowed": True, "patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned "
            "response.patchType but not response.patch",
        ),
        (
            {"allowed": True, "patchType": "Merge", "patch": "W10="},
            'unsupported patch type "Merge"',
        ),
        (
            {"allowed": True, "patchType": "JSONPatch", "patch": "e30="},
            "received undecodable patch in webhook response: json: cannot unmarshal object into "
            "Go value of type "
            "jsonpatch.Patch",
        ),
        (
            {"allowed": True, "patchType": "JSONPatch", "patch": "!"},
            "failed to call webhook: illegal base64 data at input byte 0",
        ),
    ],
)
def test_invalid_mutation_fails_in_words_of_api_server(
    client: Client, hook: Hook, respond: Object, problem: str
) -> None:
    hook.respond = lambda request: respond
    mutating(client)
    assert refusal(client).message.startswith(CALLING + problem)


def test_patch_that_cannot_be_applied_is_internal_error(client: Client, hook: Hook) -> None:
    hook.respond = lambda request: json_patch({"op": "remove", "path": "/data/x"})
    mutating(client, failurePolicy="Ignore")
    assert refusal(client, config(a="1")).message == (
        "Internal error occurred: error in remove for path: '/data/x': Unable to remove "
        "nonexistent key: x: missing "
        "value"
    )


def test_validating_webhook_may_not_patch(client: Client, hook: Hook) -> None:
    hook.respond = lambda request: json_patch({"op": "add", "path": "/data/x", "value": "1"})
    validating(client)
    assert refusal(client).message == (
        CALLING + "received invalid webhook response: validating webhook may not return "
        "response.patch"
    )


def test_failure_policy_ignore_lets_through(client: Client, hook: Hook) -> None:
    hook.raw = lambda review: (500, "text/plain", b"boom")
    validating(client, failurePolicy="Ignore")
    mutating(client, failurePolicy="Ignore")
    create(client)
    assert len(hook.reviews) == 2


def test_service_that_is_not_mapped_has_no_endpoints(client: Client) -> None:
    service = {"namespace": "default", "name": "shop", "path": "/a/b/"}
    validating(client, clientConfig={"service": service}, timeoutSeconds=3)
    failed = FAILED.replace(
        "hook.default.svc:443/?timeout=10s", "shop.default.svc:443/a/b?timeout=3s"
    )
    assert refusal(client).message == failed + 'service "shop" not found'
    ports = [{"port": 443, "targetPort": 8443}]
    client.create(
        "services", {"metadata": {"name": "shop"}, "spec": {"ports": ports}}, namespace="default"
    )
    assert refusal(client).message == failed + 'no endpoints available for service "shop"'
    client.patch(
        "services",
        "shop",
        Patch(MERGE_PATCH, {"spec": {"ports": [{"port": 80}]}}),
        namespace="default",
    )
    assert refusal(client).message == failed + 'no service port 443 found for service "shop"'


def test_unreachable_mapped_service_is_refused_in_gos_words(
    client: Client, hook: Hook, tmp_path: Path
) -> None:
    cluster = make_cluster(
        tmp_path / "other", {"webhooks": {"default/hook:443": "http://127.0.0.1:1"}}
    )
    validating(cluster.client)
    assert (
        refusal(cluster.client).message
        == FAILED + "dial tcp 127.0.0.1:1: connect: connection refused"
    )
    cluster.close()


def test_timeout_is_context_deadline_exceeded(client: Client, hook: Hook) -> None:
    def respond(request: Object) -> Object:
        time.sleep(1.5)
        return {"allowed": True}

    hook.respond = respond
    validating(client, timeoutSeconds=1)
    start = time.monotonic()
    assert refusal(client).message == FAILED.replace("10s", "1s") + "context deadline exceeded"
    assert time.monotonic() - start < 1.4


def test_webhook_may_write_to_the_cluster_while_it_is_called(
    client: Client, hook: Hook, tmp_path: Path
) -> None:
    def respond(request: Object) -> Object:
        beside = open_cluster(tmp_path / "state", lock_timeout=2)
        beside.client.create("secrets", {"metadata": {"name": "by-hook"}}, namespace="default")
        beside.close()
        return {"allowed": True}

    hook.respond = respond
    validating(client)
    create(client)
    assert client.get("secrets", "by-hook", namespace="default")
    assert len(hook.reviews) == 1


def test_webhook_may_write_to_the_cluster_while_a_batch_waits_for_it(
    client: Client, hook: Hook, tmp_path: Path
) -> None:
    def respond(request: Object) -> Object:
        beside = open_cluster(tmp_path / "state", lock_timeout=2)
        beside.client.get("secrets", "before", namespace="default")  # is committed by now
        beside.client.create("secrets", {"metadata": {"name": "by-hook"}}, namespace="default")
        beside.close()
        return {"allowed": True}

    hook.respond = respond
    validating(client)
    with client.batch() as batch:
        client.create("secrets", {"metadata": {"name": "before"}}, namespace="default")
        create(client)
        client.create("secrets", {"metadata": {"name": "after"}}, namespace="default")
        parts = batch.drain_parts()
    assert [(part.is_own, [event.key.name for event in part.events]) for part in parts] == [
        (True, ["before"]),
        (False, ["by-hook"]),
        (True, ["c", "after"]),
    ]
    assert len(hook.reviews) == 1


def test_batch_that_cannot_go_on_after_a_webhook_ends_with_the_error(
    client: Client, hook: Hook, tmp_path: Path
) -> None:
    with ExitStack() as others:

        def respond(request: Object) -> Object:
            beside = others.enter_context(closing(open_cluster(tmp_path / "state")))
            others.enter_context(beside.store.transaction())
            return {"allowed": True}

        hook.respond = respond
        validating(client)
        client._store.lock_timeout = 0.1

        def work() -> None:
            with client.batch() as batch:
                client.create("secrets", {"metadata": {"name": "before"}}, namespace="default")
                for _ in range(2):
                    with pytest.raises(LockTimeoutError):
                        create(client)
                batch.drain()

        with pytest.raises(LockTimeoutError):
            work()
    assert client.get("secrets", "before", namespace="default")
    with pytest.raises(Status):
        client.get("configmaps", "c", namespace="default")


def test_nothing_is_locked_before_all_webhooks_have_answered(
    client: Client, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutating(client)
    validating(client)
    answered = []
    begin = client._store.transaction

    def transaction() -> AbstractContextManager[Transaction]:
        answered.append(len(hook.reviews))
        return begin()

    monkeypatch.setattr(client._store, "transaction", transaction)
    create(client)
    assert answered == [2]


def test_request_that_no_webhook_is_about_is_carried_out_once(
    client: Client, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    validating(client)
    monkeypatch.setattr(client, "_copied", None)
    client.create("secrets", {"metadata": {"name": "s"}}, namespace="default")
    assert not hook.reviews


def test_object_that_changes_meanwhile_is_reviewed_again(
    client: Client, hook: Hook, tmp_path: Path
) -> None:
    create(client, config(a="1"))

    def respond(request: Object) -> Object:
        if len(hook.reviews) == 1:
            beside = open_cluster(tmp_path / "state")
            beside.client.patch(
                "configmaps", "c", Patch(MERGE_PATCH, {"data": {"b": "2"}}), namespace="default"
            )
            beside.close()
        return {"allowed": True}

    hook.respond = respond
    validating(
        client,
        matchConditions=[
            {"name": "mine", "expression": "!('b' in object.data) || 'z' in object.data"}
        ],
    )
    patched = client.patch(
        "configmaps", "c", Patch(MERGE_PATCH, {"data": {"z": "9"}}), namespace="default"
    )
    assert patched["data"] == {"a": "1", "b": "2", "z": "9"}
    assert [request["object"]["data"] for request in hook.requests] == [
        {"a": "1", "z": "9"},
        {"a": "1", "b": "2", "z": "9"},
    ]


def test_requests_in_a_batch_call_webhooks_too(client: Client, hook: Hook) -> None:
    hook.respond = lambda request: {"allowed": False, "status": {"message": "not now"}}
    validating(client)
    with client.batch(), pytest.raises(Status, match="not now"):
        create(client)
    with client.joined(), pytest.raises(Status, match="not now"):
        create(client)
    assert len(hook.reviews) == 2


def test_dry_run_needs_webhook_without_side_effects(client: Client, hook: Hook) -> None:
    validating(client, sideEffects="NoneOnDryRun")
    create(client, dry_run=True)
    assert hook.requests[0]["dryRun"] is True
    assert hook.requests[0]["options"]["dryRun"] == ["All"]
    configurations = client.get(VALIDATING, "hooks")
    assert client.list("configmaps", namespace="default").items == []
    assert configurations["webhooks"][0]["sideEffects"] == "NoneOnDryRun"


def test_warnings_are_printed_once(client: Client, hook: Hook) -> None:
    hook.respond = lambda request: {"allowed": True, "warnings": ["mind the gap"]}
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    mutating(client, {"name": "a.example.com"}, {"name": "b.example.com"})
    create(client)
    assert warnings == ["mind the gap"]
    assert len(hook.reviews) == 2


def test_webhooks_with_the_same_url_are_all_called(client: Client, hook: Hook) -> None:
    names = [{"name": "a.example.com"}, {"name": "b.example.com"}]
    validating(client, *names)
    validating(client, *names, name="others")
    create(client)
    assert len(hook.reviews) == len({request["uid"] for request in hook.requests}) == 4


def test_v1beta1_review_is_not_checked_for_uid_and_kind(client: Client, hook: Hook) -> None:
    hook.raw = lambda review: (200, "application/json", b'{"response":{"allowed":false}}')
    validating(client, admissionReviewVersions=["v9", "v1beta1", "v1"])
    assert refusal(client).message.endswith("denied the request without explanation")
    assert hook.reviews[0]["apiVersion"] == "admission.k8s.io/v1beta1"


# --- which requests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({"rules": [rule("*")]}, True),
        ({"rules": [rule("*/*")]}, True),
        ({"rules": [rule("configmaps/*")]}, True),
        ({"rules": [rule("configmaps/status")]}, False),
        ({"rules": [rule(operations=("UPDATE",))]}, False),
        ({"rules": [rule(group="apps")]}, False),
        ({"rules": [rule(group="*", version="*")]}, True),
        ({"rules": [rule(version="v2")]}, False),
        ({"rules": [rule(scope="Cluster")]}, False),
        ({"rules": [rule(scope="Namespaced")]}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["default"],
                        }
                    ]
                }
            },
            False,
        ),
        ({"objectSelector": {"matchLabels": {"app": "x"}}}, False),
        ({"matchConditions": [{"name": "a", "expression": "object.data.a == '1'"}]}, True),
        ({"matchConditions": [{"name": "a", "expression": "object.data.a == '2'"}]}, False),
        (
            {
                "matchConditions": [
                    {"name": "a", "expression": "request.userInfo.username != 'kubernetes-admin'"}
                ]
            },
            False,
        ),
        (
            {
                "matchConditions": [{"name": "a", "expression": "object.data.x == '2'"}],
                "failurePolicy": "Ignore",
            },
            False,
        ),
    ],
)
def test_webhook_is_called_for_requests_that_it_names(
    client: Client, hook: Hook, fields: Object, called: bool
) -> None:
    validating(client, **fields)
    mutating(client, **fields)
    create(client, config(a="1"))
    assert len(hook.reviews) == (2 if called else 0)


def test_failing_match_condition_is_forbidden(client: Client, hook: Hook) -> None:
    validating(client, matchConditions=[{"name": "a", "expression": "object.data.x == '2'"}])
    error = refusal(client, config(a="1"))
    assert isinstance(error, Forbidden)
    assert error.message == (
        "configmaps \"c\" is forbidden: expression 'object.data.x == '2'' resulted in error: no "
        "such key: x"
    )


def test_webhook_sees_a_version_that_it_names_by_match_policy(client: Client, hook: Hook) -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
        },
    }
    rules = [rule("horizontalpodautoscalers", group="autoscaling")]
    validating(
        client,
        {"matchPolicy": "Exact"},
        {"matchPolicy": "Equivalent", "name": "other.example.com"},
        rules=rules,
    )
    client.create("horizontalpodautoscalers.autoscaling", autoscaler, namespace="default")
    [request] = hook.requests
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
    assert request["object"]["apiVersion"] == "autoscaling/v1"


def test_webhooks_are_never_called_for_configurations_of_admission(
    client: Client, hook: Hook
) -> None:
    hook.respond = lambda request: {"allowed": False}
    everything = [rule("*/*", ("*",), group="*", version="*")]
    validating(client, rules=everything)
    mutating(client, rules=everything)
    for resource in (VALIDATING, MUTATING):
        client.patch(resource, "hooks", Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}}))
        client.delete(resource, "hooks")
    assert hook.reviews == []
    create(client)


def test_namespace_is_selected_by_its_own_labels(client: Client, hook: Hook) -> None:
    validating(client, rules=[rule("namespaces")], namespaceSelector={"matchLabels": {"team": "x"}})
    client.create("namespaces", {"metadata": {"name": "a"}})
    client.create("namespaces", {"metadata": {"name": "b", "labels": {"team": "x"}}})
    [request] = hook.requests
    assert (request["name"], request["namespace"]) == ("b", "b")


def test_subresources_have_their_own_bodies(client: Client, hook: Hook) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    client.create("pods", pod, namespace="default")
    client.create(
        "deployments.apps",
        {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
        namespace="default",
    )
    validating(client, rules=[rule("*/*", ("*",), group="*")])
    client.bind("p", "node-1", namespace="default")
    client.evict("p", namespace="default")
    client.patch(
        "deployments.apps",
        "d",
        Patch(MERGE_PATCH, {"spec": {"replicas": 3}}),
        namespace="default",
        subresource="scale",
    )
    client.patch(
        "deployments.apps",
        "d",
        Patch(MERGE_PATCH, {"status": {"replicas": 1}}),
        namespace="default",
        subresource="status",
    )
    assert [
        (
            request["operation"],
            request["resource"]["resource"],
            request["subResource"],
            request["kind"]["kind"],
        )
        for request in hook.requests
    ] == [
        ("CREATE", "pods", "binding", "Binding"),
        ("CREATE", "pods", "eviction", "Eviction"),
        ("UPDATE", "deployments", "scale", "Scale"),
        ("UPDATE", "deployments", "status", "Deployment"),
    ]
    assert hook.requests[0]["object"]["target"] == {"kind": "Node", "name": "node-1"}
    assert (hook.requests[2]["object"]["spec"], hook.requests[2]["oldObject"]["spec"]) == (
        {"replicas": 3},
        {"replicas": 1},
    )


def test_patch_of_deletion_is_refused(client: Client, hook: Hook) -> None:
    create(client)
    hook.respond = lambda request: json_patch({"op": "add", "path": "/x", "value": 1})
    mutating(client, rules=[rule(operations=("DELETE",))])
    with pytest.raises(InternalError) as error:
        client.delete("configmaps", "c", namespace="default")
    assert error.value.message == (
        'Internal error occurred: admission webhook "hook.example.com" attempted to modify '
        "the object, which is not supported for this operation"
    )


# --- HTTPS ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "fields", "problem"),
    [
        ("hook", {"caBundle": CA_BUNDLE}, ""),
        (
            "hook",
            {},
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
        (
            "other",
            {"caBundle": CA_BUNDLE},
            "tls: failed to verify certificate: x509: certificate is valid for other.example.com, "
            "not hook.default.svc",
        ),
        (
            "expired",
            {"caBundle": CA_BUNDLE},
            "tls: failed to verify certificate: x509: certificate has expired or is not yet "
            "valid: current time ",
        ),
    ],
)
def test_certificate_is_verified_with_ca_bundle(
    tmp_path: Path, certificate: str, fields: Object, problem: str
) -> None:
    with serving(certificate=certificate) as hook:
        cluster = make_cluster(tmp_path / "state", {"webhooks": {"default/hook": hook.url}})
        validating(
            cluster.client,
            clientConfig={"service": {"namespace": "default", "name": "hook"}, **fields},
        )
        if problem:
            assert refusal(cluster.client).message.startswith(FAILED + problem)
        else:
            create(cluster.client)
        assert len(hook.reviews) == (0 if problem else 1)
        cluster.close()


def test_url_is_called_as_it_is(client: Client) -> None:
    with serving(certificate="hook") as hook:
        validating(client, clientConfig={"url": f"{hook.url}/validate/", "caBundle": CA_BUNDLE})
        create(client)
        assert hook.paths == ["/validate?timeout=10s"]


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("a:99999", "dial tcp: address 99999: invalid port"),
        ("a\u2100b", "dial tcp: lookup a\u2100b: no such host"),
        ("a..b", "dial tcp: lookup a..b: no such host"),
    ],
)
def test_url_whose_host_cannot_be_called_fails_as_a_call(
    client: Client, host: str, problem: str
) -> None:
    validating(client, clientConfig={"url": f"https://{host}/"})
    assert refusal(client).message == (
        f'{CALLING}failed to call webhook: Post "https://{host}/?timeout=10s": {problem}'
    )


def test_http_server_behind_https_url_and_bad_ca_bundle(client: Client, hook: Hook) -> None:
    url = hook.url.replace("http:", "https:")
    validating(client, clientConfig={"url": url, "caBundle": CA_BUNDLE})
    assert refusal(client).message == (
        f'{CALLING}failed to call webhook: Post "{url}/?timeout=10s": http: server gave '
        "HTTP response to HTTPS client"
    )
    client.delete(VALIDATING, "hooks")
    validating(client, clientConfig={"url": url, "caBundle": "bm9uZQ=="})
    assert refusal(client).message == (
        f"{CALLING}could not get REST client: unable to load root certificates: unable "
        "to parse bytes as PEM block"
    )


def test_bad_request_of_dry_run_names_webhook(
    client: Client, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kubepy.apiserver.kinds.admissionregistration.validation.SIDE_EFFECTS", ("None", "Some")
    )
    validating(client, sideEffects="Some")
    with pytest.raises(BadRequest) as error:
        create(client, dry_run=True)
    assert error.value.message == 'admission webhook "hook.example.com" does not support dry run'


def test_service_mapped_to_allows_is_not_called_while_it_has_endpoints(tmp_path: Path) -> None:
    settings = {"webhooks": {"default/shop": "allows", "https://hooks.example.com": "allows"}}
    cluster = make_cluster(tmp_path / "state", settings)
    client = cluster.client
    config_of_service = {"service": {"namespace": "default", "name": "shop"}}
    validating(client, clientConfig=config_of_service)
    mutating(client, clientConfig={"url": "https://hooks.example.com/mutate"})
    ports = [{"port": 443, "targetPort": 8443}]
    service = {"metadata": {"name": "shop"}, "spec": {"ports": ports}}
    client.create("services", service, namespace="default")
    assert refusal(client).message.endswith('no endpoints available for service "shop"')
    subsets = [{"addresses": [{"ip": "10.244.0.9"}], "ports": [{"port": 8443}]}]
    endpoints = {"metadata": {"name": "shop"}, "subsets": subsets}
    client.create("endpoints", endpoints, namespace="default")
    create(client)
    cluster.close()
