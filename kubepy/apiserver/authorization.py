"""Who may do what: the authorizers of a server, and the roles and bindings that one of them reads.

``AlwaysAllow`` lets everybody do everything; so does the command line, which works on the folder
itself. ``RBAC`` asks the Roles, ClusterRoles and bindings of the cluster. Upstream:
``plugin/pkg/auth/authorizer/rbac``, ``pkg/registry/rbac/validation`` (rule resolution),
``apiserver/pkg/authorization``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kubepy.api import errors
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.objects.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
)
from kubepy.api.values import names
from kubepy.quoting import quote

ALWAYS_ALLOW, RBAC = "AlwaysAllow", "RBAC"
MODES = (ALWAYS_ALLOW, RBAC)

INVALID_TOKEN = "invalid bearer token"
ANONYMOUS = "system:anonymous"
ALL_AUTHENTICATED, ALL_UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
PRIVILEGED_GROUP = "system:masters"
NODES_GROUP = "system:nodes"
CLUSTER_ADMINS = "kubeadm:cluster-admins"
SERVICE_ACCOUNTS_GROUP = "system:serviceaccounts"
ACCOUNT_PREFIX, NODE_PREFIX = "system:serviceaccount:", "system:node:"
Mark = tuple[int, str | None]  # a revision, and the deletions of implied objects
KINDS = (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES)

EVERYTHING: tuple[Object, ...] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
# kubeadm binds its administrators so. The binding is always there, that nobody locks the owner of
# the folder out.
_ADMINISTRATORS: Object = {
    "metadata": {"name": CLUSTER_ADMINS},
    "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": CLUSTER_ADMINS}],
}
# Go's strings.Replacer of errors, so that none looks like HTML.
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class AttributesRecord(NamedTuple):
    """A request as authorizers look at it (``authorizer.AttributesRecord``).

    :ivar user: a UserInfo.
    :ivar path: of a request that is not about a resource.
    """

    user: Object
    verb: str
    api_group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    is_resource_request: bool = True
    path: str = ""

    @property
    def combined_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def forbidden(self, reason: str = "") -> errors.Forbidden:
        """Make the error of a request that nobody has allowed (``ForbiddenStatusError``)."""
        user, verb = quote(self.user.get("username", "")), self.verb
        if self.is_resource_request:
            where = (
                f"in the namespace {quote(self.namespace)}"
                if self.namespace
                else "at the cluster scope"
            )
            detail = (
                f"User {user} cannot {verb} resource {quote(self.combined_resource)} in API group "
                f"{quote(self.api_group)} {where}"
            )
        else:
            detail = f"User {user} cannot {verb} path {quote(self.path)}"

        detail = detail.translate(_HTML) + (f": {reason}" if reason else "")
        if not self.resource:  # upstream's message of an error without a resource
            subject = f"{quote(self.name)} is forbidden" if self.name else "forbidden"
            return errors.Forbidden(f"{subject}: {detail}", name=self.name)
        resource = f"{self.resource}.{self.api_group}" if self.api_group else self.resource
        return errors.forbidden(resource, self.name, detail)


class AuthorizationDecision(NamedTuple):
    """The answer of an authorizer. One that does not allow a request has no opinion: none here
    denies."""

    allowed: bool
    reason: str = ""


class ReviewContext(NamedTuple):
    """All that the answer of a review depends on.

    :ivar requester: a UserInfo.
    :ivar authenticate: returns whose a token is, for one of some audiences, with those that it is
        for. Raises TokenError.
    :ivar now: a timestamp.
    """

    requester: Object
    authorizer: Authorizer
    authenticate: Callable[[str, Sequence[str]], tuple[Object, list[str]]]
    now: str
    namespace: str


class ResolvedRules(NamedTuple):
    """The rules that apply to a user in a namespace, and the errors met on the way to them."""

    rules: list[Object]
    errors: list[str]


class Authorizer(Protocol):
    """An authorizer of one cluster."""

    @property
    def mode(self) -> str:
        """Return its name, as ``--authorization`` has it."""

    def authorize(self, attributes: AttributesRecord) -> AuthorizationDecision:
        """Decide about a request."""

    def rules_for(self, user: Object, namespace: str) -> ResolvedRules:
        """Return the rules that apply to a user in a namespace."""


class TokenError(Exception):
    """A token that is not accepted; the message says why."""


class AlwaysAllowAuthorizer:
    """Allows every request."""

    mode = ALWAYS_ALLOW

    def authorize(self, attributes: AttributesRecord) -> AuthorizationDecision:
        return AuthorizationDecision(True)

    def rules_for(self, user: Object, namespace: str) -> ResolvedRules:
        return ResolvedRules(list(EVERYTHING), [])


class RbacAuthorizer:
    """Allows what the roles of a cluster allow, and everything to ``system:masters``.

    The bindings are compiled when they are first needed, and again when a role or binding has
    changed.

    :param changed_since: returns a mark of the moment, and whether any role or binding has changed
        since another mark.
    :param list_objects: returns all objects of a resource.
    """

    mode = RBAC

    def __init__(
        self,
        changed_since: Callable[[Mark], tuple[Mark, bool]],
        list_objects: Callable[[str], list[Object]],
    ) -> None:
        self._changed_since = changed_since
        self._list_objects = list_objects
        self._compiled: tuple[Mark, RbacPolicy] = (-1, None), RbacPolicy([], [], [], [])

    def authorize(self, attributes: AttributesRecord) -> AuthorizationDecision:
        if PRIVILEGED_GROUP in (attributes.user.get("groups") or ()):
            return AuthorizationDecision(True)
        return self.policy.authorize(attributes)

    def rules_for(self, user: Object, namespace: str) -> ResolvedRules:
        rules, problems = [], []
        for _, rule, problem in self.policy.visit_rules_for(user, namespace):
            if rule is None:
                problems.append(problem)
            else:
                rules.append(rule.source)
        return ResolvedRules(rules, problems)

    @property
    def policy(self) -> RbacPolicy:
        """The compiled roles and bindings, as they are now."""
        mark, policy = self._compiled
        mark, has_changed = self._changed_since(mark)
        if has_changed:
            policy = RbacPolicy(*(self._list_objects(kind) for kind in KINDS))
        self._compiled = mark, policy
        return policy


class Rule:
    """A PolicyRule whose fields are sets.

    :ivar source: the rule as the role has it.
    """

    __slots__ = ("_groups", "_names", "_prefixes", "_resources", "_urls", "_verbs", "source")

    def __init__(self, source: Object) -> None:
        self.source = source
        self._verbs, self._groups, self._resources, self._names, self._urls = (
            frozenset(source.get(field) or ())
            for field in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        )
        self._prefixes = tuple(url.rstrip("*") for url in self._urls if url.endswith("*"))

    def allows(self, attributes: AttributesRecord) -> bool:
        if attributes.verb not in self._verbs and "*" not in self._verbs:
            return False
        if not attributes.is_resource_request:
            return attributes.path in self._urls or attributes.path.startswith(self._prefixes)
        if attributes.api_group not in self._groups and "*" not in self._groups:
            return False
        resources = self._resources
        return (
            "*" in resources
            or attributes.combined_resource in resources
            or (attributes.subresource != "" and f"*/{attributes.subresource}" in resources)
        ) and (not self._names or attributes.name in self._names)


class _Binding(NamedTuple):
    """A binding with the compiled rules of its role, or the error of a role that there is not."""

    position: int
    source: Object
    rules: tuple[Rule, ...]
    error: str

    def describe(self, user: Object) -> str:
        """Return the words of a decision for the first of its subjects that the user is."""
        namespace, role = namespace_of(self.source), self.source["roleRef"]
        subject = next(
            subject for subject in self.source["subjects"] if _applies(subject, user, namespace)
        )
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{name}/{subject.get('namespace') or namespace}"
        kind, own = "ClusterRoleBinding", name_of(self.source)
        if namespace:
            kind, own = "RoleBinding", f"{own}/{namespace}"
        return (
            f"{kind} {quote(own)} of {role['kind']} {quote(role['name'])} to {subject['kind']} "
            f"{quote(name)}"
        )


class RbacPolicy:
    """Roles and bindings, compiled: what each user and group is bound to, in each namespace ("" for
    all of them)."""

    def __init__(
        self,
        cluster_bindings: Iterable[Object],
        cluster_roles: Iterable[Object],
        bindings: Iterable[Object],
        roles: Iterable[Object],
    ) -> None:
        self._rules = {("", name_of(role)): _compiled(role) for role in cluster_roles}
        self._rules |= {(namespace_of(role), name_of(role)): _compiled(role) for role in roles}
        self._bindings: dict[tuple[str, str, str], list[_Binding]] = {}
        cluster_bindings = [
            binding for binding in cluster_bindings if name_of(binding) != CLUSTER_ADMINS
        ]
        for position, binding in enumerate((*cluster_bindings, _ADMINISTRATORS, *bindings)):
            self._add(position, binding)

    def _add(self, position: int, source: Object) -> None:
        namespace, role = namespace_of(source), source.get("roleRef") or {}
        rules, error = self.rules_of(role, namespace)
        if source is _ADMINISTRATORS:
            rules, error = tuple(Rule(rule) for rule in EVERYTHING), ""
        compiled = _Binding(position, source, rules, error)
        for subject in source.get("subjects") or ():
            kind, name = subject.get("kind"), subject.get("name", "")
            if kind == "ServiceAccount":
                home = subject.get("namespace") or namespace
                kind, name = ("User", f"{ACCOUNT_PREFIX}{home}:{name}") if home else ("", "")
            bound = self._bindings.setdefault((namespace, str(kind), name), [])
            if not bound or bound[-1] is not compiled:
                bound.append(compiled)

    def rules_of(self, role: Object, namespace: str) -> tuple[tuple[Rule, ...], str]:
        """Return the rules of a role that a binding refers to, or the error of one that there is
        not.

        :param namespace: that of the binding.
        """
        kind, name = role.get("kind", ""), role.get("name", "")
        if kind not in ("Role", "ClusterRole"):
            return (), f"unsupported role reference kind: {quote(kind)}"
        rules = self._rules.get((namespace if kind == "Role" else "", name))
        return (
            rules or (),
            "" if rules is not None else f"{kind.lower()}.{GROUP} {quote(name)} not found",
        )

    def _bindings_of(self, user: Object, namespace: str) -> Iterable[_Binding]:
        """Return the bindings that apply to a user, those of the whole cluster first."""
        subjects = [
            ("User", user.get("username", "")),
            *(("Group", group) for group in user.get("groups") or ()),
        ]
        found = {
            binding.position: binding
            for home in (("", namespace) if namespace else ("",))
            for kind, name in subjects
            for binding in self._bindings.get((home, kind, name), ())
        }
        return [found[position] for position in sorted(found)]

    def visit_rules_for(
        self, user: Object, namespace: str
    ) -> Iterator[tuple[_Binding, Rule | None, str]]:
        """Yield each rule that applies to a user in a namespace with its binding, or the error of a
        binding."""
        for binding in self._bindings_of(user, namespace):
            if binding.error:
                yield binding, None, binding.error
            for rule in binding.rules:
                yield binding, rule, ""

    def authorize(self, attributes: AttributesRecord) -> AuthorizationDecision:
        problems: list[str] = []
        for binding, rule, problem in self.visit_rules_for(attributes.user, attributes.namespace):
            if rule is None:
                problems.append(problem)
            elif rule.allows(attributes):
                return AuthorizationDecision(
                    True, f"RBAC: allowed by {binding.describe(attributes.user)}"
                )
        return AuthorizationDecision(False, f"RBAC: {aggregate(problems)}" if problems else "")


def _compiled(role: Object) -> tuple[Rule, ...]:
    return tuple(Rule(rule) for rule in role.get("rules") or ())


def _applies(subject: Object, user: Object, namespace: str) -> bool:
    """Tell whether a subject of a binding is a user."""
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "Group":
        return name in (user.get("groups") or ())
    if kind == "ServiceAccount":
        name = f"{ACCOUNT_PREFIX}{subject.get('namespace') or namespace}:{name}"
    return bool(user.get("username", "") == name)


def aggregate(problems: Iterable[str]) -> str:
    """Return several errors as one, as Go's ``utilerrors.NewAggregate`` prints them."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


# --- users ----------------------------------------------------------------------------------------


def split_account(username: str) -> tuple[str, str] | None:
    """Return namespace and name of the ServiceAccount that a user is, None for other users
    (``SplitUsername``)."""
    if not username.startswith(ACCOUNT_PREFIX):
        return None
    parts = username.removeprefix(ACCOUNT_PREFIX).split(":")
    if len(parts) != 2 or names.dns1123_label(parts[0]) or names.dns1123_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def account_groups(namespace: str) -> list[str]:
    return [SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{namespace}"]


def new_user(
    name: str, groups: Iterable[str] = (), uid: str = "", extra: Mapping[str, Any] | None = None
) -> Object:
    """Return a UserInfo without its empty fields."""
    return {
        "username": name,
        **({"uid": uid} if uid else {}),
        "groups": list(groups),
        **({"extra": {key: list(values) for key, values in extra.items()}} if extra else {}),
    }


def with_implied_groups(user: Object) -> Object:
    """Return a user that somebody impersonates with the groups that come with the name."""
    groups = list(user.get("groups") or ())
    account = split_account(user["username"])
    if account and not groups:
        groups = account_groups(account[0])
    if user["username"] == ANONYMOUS:
        groups += [] if ALL_UNAUTHENTICATED in groups else [ALL_UNAUTHENTICATED]
    elif ALL_UNAUTHENTICATED not in groups and ALL_AUTHENTICATED not in groups:
        groups.append(ALL_AUTHENTICATED)
    return {**user, "groups": groups}
