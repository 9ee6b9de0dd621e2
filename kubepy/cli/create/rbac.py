"""``kubepy create role``, ``clusterrole``, ``rolebinding`` and ``clusterrolebinding``.

Nothing here asks for permissions: these objects are kept for what reads them. Upstream:
``kubectl/pkg/cmd/create/create_{role,clusterrole,rolebinding,clusterrolebinding}.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.create.objects import generator, metadata
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, FlagKind
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.verbs import Invocation
from kubepy.quoting import printable, quote

GROUP = "rbac.authorization.k8s.io"
VERSION = f"{GROUP}/v1"
VERBS = ("*", "get", "delete", "list", "create", "update", "patch", "watch", "proxy", "deletecollection", "use", "bind",
         "escalate", "impersonate")
URL_VERBS = ("*", "get", "post", "put", "delete", "patch", "head", "options")
# Verbs that only fit some resources, each as its group and name.
SPECIAL_VERBS: Mapping[str, Sequence[tuple[str, str]]] = {
    "use": (("policy", "podsecuritypolicies"), ("extensions", "podsecuritypolicies")),
    "bind": ((GROUP, "roles"), (GROUP, "clusterroles")),
    "escalate": ((GROUP, "roles"), (GROUP, "clusterroles")),
    "impersonate": (("", "users"), ("", "serviceaccounts"), ("", "groups"), ("authentication.k8s.io", "userextras")),
}
RULE_FLAGS = [
    strings("verb", help="Verb that applies to the resources contained in the rule."),
    strings("resource", help="Resource that the rule applies to: RESOURCE[.GROUP][/SUBRESOURCE]."),
    string_array("resource-name", help="Name of an object that the rule applies to; repeat this flag for several."),
]


def aggregation_pairs(text: str) -> list[tuple[str, str]]:
    """``a=b,c=d``. Raises ValueError."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("malformed pair, expect string=string")
    return [(key.strip(), value.strip()) for key, _, value in pairs]


class Wanted(NamedTuple):
    """One ``--resource``: ``deployments.apps/scale``."""

    group: str
    name: str
    subresource: str


@generator("role", "role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename]",
           flags=RULE_FLAGS, examples="""
# Reading pods and their status
kubepy create role reader --verb=get,list,watch --resource=pods,pods/status

# Scaling one deployment
kubepy create role scaler --verb=update --resource=deployments.apps/scale --resource-name=web
""")
def role(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a role with a single rule for each API group."""
    verbs, wanted = verbs_of(given), resources_of(given)
    _require_verbs(verbs)
    _warn_of_unusual(factory, verbs)
    if not wanted:
        raise CliError("at least one resource must be specified")
    _check_resources(factory, wanted, verbs)
    return {"kind": "Role", "apiVersion": VERSION, "metadata": metadata(factory, name),
            "rules": rules(factory, given, verbs, wanted)}


@generator("clusterrole", "clusterrole NAME --verb=verb --resource=resource.group [--resource-name=name]", flags=[
    *RULE_FLAGS,
    strings("non-resource-url", help="A partial URL that the rule applies to."),
    Flag("aggregation-rule", "", "", FlagKind(aggregation_pairs, repeated=True),
         help="Labels of the cluster roles that are combined into this one (key=value,…)."),
], examples="""
# Reading nodes
kubepy create clusterrole node-reader --verb=get,list --resource=nodes

# The rules of all cluster roles with a label
kubepy create clusterrole monitoring --aggregation-rule=monitoring=true
""")
def clusterrole(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a cluster role, of rules or of other cluster roles."""
    verbs, wanted, urls = verbs_of(given), resources_of(given), list(dict.fromkeys(given.non_resource_url))
    made = {"kind": "ClusterRole", "apiVersion": VERSION, "metadata": {"name": name}}
    if given.aggregation_rule:
        if urls or verbs or wanted or given.resource_name:
            raise CliError("aggregation rule must be specified without nonResourceURLs, verbs, resources or "
                           "resourceNames")
        selector = {"matchLabels": dict(sorted(given.aggregation_rule))}
        return {**made, "rules": None, "aggregationRule": {"clusterRoleSelectors": [selector]}}
    _require_verbs(verbs)
    if not wanted and not urls:
        raise CliError("one of resource or nonResourceURL must be specified")
    if wanted:
        _warn_of_unusual(factory, verbs)
        _check_resources(factory, wanted, verbs)
    _check_urls(urls, verbs)
    url_rules = [{"verbs": verbs, "nonResourceURLs": urls}] if urls else []
    return {**made, "rules": [*rules(factory, given, verbs, wanted), *url_rules]}


def verbs_of(given: Invocation) -> list[str]:
    """Each once; ``*`` alone."""
    return ["*"] if "*" in given.verb else list(dict.fromkeys(given.verb))


def resources_of(given: Invocation) -> list[Wanted]:
    """A ``*`` takes the place of all that were named before, and ends the list."""
    found: list[Wanted] = []
    for text in given.resource:
        if text == "*":
            return [Wanted("", "*", "")]
        path, _, subresource = text.partition("/")
        name, _, group = path.partition(".")
        found.append(Wanted(group, name, subresource))
    return found


def _require_verbs(verbs: list[str]) -> None:
    if not verbs:
        raise CliError("at least one verb must be specified")


def _warn_of_unusual(factory: Factory, verbs: list[str]) -> None:
    for verb in verbs:
        if verb not in VERBS:
            factory.say(printable(f"Warning: '{verb}' is not a standard resource verb"))


def _check_resources(factory: Factory, wanted: list[Wanted], verbs: list[str]) -> None:
    """Raise an error for what is no resource, or not one for the verbs; nothing after a ``*`` is looked at."""
    for one in wanted:
        if not one.name:
            raise CliError("resource must be specified if apiGroup/subresource specified")
        if one.name == "*":
            return
        group, name = _resolved(factory, one)
        special = [verb for verb in verbs if verb in SPECIAL_VERBS]
        for verb in special:
            if (group, name) not in SPECIAL_VERBS[verb]:
                raise CliError(f"can not perform '{verb}' on '{name}' in group '{group}'")
        if not special and factory.scheme.find(_word(one)) is None:
            where = f" in group {quote(one.group)}" if one.group else ""
            raise UnprefixedError(f"the server doesn't have a resource type {quote(one.name)}{where}")


def _word(one: Wanted) -> str:
    return f"{one.name}.{one.group}" if one.group else one.name


def _resolved(factory: Factory, one: Wanted) -> tuple[str, str]:
    """Its group and its plural, if there is such a resource; else as it was given."""
    found = factory.scheme.find(_word(one))
    return (found.group, found.plural) if found else (one.group, one.name)


def rules(factory: Factory, given: Invocation, verbs: list[str], wanted: list[Wanted]) -> list[Object]:
    """A rule for each API group, sorted."""
    groups: dict[str, dict[str, None]] = {}
    for one in wanted:
        group, name = _resolved(factory, one)
        groups.setdefault(group, {})[f"{name}/{one.subresource}" if one.subresource else name] = None
    names = {"resourceNames": list(dict.fromkeys(given.resource_name))} if given.resource_name else {}
    return [{"verbs": verbs, "apiGroups": [group], "resources": list(groups[group]), **names}
            for group in sorted(groups)]


def _check_urls(urls: list[str], verbs: list[str]) -> None:
    for verb in verbs if urls else ():
        if verb not in URL_VERBS:
            raise CliError(f"invalid verb: '{verb}' for nonResourceURL")
    for url in urls:
        if url != "*" and not url.startswith("/"):
            raise CliError("nonResourceURL should start with /")
        if "*" in url[:-1]:
            raise CliError("nonResourceURL only supports wildcard matches when '*' is at the end")


# --- bindings -----------------------------------------------------------------------------------------------------

SUBJECT_FLAGS = [
    string_array("user", help="User to bind to the role; repeat this flag for several."),
    string_array("group", help="Group to bind to the role; repeat this flag for several."),
    string_array("serviceaccount", help="Service account to bind to the role, as <namespace>:<name>; repeat this flag "
                 "for several."),
]


@generator("rolebinding", "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=user] [--group=group]", flags=[
    string("clusterrole", help="ClusterRole this RoleBinding should reference."),
    string("role", help="Role this RoleBinding should reference."), *SUBJECT_FLAGS,
], failure="failed to create rolebinding: ", examples="""
# A role for two users
kubepy create rolebinding readers --role=reader --user=ann --user=bob

# A cluster role, for a service account in this namespace only
kubepy create rolebinding agent --clusterrole=view --serviceaccount=edge:agent
""")
def rolebinding(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a role binding for a particular role or cluster role."""
    if bool(given.clusterrole) == bool(given.role):
        raise CliError("exactly one of clusterrole or role must be specified")
    reference = ("Role", given.role) if given.role else ("ClusterRole", given.clusterrole)
    return _binding("RoleBinding", metadata(factory, name), reference, given)


@generator("clusterrolebinding", "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname]",
           checks_name=False,
           flags=[string("clusterrole", help="ClusterRole this ClusterRoleBinding should reference."), *SUBJECT_FLAGS],
           required=["clusterrole"], failure="failed to create clusterrolebinding: ", examples="""
# A cluster role for a service account
kubepy create clusterrolebinding agent --clusterrole=node-reader --serviceaccount=edge:agent

# For a group
kubepy create clusterrolebinding admins --clusterrole=cluster-admin --group=ops
""")
def clusterrolebinding(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a cluster role binding for a particular cluster role."""
    return _binding("ClusterRoleBinding", {"name": name}, ("ClusterRole", given.clusterrole), given)


def _binding(kind: str, meta: Object, reference: tuple[str, str], given: Invocation) -> Object:
    subjects = list(subjects_of(given))
    role_kind, role_name = reference
    return {"kind": kind, "apiVersion": VERSION, "metadata": meta, **({"subjects": subjects} if subjects else {}),
            "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name}}


def subjects_of(given: Invocation) -> Iterator[Object]:
    """Users, groups and service accounts. Raises CliError."""
    for name in given.user:
        yield {"kind": "User", "apiGroup": GROUP, "name": name}
    for name in given.group:
        yield {"kind": "Group", "apiGroup": GROUP, "name": name}
    for text in given.serviceaccount:
        namespace, _, name = text.partition(":")
        if not namespace or not name or ":" in name:
            raise CliError("serviceaccount must be <namespace>:<name>")
        yield {"kind": "ServiceAccount", "name": name, "namespace": namespace}
