"""The RBAC authorizer: upstream's own cases (``authorizer/rbac/rbac_test.go``), and a cluster's
roles."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.authorization import (
    ALWAYS_ALLOW,
    RBAC,
    AttributesRecord,
    RbacPolicy,
    Rule,
    account_groups,
    new_user,
    split_account,
    with_implied_groups,
)
from kubepy.apiserver.client import Client
from kubepy.apiserver.server import ADMINISTRATOR

GROUP = "rbac.authorization.k8s.io"


def rule(
    verbs: str, groups: str = "", resources: str = "", urls: str = "", names: str = ""
) -> Object:
    fields = {
        "verbs": verbs,
        "apiGroups": groups,
        "resources": resources,
        "nonResourceURLs": urls,
        "resourceNames": names,
    }
    return {
        field: value.split(",") for field, value in fields.items() if value or field == "apiGroups"
    }


def role(name: str, *rules: Object, namespace: str = "") -> Object:
    return {
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "rules": list(rules),
    }


def binding(
    role_name: str, *subjects: str, namespace: str = "", kind: str = "ClusterRole", name: str = "b"
) -> Object:
    split = [subject.split(":", 1) for subject in subjects]
    return {
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": [{"kind": kind, "name": name} for kind, name in split],
    }


def request(
    user: str,
    groups: str,
    verb: str,
    resource: str,
    subresource: str = "",
    namespace: str = "",
    group: str = "",
) -> AttributesRecord:
    return AttributesRecord(
        new_user(user, groups.split(",")), verb, group, resource, subresource, namespace
    )


def path(user: str, groups: str, verb: str, url: str) -> AttributesRecord:
    return AttributesRecord(
        new_user(user, groups.split(",")), verb, is_resource_request=False, path=url
    )


ADMIN = RbacPolicy(
    [],
    [role("admin", rule("*", "*", "*", "*"))],
    [binding("admin", "User:admin", "Group:admins", namespace="ns1")],
    [],
)
PATHS = RbacPolicy(
    [
        binding("getter", "User:foo", "Group:bar"),
        binding("all", "User:admin", "Group:admin"),
        binding("prefix", "User:prefixed", "Group:prefixed"),
    ],
    [
        role("getter", rule("get", urls="/apis")),
        role("all", rule("*", urls="/apis")),
        role("prefix", rule("get", urls="/apis/*")),
    ],
    [],
    [],
)
PODS = RbacPolicy(
    [],
    [role("admin", rule("*", "*", "pods", "*"))],
    [binding("admin", "User:admin", namespace="ns1")],
    [],
)
SUBRESOURCES = RbacPolicy(
    [],
    [role("admin", rule("*", "*", "pods/status"), rule("*", "*", "*/scale"))],
    [binding("admin", "User:admin", namespace="ns1")],
    [],
)


@pytest.mark.parametrize(
    ("policy", "attributes", "allowed"),
    [
        (ADMIN, request("admin", "", "get", "Pods", "", "ns1"), True),
        (ADMIN, request("admin", "group1", "watch", "Foobar", "", "ns1"), True),
        (ADMIN, request("joe", "admins", "watch", "Foobar", "", "ns1"), True),
        (ADMIN, request("joe", "group1,admins", "watch", "Foobar", "", "ns1"), True),
        (ADMIN, request("admin", "", "GET", "Pods", "", "ns2"), False),
        (ADMIN, request("admin", "admins", "GET", "Nodes"), False),
        (ADMIN, request("joe", "", "get", "Pods", "", "ns1"), False),
        (PATHS, path("foo", "", "get", "/apis"), True),
        (PATHS, path("", "bar", "get", "/apis"), True),
        (PATHS, path("admin", "", "watch", "/apis"), True),
        (PATHS, path("prefixed", "", "get", "/apis/v1"), True),
        (PATHS, path("", "prefixed", "get", "/apis/v1/foobar"), True),
        (PATHS, path("foo", "", "watch", "/apis"), False),
        (PATHS, path("foo", "", "get", "/api/v1"), False),
        (PATHS, path("prefixed", "", "get", "/apis"), False),
        (PATHS, path("prefixed", "", "get", "/api/v1"), False),
        (PODS, request("admin", "", "get", "pods", "", "ns1"), True),
        (PODS, request("admin", "", "get", "pods", "status", "ns1"), False),
        (SUBRESOURCES, request("admin", "", "get", "pods", "status", "ns1"), True),
        (SUBRESOURCES, request("admin", "", "get", "pods", "scale", "ns1"), True),
        (SUBRESOURCES, request("admin", "", "get", "anything", "scale", "ns1"), True),
        (SUBRESOURCES, request("admin", "", "get", "pods", "", "ns1"), False),
        (SUBRESOURCES, request("admin", "", "get", "pods", "autoscale", "ns1"), False),
    ],
)
def test_policy_upstream_case_decides_alike(
    policy: RbacPolicy, attributes: AttributesRecord, allowed: bool
) -> None:
    assert policy.authorize(attributes).allowed is allowed


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (rule("*", "group1", "resource1"), {"v1g1r1", "v2g1r1"}),
        (rule("verb1", "*", "resource1"), {"v1g1r1", "v1g2r1"}),
        (rule("verb1", "group1", "*"), {"v1g1r1", "v1g1r2"}),
        (
            rule("verb1,verb2", "group1,group2", "resource1,resource2"),
            {f"v{verb}g{group}r{resource}" for verb, group, resource in product((1, 2), repeat=3)},
        ),
        (
            rule("*", "*", "*"),
            {f"v{verb}g{group}r{resource}" for verb, group, resource in product((1, 2), repeat=3)},
        ),
        (rule("verb1", "group1", "resource1", names="x"), set()),
        (rule("verb1", urls="*"), set()),
    ],
)
def test_rule_verb_group_resource_matches_as_upstream(source: Object, expected: set[str]) -> None:
    allowed = {
        f"v{verb}g{group}r{resource}"
        for verb, group, resource in product((1, 2), repeat=3)
        if Rule(source).allows(
            AttributesRecord({}, f"verb{verb}", f"group{group}", f"resource{resource}")
        )
    }
    assert allowed == expected


@pytest.mark.parametrize(
    ("source", "url", "allowed"),
    [
        ("/logs", "/logs", True),
        ("/logs", "/logs/", False),
        ("/logs/*", "/logs/a/b", True),
        ("/logs/*", "/logs", False),
        ("*", "/anything", True),
        ("/api**", "/apis", True),
        ("/api/*", "/ap", False),
    ],
)
def test_rule_url_star_at_end_is_prefix(source: str, url: str, allowed: bool) -> None:
    assert Rule(rule("get", urls=source)).allows(path("u", "", "get", url)) is allowed
    assert not Rule(rule("get", urls=source)).allows(request("u", "", "get", "pods"))


def test_rule_names_allow_those_names_only() -> None:
    named = Rule(rule("get,list", "", "configmaps", names="a,b"))
    asked = [
        request("u", "", "get", "configmaps")._replace(name=name) for name in ("a", "b", "c", "")
    ]
    assert [named.allows(attributes) for attributes in asked] == [True, True, False, False]


def test_service_account_subject_takes_namespace_of_role_binding_but_none_of_cluster_binding() -> (
    None
):
    policy = RbacPolicy(
        [binding("r", "ServiceAccount:bot")],
        [role("r", rule("get", "", "pods"))],
        [binding("r", "ServiceAccount:bot", namespace="shop")],
        [],
    )
    asked = [
        request(f"system:serviceaccount:{home}:bot", "", "get", "pods", "", namespace).user
        for home, namespace in (("shop", "shop"), ("other", "shop"))
    ]
    assert [
        policy.authorize(AttributesRecord(user, "get", "", "pods", "", "shop")).allowed
        for user in asked
    ] == [True, False]
    assert policy.authorize(AttributesRecord(asked[0], "get", "", "pods", "", "shop")).reason == (
        'RBAC: allowed by RoleBinding "b/shop" of ClusterRole "r" to ServiceAccount "bot/shop"'
    )


def test_missing_roles_stand_in_reason_of_refusal() -> None:
    policy = RbacPolicy(
        [binding("gone", "User:ann", name="one"), binding("away", "User:ann", name="two")],
        [],
        [binding("none", "Group:ops", namespace="shop", kind="Role")],
        [],
    )
    one = policy.authorize(request("bob", "ops", "get", "pods", namespace="shop"))
    assert one == (False, f'RBAC: role.{GROUP} "none" not found')
    two = policy.authorize(request("ann", "", "get", "pods"))
    assert two == (
        False,
        f'RBAC: [clusterrole.{GROUP} "gone" not found, clusterrole.{GROUP} "away" not found]',
    )


# --- a cluster ------------------------------------------------------------------------------------


def allowed(
    client: Client, user: Object, verb: str, resource: str, namespace: str = "", **more: str
) -> bool:
    return client.authorizer.authorize(
        AttributesRecord(user, verb, resource=resource, namespace=namespace)._replace(**more)
    ).allowed  # type: ignore[arg-type]


def names(objects: Iterable[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


ANN = new_user("ann", ["system:authenticated"])


def test_cluster_always_allow_is_default(client: Client) -> None:
    assert client.authorizer.mode == ALWAYS_ALLOW
    assert allowed(client, ANN, "delete", "nodes")


def test_cluster_implied_roles_count_and_administrator_may_do_everything(client: Client) -> None:
    client.use_authorization(RBAC)
    assert allowed(client, ADMINISTRATOR, "delete", "nodes")
    assert allowed(client, new_user("x", ["system:masters"]), "delete", "nodes")
    assert not allowed(client, ANN, "get", "pods", "default")
    discovery = AttributesRecord(ANN, "get", is_resource_request=False, path="/apis/apps/v1")
    assert client.authorizer.authorize(discovery).reason == (
        'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" '
        "to Group "
        '"system:authenticated"'
    )


def test_cluster_changed_roles_count_at_once(client: Client) -> None:
    client.use_authorization(RBAC)
    asked = ("get", "pods", "default")
    assert not allowed(client, ANN, *asked)
    client.create(
        "rolebindings.rbac.authorization.k8s.io",
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "RoleBinding",
            **binding("view", "User:ann", namespace="default"),
        },
    )
    assert allowed(client, ANN, *asked)
    assert not allowed(client, ANN, "get", "pods", "kube-system")
    assert not allowed(client, ANN, "get", "secrets", "default")
    client.delete(f"clusterroles.{GROUP}", "view")  # an implied one: nothing in storage changes
    decision = client.authorizer.authorize(request("ann", "", *asked[:2], namespace="default"))
    assert decision == (False, f'RBAC: clusterrole.{GROUP} "view" not found')


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            request("ann", "", "list", "pods", namespace="y"),
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the '
            'namespace "y"',
        ),
        (
            request("a<b>&", "", "update", "deployments", "scale", "y", "apps")._replace(
                name="web"
            ),
            'deployments.apps "web" is forbidden: User "a&lt;b&gt;&amp;" cannot update resource '
            '"deployments/scale" in API '
            'group "apps" in the namespace "y"',
        ),
        (
            request("ann", "", "create", "nodes"),
            'nodes is forbidden: User "ann" cannot create resource "nodes" in API group "" at the '
            "cluster scope",
        ),
        (path("ann", "", "get", "/metrics"), 'forbidden: User "ann" cannot get path "/metrics"'),
    ],
)
def test_forbidden_has_upstream_words(attributes: AttributesRecord, message: str) -> None:
    error = attributes.forbidden()
    assert isinstance(error, errors.Forbidden)
    assert error.message == message
    assert attributes.forbidden("RBAC: why <not>").message == f"{message}: RBAC: why <not>"


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("ann", [], ["system:authenticated"]),
        ("ann", ["ops"], ["ops", "system:authenticated"]),
        ("ann", ["system:unauthenticated"], ["system:unauthenticated"]),
        ("system:anonymous", [], ["system:unauthenticated"]),
        ("system:serviceaccount:shop:bot", [], [*account_groups("shop"), "system:authenticated"]),
        ("system:serviceaccount:shop:bot", ["ops"], ["ops", "system:authenticated"]),
        ("system:serviceaccount:shop:a:b", [], ["system:authenticated"]),
    ],
)
def test_impersonated_user_gets_groups_of_name(
    name: str, groups: list[str], expected: list[str]
) -> None:
    assert with_implied_groups(new_user(name, groups))["groups"] == expected


@pytest.mark.parametrize(
    ("username", "account"),
    [
        ("system:serviceaccount:shop:bot", ("shop", "bot")),
        ("system:serviceaccount:shop:a.b", ("shop", "a.b")),
        ("system:serviceaccount:Shop:bot", None),
        ("system:serviceaccount:shop", None),
        ("ann", None),
    ],
)
def test_split_account_name_of_account_or_none(
    username: str, account: tuple[str, str] | None
) -> None:
    assert split_account(username) == account
