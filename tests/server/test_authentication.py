"""Who may ask what: tokens, impersonation, roles, and that nobody gives away more rights than they
have."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubepy.apiserver.tokens import SigningKey
from tests.server.conftest import SIGNING_KEY, TOKEN, Answer, Api, ServerProcess

NewApi = Callable[..., Api]
RBAC_PATH = "/apis/rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.fixture
def rbac(new_api: NewApi) -> Api:
    return new_api(authorization="RBAC")


def as_user(name: str, *groups: str, **extra: str) -> dict[str, str]:
    headers = {
        "Impersonate-User": name,
        **{f"Impersonate-Extra-{key}": value for key, value in extra.items()},
    }
    return {**headers, **({"Impersonate-Group": groups[0]} if groups else {})}


def message(answer: Answer) -> str:
    return str(answer.json()["message"])


def who(api: Api, headers: Mapping[str, str] | None = None, token: str = TOKEN) -> Any:
    answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers, token=token)
    return answer.json()["status"]["userInfo"]


def role(name: str, verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    rule = {
        "apiGroups": [group],
        "resources": resources.split(","),
        "verbs": verbs.split(","),
        **more,
    }
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [rule],
    }


def grant(
    api: Api,
    user: str,
    verbs: str,
    resources: str,
    group: str = "",
    namespace: str = "",
    **more: Any,
) -> None:
    """Let a user do something, everywhere or in a namespace."""
    name = (
        f"{user}-{verbs}-{resources.replace('/', '-')}".replace(",", "-")
        .replace("*", "all")
        .lower()
    )
    assert (
        api.post(f"{RBAC_PATH}/clusterroles", role(name, verbs, resources, group, **more)).status
        == 201
    )
    kind, path = (
        ("RoleBinding", f"/namespaces/{namespace}") if namespace else ("ClusterRoleBinding", "")
    )
    binding = {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": user}],
    }
    assert api.post(f"{RBAC_PATH}{path}/{kind.lower()}s", binding).status == 201


# --- authentication -------------------------------------------------------------------------------

UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer a.b.c"},
        {"Authorization": "Bearer e30.e30.e30"},
        {"Authorization": "Bearer ☃"},
        {"Impersonate-User": "ann"},
    ],
)
def test_request_without_good_token_is_unauthorized(api: Api, headers: dict[str, str]) -> None:
    for path in (
        "/api/v1/namespaces",
        "/version",
        "/apis",
        "/openapi/v3",
        "/nowhere",
        "/healthz/etcd",
    ):
        answer = api.get(path, headers, token="")
        assert (answer.status, answer.json()) == (401, UNAUTHORIZED)


@pytest.mark.parametrize("mode", ["AlwaysAllow", "RBAC"])
def test_health_needs_no_token_but_no_bad_one(new_api: NewApi, mode: str) -> None:
    api = new_api(authorization=mode)
    assert [api.get(path, token="").status for path in ("/healthz", "/livez", "/readyz")] == [
        200,
        200,
        200,
    ]
    assert api.get("/healthz", token="wrong").status == 401


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "  Bearer {} "])
def test_token_of_administrator_is_accepted_as_go_reads_it(api: Api, header: str) -> None:
    assert (
        api.get("/api/v1/namespaces", {"Authorization": header.format(TOKEN)}, token="").status
        == 200
    )
    assert who(api) == {
        "username": "kubernetes-admin",
        "groups": ["kubeadm:cluster-admins", "system:authenticated"],
    }


@pytest.mark.parametrize("padding", ["=", "=="])
def test_padded_token_is_unauthorized(api: Api, padding: str) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    assert api.post(path, {"metadata": {"name": "bot"}}).status == 201
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.post(f"{path}/bot/token", request).json()["status"]["token"]
    assert api.get("/api/v1/namespaces", token=token).status == 200
    head, claims, signature = token.split(".")
    for padded in (
        f"{head}.{claims}.{signature}{padding}",
        f"{head}.{claims}{padding}.{signature}",
        f"{head}{padding}.{claims}.{signature}",
    ):
        assert api.get("/api/v1/namespaces", token=padded).status == 401


def test_token_in_other_alphabet_of_base64_is_unauthorized(api: Api) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    assert api.post(path, {"metadata": {"name": "bot"}}).status == 201
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    head, claims, signature = "", "", ""
    while "-" not in signature and "_" not in signature:
        token = api.post(f"{path}/bot/token", request).json()["status"]["token"]
        head, claims, signature = token.split(".")
    other = signature.replace("-", "+").replace("_", "/")
    assert api.get("/api/v1/namespaces", token=f"{head}.{claims}.{other}").status == 401


# --- impersonation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        (as_user("ann"), {"username": "ann", "groups": ["system:authenticated"]}),
        (as_user("ann", "ops"), {"username": "ann", "groups": ["ops", "system:authenticated"]}),
        (
            {**as_user("ann"), "Impersonate-Uid": "7", "Impersonate-Extra-Acme.Com%2FTeam": "red"},
            {
                "username": "ann",
                "uid": "7",
                "groups": ["system:authenticated"],
                "extra": {"acme.com/team": ["red"]},
            },
        ),
        (
            as_user("system:anonymous", "system:authenticated"),
            {
                "username": "system:anonymous",
                "groups": ["system:authenticated", "system:unauthenticated"],
            },
        ),
        (
            as_user("system:serviceaccount:shop:bot"),
            {
                "username": "system:serviceaccount:shop:bot",
                "groups": [
                    "system:serviceaccounts",
                    "system:serviceaccounts:shop",
                    "system:authenticated",
                ],
            },
        ),
        (
            as_user("system:node:n1"),
            {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]},
        ),
    ],
)
@pytest.mark.parametrize("mode", ["AlwaysAllow", "RBAC"])
def test_administrator_impersonates_user(
    new_api: NewApi, mode: str, headers: dict[str, str], user: Any
) -> None:
    assert who(new_api(authorization=mode), headers) == user


def test_impersonated_groups_come_in_lines_of_their_own(api: Api) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        "raw_path": b"/apis/authentication.k8s.io/v1/selfsubjectreviews",
        "query_string": b"",
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "headers": [
            (b"authorization", f"Bearer {TOKEN}".encode()),
            (b"content-type", b"application/json"),
            (b"impersonate-user", b"ann"),
            (b"impersonate-group", b"CN=a, OU=b"),
            (b"impersonate-group", b"ops"),
        ],
    }
    answer = api.send(scope, [{"type": "http.request", "body": b"{}", "more_body": False}])
    assert answer.json()["status"]["userInfo"]["groups"] == [
        "CN=a, OU=b",
        "ops",
        "system:authenticated",
    ]


@pytest.mark.parametrize(
    "header",
    [
        "Impersonate-User",
        "Impersonate-Group",
        "Impersonate-Uid",
        "Impersonate-Extra-a",
        "Impersonate-Extra-%ff%00",
    ],
)
def test_impersonated_bytes_that_are_no_text_are_replaced(api: Api, header: str) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "headers": [
            (b"authorization", f"Bearer {TOKEN}".encode()),
            (b"content-type", b"application/json"),
            (header.lower().encode(), b"a\xff"),
            (b"impersonate-user", b"ann"),
        ],
    }
    answer = api.send(scope, [{"type": "http.request", "body": b"{}", "more_body": False}])
    assert answer.status == 201
    assert "a\ufffd" in answer.body.decode()


def test_impersonation_without_user_is_bad_request(api: Api) -> None:
    answer = api.get("/api/v1/pods", {"Impersonate-Group": "ops"})
    assert (answer.status, message(answer)) == (
        400,
        (
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"ops"}, '
            "Extra:map[string][]string(nil)} without "
            "impersonating a user name"
        ),
    )


def token_for(api: Api, name: str, **spec: Any) -> str:
    assert api.post(
        "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}}
    ).status in (201, 409)
    answer = api.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"spec": spec})
    assert answer.status == 201
    return str(answer.json()["status"]["token"])


def test_impersonation_without_permission_is_forbidden(rbac: Api) -> None:
    token = token_for(rbac, "bot")
    answer = rbac.get("/api/v1/namespaces/default/pods", as_user("ann"), token=token)
    assert (answer.status, message(answer)) == (
        403,
        (
            'pods is forbidden: User "system:serviceaccount:default:bot" cannot '
            "impersonate-on:user-info:list resource "
            '"pods" in API group "" in the namespace "default"'
        ),
    )


def test_impersonation_as_allowed_by_name_group_and_extra(rbac: Api) -> None:
    bot = "system:serviceaccount:default:bot"
    token = token_for(rbac, "bot")
    grant(rbac, bot, "impersonate", "users", resourceNames=["ann"])
    assert who(rbac, as_user("ann"), token)["username"] == "ann"
    for headers, resource, name in (
        (as_user("ann", "ops"), "groups", "ops"),
        (as_user("bob"), "users", "bob"),
    ):
        answer = rbac.post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers, token=token
        )
        assert (answer.status, message(answer)) == (
            403,
            (
                f'{resource} "{name}" is forbidden: User "{bot}" cannot impersonate resource '
                f'"{resource}" in API group "" '
                "at the cluster scope"
            ),
        )  # the error of the mode that was allowed last
    grant(rbac, bot, "impersonate", "groups", resourceNames=["ops"])
    grant(
        rbac, bot, "impersonate", "userextras/team", "authentication.k8s.io", resourceNames=["red"]
    )
    assert who(rbac, as_user("ann", "ops", team="red"), token)["extra"] == {"team": ["red"]}
    assert rbac.get("/api", as_user("ann", team="blue"), token=token).status == 403


def test_constrained_impersonation_allows_named_verbs_only(rbac: Api) -> None:
    bot = "system:serviceaccount:default:bot"
    token = token_for(rbac, "bot")
    grant(
        rbac, bot, "impersonate:user-info", "users", "authentication.k8s.io", resourceNames=["ann"]
    )
    grant(rbac, bot, "impersonate-on:user-info:list", "pods")
    grant(rbac, "ann", "list,get", "pods")
    assert rbac.get("/api/v1/pods", as_user("ann"), token=token).status == 200
    assert rbac.get("/api/v1/namespaces/default/pods/x", as_user("ann"), token=token).status == 403
    assert rbac.get("/api/v1/pods", as_user("ann", "system:masters"), token=token).status == 403


# --- roles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        (
            "GET",
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the '
            'namespace "default"',
        ),
        (
            "GET",
            "/api/v1/pods?watch=1",
            'pods is forbidden: User "ann" cannot watch resource "pods" in API group "" at the '
            "cluster scope",
        ),
        (
            "GET",
            "/api/v1/namespaces/default/pods/x/log",
            'pods "x" is forbidden: User "ann" cannot get resource "pods/log" in API group "" in '
            'the namespace "default"',
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: User "ann" cannot deletecollection resource "pods" in API group '
            '"" in the namespace '
            '"default"',
        ),
        (
            "PUT",
            "/apis/apps/v1/namespaces/default/deployments/x/scale",
            'deployments.apps "x" is forbidden: User "ann" cannot update resource '
            '"deployments/scale" in API group "apps" in '
            'the namespace "default"',
        ),
        (
            "PATCH",
            "/api/v1/nodes/n1",
            'nodes "n1" is forbidden: User "ann" cannot patch resource "nodes" in API group "" at '
            "the cluster scope",
        ),
        (
            "POST",
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            'serviceaccounts "default" is forbidden: User "ann" cannot create resource '
            '"serviceaccounts/token" in API group '
            '"" in the namespace "default"',
        ),
        (
            "GET",
            "/apis/example.com/v1/widgets",
            'widgets.example.com is forbidden: User "ann" cannot list resource "widgets" in API '
            'group "example.com" at the '
            "cluster scope",
        ),
        ("GET", "/metrics", 'forbidden: User "ann" cannot get path "/metrics"'),
        ("POST", "/nowhere", 'forbidden: User "ann" cannot post path "/nowhere"'),
    ],
)
def test_rbac_request_of_user_without_roles_is_forbidden(
    rbac: Api, method: str, path: str, text: str
) -> None:
    answer = rbac.request(
        method, path, {} if method in ("PUT", "POST", "PATCH") else None, as_user("ann")
    )
    assert (answer.status, message(answer)) == (403, text)


def test_rbac_authenticated_users_discover_and_review_themselves(rbac: Api) -> None:
    for path in (
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/version",
        "/healthz",
        "/openapi/v2",
    ):
        assert rbac.get(path, as_user("ann")).status in (200, 404), path
    assert rbac.get("/version", as_user("system:anonymous")).status == 200
    assert rbac.get("/api", as_user("system:anonymous")).status == 403
    assert who(rbac, as_user("ann"))["username"] == "ann"


def test_rbac_change_of_role_counts_at_next_request(rbac: Api) -> None:
    pods = "/api/v1/namespaces/default/pods"
    assert rbac.get(pods, as_user("ann")).status == 403
    grant(rbac, "ann", "list", "pods", namespace="default")
    assert rbac.get(pods, as_user("ann")).status == 200
    assert rbac.get("/api/v1/pods", as_user("ann")).status == 403
    rbac.delete(f"{RBAC_PATH}/namespaces/default/rolebindings/ann-list-pods")
    assert rbac.get(pods, as_user("ann")).status == 403


def test_rbac_update_and_apply_that_create_need_permission_to_create(rbac: Api) -> None:
    grant(rbac, "ann", "update,patch", "services,configmaps")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "c"},
        "spec": {"ports": [{"port": 80}]},
    }
    answer = rbac.request(
        "PATCH",
        "/api/v1/namespaces/default/configmaps/c?fieldManager=m",
        config_map,
        {**as_user("ann"), "Content-Type": "application/apply-patch+yaml"},
    )
    assert (answer.status, message(answer)) == (
        403,
        (
            'configmaps "c" is forbidden: User "ann" cannot create resource "configmaps" in API '
            'group "" in the namespace '
            '"default"'
        ),
    )
    assert (
        rbac.request("PUT", "/api/v1/namespaces/default/services/c", service, as_user("ann")).status
        == 403
    )
    grant(rbac, "ann", "create", "services")
    assert (
        rbac.request("PUT", "/api/v1/namespaces/default/services/c", service, as_user("ann")).status
        == 201
    )


# --- escalation -----------------------------------------------------------------------------------


def test_escalation_role_with_more_rights_is_forbidden(rbac: Api) -> None:
    grant(rbac, "ann", "create,update,patch,get", "roles,clusterroles", RBAC_GROUP)
    grant(rbac, "ann", "get", "pods")
    wide = role("wide", "get,list", "pods,pods/log")
    answer = rbac.post(f"{RBAC_PATH}/clusterroles", wide, as_user("ann"))
    assert (answer.status, message(answer)) == (
        403,
        (
            'clusterroles.rbac.authorization.k8s.io "wide" is forbidden: user "ann" '
            '(groups=["system:authenticated"]) is '
            "attempting to grant RBAC permissions not currently held:\n"
            '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
            '{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list"]}'
        ),
    )
    assert (
        rbac.post(f"{RBAC_PATH}/clusterroles", role("narrow", "get", "pods"), as_user("ann")).status
        == 201
    )
    widened = rbac.request(
        "PUT", f"{RBAC_PATH}/clusterroles/narrow", role("narrow", "*", "*", "*"), as_user("ann")
    )
    assert widened.status == 403
    assert 'held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in message(widened)
    grant(rbac, "ann", "escalate", "clusterroles", RBAC_GROUP)
    assert rbac.post(f"{RBAC_PATH}/clusterroles", wide, as_user("ann")).status == 201


def test_escalation_aggregation_needs_rights_of_cluster_admin(rbac: Api) -> None:
    grant(rbac, "ann", "create,get", "clusterroles", RBAC_GROUP)
    aggregating = {
        **role("all", "get", "pods"),
        "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    }
    answer = rbac.post(f"{RBAC_PATH}/clusterroles", aggregating, as_user("ann"))
    assert (answer.status, message(answer)) == (
        403,
        (
            'clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have cluster-admin '
            "privileges to use the "
            "aggregationRule"
        ),
    )


def test_escalation_binding_of_role_with_more_rights_is_forbidden(rbac: Api) -> None:
    grant(rbac, "ann", "create,update,get,patch", "rolebindings", RBAC_GROUP)

    def bind(name: str, headers: dict[str, str]) -> Answer:
        return rbac.post(
            f"{RBAC_PATH}/namespaces/default/rolebindings",
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": "ann"}],
            },
            headers,
        )

    answer = bind("system:kube-dns", as_user("ann"))
    assert answer.status == 403
    assert message(answer).startswith(
        'rolebindings.rbac.authorization.k8s.io "system:kube-dns" is forbidden: user "ann" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently '
        "held:\n{APIGroups:"
    )
    missing = bind("gone", as_user("ann"))
    assert (missing.status, message(missing)) == (
        404,
        f'rolebindings.{RBAC_GROUP} "gone" not found',
    )
    assert bind("system:kube-dns", as_user("bob", "system:masters")).status == 201
    grant(rbac, "ann", "bind", "clusterroles", RBAC_GROUP, resourceNames=["view"])
    assert bind("view", as_user("ann")).status == 201
    assert bind("admin", as_user("ann")).status == 403
    metadata = {
        "finalizers": ["example.com/hold"]
    }  # what the garbage collector changes gives no rights
    assert (
        rbac.request(
            "PATCH",
            f"{RBAC_PATH}/namespaces/default/rolebindings/system:kube-dns",
            {"metadata": metadata},
            {**as_user("ann"), "Content-Type": "application/merge-patch+json"},
        ).status
        == 200
    )


# --- reviews --------------------------------------------------------------------------------------


def review(
    api: Api, kind: str, spec: Any, headers: Mapping[str, str] | None = None, namespace: str = ""
) -> Any:
    path = f"/namespaces/{namespace}" if namespace else ""
    answer = api.post(f"{REVIEWS}{path}/{kind}", {"spec": spec}, headers)
    assert answer.status == 201, answer.body
    return answer.json()["status"]


def test_access_reviews_answer_as_roles_say(rbac: Api) -> None:
    grant(rbac, "ann", "get", "pods", namespace="default")
    get_pods = {"namespace": "default", "verb": "get", "resource": "pods"}
    reason = (
        'RBAC: allowed by RoleBinding "ann-get-pods/default" of ClusterRole "ann-get-pods" '
        'to User "ann"'
    )
    granted = {"allowed": True, "reason": reason}
    assert (
        review(rbac, "subjectaccessreviews", {"user": "ann", "resourceAttributes": get_pods})
        == granted
    )
    assert (
        review(rbac, "selfsubjectaccessreviews", {"resourceAttributes": get_pods}, as_user("ann"))
        == granted
    )
    assert (
        review(
            rbac,
            "localsubjectaccessreviews",
            {"user": "ann", "resourceAttributes": get_pods},
            namespace="default",
        )
        == granted
    )
    assert review(
        rbac, "subjectaccessreviews", {"user": "bob", "resourceAttributes": get_pods}
    ) == {"allowed": False}
    assert review(
        rbac, "subjectaccessreviews", {"groups": ["system:masters"], "resourceAttributes": get_pods}
    ) == {"allowed": True}
    path = {"path": "/metrics", "verb": "get"}
    assert review(rbac, "subjectaccessreviews", {"user": "bob", "nonResourceAttributes": path}) == {
        "allowed": False
    }
    odd = {**get_pods, "fieldSelector": {"rawSelector": "a~b"}}
    assert review(rbac, "subjectaccessreviews", {"user": "bob", "resourceAttributes": odd}) == {
        "allowed": False,
        "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error",
    }


def test_access_review_always_allow_says_yes_without_reason(api: Api) -> None:
    asked = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    assert review(api, "subjectaccessreviews", asked) == {"allowed": True}


def test_rules_review_lists_rules_of_user_and_needs_namespace(rbac: Api) -> None:
    grant(rbac, "ann", "get", "pods", namespace="default", resourceNames=["web"])
    rules = review(rbac, "selfsubjectrulesreviews", {"namespace": "default"}, as_user("ann"))
    assert rules["resourceRules"][-1] == {
        "verbs": ["get"],
        "apiGroups": [""],
        "resources": ["pods"],
        "resourceNames": ["web"],
    }
    assert rules["incomplete"] is False
    elsewhere = review(
        rbac, "selfsubjectrulesreviews", {"namespace": "kube-system"}, as_user("ann")
    )
    assert len(elsewhere["resourceRules"]) == len(rules["resourceRules"]) - 1
    answer = rbac.post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {}}, as_user("ann"))
    assert (answer.status, message(answer)) == (400, "no namespace on request")


# --- tokens of ServiceAccounts --------------------------------------------------------------------


def claims_of(token: str) -> Any:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def token_review(api: Api, token: str, *audiences: str) -> Any:
    answer = api.post(
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"spec": {"token": token, **({"audiences": list(audiences)} if audiences else {})}},
    )
    assert answer.status == 201
    return answer.json()["status"]


def test_token_of_account_is_accepted_and_reviewed(api: Api) -> None:
    token = token_for(api, "bot")
    user = who(api, token=token)
    assert user["username"] == "system:serviceaccount:default:bot"
    assert user["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    assert user["extra"] == {
        "authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]
    }
    issuer = "https://kubernetes.default.svc.cluster.local"
    assert token_review(api, token) == {"authenticated": True, "user": user, "audiences": [issuer]}
    assert token_review(api, token, "vault") == {
        "user": {},
        "error": (
            f'[invalid bearer token, token audiences ["{issuer}"] is invalid for the target '
            f'audiences ["vault"]]'
        ),
    }
    assert token_review(api, TOKEN)["user"]["username"] == "kubernetes-admin"
    assert token_review(api, "nonsense") == {"user": {}, "error": "invalid bearer token"}


def test_token_for_other_audience_is_not_for_the_server(api: Api) -> None:
    token = token_for(api, "bot", audiences=["vault"], expirationSeconds=600)
    assert claims_of(token)["exp"] - claims_of(token)["iat"] == 600
    assert api.get("/api", token=token).status == 401
    assert token_review(api, token, "vault", "x")["audiences"] == ["vault"]


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (
            {"spec": {"expirationSeconds": 599}},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                "Invalid value: 599: may not specify "
                "a duration less than 10 minutes"
            ),
        ),
        (
            {"spec": {"expirationSeconds": 2**32 + 1}},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                "Invalid value: 4294967297: may not "
                "specify a duration larger than 2^32 seconds"
            ),
        ),
        (
            {"metadata": {"name": "other"}},
            422,
            (
                'TokenRequest.authentication.k8s.io "default" is invalid: metadata.name: Invalid '
                'value: "other": must match '
                "the service account name if specified"
            ),
        ),
        ({"metadata": {"uid": "other"}}, 409, None),
        (
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone"}}},
            404,
            'pods "gone" not found',
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "x"}}},
            400,
            "cannot bind token to object of type batch/v1, Kind=Job",
        ),
        ({"spec": {"audiences": "x"}}, 400, None),
    ],
)
def test_token_request_that_is_wrong_is_refused(
    api: Api, body: Any, status: int, text: str | None
) -> None:
    answer = api.post("/api/v1/namespaces/default/serviceaccounts/default/token", body)
    assert answer.status == status, answer.body
    assert text is None or message(answer) == text


def test_token_of_missing_account_is_not_found(api: Api) -> None:
    answer = api.post("/api/v1/namespaces/default/serviceaccounts/gone/token", {})
    assert (answer.status, message(answer)) == (404, 'serviceaccounts "gone" not found')


@pytest.mark.parametrize(
    ("kind", "path", "namespace"),
    [("Secret", "/api/v1/namespaces/default/secrets", "default"), ("Node", "/api/v1/nodes", "")],
)
def test_token_bound_to_object_ends_with_it(api: Api, kind: str, path: str, namespace: str) -> None:
    created = api.post(path, {"metadata": {"name": "holder"}}).json()
    reference = {
        "kind": kind,
        "apiVersion": "v1",
        "name": "holder",
        "uid": created["metadata"]["uid"],
    }
    token = token_for(api, "bot", boundObjectRef=reference)
    assert claims_of(token)["kubernetes.io"][kind.lower()] == {
        "name": "holder",
        "uid": reference["uid"],
    }
    assert api.get("/api", token=token).status == 200
    wrong = api.post(
        "/api/v1/namespaces/default/serviceaccounts/bot/token",
        {"spec": {"boundObjectRef": {**reference, "uid": "other"}}},
    )
    assert (wrong.status, message(wrong)) == (
        409,
        (
            f'Operation cannot be fulfilled on {kind} "holder": the UID in the bound object '
            f"reference (other) does not "
            "match the UID in record. The object might have been deleted and then recreated"
        ),
    )
    api.delete(f"{path}/holder")
    assert api.get("/api", token=token).status == 401
    assert token_review(api, token)["error"] == (
        "[invalid bearer token, service account token has been invalidated]"
    )


def test_token_bound_to_pod_names_pod_and_node(api: Api) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "serviceAccountName": "bot",
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "bot"}})
    uid = api.post(pods, pod).json()["metadata"]["uid"]
    token = token_for(
        api,
        "bot",
        boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "web"},
        expirationSeconds=3607,
    )
    claims = claims_of(token)
    assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": uid}
    assert claims["kubernetes.io"]["node"] == {"name": "n1"}  # of a node that is not there
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    prefix = "authentication.kubernetes.io/"
    extra = who(api, token=token)["extra"]
    assert {
        key.removeprefix(prefix): value for key, value in extra.items() if "credential" not in key
    } == {"pod-name": ["web"], "pod-uid": [uid], "node-name": ["n1"]}
    refused = api.post(
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "web"}}},
    )
    assert (refused.status, message(refused)) == (
        400,
        (
            'cannot bind token for serviceaccount "default" to pod running with different '
            "serviceaccount name."
        ),
    )
    api.delete(f"{pods}/web?gracePeriodSeconds=0")
    assert api.get("/api", token=token).status == 401


def test_token_of_deleted_account_is_refused_also_for_its_successor(api: Api) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    token = token_for(api, "bot")
    api.delete(f"{accounts}/bot")
    assert (
        token_review(api, token)["error"]
        == '[invalid bearer token, serviceaccounts "bot" not found]'
    )
    api.post(accounts, {"metadata": {"name": "bot"}})
    assert "does not match claim" in token_review(api, token)["error"]
    assert api.get("/api", token=token).status == 401


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"exp": 1}, "service account token has expired"),
        ({"nbf": 2**40}, "service account token is not valid yet"),
        ({"iat": 2**40}, "service account token is issued in the future"),
        ({"iss": "https://elsewhere"}, None),
        (
            {"aud": []},
            "token audiences [] is invalid for the target audiences "
            '["https://kubernetes.default.svc.cluster.local"]',
        ),
    ],
)
def test_token_with_wrong_claims_is_refused(api: Api, change: Any, text: str | None) -> None:
    token = SigningKey(SIGNING_KEY).sign({**claims_of(token_for(api, "bot")), **change})
    error = "invalid bearer token" if text is None else f"[invalid bearer token, {text}]"
    assert token_review(api, token) == {"user": {}, "error": error}
    assert api.get("/api", token=token).status == 401


def test_token_changed_or_signed_by_another_is_refused(api: Api) -> None:
    header, _, signature = token_for(api, "bot").split(".")
    claims = claims_of(token_for(api, "bot"))
    claims["kubernetes.io"]["serviceaccount"]["name"] = "default"
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    for forged in (
        f"{header}.{payload}.{signature}",
        f"{none}.{payload}.",
        f"{header}.{payload}.{'A' * 86}",
        f"{header}.{payload}.!",
    ):
        assert api.get("/api", token=forged).status == 401
        assert token_review(api, forged)["error"].startswith("[invalid bearer token, go-jose")


@pytest.mark.parametrize("name", ["../../x", "a\ud800", "x" * 5000, "\0", "a/b", "", ".."])
def test_token_that_names_an_odd_secret_is_refused(api: Api, name: str) -> None:
    prefix = "kubernetes.io/serviceaccount/"
    claims = {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:default",
        f"{prefix}namespace": "default",
        f"{prefix}secret.name": name,
        f"{prefix}service-account.name": "default",
        f"{prefix}service-account.uid": "x",
    }
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    assert api.get("/api", token=f"e30.{payload}.e30").status == 401


def test_token_in_secret_is_accepted_while_secret_has_it(new_api: NewApi, new_folder: Any) -> None:
    from kubepy.apiserver.tokens import legacy_token

    api = new_api()
    secrets = "/api/v1/namespaces/default/secrets"
    account = api.get("/api/v1/namespaces/default/serviceaccounts/default").json()
    secret = api.post(
        secrets,
        {
            "metadata": {
                "name": "t",
                "annotations": {"kubernetes.io/service-account.name": "default"},
            },
            "type": "kubernetes.io/service-account-token",
        },
    ).json()
    token = legacy_token(secret, account)
    assert api.get("/api", token=token).status == 401
    api.patch(f"{secrets}/t", {"data": {"token": base64.b64encode(token.encode()).decode()}})
    assert who(api, token=token)["username"] == "system:serviceaccount:default:default"
    api.patch(
        f"{secrets}/t",
        {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}}},
    )
    assert "has been marked invalid" in token_review(api, token)["error"]
    api.delete(f"{secrets}/t")
    assert token_review(api, token)["error"] == "[invalid bearer token, Token has been invalidated]"


# --- a real kubectl -------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")
def test_kubectl_of_service_account_may_what_roles_say(
    new_server: Callable[..., ServerProcess],
) -> None:
    server = new_server("--controllers=off", "--authorization=RBAC")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(server.folder.parent),
        "KUBECONFIG": str(server.kubeconfig),
    }

    def kubectl(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            ["kubectl", *words], env=env, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    bot = "system:serviceaccount:default:bot"
    assert kubectl("create", "serviceaccount", "bot")[0] == 0
    assert kubectl("auth", "can-i", "list", "pods", f"--as={bot}") == (1, "no\n")
    assert (
        kubectl(
            "create", "rolebinding", "bot", "--clusterrole=view", "--serviceaccount=default:bot"
        )[0]
        == 0
    )
    assert kubectl("auth", "can-i", "list", "pods", f"--as={bot}") == (0, "yes\n")
    status, token = kubectl("create", "token", "bot", "--duration=10m")
    assert status == 0
    as_bot = f"--token={token.strip()}"
    assert kubectl("auth", "whoami", as_bot, "-o", "jsonpath={.status.userInfo.username}") == (
        0,
        bot,
    )
    assert kubectl("get", "pods", as_bot) == (0, "No resources found in default namespace.\n")
    refused = (
        'Error from server (Forbidden): {0} is forbidden: User "{3}" cannot {1} resource "{0}" in '
        'API group "" '
        "{2}\n"
    )
    assert kubectl("get", "secrets", as_bot) == (
        1,
        refused.format("secrets", "list", 'in the namespace "default"', bot),
    )
    assert kubectl("get", "nodes", as_bot, "--as=ann") == (
        1,
        refused.format("nodes", "impersonate-on:user-info:list", "at the cluster scope", bot),
    )
    lines = kubectl("auth", "can-i", "--list", as_bot)[1].splitlines()
    assert any(line.split() == ["pods/log", "[]", "[]", "[get", "list", "watch]"] for line in lines)


# --- certificates ---------------------------------------------------------------------------------

CERTIFICATES = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def certificate_request(name: str, organization: str = "ops") -> dict[str, Any]:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "ann"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        ]
    )
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    )
    pem = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    return {
        "metadata": {"name": name},
        "spec": {
            "request": pem,
            "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    }


def test_certificate_of_masters_is_refused(api: Api) -> None:
    answer = api.post(CERTIFICATES, certificate_request("ann", "system:masters"))
    assert (answer.status, message(answer)) == (
        403,
        (
            'certificatesigningrequests.certificates.k8s.io "ann" is forbidden: use of '
            "kubernetes.io/kube-apiserver-client "
            "signer with system:masters group is not allowed"
        ),
    )


@pytest.mark.parametrize(
    ("signers", "granted"),
    [
        (["kubernetes.io/kube-apiserver-client"], True),
        (["kubernetes.io/*"], True),
        (["example.com/*"], False),
    ],
)
def test_certificate_is_approved_and_signed_by_those_who_may(
    rbac: Api, signers: list[str], granted: bool
) -> None:
    grant(
        rbac,
        "ann",
        "update,patch",
        "certificatesigningrequests/approval,certificatesigningrequests/status",
        "certificates.k8s.io",
    )
    request = rbac.post(CERTIFICATES, certificate_request("bob")).json()
    request["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}
    refused = rbac.request("PUT", f"{CERTIFICATES}/bob/approval", request, as_user("ann"))
    assert (refused.status, message(refused)) == (
        403,
        (
            'certificatesigningrequests.certificates.k8s.io "bob" is forbidden: user not '
            "permitted to approve requests "
            'with signerName "kubernetes.io/kube-apiserver-client"'
        ),
    )
    grant(rbac, "ann", "approve,sign", "signers", "certificates.k8s.io", resourceNames=signers)
    approved = rbac.request("PUT", f"{CERTIFICATES}/bob/approval", request, as_user("ann"))
    assert approved.status == (200 if granted else 403)
    signed = rbac.request(
        "PATCH",
        f"{CERTIFICATES}/bob/status",
        {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "x"}]}},
        {**as_user("ann"), "Content-Type": "application/merge-patch+json"},
    )
    assert signed.status == (200 if granted else 403)
    if not granted:
        assert "user not permitted to sign requests with signerName" in message(signed)
